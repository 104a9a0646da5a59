"""Dense linear algebra on distributed matrices: `tilewave.linalg.matrix`, `matmul` and so on."""

import sys

from tilewave.linalg.blas import use_blas
from tilewave.linalg.cholesky import CholeskyFactor, NotPositiveDefinite, cholesky
from tilewave.linalg.factors import FactorReport, SingularMatrix
from tilewave.linalg.least_squares import RankDeficient
from tilewave.linalg.lstsq import lstsq, solve_triangular
from tilewave.linalg.lu import LuFactor, inv, lu
from tilewave.linalg.matmul import matmul, plan_matmul
from tilewave.linalg.matrix import Matrix, matrix
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
    "inv",
    "lstsq",
    "lu",
    "matmul",
    "matrix",
    "plan_matmul",
    "qr",
    "solve_triangular",
    "use_blas",
]

doors([sys.modules[__name__]])
