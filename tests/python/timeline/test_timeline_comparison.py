"""Parts of timelines, measured and predicted, and the picture of both."""

import json

import numpy as np
import pytest
from general_sweeps import general_case
from local_ranks import results_of

import tilewave as tw
from tilewave import _core, units
from tilewave.errors import ConfigError
from tilewave.timeline.timeline import PART_NAMES, Timeline

ADD_UP = [name for name in PART_NAMES if name != "total_s"]


def predicted(seed, point_s=1e-6):
    rate = _core.KernelRate(point_s=point_s)
    return Timeline(_core.predict(general_case(seed).schedules(), _core.Machine(), rate).timeline)


@tw.nest
def add(A, i, j):
    A[i, j] = A[i-1, j] + A[i, j-1]


@pytest.mark.parametrize("ranks,threads", [(1, 1), (1, 2), (2, 1), (3, 2)])
def test_parts_of_a_run(ranks, threads):
    def body(context):
        A = tw.field((64, 256), "f8", init=lambda i, j: 1.0, context=context)
        return tw.run(add, A=A, context=context, plan={"grid": (ranks, 1), "tile": (8, 32), "mapping_dim": 1})

    reports = results_of(ranks, threads, body)
    timeline, plan = reports[0].timeline, reports[0].plan
    parts = timeline.parts()
    assert sum(getattr(parts, name) for name in ADD_UP) == pytest.approx(parts.total_s, rel=1e-6)
    assert all(getattr(parts, name) >= -1e-9 for name in ADD_UP), parts
    # Ranks as threads: the lanes' clocks are one, so the parts are those of the slowest.
    assert parts.total_s == pytest.approx(timeline.events["end_s"].max() - timeline.events["begin_s"].min())
    lanes = reports[0].lanes
    assert parts.compute_s == pytest.approx(np.mean([lane.compute_s for lane in lanes]))
    assert plan.grid == (ranks, 1)


def test_no_timeline_has_no_parts():
    parts = Timeline(_core.Timeline()).parts()
    assert [getattr(parts, name) for name in PART_NAMES] == [0] * 8


def test_predicted_timelines_are_drawn_and_saved_as_measured_ones(tmp_path):
    p = predicted(21)
    for ending in ("json", "png", "html"):
        p.save(tmp_path / f"p.{ending}")
    events = json.loads((tmp_path / "p.json").read_text())["traceEvents"]
    assert {e["ph"] for e in events} >= {"X", "M"}
    assert (tmp_path / "p.png").read_bytes()[:4] == b"\x89PNG"


def test_comparison(tmp_path):
    slow, fast = predicted(21, 2e-6), predicted(21, 1e-6)
    slow.save_comparison(tmp_path / "both.png", fast)
    slow.save_comparison(tmp_path / "both.html", fast)
    assert (tmp_path / "both.png").read_bytes()[:4] == b"\x89PNG"
    page = (tmp_path / "both.html").read_text()
    times = [getattr(parts, name) for parts in (fast.parts(), slow.parts()) for name in PART_NAMES]
    unit, cells = units.column(times, units.TIMES)
    at = list(PART_NAMES).index("compute_s")
    assert f"<td>compute</td><td>{cells[at]}</td><td>{cells[at + len(PART_NAMES)]}</td>" in page
    assert f"<th>predicted {unit}</th><th>measured {unit}</th>" in page
    figure = slow.draw_comparison(fast)
    labels = [t.get_text() for t in figure.axes[0].get_yticklabels()]
    assert labels[:2] == ["rank 0 lane 0 predicted", "rank 0 lane 0 measured"]
    with pytest.raises(ConfigError, match="allowed endings: .png, .html"):
        slow.save_comparison(tmp_path / "both.json", fast)
    with pytest.raises(ConfigError, match="a prediction of .* lanes was given"):
        slow.save_comparison(
            tmp_path / "both.png", next(p for p in map(predicted, (1, 3)) if p._lanes() != slow._lanes())
        )
