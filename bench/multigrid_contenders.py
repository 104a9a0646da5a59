"""hypre and PETSc as contenders of multigrid: programs that are built here and run by Debian's Open MPI.

Debian's packages libhypre-dev and libpetsc-real-dev are looked for in / and in the folders of TILEWAVE_CONTENDERS.
There they and what they need may be unpacked: ``apt-get download``, ``dpkg -x PACKAGE FOLDER``.
"""

import math
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from bench.scalapack import VARIABLE, folders

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
TIMEOUT_S = 900


def _roots():
    return [root for root in [*folders(), Path("/")] if (root / "usr/bin/mpirun.openmpi").exists()]


def _flags(name, root):
    """What the compiler needs in addition to MPI; None where the library is not below `root`."""
    if name == "hypre PFMG":
        return [f"-I{root}/usr/include/hypre", "-lHYPRE"] if (root / "usr/include/hypre").exists() else None
    for folder in sorted(root.glob(f"{PETSC}/*-real")):
        return [f"-I{folder.parent}/include", f"-I{folder}/include", f"-L{folder}/lib", "-lpetsc_real"]
    return None


def _folders(root):
    """Where shared libraries are."""
    libraries = root / LIBRARIES
    return [
        libraries,
        *sorted(libraries.glob("openblas-*")),
        libraries / "openmpi" / "lib",
        root / "lib/x86_64-linux-gnu",
        *sorted(root.glob(f"{PETSC}/*-real/lib")),
    ]


def built(folder):
    """The contenders' programs by name, with the root of each; those that cannot be built are named."""
    programs = {}
    for name, (source, _) in CONTENDERS.items():
        found = next(((root, flags) for root in _roots() if (flags := _flags(name, root))), None)
        if found is None or shutil.which("gcc") is None:
            print(f"{name} is skipped: no gcc, or no package with Open MPI ({VARIABLE}=FOLDER)", file=sys.stderr)
            continue
        root, flags = found
        folders = _folders(root)
        command = ["gcc", "-O2", str(Path(__file__).with_name(source)), "-o", f"{folder}/{Path(source).stem}"]
        command += [f"-I{root / LIBRARIES}/openmpi/include", f"-I{root}/usr/include", *(f"-L{f}" for f in folders)]
        command += [*flags, "-lmpi", "-lm", f"-Wl,-rpath-link,{':'.join(map(str, folders))}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = done.stderr.strip().splitlines()
            print(f"{name} is skipped, as it does not compile: {lines[0] if lines else '?'}", file=sys.stderr)
            continue
        programs[name] = Path(folder) / Path(source).stem, root
    return programs


def _environment(root):
    """The environment of Open MPI below another root than it was built for."""
    plugins = f"{root / LIBRARIES}/openmpi/lib/openmpi3"
    moved = {
        "OPAL_PREFIX": f"{root}/usr",
        "OPAL_LIBDIR": f"{root / LIBRARIES}",
        "OPAL_SYSCONFDIR": f"{root}/etc",
        "OPAL_PKGDATADIR": f"{root}/usr/share/openmpi",
        "OPAL_PKGLIBDIR": plugins,
        "OMPI_MCA_mca_base_component_path": plugins,
        "PMIX_MCA_mca_base_component_path": f"{root / LIBRARIES}/pmix2/lib/pmix",
        "PMIX_INSTALL_PREFIX": f"{root}/usr",
        "LD_LIBRARY_PATH": ":".join(map(str, _folders(root))),
    }
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return {**os.environ, **threads, **(moved if root != Path("/") else {})}


def _run(program, root, arguments, ranks):
    """What a contender's program prints, as (set-up, solve, iterations, residual) of each repetition."""
    launcher = [f"{root}/usr/bin/mpirun.openmpi", "--allow-run-as-root", "--mca", "btl", "vader,self", "--mca", "pml"]
    command = [*launcher, "ob1", "-n", str(ranks), str(program), *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT_S, env=_environment(root), check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    lines = [line.split() for line in done.stdout.splitlines() if len(line.split()) == 4]
    return [(float(a), float(b), int(c), float(d)) for a, b, c, d in lines]


def found(programs, n, ranks, repetitions):
    """By name and variant: seconds of the set-up, seconds of each solution, iterations and their mean factor."""
    results = {}
    words = {"N": [str(n)], "R": [str(repetitions)], "GRID": ["1", "1", str(ranks)]}
    for name, (program, root) in programs.items():
        for variant, pattern in CONTENDERS[name][1].items():
            arguments = [word for each in pattern.split() for word in words.get(each, [each])]
            runs = _run(program, root, arguments, ranks)
            cycles, residual = runs[-1][2:]
            if residual > 1.01e-8:
                print(f"{name}, {variant}: residual {residual:.2g} after {cycles} iterations", file=sys.stderr)
            factor = residual ** (1 / cycles) if residual > 0 else math.nan
            times = [run[1] for run in runs]
            results[f"{name}, {variant}"] = [statistics.median(run[0] for run in runs), times, cycles, factor]
    return results
