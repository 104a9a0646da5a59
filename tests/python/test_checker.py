"""The checker accepts what the generators make and names what is wrong with mutants."""
import random

import pytest
from sweeps import describe, random_case, schedules

from tilewave import _core


@pytest.mark.parametrize("first", range(0, 4000, 500))
def test_random_sweeps_check(first):
    for seed in range(first, first + 500):
        case = random_case(seed)
        violation = _core.check(schedules(*case))
        assert violation is None, f"seed {seed}: {violation}; {describe(*case)}"


@pytest.mark.long
def test_many_random_sweeps_check():
    for seed in range(10_000, 160_000):
        case = random_case(seed)
        violation = _core.check(schedules(*case))
        assert violation is None, f"seed {seed}: {violation}; {describe(*case)}"


def test_moves_between_layouts_check():
    rng = random.Random(5)
    for _ in range(200):
        dims = rng.randint(1, 4)
        shape = tuple(rng.randint(0, 9) for _ in range(dims))
        ranks = rng.choice((1, 2, 3, 4, 6))
        a, b = (_core.Layout(shape, _core.default_grid(shape, ranks, rng.randrange(dims)),
                             tuple(rng.randint(0, 2) for _ in range(dims)),
                             tuple(rng.randint(0, 2) for _ in range(dims))) for _ in range(2))
        chunk = rng.choice((8, 50, 1 << 20))
        for made in ([_core.redistribute(a, b, 8, r, chunk) for r in range(ranks)],
                     [_core.gather_schedule(a, 8, r, chunk) for r in range(ranks)],
                     [_core.scatter_schedule(a, 8, r, chunk) for r in range(ranks)]):
            assert _core.check(made) is None, f"shape {shape}, ranks {ranks}, chunk {chunk}"


def sweep(grid=(2, 1), schedule="overlapping", threads=(1, 1), tile=(3, 4), chunk=16, mapping_dim=1,
          grouping="hyperplane"):
    problem = _core.SweepProblem((12, 16), ((1, 1), (12, 16)), [(4, False)],
                                 [(0, (-1, 0)), (0, (0, -1))])
    plan = _core.Plan()
    plan.grid, plan.tile, plan.factors, plan.mapping_dim = grid, tile, threads, mapping_dim
    plan.schedule, plan.chunk_bytes, plan.grouping = schedule, chunk, grouping
    made = schedules(problem, plan, grid[0] * grid[1])
    assert _core.check(made) is None
    return made


def find(schedule, op, lane=0, nth=0, send=None):
    hits = [i for i, s in enumerate(schedule.lanes[lane])
            if s.op == op and (send is None or schedule.messages[s.item].send == send)]
    return hits[nth]


def without(schedule, lane, index):
    lanes = schedule.lanes
    removed = lanes[lane].pop(index)
    schedule.lanes = lanes
    return removed


def put(schedule, lane, index, step):
    lanes = schedule.lanes
    lanes[lane].insert(index, step)
    schedule.lanes = lanes


def change_message(schedule, index, **values):
    messages = schedule.messages
    for name, value in values.items():
        setattr(messages[index], name, value)
    schedule.messages = messages


def violation(made, *words):
    found = _core.check(made)
    assert found is not None, "the mutant passed"
    for word in words:
        assert word in str(found), f"{word!r} is not in {found}"
    return found


# Strided faces: the grid cuts columns, so faces are packed.
STRIDED = dict(grid=(1, 2), mapping_dim=0, tile=(3, 4))


def test_dropped_send():
    made = sweep()
    index = find(made[0], "post_send")
    without(made[0], 0, index)
    found = violation(made, "waited for before it is posted")
    assert (found.rank, found.lane) == (0, 0)


def test_dropped_send_and_its_wait():
    made = sweep()
    step = made[0].lanes[0][find(made[0], "post_send", nth=2)]
    made[0].lanes = [[s for s in made[0].lanes[0]
                      if not (s.op in ("post_send", "wait", "pack") and s.item == step.item)]]
    found = violation(made, "never ends", "posts no send that meets it")
    assert found.rank == 1


def test_dropped_receive():
    made = sweep()
    without(made[1], 0, find(made[1], "post_recv"))
    violation(made)


def test_swapped_tags():
    made = sweep()
    a, b = (made[0].lanes[0][find(made[0], "post_send", nth=n)].item for n in (1, 2))
    tags = [made[0].messages[m].tag for m in (a, b)]
    change_message(made[0], a, tag=tags[1])
    change_message(made[0], b, tag=tags[0])
    violation(made, "region")


def test_wrong_size():
    made = sweep()
    m = made[0].lanes[0][find(made[0], "post_send", nth=1)].item
    change_message(made[0], m, bytes=made[0].messages[m].bytes - 4)
    violation(made, "bytes meets one of")


def test_early_reuse_of_a_send_buffer():
    made = sweep(**STRIDED)
    packs = [i for i, s in enumerate(made[0].lanes[0]) if s.op == "pack"]
    first, second = (made[0].lanes[0][packs[n]].item for n in (1, 2))
    change_message(made[0], second, buffer=made[0].messages[first].buffer)
    violation(made, "reused while message")


