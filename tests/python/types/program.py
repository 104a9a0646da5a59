"""A program as users write it, for the type checker alone: what it reads is right, and each marked line is an error.

A mark that is not needed is an error, too (reportUnnecessaryTypeIgnoreComment).
"""

# pyright: reportUnnecessaryTypeIgnoreComment=true
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt
import tilewave as tw

Array = npt.NDArray[Any]


@tw.nest
def relax(A, i, j, *, c=0.5):
    A[i, j] = c * (A[i-1, j] + A[i, j-1])


@tw.inline
def halved(x: float) -> float:
    return x / 2


assert_type(relax, tw.Nest)
assert_type(halved(1.0), float)
A = tw.field((64, 64), "f4", init=lambda i, j: 1.0)
assert_type(A, tw.Field)
assert_type(A.gather(), Array | None)
report = tw.run(relax, A=A, reduce={"top": tw.max("A")})
assert_type(report, tw.Report)
assert_type(report.plan, tw.Plan)
report.timeline.save("relax.json")
print(report.measured.time_s, report.overlap_ratio, tw.run((relax, relax), A=A, steps=2).by_nest)
assert_type(tw.run(relax, A=A, plan={"tile": (8, 8), "threads": 1}), tw.Report)
assert_type(tw.run((relax, relax), A=A, steps=2, plan={"threads": 1}).repetitions, int)
assert_type(tw.plan(relax, A=A, plan=report.plan), tw.Plan)
assert_type(tw.plan((relax, relax), A=A, steps=2), tuple[tw.Plan, ...])
assert_type(tw.bind((relax, relax), A=A, steps=2), tw.BoundSteps)
step = tw.bind(relax, A=A)
assert_type(step, tw.Bound)
assert_type(tw.chain([step]).run(times=10, until={"top": 1e-8}), tw.ChainReport)
assert_type(tw.norm(A), np.float64)
assert_type(tw.check(tw.schedule(relax, A=A)), str | None)
M = tw.linalg.matrix((8, 8), init=np.eye(8))
assert_type(tw.linalg.lu(M).solve(np.ones(8)), Array)
Q, R = tw.linalg.qr(M)
assert_type(Q, tw.linalg.Matrix)
assert_type(tw.multigrid.Poisson((8, 8)).solve(A, tol=1e-8), tw.Field)
assert_type(tw.rank + tw.size, int)
A.save("u.zarr", dims=("y", "x"), attributes={"units": "K"})
assert_type(tw.checkpoint("checkpoints", 3, every="10 min", A=A, M=M, seed=1), tw.CheckpointReport | None)
assert_type(tw.resume("checkpoints"), dict[str, Any] | None)
with tw.Context(threads=1) as context:
    assert_type(context, tw.Context)

tw.field(1.5)  # pyright: ignore[reportArgumentType]
tw.field((8,), kept="all")  # pyright: ignore[reportCallIssue]
A.save("u.pvti", spacing="1")  # pyright: ignore[reportArgumentType]
tw.run("relax")  # pyright: ignore[reportCallIssue, reportArgumentType]
tw.plan(relax, A=A, plan="fast")  # pyright: ignore[reportCallIssue, reportArgumentType]
tw.linalg.lu(A)  # pyright: ignore[reportArgumentType]
tw.linalg.lu(M).solve("b")  # pyright: ignore[reportArgumentType]
A.gathered()  # pyright: ignore[reportAttributeAccessIssue]
report.measured.times  # pyright: ignore[reportAttributeAccessIssue]
tw.barrier(1)  # pyright: ignore[reportCallIssue]
