"""A product of distributed matrices
=================================

It is planned, explained and run. The picture shows what was predicted above what was measured.

Run it with ``tilewave run -n 2 examples/15_matrices.py``.
"""
import numpy as np
import tilewave as tw

n = 300
A = tw.linalg.matrix((n, n), init=lambda i, j: np.cos(i + 2 * j))                    # by rows
B = tw.linalg.matrix((n, n), init=lambda i, j: np.sin(i - j), layout="columns")
plan = tw.linalg.plan_matmul(A, B)
tw.print(plan.explain())
C = tw.linalg.matmul(A, B, plan=plan)
tw.print(C.report)
C.report.save_timeline("demo/15_matrices.png")
a, b, c = A.gather(), B.gather(), C.gather()
if c is not None:
    assert np.allclose(c, a @ b, atol=1e-10)
