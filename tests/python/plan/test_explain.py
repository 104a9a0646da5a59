"""What a plan says of itself: each thing that it was chosen from stands in the text, and nothing else."""

import copy

import numpy as np
import pytest

import tilewave as tw
from tilewave.plan import explain as explaining
from tilewave.plan import plan as plans
from tilewave.plan.sentence import sentence
from tilewave.timeline.parts import PARTS, Face, Predicted


@tw.nest
def relax(A, i, j):
    A[i, j] = A[i-1, j] + A[i, j-1]


@pytest.fixture(scope="module")
def chosen():
    return tw.plan(relax, A=np.ones((40, 50)), context=tw.Context(threads=1))


@pytest.fixture
def plan(chosen):
    return copy.deepcopy(chosen)


def section(text, head):
    """The lines below a head, up to the next empty one."""
    lines = text.splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith(head))
    end = next((k for k in range(at, len(lines)) if not lines[k]), len(lines))
    return lines[at + 1 : end]


def test_a_plan_by_hand_says_that_nothing_is_known():
    plan = tw.Plan((1, 1), 0, (4, 4), (1, 1))
    text = plan.explain()
    assert text.endswith("Nothing is known of how it was chosen: it was made by hand.")
    assert "Where the time goes" not in text and "memory" not in text
    plan.memory_bytes = 5000
    line = "memory         4.88 KiB on the rank that needs most: its parts of the fields, and staging\n"
    assert line in plan.explain()


def test_replicated_arrays_count_in_the_memory(plan):
    plan.notes["replicated"] = {"table": 4_000, "other": 12}
    assert "and staging, table whole (3.91 KiB), other whole (12 bytes)" in plan.explain()


def test_the_parts_that_take_no_time_are_left_out(plan):
    lines = section(plan.explain(), "Where the time goes")
    parts = plan.predicted.parts
    shown = [label for name, label in PARTS.items() if getattr(parts, name) > 0]
    assert [line.split()[0] for line in lines] == shown
    assert len({line.split()[-1] for line in lines}) == 1  # one unit


def test_ways_in_which_loops_may_lie(plan):
    plan.notes.pop("alternatives", None)
    assert "Layouts of loops" not in plan.explain()
    best, other = dict(plan.ranked[0]["choices"]), dict(plan.ranked[0]["choices"])
    best.update(storage="skewed", row=[1, -1], skew=[])
    other.update(storage="plain", row=[], skew=[0, 1])
    plan.notes["alternatives"] = [
        {"time_s": 1e-3, "choices": best, "bringing_s": 2e-3, "on_one_rank": False, "taken": True},
        {"time_s": 5e-3, "choices": other, "bringing_s": 0.0, "on_one_rank": True, "taken": False},
    ]
    lines = section(plan.explain(), "Layouts of loops")
    assert lines == [
        "  1 ms  points of a row (1, -1) are neighbours in memory, and 2 ms to bring NumPy arrays into that "
        "order and back: taken",
        "  5 ms  arrays are row-major, tiles are cut along the sum of loops 0 and 1, rank 0 for all",
    ]
    assert "skewed storage: rows along" not in plan.explain() and "plain storage:" not in plan.explain()


def test_the_machines_links(plan):
    link = {"latency_s": 2e-6, "send_s": 3e-7, "receive_s": 2e-7, "bandwidth_bytes_s": 1e9, "hidden_polled": 0.375}
    plan.notes["machine"].update(same_host=link, other_host={**link, "bandwidth_bytes_s": None})
    lines = section(plan.explain(), "The machine's numbers")
    assert [line for line in lines if line.startswith("  messages")] == [
        "  messages on one host               2 µs latency, 1 GB/s, 300 ns to post a send, 200 ns a receive, 38 % "
        "hidden behind computing",
        "  messages between hosts             2 µs latency, unlimited, 300 ns to post a send, 200 ns a receive, 38 % "
        "hidden behind computing",
    ]


def test_faces_and_grids(plan):
    faces = [Face((1, 0), 1, 800, 8, True, 2e-6, 3e-6), Face((1, -1), 4, 64, 64, False, 0.0, 1e-6)]
    plan.predicted = Predicted(plan.predicted.time_s, plan.predicted.parts, faces=faces)
    plan.grid = (2, 2)
    assert section(plan.explain(), "Faces of the process grid 2x2") == [
        "  to (+1, 0)      1 message, 800 bytes, 8 bytes contiguous: 2 µs to pack and unpack, 3 µs of messages",
        "  to (+1, -1)     4 messages, 64 bytes, 64 bytes contiguous: in place, 1 µs of messages",
    ]
    assert "Process grids, each" not in plan.explain()
    plan.ranked = [copy.deepcopy(plan.ranked[0]) for _ in range(3)]
    for record, grid, time_s in zip(plan.ranked, ([1, 4], [2, 2], [1, 4]), (3e-3, 1e-3, 2e-3), strict=True):
        record["choices"]["grid"], record["time_s"], record["reason"] = grid, time_s, "slower"
    assert section(plan.explain(), "Process grids, each") == ["  2x2          1 ms: taken", "  1x4          2 ms"]


