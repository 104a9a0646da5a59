"""Reports and timelines to look at: representations, pictures, the page that zooms; reports in a pickle."""

import base64
import copy
import html
import json
import pickle
import re

import numpy as np
import pytest
from local_ranks import results_of

import tilewave as tw
from tilewave import _core
from tilewave.timeline import page as timeline_page
from tilewave.timeline.timeline import FEW_MESSAGES, OPS, Timeline


@tw.nest
def spread_out(A, i, j):
    A[i, j] = A[i-1, j] + 0.5 * A[i, j-1]


@pytest.fixture(scope="module")
def reports():
    def body(context):
        A = tw.field((40, 600), "f8", init=1.0, context=context)
        return tw.run(spread_out, A=A, context=context, plan={"grid": (3, 1), "tile": (13, 60), "mapping_dim": 1})

    return results_of(3, 1, body)


def data_of(page):
    return json.loads(re.search(r"const data = (\{.*?\});\n", page, re.DOTALL).group(1))


def numbers(text, kind):
    return np.frombuffer(base64.b64decode(text), kind)


def test_a_report_says_what_it_is_of(reports):
    text = repr(reports[0])
    assert text.startswith("<tilewave.Report of spread_out: 23361 points in ") and "3 ranks x 1 thread>" in text
    assert "\n" not in text and text == repr(reports[0])


def test_reports_survive_a_pickle(reports):
    for report in reports:
        for again in (pickle.loads(pickle.dumps(report)), copy.deepcopy(report), copy.copy(report)):
            assert str(again) == str(report) and repr(again) == repr(report)
            assert again.plan == report.plan and again.measured.time_s == report.measured.time_s
            assert np.array_equal(again.timeline.events, report.timeline.events)
            assert np.array_equal(again.timeline.messages, report.timeline.messages)
    first = reports[0]
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(first))))
    assert np.array_equal(again.predicted.timeline.events, first.predicted.timeline.events)
    assert again.timeline._core.chrome_json() == first.timeline._core.chrome_json()


def test_plans_survive_a_pickle_and_keep_their_prediction_in_a_copy(reports):
    plan = reports[0].plan
    again = pickle.loads(pickle.dumps(plan))
    assert again == plan and again.explain() == plan.explain() and again.predicted.parts == plan.predicted.parts
    assert len(copy.deepcopy(plan).predicted.timeline.events) == len(plan.predicted.timeline.events)
    with pytest.raises(tw.ConfigError, match="no timeline"):
        again.predicted.timeline


def test_a_damaged_pickle_of_a_timeline_is_refused():
    with pytest.raises(tw.ConfigError, match="whole records"):
        _core.Timeline.__new__(_core.Timeline).__setstate__((1, 1, b"12345", b"", []))


def test_messages_pair_sends_with_receives(reports):
    timeline = reports[0].timeline
    requests = timeline.requests
    assert len(timeline.messages) == len(requests) // 2 > 5
    sends, receives = requests[timeline.messages[:, 0]], requests[timeline.messages[:, 1]]
    assert (sends["send"] == 1).all() and (receives["send"] == 0).all()
    for name, other in (("rank", "peer"), ("peer", "rank"), ("tag", "tag"), ("bytes", "bytes")):
        assert (sends[name] == receives[other]).all()
    assert len(np.unique(timeline.messages)) == timeline.messages.size


def test_a_picture_has_a_line_for_each_message_where_they_are_few(reports, monkeypatch):
    timeline = reports[0].timeline
    assert 0 < len(timeline.messages) <= FEW_MESSAGES
    lines = timeline.draw().axes[0].lines
    assert len(lines) == len(timeline.messages)
    # From one lane to another, never back in time.
    assert all(
        abs(line.get_ydata()[0] - line.get_ydata()[1]) == 1 and line.get_xdata()[0] <= line.get_xdata()[1]
        for line in lines
    )
    monkeypatch.setattr("tilewave.timeline.timeline.FEW_MESSAGES", 2)
    assert not timeline.draw().axes[0].lines


