"""Tries what is in a folder as its users would: wheels in clean environments without a compiler, a program in C++, and
the source archive.

Used by tools/wheel.py --test. Each Python that is there gets the wheel that pip picks for it.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEST_TOOLS = ("pytest>=8",)
# Kernels, MPI, BLAS, errors of ranks: what depends on how the wheel was compiled.
TESTS = ("tests/mpi/test_random_programs_over_ranks.py", "tests/mpi/test_linalg.py", "tests/mpi/test_patterns.py")
TIMEOUT_S = 900


def check(*command, **options):
    """Run a command in at most a quarter of an hour; its output where that is asked for."""
    return subprocess.run([str(word) for word in command], check=True, timeout=TIMEOUT_S, **options)


def without_compiler(folder, place):
    """Variables: PATH has the environment's programs, and of the machine's only what launching takes; another HOME."""
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    for name in ("sh", "env", "cat", "ps", "uname", "hostname"):
        if (path := shutil.which(name)) and not (programs / name).exists():
            (programs / name).symlink_to(path)
    gone = ("TILEWAVE", "PYTHON", "CXX", "XDG")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(gone)}
    return {**kept, "PATH": f"{place}{os.pathsep}{programs}", "HOME": str(folder)}


def one_python(python, dist, folder, *what):
    """Install a wheel, or what else pip is told, with what it needs; run the demo and a share of the tests.

    Returns
    -------
    Path
        The folder of the environment's commands.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    check(python, "-I", "-m", "venv", folder / "venv")
    place = folder / "venv" / "bin"
    install = (place / "python", "-I", "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    # No index has it: of this name only what is in `dist`.
    check(*install, "--no-deps", *(what or ("--no-index", "--only-binary=:all:", "--find-links", dist, "tilewave")))
    check(*install, "--only-binary=:all:", "tilewave", *TEST_TOOLS)
    variables = without_compiler(folder, place)
    assert shutil.which("g++", path=variables["PATH"]) is None
    check(place / "tilewave", "demo", cwd=folder, env=variables)
    assert (folder / "demo" / "01_first_nest.png").stat().st_size > 10_000
    check(place / "python", "-m", "pytest", "-q", "--mpi", "only", *TESTS, cwd=ROOT, env=variables)
    return place


def program_in_cpp(place, folder):
    """Compile the example in C++ against the installed wheel, with the machine's compiler, and run it."""
    package = check(place / "tilewave", "--cmake-dir", capture_output=True, text=True).stdout.strip()
    shutil.rmtree(folder, ignore_errors=True)
    check("cmake", "-S", ROOT / "examples", "-B", folder, f"-DCMAKE_PREFIX_PATH={package}")
    check("cmake", "--build", folder)
    check(place / "mpiexec", "-n", "2", folder / "11_nest_in_cpp", "1", cwd=folder)


def all_wheels(dist, folder, interpreters):
    """Try the wheels of `dist` with these Pythons; a folder for what that leaves."""
    print(f"not here, not tried: Python {', '.join(v for v in interpreters if not interpreters[v]) or '-'}", flush=True)
    interpreters = {version: python for version, python in interpreters.items() if python}
    if not interpreters:
        sys.exit("wheel.py: none of these Pythons is here; nothing was tried")
    for version, python in interpreters.items():
        print(f"Python {version}: {python}", flush=True)
        place = one_python(python, dist, folder / version)
    if not (shutil.which("cmake") and shutil.which(os.environ.get("CXX", "g++"))):
        print("no CMake or C++ compiler: neither the program in C++ nor the source archive was tried")
        return
    program_in_cpp(place, folder / "cpp")
    archive = max(dist.glob("tilewave-*.tar.gz"), key=os.path.getmtime)
    print(f"{archive.name}: {python}", flush=True)
    one_python(python, dist, folder / "source", archive)
