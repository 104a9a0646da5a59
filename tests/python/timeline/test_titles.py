"""Pictures and pages of timelines say what ran, how long, and on what."""

import numpy as np
import pytest
from local_ranks import results_of

import tilewave as tw


@tw.nest
def relax(A, i, j):
    A[i, j] = A[i-1, j] + A[i, j-1]


@pytest.mark.parametrize("ranks, threads, where", [(1, 1, "1 rank"), (1, 2, "1 rank with 2 lanes"), (2, 1, "2 ranks")])
def test_titles(ranks, threads, where):
    def body(context):
        choices = {"grid": (ranks, 1), "factors": (threads, 1), "mapping_dim": 1, "tile": (8, 8), "threads": threads}
        return tw.run(relax, A=tw.field((33, 33), init=1.0, context=context), plan=choices, context=context)

    report = results_of(ranks, threads, body)[0]
    title = report.timeline.title
    assert title.startswith("relax: ") and title.endswith(f" on {where}")
    (axes,) = report.timeline.draw().axes
    assert axes.get_title() == title
    (axes,) = report.timeline.draw_comparison(report.predicted.timeline).axes
    assert axes.get_title().startswith("relax: predicted (upper bars) ") and axes.get_title().endswith(f" on {where}")


def test_matrices():
    M = tw.linalg.matrix(np.eye(40))
    assert tw.linalg.matmul(M, M).report.timeline.title.startswith("matmul: ")
    assert tw.linalg.cholesky(M).report.timeline.title.startswith("cholesky: ")