def by_name(**change):
    """The choices of a usual plan on two ranks, but for these."""
    usual = tw.Plan((2, 1), 0, (5, 6), (1, 1), grouping="vertical")
    return dict(zip(plans.CHOICES, usual.choices(), strict=True)) | change


@pytest.mark.parametrize(
    "change, words",
    [
        ({}, "grid 2x1, mapping dimension 0, tile 5x6, overlapping, chunks of 256 KiB"),
        ({"factors": (2, 1)}, ", lanes 2x1, vertical"),
        ({"factors": (2, 1), "slices": 3}, ", 3 slices"),
        ({"temporal_block": 4}, ", temporal blocks of 4 time steps"),
        ({"aggregate": 5}, ", messages of 5 tiles together"),
        ({"skew": (0, 1)}, ", cut along the sum of loops 0 and 1"),
        ({"row": (1, -1), "storage": "skewed"}, ", rows along (1, -1), skewed storage"),
        ({"helper": True}, ", a helper, chunks"),
        ({"helper": True, "poll_period_s": 0.0}, ", a helper, chunks"),
        ({"synchronous": True}, ", synchronous sends"),
        ({"poll_period_s": 1e-3}, ", polls every 1 ms"),
        ({"poll_period_s": 0.0}, ", no polls in tiles"),
        ({"lookahead": 2}, ", look-ahead 2"),
        ({"generator": "stencil"}, "grid 2x1, tile 5x6, overlapping, stencil, chunks of 256 KiB"),
    ],
)
def test_a_plan_in_a_line_names_what_is_not_usual(change, words):
    assert words in explaining.short(by_name(**change))


MESSAGES = {"grid", "schedule", "chunk_bytes", "poll_period_s"}
TILES = {"mapping_dim", "tile", "generator"}


@pytest.mark.parametrize(
    "change, extents, names",
    [
        ({}, (), TILES | MESSAGES),
        ({"grid": (1, 1), "lookahead": 3, "aggregate": 2, "helper": True}, (), TILES),
        ({"grid": (1, 1)}, (6, 6), TILES),  # two tiles, whose order the mapping dimension decides
        ({"grid": (1, 1)}, (5, 6), TILES - {"mapping_dim"}),
        ({"grid": (1, 1), "factors": (2, 1)}, (5, 6), TILES | {"factors", "grouping"}),
        ({"factors": (1, 2), "slices": 2, "grouping": "hyperplane"}, (), TILES | MESSAGES | {"factors", "grouping"}),
        ({"factors": (1, 2), "slices": 2}, (), TILES | MESSAGES | {"factors", "grouping", "slices"}),
        ({"slices": 2}, (), TILES | MESSAGES),
        ({"schedule": "blocking", "lookahead": 2, "synchronous": True}, (), TILES | MESSAGES | {"synchronous"}),
        (
            {"generator": "stencil", "lookahead": 2, "factors": (1, 2)},
            (),
            TILES - {"mapping_dim"} | MESSAGES | {"factors"},
        ),
    ],
)
def test_choices_that_do_nothing_are_left_out(change, extents, names):
    assert set(explaining.in_effect(by_name(**change), extents)) == names
    plan = tw.Plan(**by_name(**change))
    plan.notes = {"extents": extents} if extents else {}
    assert {line.split()[0] for line in str(plan).splitlines()} == names


TILES_IN_TURN = "tiles of 5 x 6 points are computed one after another"


