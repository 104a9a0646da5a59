"""Reports show the ranges of the loops, and which of them an array that is only read has cut short."""

import numpy as np
import pytest

import tilewave as tw


@tw.nest
def add(A, B, c, i, j):
    A[i, j] = A[i-1, j] + B[i, j+1] + c[i]


@tw.nest
def heat(u, f, t, i):
    u[t+1, i] = u[t, i-1] + u[t, i+1] + f[i]


@pytest.mark.parametrize(
    "shape, length, over, ranges, cut",
    [
        ((9, 8), 9, None, ((1, 9), (0, 7)), ("j by B of shape (9, 8): the written arrays allow range(0, 8)",)),
        ((9, 9), 9, None, ((1, 9), (0, 8)), ()),
        ((20, 20), 20, None, ((1, 9), (0, 8)), ()),
        ((9, 9), 5, None, ((1, 5), (0, 8)), ("i by c of shape (5,): the written arrays allow range(1, 9)",)),
        (
            (7, 5),
            7,
            None,
            ((1, 7), (0, 4)),
            ("i by B of shape (7, 5)", "i by c of shape (7,)", "j by B of shape (7, 5)"),
        ),
        ((7, 5), 9, {"i": (2, 7)}, ((2, 7), (0, 4)), ("j by B of shape (7, 5)",)),
        ((9, 5), 9, {"j": (0, "i-1"), "i": (1, 5)}, ((1, 5), (0, 3)), ()),
    ],
)
def test_ranges(shape, length, over, ranges, cut):
    context = tw.Context(threads=1)
    A = np.zeros((9, 8))
    for _ in range(2):
        report = tw.run(add, A=A, B=np.ones(shape), c=np.ones(length), over=over, context=context)
        assert report.loops == dict(zip("ij", ranges, strict=True))
        assert len(report.cut) == len(cut) and all(
            ours.startswith(theirs) for ours, theirs in zip(report.cut, cut, strict=True)
        )
        text = str(report)
        assert f"loops            i in range{ranges[0]}, j in range{ranges[1]}" in text
        assert ("cut short" in text) == bool(cut)


@pytest.mark.parametrize("steps", [3, 5000])
def test_time(steps):
    context = tw.Context(threads=1)
    report = tw.run(heat, u=np.zeros(12), f=np.zeros(11), steps=steps, context=context)
    assert report.loops == {"t": (0, steps), "i": (1, 11)} and report.cut == ()
    report = tw.run(heat, u=np.zeros(12), f=np.zeros(10), steps=steps, context=context)
    assert report.loops["i"] == (1, 10) and report.cut == (
        "i by f of shape (10,): the written arrays allow range(1, 11)",
    )