def test_a_notebook_shows_the_picture_the_page_and_the_plan(reports):
    report = reports[0]
    assert report.timeline.draw()._repr_png_()[:4] == b"\x89PNG"
    shown = report.timeline._repr_html_()
    inside = html.unescape(re.search(r'srcdoc="([^"]*)"', shown).group(1))
    assert data_of(inside)["lanes"] == ["rank 0 lane 0", "rank 1 lane 0", "rank 2 lane 0"]
    assert reports[1].timeline._repr_html_() == "&lt;tilewave.Timeline 0 events, 0 messages&gt;"
    reports[1].timeline.draw()._repr_png_()
    plan = report.plan._repr_html_()
    assert re.search("<th [^>]*left[^>]*>grid</th><td [^>]*left[^>]*>\\(3, 1\\)</td>", plan) and "Why this plan" in plan
    assert "spread_out" in plan and "<script" not in plan
    assert ">points</th>" in report._repr_html_()


def test_the_page_stands_alone_and_holds_every_step(reports, tmp_path):
    timeline = reports[0].timeline
    timeline.save(tmp_path / "t.html")
    page = (tmp_path / "t.html").read_text(encoding="utf-8")
    assert not re.search(r"(src|href)\s*=|https?:|@import|url\(|fetch\(|XMLHttp", page) and "@" not in re.sub(
        r"const data.*", "", page
    )
    data = data_of(page)
    assert data["starts"][-1] == len(timeline.events)
    assert np.array_equal(numbers(data["begin_s"], "<f8"), timeline.events["begin_s"])
    assert np.array_equal(numbers(data["end_s"], "<f8"), timeline.events["end_s"])
    details = numbers(data["detail"], "<i4").reshape(-1, len(data["numbers"]) + 1)
    assert np.array_equal(details[:, 0], timeline.events["op"]) and data["ops"] == list(OPS)
    assert np.array_equal(details[:, 1+data["numbers"].index("tile[1]")], timeline.events["tile"][:, 1])
    assert data["numbers"][:3] == ["step", "tile[0]", "tile[1]"]
    paths = numbers(data["messages"], "<f8").reshape(-1, 4)
    assert len(paths) == len(timeline.messages) and (paths[:, 1] <= paths[:, 3]).all()
    # Each sender's bar and each receiver's are those of the ranks.
    assert np.array_equal(paths[:, 0], timeline.requests["rank"][timeline.messages[:, 0]])


def test_a_page_of_a_long_run_shows_steps_together(reports, monkeypatch):
    monkeypatch.setattr(timeline_page, "MOST_EVENTS", 20)
    monkeypatch.setattr(timeline_page, "MOST_MESSAGES", 3)
    timeline = reports[0].timeline
    page = timeline._html().decode()
    data = data_of(page)
    together = -(-len(timeline.events) // 20)
    assert f"{len(timeline.events)} steps: {together} that follow each other are shown together" in page
    begin, end = numbers(data["begin_s"], "<f8"), numbers(data["end_s"], "<f8")
    for lane, (first, last) in enumerate(zip(data["starts"], data["starts"][1:])):
        mine = timeline.events[timeline.events["rank"] == lane]
        assert begin[first] == mine["begin_s"][0] and end[last-1] == mine["end_s"].max()
        assert last - first == -(-len(mine) // together)
    assert len(numbers(data["messages"], "<f8")) == 3 * 4


def test_the_page_of_both_has_two_bars_a_lane(reports, tmp_path):
    reports[0].save_timeline(tmp_path / "both.html")
    data = data_of((tmp_path / "both.html").read_text(encoding="utf-8"))
    assert data["lanes"][:2] == ["rank 0 lane 0 predicted", "rank 0 lane 0 measured"] and len(data["lanes"]) == 6


def test_nothing_of_a_name_becomes_code():
    timeline = Timeline(_core.Timeline())
    page = timeline_page.page(
        "a <b> & </script>", [("</script><b>", timeline.events)], np.empty((0, 4)), [("x", "#000000", {0})], OPS, ""
    )
    assert "<b>" not in page and page.count("</script>") == 1


def test_labels_of_the_axis_stand_at_their_ticks(reports):
    axis = re.search(r"function drawAxis.*?\n}", reports[0].timeline._html().decode(), re.DOTALL).group()
    assert "pen.moveTo(px, y)" in axis and re.search(r"fillText\(.*, px, y \+ 15\)", axis)
