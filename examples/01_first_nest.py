"""A nest is plain loops
=====================

Its points are computed by ranks and threads, with the bits of the plain loops. The picture shows which rank
computed when: each line is a message.

Run it with ``tilewave run -n 2 examples/01_first_nest.py``.
"""
import numpy as np
import tilewave as tw


@tw.nest
def relax(A, i, j, k):
    A[i, j, k] = np.sqrt(A[i-1, j, k]) + np.sqrt(A[i, j-1, k]) + np.sqrt(A[i, j, k-1])


A = tw.field((64, 64, 4096), "f4", init=lambda i, j, k: 1.0)  # spread over the ranks
report = tw.run(relax, A=A)  # reads the dependences, plans, runs
tw.print(report)
report.timeline.save("demo/01_first_nest.png")
report.timeline.save("demo/01_first_nest.html")
whole = A.gather()  # a NumPy array on rank 0, None elsewhere
if whole is not None:
    assert np.allclose(whole[-1, -1, -1], 9.0)  # x = 3 sqrt(x)
    tw.print("pictures: demo/01_first_nest.png, demo/01_first_nest.html")
