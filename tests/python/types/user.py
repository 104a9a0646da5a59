"""A program as users write it, for every type checker: fields like arrays, matrices, a run and its report."""

import numpy as np
import tilewave as tw


@tw.nest
def relax(A, i, j, *, c=0.5):
    A[i, j] = c * (A[i-1, j] + A[i, j-1])


@tw.loops
def total_of(A: np.ndarray, n: int) -> float:
    found = 0.0
    for i in range(n):
        found += A[i]
    return found


of_ones: float = total_of(np.ones(4), n=4)
print(total_of.explain(), total_of.function)
u, v = tw.field((4, 4), init=1.0), tw.field(np.ones((4, 4)))
w = (2 * u + v).copy()
v += u
v -= 2 * u
v[1:3, ::2] = 0.0
mask = (u > 0) & (v != w) | ~(abs(w) <= 1)
counts = tw.field((4, 4), "i8")
counts //= 2
counts <<= 1
w[...] = tw.where(mask, u**2, -v / 3)
total: float = tw.sum(w)
span: float = float(tw.max(u + v) - tw.min(v))
tw.print(span)
there: bool = 3.0 in w
rows: tw.Field = w.sum(axis=0)
quotients, rests = divmod(u, 3)
report = tw.run(relax, A=u, c=0.25)
print(report.plan, report.measured.time_s, total, there, rows.gather(), len(w))

M = tw.linalg.matrix((4, 4), init=lambda i, j: i + j)
N = 2 * M + M.T @ M
N += M
N @= M
N[:2, :2] = M[2:, 2:]
print(tw.linalg.norm(N), abs(N).gather(), (M**2).shape)
