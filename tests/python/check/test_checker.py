"""The checker accepts what the generators make and names what is wrong with mutants."""

import random

import pytest

from tilewave import _core
import itertools


def collected(layout, rng, ranks, chunk):
    """Schedules that give each rank one of its parts of whole chunks, of random extents."""
    extents = tuple(rng.randint(1, 4) for _ in layout.shape)
    counts = tuple(-(-n // e) for n, e in zip(layout.shape, extents))
    to = _core.Layout(layout.shape, layout.grid).following(counts, extents)
    number = rng.randrange(4)
    return [_core.collect_schedule(layout, to, extents, number, 8, r, ranks, chunk) for r in range(ranks)]


def test_moves_between_layouts_check():
    rng = random.Random(5)
    for _ in range(200):
        dims = rng.randint(1, 4)
        shape = tuple(rng.randint(0, 9) for _ in range(dims))
        ranks = rng.choice((1, 2, 3, 4, 6))
        all_ranks = ranks + rng.choice((0, 0, 1, 3))  # some own nothing
        a, b = (
            _core.Layout(
                shape,
                _core.default_grid(shape, rng.choice((ranks, all_ranks)), rng.randrange(dims)),
                tuple(rng.randint(0, 2) for _ in range(dims)),
                tuple(rng.randint(0, 2) for _ in range(dims)),
            )
            for _ in range(2)
        )
        chunk = rng.choice((8, 50, 1 << 20))
        for made in (
            [_core.redistribute(a, b, 8, r, all_ranks, chunk) for r in range(all_ranks)],
            [_core.gather_schedule(a, 8, r, all_ranks, chunk) for r in range(all_ranks)],
            [_core.scatter_schedule(a, 8, r, all_ranks, chunk) for r in range(all_ranks)],
            collected(a, rng, all_ranks, chunk),
        ):
            assert _core.check(made) is None, f"shape {shape}, ranks {all_ranks}, chunk {chunk}"


def sweep(
    grid=(2, 1), schedule="overlapping", threads=(1, 1), tile=(3, 4), chunk=16, mapping_dim=1, grouping="hyperplane"
):
    problem = _core.SweepProblem((12, 16), ((1, 1), (12, 16)), [(4, False)], [(0, (-1, 0)), (0, (0, -1))])
    plan = _core.Plan()
    plan.grid, plan.tile, plan.factors, plan.mapping_dim = grid, tile, threads, mapping_dim
    plan.schedule, plan.chunk_bytes, plan.grouping = schedule, chunk, grouping
    made = [_core.sweep(problem, plan, rank) for rank in range(grid[0] * grid[1])]
    assert _core.check(made) is None
    return made


def find(schedule, op, lane=0, nth=0, send=None):
    hits = [
        i
        for i, s in enumerate(schedule.lanes[lane])
        if s.op == op and (send is None or schedule.messages[s.item].send == send)
    ]
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
    made[0].lanes = [
        [s for s in made[0].lanes[0] if not (s.op in ("post_send", "wait", "pack") and s.item == step.item)]
    ]
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
    (low, high), size = made[0].messages[m].region, made[0].messages[m].bytes
    change_message(made[0], m, bytes=size - 4, region=(low, (high[0], high[1] - 1)))
    violation(made, "bytes meets one of")


def matching(made, nth=1, sender=0):
    """The message of a send and the one that receives it, as (sender's, receiver's) numbers."""
    out = made[sender].lanes[0][find(made[sender], "post_send", nth=nth)].item
    m = made[sender].messages[out]
    return out, next(
        k for k, r in enumerate(made[m.peer].messages) if not r.send and (r.peer, r.tag) == (sender, m.tag)
    )


def test_sizes_that_agree_with_each_other_but_not_with_the_region():
    made = sweep()
    out, into = matching(made)
    for side, m in enumerate((out, into)):
        change_message(made[side], m, bytes=made[side].messages[m].bytes - 4)
    found = violation(made, "12 bytes, its region", "16")
    assert (found.rank, found.lane) == (0, 0) and made[0].lanes[0][found.step].item == out


def test_a_strided_face_sent_without_a_buffer():
    made = sweep(**STRIDED)
    out, _ = matching(made)
    change_message(made[0], out, buffer=-1)
    violation(made, "no single run of memory")


def test_a_receive_buffer_that_is_too_small():
    made = sweep(**STRIDED)
    _, into = matching(made)
    buffers = made[1].buffers
    buffers[made[1].messages[into].buffer] -= 4
    made[1].buffers = buffers
    violation(made, "smaller than message")


@pytest.mark.parametrize("op, choices, does", [("pack", STRIDED, "it packs"), ("post_send", {}, "it sends")])
def test_a_message_far_outside_its_array(op, choices, does):
    made = sweep(**choices)
    m = made[0].lanes[0][find(made[0], op)].item
    change_message(made[0], m, region=tuple(tuple(x + 1000 for x in end) for end in made[0].messages[m].region))
    violation(made, does, "outside its storage")


@pytest.mark.parametrize("what", ["array", "buffer", "tile"])
def test_numbers_that_name_nothing(what):
    made = sweep(**STRIDED)
    out, _ = matching(made)
    change_message(made[0], out, **{what: 999})
    violation(made, f"names {what} 999")


def test_reads_that_differ_between_ranks():
    problem = _core.SweepProblem((6, 4), ((1, 0), (6, 4)), [(4, False)], [(0, (-1, 0))])
    other = _core.SweepProblem((6, 4), ((1, 0), (6, 4)), [(4, False)], [(0, (-1, 0)), (0, (0, 0))])
    plan = _core.Plan()
    plan.grid, plan.tile, plan.factors, plan.mapping_dim = (2, 1), (3, 4), (1, 1), 1
    violation([_core.sweep(problem, plan, 0), _core.sweep(other, plan, 1)], "its places")


def test_one_tag_on_lanes_without_an_order():
    # Columns do not depend on each other, so the lanes of a rank run at their own pace.
    problem = _core.SweepProblem((4, 8), ((1, 0), (4, 8)), [(4, False)], [(0, (-1, 0))])
    plan = _core.Plan()
    plan.grid, plan.tile, plan.factors, plan.mapping_dim = (2, 1), (2, 4), (1, 2), 0
    made = [_core.sweep(problem, plan, rank) for rank in range(2)]
    assert _core.check(made) is None
    for s in made:
        s.messages = [_same_tag(m) for m in s.messages]
    violation(made, "one tag and no certain order")


def _same_tag(message):
    message.tag = 0
    return message


def test_values_of_the_wrong_array():
    problem = _core.SweepProblem(
        (8, 4), ((1, 0), (7, 4)), [(4, False), (4, False), (4, False)], [(0, (-1, 0)), (1, (1, 0)), (2, (1, 0))]
    )
    plan = _core.Plan()
    plan.grid, plan.tile, plan.factors, plan.mapping_dim = (2, 1), (3, 4), (1, 1), 1
    made = [_core.sweep(problem, plan, rank) for rank in range(2)]
    assert _core.check(made) is None
    for k, m in enumerate(made[1].messages):
        if m.send and m.array == 1:
            change_message(made[1], k, array=2)
    violation(made, "of array 2 meets array 1")


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
        (made[1].lanes[0][a].item, made[1].lanes[0][b].item)
        for a, b in itertools.pairwise(posts)
        if not any(s.op == "wait" for s in made[1].lanes[0][a:b])
    )
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
    index = next(
        i
        for i, s in enumerate(lane)
        if s.op == "wait" and not made[1].messages[s.item].send and lane[i + 1].op == "compute"
    )
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
    made[0].lanes = [
        [s for i, s in enumerate(made[0].lanes[0]) if i < signals[-1] or s.op != "signal"],
        made[0].lanes[1],
    ]
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
        mine.lanes = [
            [
                _core.Step("post_recv", base + 1), _core.Step("wait", base + 1), _core.Step("post_send", base),
                _core.Step("wait", base), *mine.lanes[0],
            ]
        ]
    violation([a, b], "cyclic wait")


def test_request_never_waited_for():
    made = sweep()
    index = max(i for i, s in enumerate(made[0].lanes[0]) if s.op == "wait" and made[0].messages[s.item].send)
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


def test_await_of_what_every_counter_has_at_the_start():
    made = sweep(threads=(2, 1))
    assert any(s.op == "await" for s in made[0].lanes[1])
    lanes = made[0].lanes
    step = next(s for s in lanes[1] if s.op == "await")
    step.count = 0
    made[0].lanes = lanes
    violation(made, "with no order after")
    made = sweep(threads=(2, 1))
    lanes = made[0].lanes
    next(s for s in lanes[1] if s.op == "signal").count = 0
    made[0].lanes = lanes
    violation(made, "it only grows")


def tasks_on(rank, lanes, messages):
    """The part of one of two ranks: arrays 0, 1, 2, tasks 0 and 1 that write array 0, and messages of an array each
    (array, whether it is sent, whether synchronously).
    """
    part, box = _core.Schedule(), ((0,), (4,))
    part.rank, part.ranks = rank, 2
    array = _core.Array()
    array.item_bytes, array.storage, array.separate = 8, box, True
    array.owned = box if rank == 0 else ((0,), (0,))
    part.arrays = [array] * 3
    if any(step[0] == "compute" for lane in lanes for step in lane):
        part.works = [_core.Work(n, _core.TaskWork(writes=[_core.Region(0, box)])) for n in range(2)]
    tiles, made = [_core.Tile() for _ in part.works], []
    for number, tile in enumerate(tiles):
        tile.work = number
    for number, send, synchronous in messages:
        message = _core.Message()
        message.peer, message.tag, message.send, message.synchronous = 1 - rank, 1 + number, send, synchronous
        message.array, message.region, message.bytes = number, box, 32
        made.append(message)
    part.tiles, part.messages = tiles, made
    part.lanes = [[_core.Step(*step) for step in lane] for lane in lanes]
    return part


@pytest.mark.parametrize("waits_first", [True, False])
def test_elements_that_change_while_they_are_sent(waits_first):
    end = [("wait", 0), ("compute", 1)]
    steps = [("compute", 0), ("post_send", 0), *(end if waits_first else end[::-1])]
    receives = [("post_recv", 0), ("wait", 0)]
    made = [tasks_on(0, [steps], [(0, True, False)]), tasks_on(1, [receives], [(0, False, False)])]
    assert _core.check(made) is None if waits_first else violation(made, "while it is being sent")


@pytest.mark.parametrize("synchronous", [True, False])
def test_only_the_end_of_a_synchronous_send_tells_of_its_receive(synchronous):
    """Rank 1 changes in lane 1, after a second message, what lane 0 has made before it receives the first one."""
    sends = [("post_send", 0), ("wait", 0), ("post_send", 1), ("wait", 1)]
    lanes = [[("compute", 0), ("post_recv", 0), ("wait", 0)], [("post_recv", 1), ("wait", 1), ("compute", 1)]]
    made = [
        tasks_on(rank, steps, [(1, rank == 0, synchronous), (2, rank == 0, False)])
        for rank, steps in enumerate(([sends], lanes))
    ]
    assert _core.check(made) is None if synchronous else violation(made, "with no order after another write")
