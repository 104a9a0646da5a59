"""Combine steps of schedules of one's own: random trees of ranks give what NumPy gives in the stated order, and the
checker names a combine step that is left out, done twice or turned round.

A failure prints its seed: `Reduction(seed, ranks)`.
"""


import numpy as np
import pytest
from local_ranks import results_of
from mutants import naming
from reductions import Reduction, run_on, schedule_of

import tilewave as tw
from tilewave import _core

COMBINED = r"(before it holds|should hold) the values of array '\w+' of ranks? [\d, ]+.*\bholds "


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
def test_random_reductions(ranks):
    programs = [Reduction(seed, ranks) for seed in range(40)]
    schedules = [schedule_of(program) for program in programs]
    for program, schedule in zip(programs, schedules, strict=True):
        assert tw.check(schedule) is None, f"{tw.check(schedule)}; {program}\n{schedule.text()}"

    def body(context):
        return [run_on(context, p, s) for p, s in zip(programs, schedules, strict=True)]

    results = results_of(ranks, 1, body)
    assert [said for mine in results for said in mine if said] == []


def change(rng, cores, edit, fits=lambda step: True):
    """One combine step of some rank in place of which the lane has others; whether there was one."""
    found = [
        (core, l, i)
        for core in cores.values()
        for l, lane in enumerate(core.lanes)
        for i, step in enumerate(lane)
        if step.op == "combine" and fits(step)
    ]
    if not found:
        return False
    core, l, i = rng.choice(found)
    lanes = core.lanes
    lanes[l][i : i + 1] = edit(lanes[l][i])
    core.lanes = lanes
    return True


def left_out(rng, cores):
    return change(rng, cores, lambda step: [])


def twice(rng, cores):
    return change(rng, cores, lambda step: [step, step])


def turned_round(rng, cores):
    return change(rng, cores, lambda s: [_core.Step(s.op, s.item, -3 - s.count)], lambda s: s.count < 0)


def other_order(rng, cores):
    """The statement has two ranks in the other order."""
    places = [(c, k) for c in cores.values() for k, result in enumerate(c.results) if len(result.ranks) > 1]
    if not places:
        return False
    core, k = rng.choice(places)
    results = core.results
    ranks = results[k].ranks
    i = rng.randrange(len(ranks) - 1)
    ranks[i], ranks[i + 1] = ranks[i + 1], ranks[i]
    results[k].ranks = ranks
    core.results = results
    return True


KINDS = [left_out, twice, turned_round, other_order]
name_mutants = naming(lambda seed: Reduction(seed, 2 + seed % 4), schedule_of, lambda *_: COMBINED)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_mutant_is_named(kind):
    name_mutants(kind, 40, 0)


def gather_sum(b, **choices):
    S = b.array("S", 3, **{"separate": True, "combine": "sum", **choices})
    R = b.array("R", 3, separate=True)
    return S, R, b.lane()


@pytest.mark.parametrize(
    "write, words",
    [
        (lambda b: b.array("A", 3, combine="mean"), "combine: given 'mean'"),
        (lambda b: b.array("A", 3, "c16", combine="min"), "combine: given 'min' for complex128"),
        (lambda b: b.array("A", 3, "?", combine="sum"), "combine: given 'sum' for bool"),
        (lambda b: (x := gather_sum(b)) and b.result(x[1][:], x[0], [0, 2], number=1), "ranks: given .0, 2."),
        (lambda b: (x := gather_sum(b)) and b.result(x[1][:], x[0], [], number=1), "ranks: given .."),
        (
            lambda b: (x := gather_sum(b, separate=False)) and b.result(x[1][:], x[0], [0, 1], number=1),
            "of an array with separate=True and combine=",
        ),
        (
            lambda b: (x := gather_sum(b)) and x[2].combine(b.receive(1 - b.rank, x[0][:]), x[0][:]),
            r"allowed: a message of b.receive\(..., buffer=b.buffer\(\)\)",
        ),
        (
            lambda b: (x := gather_sum(b)) and x[2].combine(b.receive(1 - b.rank, x[0][:], 0, b.buffer()), x[0][:1]),
            r"combine: given S\[0:1\]; allowed: the message's S\[0:3\]",
        ),
        (
            lambda b: (
                (x := gather_sum(b, combine=None))
                and x[2].combine(x[0][:], b.receive(1 - b.rank, x[0][:], 0, b.buffer()))
            ),
            "array 'S' has no operation",
        ),
        (lambda b: (x := gather_sum(b)) and x[2].copy(x[0][:], b.array("C", 3, "f4")), "copy: into: given"),
        (lambda b: b.rank and b.array("A", 3, separate=True, combine="max") or b.array("A", 3, separate=True), "other"),
    ],
)
def test_what_makes_no_sense_is_refused(write, words):
    with pytest.raises(tw.ConfigError, match=words):
        tw.Schedule.build(lambda b: write(b), 2)


@pytest.mark.parametrize("dtype", ["f4", "i4", "i8", "u1", "c16", "?"])
def test_dtypes_and_files(dtype, tmp_path):
    op = "max" if dtype == "?" else "sum"

    def write(b):
        S = b.array("S", (2, 3), dtype, separate=True, combine=op)
        R = b.array("R", (2, 3), dtype, separate=True)
        lane, part = b.lane(), S[:, 1:]
        if b.rank == 1:
            m = b.send(0, part)
            lane.pack(m)
            lane.post_send(m)
            lane.wait(m)
            return
        m = b.receive(1, part, buffer=b.buffer())
        b.result(R[:, 1:], S, [1, 0], number=0)
        lane.post_recv(m)
        lane.wait(m)
        lane.combine(m, part)
        lane.unpack(m, into=R)

    schedule = tw.Schedule.build(write, 2)
    assert tw.check(schedule) is None
    assert tw.predict(schedule).time_s > 0
    schedule.save(tmp_path / "s.json")
    read = tw.Schedule.load(tmp_path / "s.json")
    assert read == schedule
    rng = np.random.default_rng(3)
    both = rng.integers(0, 2 if dtype == "?" else 9, (2, 2, 3)).astype(dtype)

    def body(context):
        R = np.zeros((2, 3), dtype)
        read.run(context=context, S=both[context.rank].copy(), R=R)
        return R

    results = results_of(2, 1, body)
    right = np.maximum(both[1], both[0]) if dtype == "?" else both[1] + both[0]
    assert np.array_equal(results[0][:, 1:], right[:, 1:]) and not results[0][:, 0].any()
