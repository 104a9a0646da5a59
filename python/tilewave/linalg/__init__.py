"""Dense linear algebra on distributed matrices: `tilewave.linalg.matrix`, `matmul` and so on."""

from tilewave.linalg.blas import use_blas
from tilewave.linalg.cholesky import CholeskyFactor, FactorReport, NotPositiveDefinite, cholesky
from tilewave.linalg.matmul import matmul, plan_matmul
from tilewave.linalg.matrix import Matrix, matrix
from tilewave.linalg.plan import MatmulPlan, MatmulReport

__all__ = [
    "CholeskyFactor",
    "FactorReport",
    "MatmulPlan",
    "MatmulReport",
    "Matrix",
    "NotPositiveDefinite",
    "cholesky",
    "matmul",
    "matrix",
    "plan_matmul",
    "use_blas",
]
