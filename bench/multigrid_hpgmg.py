"""HPGMG-FV as a contender of full multigrid: V(2,2) cycles, one at each level of an F cycle.

Of its operators the one of second order is taken, with constant coefficients, and Gauss-Seidel sweeps by colour.
"""

import math
import re

from bench.from_source import Contender, output_of

HPGMG = Contender(
    "HPGMG-FV, F cycle",
    "hpgmg/finite-volume/source",
    ("level.c", "operators.7pt.c", "mg.c", "solvers.c", "hpgmg-fv.c", "timers.c"),
    ("-DUSE_MPI", "-DUSE_SUBCOMM", "-DUSE_FCYCLES", "-DUSE_GSRB", "-DUSE_BICGSTAB"),
    # A minute for each size would be too long; coefficients vary where nothing else is chosen.
    {
        "hpgmg-fv.c": (r"minTime   = 60\.0", "minTime   = 1.0"),
        "operators.7pt.c": (r"(?m)^#define STENCIL_VARIABLE_COEFFICIENT.*", ""),
    },
)


def seconds(program, n, ranks):
    """Of one F cycle on n^3 cells, the mean of its repetitions; None where it cannot cut the cube so."""
    log_n = int(math.log2(n))
    boxes = 1 if ranks == 1 else 8  # cubes of cells, as many for each rank
    if 2**log_n != n or boxes % ranks:
        return None
    text = output_of(program, [log_n - (boxes == 8), boxes // ranks], ranks)
    return next(float(time) for cells, time in re.findall(r"DOF=(\S+)\s+time=(\S+)", text) if float(cells) == n**3)
