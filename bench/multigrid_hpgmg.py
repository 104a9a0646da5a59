"""HPGMG-FV as a contender of full multigrid: its public source, built here for the launcher's MPI.

A folder of TILEWAVE_CONTENDERS has it as ``hpgmg/finite-volume/source``. Of its operators the one of second order is
taken, with constant coefficients, and Gauss-Seidel sweeps by colour: V(2,2) cycles, one at each level of an F cycle.
"""

import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tilewave.launch.launch import mpiexec_command

from bench.scalapack import VARIABLE, roots

NAME = "HPGMG-FV, F cycle"
SOURCE = "hpgmg/finite-volume/source"
FILES = ("level.c", "operators.7pt.c", "mg.c", "solvers.c", "hpgmg-fv.c", "timers.c")
FLAGS = ("-O3", "-march=native", "-ffast-math")
CHOICES = ("-DUSE_MPI", "-DUSE_SUBCOMM", "-DUSE_FCYCLES", "-DUSE_GSRB", "-DUSE_BICGSTAB")
#: Changes of its text: a minute for each size would be too long; coefficients vary where nothing is said.
CHANGES = {
    "hpgmg-fv.c": (r"minTime   = 60\.0", "minTime   = 1.0"),
    "operators.7pt.c": (r"(?m)^#define STENCIL_VARIABLE_COEFFICIENT.*", ""),
}
TIMEOUT_S = 300


def built(folder):
    """The program, or None where its source or a compiler is missing."""
    source = next((root / SOURCE for root in roots() if (root / SOURCE / "mg.c").exists()), None)
    compiler = shutil.which("mpicc", path=f"{Path(sys.executable).parent}") or shutil.which("mpicc")
    if source is None or compiler is None:
        print(f"{NAME} is skipped: no mpicc, or no {SOURCE} in {VARIABLE}=FOLDER", file=sys.stderr)
        return None
    here = Path(folder) / "hpgmg"
    shutil.copytree(source, here)
    for name, (pattern, text) in CHANGES.items():
        found, times = re.subn(pattern, text, (here / name).read_text())
        if times != 1:
            print(f"{NAME} is skipped: another version of {name}", file=sys.stderr)
            return None
        (here / name).write_text(found)
    command = [compiler, *FLAGS, *FILES, *CHOICES, "-lm", "-o", "hpgmg-fv"]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line]
        print(f"{NAME} is skipped, as it does not compile: {lines[0] if lines else '?'}", file=sys.stderr)
        return None
    return here / "hpgmg-fv"


def seconds(program, n, ranks):
    """Of one F cycle on n^3 cells, the mean of its own repetitions; None where it cannot cut the cube so."""
    log_n = int(math.log2(n))
    boxes = 1 if ranks == 1 else 8  # cubes of cells, as many for each rank
    if 2**log_n != n or boxes % ranks:
        return None
    arguments = [str(program), str(log_n - (boxes == 8)), str(boxes // ranks)]
    command = mpiexec_command(ranks, arguments)
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    for cells, time in re.findall(r"DOF=(\S+)\s+time=(\S+)", done.stdout):
        if float(cells) == n**3:
            return float(time)
    raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()[-400:]}")
