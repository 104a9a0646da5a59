"""hypre and PETSc as contenders of multigrid: programs that are built here and run by Debian's Open MPI.

Debian's packages libhypre-dev and libpetsc-real-dev are looked for in / and in the folders of TILEWAVE_CONTENDERS.
There they and what they need may be unpacked: ``apt-get download``, ``dpkg -x PACKAGE FOLDER``.
"""

import math
import os
import statistics
import subprocess
import sys
from pathlib import Path

from bench.contenders import VARIABLE, compiles, folders, skipped
from bench.runner import TIMEOUT_S

#: Of contenders: their source, and the arguments of each variant in place of N, R (repetitions) and GRID.
CONTENDERS = {
    "hypre PFMG": ("multigrid_hypre.c", {"Jacobi": "N R 1 GRID", "red-black": "N R 2 GRID"}),
    "PETSc PCMG": (
        "multigrid_petsc.c",
        {
            "cg, Chebyshev": "N R -ksp_type cg",
            "V(2,2), SOR": "N R -ksp_type richardson -mg_levels_ksp_type richardson -mg_levels_pc_type sor "
            "-mg_levels_ksp_max_it 2",
        },
    ),
}
#: Below the root of packages.
LIBRARIES = "usr/lib/x86_64-linux-gnu"
PETSC = "usr/lib/petscdir/petsc3*"
#: The environment of Open MPI below another root than it was built for.
MOVED = {
    "OPAL_PREFIX": "usr",
    "OPAL_LIBDIR": LIBRARIES,
    "OPAL_SYSCONFDIR": "etc",
    "OPAL_PKGDATADIR": "usr/share/openmpi",
    "OPAL_PKGLIBDIR": f"{LIBRARIES}/openmpi/lib/openmpi3",
    "OMPI_MCA_mca_base_component_path": f"{LIBRARIES}/openmpi/lib/openmpi3",
    "PMIX_MCA_mca_base_component_path": f"{LIBRARIES}/pmix2/lib/pmix",
    "PMIX_INSTALL_PREFIX": "usr",
}


def _flags(name, root):
    """What the compiler needs in addition to MPI; None where the library is not below `root`."""
    if not (root / "usr/bin/mpirun.openmpi").exists():
        return None
    if name == "hypre PFMG":
        return [f"-I{root}/usr/include/hypre", "-lHYPRE"] if (root / "usr/include/hypre").exists() else None
    for folder in sorted(root.glob(f"{PETSC}/*-real")):
        return [f"-I{folder.parent}/include", f"-I{folder}/include", f"-L{folder}/lib", "-lpetsc_real"]
    return None


def _libraries(root):
    """Folders of shared libraries."""
    patterns = LIBRARIES, f"{LIBRARIES}/openblas-*", f"{LIBRARIES}/openmpi/lib", "lib/x86_64-linux-gnu"
    return [str(path) for each in (*patterns, f"{PETSC}/*-real/lib") for path in sorted(root.glob(each))]


def built(folder):
    """The contenders' programs by name, with the root of each; those that cannot be built are named."""
    programs = {}
    for name, (source, _) in CONTENDERS.items():
        for root in [*folders(), Path("/")]:
            if flags := _flags(name, root):
                break
        else:
            skipped(name, f"no package with Open MPI ({VARIABLE}=FOLDER)")
            continue
        program = Path(folder) / Path(source).stem
        command = ["gcc", "-O2", str(Path(__file__).with_name(source)), "-o", str(program)]
        command += [f"-I{root / LIBRARIES}/openmpi/include", f"-I{root}/usr/include"]
        command += [*(f"-L{each}" for each in _libraries(root)), *flags, "-lmpi", "-lm"]
        if compiles(name, [*command, f"-Wl,-rpath-link,{':'.join(_libraries(root))}"], folder):
            programs[name] = program, root
    return programs


def _run(program, root, arguments, ranks):
    """What a contender's program prints, as (set-up, solve, iterations, residual) of each repetition."""
    launcher = [f"{root}/usr/bin/mpirun.openmpi", "--allow-run-as-root", "--mca", "btl", "vader,self", "--mca", "pml"]
    command = [*launcher, "ob1", "-n", str(ranks), str(program), *arguments]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    if root != Path("/"):
        env |= {name: f"{root}/{path}" for name, path in MOVED.items()}
        env |= {"LD_LIBRARY_PATH": ":".join(_libraries(root))}
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, env=env, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    lines = [line.split() for line in done.stdout.splitlines() if len(line.split()) == 4]
    return [(float(a), float(b), int(c), float(d)) for a, b, c, d in lines]


def found(programs, n, ranks, repeats):
    """By name and variant: seconds of the set-up, seconds of each solution, iterations and their mean factor."""
    results = {}
    words = {"N": [str(n)], "R": [str(repeats)], "GRID": ["1", "1", str(ranks)]}
    for name, (program, root) in programs.items():
        for variant, pattern in CONTENDERS[name][1].items():
            arguments = [word for each in pattern.split() for word in words.get(each, [each])]
            set_ups, times, cycles, residuals = zip(*_run(program, root, arguments, ranks), strict=True)
            if residuals[-1] > 1.01e-8:
                print(f"{name}, {variant}: residual {residuals[-1]:.2g} after {cycles[-1]} iterations", file=sys.stderr)
            factor = residuals[-1] ** (1 / cycles[-1]) if residuals[-1] > 0 else math.nan
            results[f"{name}, {variant}"] = [statistics.median(set_ups), times, cycles[-1], factor]
    return results