def test_early_reuse_of_a_receive_buffer():
    made = sweep(**STRIDED)
    posts = [i for i, s in enumerate(made[1].lanes[0]) if s.op == "post_recv"]
    first, second = next(  # two receives under way at once
        (made[1].lanes[0][a].item, made[1].lanes[0][b].item) for a, b in zip(posts, posts[1:])
        if not any(s.op == "wait" for s in made[1].lanes[0][a:b]))
    change_message(made[1], second, buffer=made[1].messages[first].buffer)
    violation(made, "reused while message")


def test_unpack_before_the_wait():
    made = sweep(**STRIDED)
    index = find(made[1], "unpack")
    step = without(made[1], 0, index)
    put(made[1], 0, index - 1, step)
    violation(made)


def test_missing_unpack():
    made = sweep(**STRIDED)
    without(made[1], 0, find(made[1], "unpack", nth=1))
    violation(made, "before")


def test_wait_after_the_compute_that_needs_it():
    made = sweep()
    lane = made[1].lanes[0]
    index = next(i for i, s in enumerate(lane) if s.op == "wait" and not made[1].messages[s.item].send
                 and lane[i + 1].op == "compute")
    step = without(made[1], 0, index)
    put(made[1], 0, index + 1, step)
    violation(made, "while message")


def test_missing_await():
    made = sweep(grid=(1, 1), threads=(2, 1), tile=(6, 4))
    awaits = [(l, i) for l, lane in enumerate(made[0].lanes) for i, s in enumerate(lane) if s.op == "await"]
    assert awaits
    # Without the last await the lane runs ahead of what it reads: a race, whatever the timing.
    without(made[0], *awaits[-1])
    violation(made, "no order")


def test_missing_signal():
    made = sweep(grid=(1, 1), threads=(2, 1), tile=(6, 4))
    signals = [i for i, s in enumerate(made[0].lanes[0]) if s.op == "signal"]
    made[0].lanes = [[s for i, s in enumerate(made[0].lanes[0]) if i < signals[-1] or s.op != "signal"],
                     made[0].lanes[1]]
    violation(made, "no signal of that lane reaches it")


def test_cyclic_wait():
    made = sweep(grid=(2, 1), schedule="blocking")
    # Rank 1 waits for its tile before it posts; rank 0's synchronous send waits for the post.
    other = sweep(grid=(2, 1), schedule="blocking")
    lane = other[1].lanes[0]
    posts = [s for s in lane if s.op == "post_recv"]
    rest = [s for s in lane if s.op != "post_recv"]
    # Post every receive in reverse, each after the wait of the one before: no order can finish.
    for m, step in enumerate(posts):
        at = next(i for i, s in enumerate(rest) if s.op == "wait" and s.item == posts[(m + 1) % len(posts)].item)
        rest.insert(at + 1, step)
    other[1].lanes = [rest]
    violation([made[0], other[1]])


def test_true_cycle_is_called_one():
    a, b = sweep(grid=(2, 1), tile=(3, 15))
    # Each rank sends to the other only after receiving from it.
    for mine, peer in ((a, 1), (b, 0)):
        messages = mine.messages
        send, receive = _core.Schedule(a).messages[0], _core.Schedule(b).messages[0]
        for m, is_send in ((send, True), (receive, False)):
            m.send, m.peer, m.tag, m.buffer, m.tile = is_send, peer, 77, -1, -1
            owner = a if (is_send == (peer == 1)) else b
            m.region = (owner.arrays[0].owned[0], tuple(x + 1 for x in owner.arrays[0].owned[0]))
            m.bytes = 4
        base = len(messages)
        mine.messages = [*messages, send, receive]
        mine.arrays = mine.arrays
        arrays = mine.arrays
        arrays[0].storage = ((0, 0), (12, 16))
        mine.arrays = arrays
        mine.lanes = [[_core.Step("post_recv", base + 1), _core.Step("wait", base + 1),
                       _core.Step("post_send", base), _core.Step("wait", base), *mine.lanes[0]]]
    violation([a, b], "cyclic wait")


def test_request_never_waited_for():
    made = sweep()
    index = max(i for i, s in enumerate(made[0].lanes[0])
                if s.op == "wait" and made[0].messages[s.item].send)
    without(made[0], 0, index)
    violation(made, "never waited for")


def test_tile_twice_and_tile_missing():
    made = sweep()
    index = find(made[1], "compute", nth=-1)
    put(made[1], 0, index + 1, made[1].lanes[0][index])
    violation(made, "computed twice")
    made = sweep(grid=(1, 1))
    without(made[0], 0, find(made[0], "compute", nth=-1))
    violation(made, "never computed")


def test_tiles_in_the_wrong_order():
    made = sweep(grid=(1, 1))
    lanes = made[0].lanes
    lanes[0].reverse()
    made[0].lanes = lanes
    violation(made, "before")


def test_send_before_the_tile_is_computed():
    made = sweep()
    lane = made[0].lanes[0]
    index = find(made[0], "post_send", nth=1)
    compute = max(i for i in range(index) if lane[i].op == "compute")
    step = without(made[0], 0, index)
    put(made[0], 0, compute, step)
    violation(made)


def test_bad_step_is_named():
    made = sweep()
    put(made[1], 0, 3, _core.Step("wait", 9999))
    found = violation(made, "names item 9999")
    assert (found.rank, found.lane, found.step) == (1, 0, 3)
