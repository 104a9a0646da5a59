"""NumPy arrays in place
=====================

On one rank arrays may be NumPy's: they are computed in place, by threads. Each bar of the picture is a lane, which is
a thread's list of steps.

Run it with ``python examples/07_numpy_in_place.py``.
"""
import numpy as np
import tilewave as tw


@tw.nest
def prefix(S, A, i, j):
    S[i, j] = A[i, j] + S[i-1, j] + S[i, j-1] - S[i-1, j-1]


A = np.random.default_rng(1).integers(0, 9, (300, 400))
S = A.cumsum(axis=0)
S[0] = A[0].cumsum()  # the border is given: the loops begin at 1
S[:, 0] = A[:, 0].cumsum()
context = tw.Context(threads=2) if tw.size == 1 else None
if context:
    report = tw.run(prefix, S=S, A=A, context=context)
    print(report)
    assert np.array_equal(S, A.cumsum(axis=0).cumsum(axis=1))
    report.timeline.save("demo/07_numpy_in_place.png")
