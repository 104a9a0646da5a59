"""Schedules as GOAL text, which LogGOPSim reads, played again in plain Python."""

import random
import re

import pytest

import tilewave as tw
from tilewave import _core
from tilewave.schedule import goal

LINE = re.compile(r"(l\d+): (send|recv|calc) (\d+)(?:b (?:to|from) (\d+) tag (\d+))? cpu (\d+)|(l\d+) requires (l\d+)")


def read(text):
    """By rank: its operations as (what, number, peer, tag, CPU), and what each requires."""
    first, *rest = text.splitlines()
    ranks, operations, needs = int(first.removeprefix("num_ranks ")), {}, {}
    for line in rest:
        if line.startswith("rank "):
            rank = int(line.split()[1])
            operations[rank], needs[rank] = {}, {}
        elif line != "}":
            name, what, number, peer, tag, cpu, later, before = LINE.fullmatch(line).groups()
            if name:
                operations[rank][name] = (what, int(number), peer and int(peer), tag and int(tag), int(cpu))
                needs[rank][name] = []
            else:
                needs[rank][later].append(before)
                assert before in operations[rank]
    assert sorted(operations) == list(range(ranks))
    return operations, needs


def finished(operations, needs):
    """Play it: an operation goes when what it requires is over; a receive is over when its message is sent. All end."""
    over, sent = {rank: set() for rank in operations}, {}
    more = True
    while more:
        more = False
        for rank, names in operations.items():
            for name, (what, size, peer, tag, _) in names.items():
                if name in over[rank] or not all(other in over[rank] for other in needs[rank][name]):
                    continue
                if what == "send":
                    sent.setdefault((rank, peer, tag), []).append(size)
                elif what == "recv":
                    if not sent.get((peer, rank, tag)):
                        continue
                    assert sent[peer, rank, tag].pop(0) == size
                over[rank].add(name)
                more = True
    assert all(len(over[rank]) == len(names) for rank, names in operations.items())
    assert not any(sent.values())


def random_schedules(seed):
    rng = random.Random(seed)
    if rng.random() < 0.5:
        ranks = rng.choice((2, 3, 4, 6))
        kind, algorithm = rng.choice((("spread", "ring"), ("broadcast", "tree"), ("multi_reduce", "direct")))
        columns = [rng.randint(1, 5) for _ in range(ranks)] if kind != "broadcast" else [7]
        problem = _core.PatternProblem(kind, ranks, rng.randint(1, 9), columns, 8)
        plan = _core.PatternPlan(algorithm, rng.choice((64, 1 << 16)), 4)
        row = 8 * sum(columns)
        return [_core.pattern_schedule(problem, plan, rank, row, row) for rank in range(ranks)]
    grid, lanes, tiles = (rng.randint(1, 3), rng.randint(1, 3)), rng.choice((1, 2)), rng.randint(1, 5)
    shape = (grid[0] * 4 * lanes + 1, tiles * 3 + 1, grid[1] * 4 + 1)
    unit = [(0, (-1, 0, 0)), (0, (0, -1, 0)), (0, (0, 0, -1))]
    problem = _core.SweepProblem(shape, ((1, 1, 1), shape), [(4, False)], unit)
    plan = _core.Plan()
    plan.grid, plan.tile, plan.factors, plan.mapping_dim = (grid[0], 1, grid[1]), (4, 3, 4), (lanes, 1, 1), 1
    plan.schedule = rng.choice(("overlapping", "blocking"))
    return [_core.nest_schedule(problem, plan, rank) for rank in range(grid[0] * grid[1])]


@pytest.mark.parametrize("seed", range(30))
def test_all_operations_end_and_as_many_as_there_are_steps(seed):
    schedules = random_schedules(seed)
    steps = ("compute", "pack", "unpack", "combine", "post_send", "post_recv")
    operations, needs = read("\n".join(goal.lines(schedules, lambda core, step: 2e-6)))
    finished(operations, needs)
    for core in schedules:
        named = [step for lane in core.lanes for step in lane if step.op in steps]
        assert len(operations[core.rank]) == len(named)
        size = sum(core.messages[step.item].bytes for step in named if step.op in ("post_send", "post_recv"))
        assert sum(number for what, number, *_ in operations[core.rank].values() if what != "calc") == size
        assert {number for what, number, *_ in operations[core.rank].values() if what == "calc"} <= {2000}


def test_what_is_computed_follows_what_it_waits_for():
    """Two ranks of a sweep: the second one's tiles wait for the first one's faces, and its rates are in the text."""
    shape = (9, 5, 5)
    problem = _core.SweepProblem(shape, ((1, 1, 1), shape), [(8, False)], [(0, (-1, 0, 0))])
    plan = _core.Plan()
    plan.grid, plan.tile, plan.factors, plan.mapping_dim = (2, 1, 1), (4, 4, 4), (1, 1, 1), 1
    schedules = [_core.nest_schedule(problem, plan, rank) for rank in range(2)]
    seconds = goal.seconds_of(schedules, [_core.KernelRate(1e-6, 0, 0)], [], _core.Machine())
    operations, needs = read("\n".join(goal.lines(schedules, seconds)))
    (tile,) = (name for name, (what, number, *_) in operations[1].items() if what == "calc" and number == 64000)
    received = {name for name, (what, *_) in operations[1].items() if what == "recv"}

    def before(name):
        return {name}.union(*(before(other) for other in needs[1][name]))

    assert received and received <= before(tile)


def test_a_schedule_is_saved_as_goal(tmp_path):
    @tw.nest
    def relax(A, i, j):
        A[i, j] = A[i - 1, j] + A[i, j - 1]

    s = tw.schedule(relax, A=tw.field((20, 20), "f8", init=1.0), plan={"threads": 1})
    with pytest.raises(tw.ConfigError, match="Schedule.save_goal"):
        s.save_goal(tmp_path / "none" / "x.goal")
    s.save_goal(tmp_path / "x.goal")
    operations, needs = read((tmp_path / "x.goal").read_text())
    finished(operations, needs)
    assert operations[0] and {what for what, *_ in operations[0].values()} == {"calc"}
