"""A plan is a value
=================

It can be printed, explained, edited, saved and passed back. The picture shows what was predicted above what was
measured.

Run it with ``tilewave run -n 2 examples/10_plans.py``.
"""
import tempfile
from pathlib import Path

import numpy as np
import tilewave as tw


@tw.nest
def blend(A, B, i, j):
    A[i, j] = 0.5 * (A[i-1, j] + A[i, j-1]) + B[i, j]


A = tw.field((500, 700), "f8")
B = np.random.default_rng(3).random((500, 700))
plan = tw.plan(blend, A=A, B=B)
tw.print(plan.explain())
plan.schedule = "blocking"  # an edit changes this plan, and nothing else
report = tw.run(blend, A=A, B=B, plan=plan)
assert report.plan.schedule == "blocking"
report = tw.run(blend, A=A, B=B, plan={"tile": (100, 50)})  # a dict fixes some choices, the rest is chosen
assert report.plan.tile == (100, 50)
if tw.rank == 0:
    with tempfile.TemporaryDirectory() as folder:
        plan.save(Path(folder) / "plan.json")
        assert tw.Plan.load(Path(folder) / "plan.json") == plan
tw.print(f"predicted {report.predicted.time_s:.2e} s, measured {report.measured.time_s:.2e} s")
report.save_timeline("demo/10_plans.png")
