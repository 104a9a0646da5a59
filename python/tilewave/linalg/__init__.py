"""Dense linear algebra on distributed matrices: `tilewave.linalg.matrix`, `matmul` and so on."""

import sys
from typing import Any

from tilewave.linalg.arithmetic import set_operators
from tilewave.linalg.blas import use_blas
from tilewave.linalg.by_factors import cond, det, slogdet, solve
from tilewave.linalg.cholesky import CholeskyFactor, NotPositiveDefinite, cholesky
from tilewave.linalg.factors import FactorReport, SingularMatrix
from tilewave.linalg.files import load, set_files
from tilewave.linalg.least_squares import RankDeficient
from tilewave.linalg.lstsq import lstsq, solve_triangular
from tilewave.linalg.lu import LuFactor, inv, lu
from tilewave.linalg.matmul import matmul, plan_matmul
from tilewave.linalg.matrix import Matrix, matrix
from tilewave.linalg.norm import norm
from tilewave.linalg.operators import WAYS
from tilewave.linalg.plan import FactorPlan, MatmulPlan, MatmulReport
from tilewave.linalg.qr import QrFactor, qr
from tilewave.tracebacks import doors

__all__ = [
    "CholeskyFactor",
    "FactorPlan",
    "FactorReport",
    "LuFactor",
    "MatmulPlan",
    "MatmulReport",
    "Matrix",
    "NotPositiveDefinite",
    "QrFactor",
    "RankDeficient",
    "SingularMatrix",
    "cholesky",
    "cond",
    "det",
    "inv",
    "load",
    "lstsq",
    "lu",
    "matmul",
    "matrix",
    "norm",
    "plan_matmul",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "use_blas",
]

set_operators()
set_files()
doors([sys.modules[__name__]])


def __getattr__(name: str) -> Any:
    """Refuse what NumPy and SciPy have in addition: the error says what to use."""
    if name in WAYS:
        raise AttributeError(f"tilewave.linalg.{name} is not there; allowed: {WAYS[name]}")
    raise AttributeError(f"module 'tilewave.linalg' has no attribute {name!r}")
