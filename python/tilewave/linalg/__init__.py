"""Dense linear algebra on distributed matrices: `tilewave.linalg.matrix`, `matmul` and so on."""

from tilewave.linalg.blas import use_blas
from tilewave.linalg.cholesky import CholeskyFactor, NotPositiveDefinite, cholesky
from tilewave.linalg.factors import FactorReport
from tilewave.linalg.lu import LuFactor, SingularMatrix, lu
from tilewave.linalg.matmul import matmul, plan_matmul
from tilewave.linalg.matrix import Matrix, matrix
from tilewave.linalg.plan import MatmulPlan, MatmulReport

__all__ = [
    "CholeskyFactor",
    "FactorReport",
    "LuFactor",
    "MatmulPlan",
    "MatmulReport",
    "Matrix",
    "NotPositiveDefinite",
    "SingularMatrix",
    "cholesky",
    "lu",
    "matmul",
    "matrix",
    "plan_matmul",
    "use_blas",
]
