"""One picture of several runs: bars, titles, a line for each message."""

import collections

import numpy as np
import pytest
import tilewave as tw
from local_ranks import results_of
from matplotlib.colors import to_hex
from tilewave.timeline.pictures import draw_timelines


def reports(ranks):
    def body(context):
        a = tw.linalg.matrix((40, 40), init=lambda i, j: 1.0 * (i == j), context=context)
        b = tw.linalg.matrix((40, 40), init=lambda i, j: i + j, layout="columns", context=context)
        ways = {
            "broadcast": {"algorithm": "broadcast"},
            "wavefront": {"algorithm": "wavefront", "pending": False},
            "pending": {"algorithm": "wavefront", "pending": True},
        }
        made = {name: tw.linalg.matmul(a, b, panel=10, **how).report for name, how in ways.items()}
        return made | {"qr": tw.linalg.qr(a, block=5).report}

    return results_of(ranks, 1, body)


def test_predicted_stands_above_measured(tmp_path):
    found = reports(3)
    figure = draw_timelines(found[0])
    titles = [axes.get_title().split(":")[0] for axes in figure.axes]
    assert titles == [*found[0], *found[0]]
    assert [axes.get_title().split(": ")[1].split()[0] for axes in figure.axes] == ["predicted"] * 4 + ["measured"] * 4
    for axes, report in zip(figure.axes[4:], found[0].values(), strict=True):
        lines = axes.collections[-1].get_segments()
        assert len(lines) == len(report.timeline.messages) > 0
        # From lane to lane, forwards in time.
        assert all(begin[0] <= end[0] and begin[1] != end[1] for begin, end in lines)
        assert len(axes.get_yticks()) == len(report.timeline._lanes())
    tw.save_timelines(tmp_path / "some" / "runs.png", found[0])
    assert (tmp_path / "some" / "runs.png").read_bytes()[:4] == b"\x89PNG"
    found[0]["qr"].save_timeline(tmp_path / "qr.png")
    assert (tmp_path / "qr.png").stat().st_size > 5000
    tw.save_timelines(tmp_path / "none.png", found[1])
    found[1]["qr"].save_timeline(tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()


@tw.nest
def add(A, i, j):
    A[i, j] = A[i-1, j] + A[i, j-1]


def test_runs_of_nests_and_bare_timelines():
    def body(context):
        A = tw.field((16, 64), "f8", init=lambda i, j: 1.0, context=context)
        return tw.run(add, A=A, context=context)

    results = results_of(2, 1, body)
    figure = draw_timelines({"sweep": results[0], "bare": results[0].timeline})
    assert [bool(axes.get_title()) for axes in figure.axes] == [True, False, True, True]
    assert np.isclose(figure.axes[0].get_xlim()[0], 0)
    assert draw_timelines({"bare": results[0].timeline}).axes[0].get_title().startswith("bare: ")


def test_below_each_lane_are_its_messages():
    def body(context):
        A = tw.field((16, 64), "f8", init=lambda i, j: 1.0, context=context)
        return tw.run(add, A=A, plan={"grid": (3, 1), "tile": (5, 8)}, context=context)

    results = results_of(3, 1, body)
    timeline = results[0].timeline
    lines = {"#3060a0": 0, "#8060b0": 1}  # receives, sends
    found = collections.Counter()
    for bars in timeline.draw().axes[0].collections:
        colours = {to_hex(colour) for colour in bars.get_facecolor()}
        for path in bars.get_paths() if colours and colours <= {*lines} else ():
            rank = int(path.vertices[:, 1].min())  # one lane a rank: lane r is at r
            found[rank, lines[min(colours)]] += 1
    wanted = collections.Counter((int(r["rank"]), int(r["send"])) for r in timeline.requests)
    assert found == wanted and len(wanted) == 4  # rank 0 sends, 1 does both, 2 receives


@pytest.mark.parametrize("runs", [{}, [1], {"a": 3}])
def test_what_is_no_run_is_refused(runs):
    with pytest.raises(tw.ConfigError, match="save_timelines: .*allowed"):
        tw.save_timelines("x.png", runs)
    with pytest.raises(tw.ConfigError, match="allowed endings: .png"):
        tw.save_timelines("x.html", {"a": 3})