@pytest.mark.parametrize(
    "change, notes, text",
    [
        ({}, {}, f"2 ranks in a process grid of 2 x 1: {TILES_IN_TURN} while messages travel"),
        ({"grid": (1, 1)}, {"nest": "relax"}, f"1 rank: {TILES_IN_TURN}, because no other plan is possible"),
        ({"grid": (1, 1)}, {"given_whole": True}, f"1 rank: {TILES_IN_TURN}, because this plan was given"),
        (
            {"grid": (1, 1), "factors": (2, 1)},
            {"considered": 7, "fixed": {"threads": 2}, "loops": ["i", "j"]},
            f"1 rank: 2 lanes share the points along i; {TILES_IN_TURN}, because this is predicted to be the fastest "
            "of 7 plans with the given threads",
        ),
        ({"grid": (1, 1)}, {"extents": [5, 6], "given_whole": True}, "1 rank: there is one tile of 5 x 6 points, "
         "because this plan was given"),
        (
            {"factors": (2, 1), "tile": (1, 6), "temporal_block": 8},
            {"considered": 7},
            "2 ranks in a process grid of 2 x 1: 2 lanes of each share its points; tiles of 6 points take 8 time steps "
            "at a time while messages travel, because this is predicted to be the fastest of 7 plans",
        ),
        (
            {"schedule": "blocking", "helper": True},
            {"chosen_for": [3]},
            f"2 ranks in a process grid of 2 x 1: a helper thread of each moves messages; {TILES_IN_TURN}, and "
            "messages are awaited in between, because the plan of an earlier run over 3 points was fitted",
        ),
        (
            {"grid": (1, 1), "generator": "stencil", "temporal_block": 3},
            {"sequential": "A[i-1]"},
            "1 rank: each time step is computed as a whole, and halos are exchanged once in 3 time steps, because the "
            "dependence A[i-1] needs the order of the loops",
        ),
    ],
)
def test_a_plan_in_a_sentence(change, notes, text):
    plan = tw.Plan(**by_name(**change))
    plan.notes = notes
    assert sentence(plan, "ran") == f"{notes.get('nest', 'The nest')} ran on {text}."


@pytest.mark.parametrize(
    "notes, words, absent",
    [
        ({"given_whole": True}, ["given as a whole: it is obeyed, and no other was tried"], ["the best first"]),
        ({"chosen_for": [40, 30]}, ["chosen for a run over 40 x 30 points and fitted to this one"], ["the best first"]),
        ({}, ["plans estimated, ", "simulated; the best first", "   1. "], ["fitted to this one", "as a whole"]),
    ],
)
def test_what_else_was_tried(plan, notes, words, absent):
    plan.notes.update(notes)
    text = plan.explain()
    assert all(word in text for word in words) and not any(word in text for word in absent)


@pytest.mark.parametrize(
    "notes, words, absent",
    [
        ({"sequential": "A[i-1, j]"}, "any other order: only the order of the loops", ""),
        ({"ranks": 1}, "rows of fewer than 12 points", "a helper thread"),
        ({"threads": 1}, "more lanes, vertical groups", "a helper thread"),
        ({"threads": 2}, "rows of fewer", "more lanes"),
        ({"ranks": 2, "threads": 1}, "a helper thread for progress", ""),
        ({"ranks": 2, "threads": 1, "fixed": {"helper": True}}, "more lanes", "a helper thread"),
        ({"by_rule": {"storage": "plain"}, "alternatives": None}, "rows without dependences become vectors only", ""),
    ],
)
def test_what_was_not_tried(plan, notes, words, absent):
    plan.notes.update(notes)
    plan.notes = {name: value for name, value in plan.notes.items() if value is not None}
    text = "\n".join(section(plan.explain(), "Not tried"))
    assert words in text and (not absent or absent not in text)


@pytest.mark.parametrize(
    "notes, told",
    [
        ({"cpus": None}, ""),
        ({"cpus": 1}, "1 of 1 CPU"),
        ({"cpus": 2, "fewer": "the loops"}, "1 of 2 CPUs: the loops"),
        ({"cpus": 2, "ranks": 3, "fewer": ""}, "1 of 2 CPUs of each rank"),
    ],
)
def test_of_how_many_cpus(plan, notes, told):
    plan.notes.update({"fewer": "", **notes})
    assert explaining.of_cpus(plan) == told
    assert (f"; computes with {told}" in plan.explain()) == bool(told)


@pytest.mark.parametrize(
    "notes, factors, helper, why",
    [
        ({"cpus": 1}, (1, 1), False, ""),
        ({"cpus": 2}, (1, 1), True, ""),
        ({"sequential": "A"}, (1, 1), False, "points go in the order of the loops"),
        ({"given_whole": True}, (1, 1), False, "as the given plan says"),
        ({"fixed": {"threads": 1}}, (1, 1), False, "as threads in plan= says"),
        ({"fixed": {"factors": [1, 1]}}, (1, 1), False, "as factors in plan= says"),
        ({"threads": 1}, (1, 1), False, "the context has 1 thread"),
        ({"threads": 4}, (2, 1), False, "fewer are predicted to be faster"),
        ({"threads": 4}, (1, 1), False, "the loops cannot be cut for more"),
    ],
)
def test_why_a_rank_does_not_use_all_its_cpus(plan, notes, factors, helper, why):
    plan.notes.update({"cpus": 4, "threads": 4, **notes})
    plan.helper = helper
    plan.ranked[-1]["choices"]["factors"] = list(factors)
    assert plans._why_fewer(plan) == why
