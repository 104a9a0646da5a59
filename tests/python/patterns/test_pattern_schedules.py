"""The patterns as values: their schedules pass the checker, their memory is bounded, plans obey."""

import math

import pytest
from pattern_schedules import KINDS, machine, Case

from tilewave import _core


@pytest.mark.parametrize("first", range(0, 1200, 200))
def test_random_patterns_check(first):
    for seed in range(first, first + 200):
        case = Case(seed)
        violation = _core.check(case.schedules())
        assert violation is None, f"{violation}; {case}"


@pytest.mark.long
def test_many_random_patterns_check():
    for seed in range(10_000, 60_000):
        case = Case(seed)
        violation = _core.check(case.schedules())
        assert violation is None, f"{violation}; {case}"


def most_buffers(case):
    """The staging each rank may have, in chunks: whatever the matrix."""
    w, levels = case.buffers, max(math.ceil(math.log2(case.ranks)), 1)
    if case.kind in ("spread", "multi_reduce"):
        return w + max(w // 2, 1) if case.algorithm == "ring" else 2 * w * case.ranks
    return {"tree": w * (levels if case.kind == "reduce" else 1), "ring": w, "rounds": 2 * w, "direct": w}[
        case.algorithm
    ]


def test_memory_is_bounded_whatever_the_number_of_rows():
    for seed in range(300):
        case = Case(seed)
        case.chunk_bytes = min(case.chunk_bytes, 40 * case.item)
        for case.rows in (2, 40, 400):
            bound = most_buffers(case) * max(case.chunk_bytes, case.item)
            for rank in {0, case.root, case.ranks - 1, case.ranks // 2}:
                assert case.schedule(rank).buffer_bytes <= bound, f"rank {rank}: {case}"


def fixed(kind, algorithm, **choices):
    """A strided problem of three ranks in which every rank stages."""
    case = Case(0)
    case.kind, case.algorithm, case.ranks, case.root, case.rows, case.item, case.block = kind, algorithm, 3, 1, 6, 8, 0
    case.columns = [4] if kind in ("broadcast", "reduce") else [4, 0, 3]
    case.chunk_bytes, case.buffers, case.gaps = 64, 2, [(1, 1)] * 3
    vars(case).update(choices)
    made = case.schedules()
    assert _core.check(made) is None
    return made


ALL = [(kind, algorithm) for kind, algorithms in KINDS.items() for algorithm in algorithms]


def drop(made, rank, wanted):
    """Without the first step of one kind; whether there was one."""
    lane = made[rank].lanes[0]
    hits = [i for i, step in enumerate(lane) if step.op == wanted]
    if hits:
        made[rank].lanes = [lane[: hits[0]] + lane[hits[0] + 1 :]]
    return bool(hits)


@pytest.mark.parametrize("kind, algorithm", ALL)
@pytest.mark.parametrize("op", ["wait", "pack", "unpack", "combine", "post_send", "post_recv"])
def test_a_step_left_out_is_refused(kind, algorithm, op):
    found = 0
    for rank in range(3):
        made = fixed(kind, algorithm)
        if drop(made, rank, op):
            found += 1
            assert _core.check(made) is not None, f"rank {rank} without {op}"
    assert found or op == "combine" and kind in ("broadcast", "spread")


@pytest.mark.parametrize("kind, algorithm", ALL)
def test_other_results_are_refused(kind, algorithm):
    """The demands are not idle: another rank, another order, more than there is."""
    made = fixed(kind, algorithm)
    with_results = [s for s in made if s.results]
    assert with_results and (kind == "reduce") == (len(with_results) == 1)
    for rank, schedule in enumerate(made):
        for i, result in enumerate(schedule.results):
            ranks = list(result.ranks)
            others = [[(q + 1) % 3 for q in ranks], [*ranks, 0]] + ([ranks[::-1], ranks[1:]] if len(ranks) > 1 else [])
            for other in others:
                made = fixed(kind, algorithm)
                results = list(made[rank].results)
                results[i] = _core.Result(result.array, result.region, result.source, other)
                made[rank].results = results
                assert _core.check(made) is not None, f"rank {rank}, result {i} as of {other}"


def test_a_reduction_from_the_wrong_side_is_refused():
    for kind, algorithm in (("reduce", "tree"), ("reduce", "ring"), ("multi_reduce", "ring")):
        made = fixed(kind, algorithm)
        rank, i, step = next(
            (r, i, step)
            for r, s in enumerate(made)
            for i, step in enumerate(s.lanes[0])
            if step.op == "combine" and step.count < 0
        )
        lane = list(made[rank].lanes[0])
        lane[i] = _core.Step(step.op, step.item, -3 - step.count)  # the other side
        made[rank].lanes = [lane]
        assert _core.check(made) is not None


def test_dealt_columns():
    for ranks in range(1, 6):
        for block in range(1, 5):
            for columns in range(30):
                counts = [sum(c // block % ranks == r for c in range(columns)) for r in range(ranks)]
                assert [_core.dealt_columns(columns, block, ranks, r) for r in range(ranks)] == counts
        for columns in range(30):
            even = [_core.dealt_columns(columns, 0, ranks, r) for r in range(ranks)]
            assert sum(even) == columns and max(even) - min(even) <= 1 and even == sorted(even, reverse=True)


def problem(kind="broadcast", ranks=4, rows=1000, columns=None, **more):
    return _core.PatternProblem(
        kind, ranks, rows, columns or ([100] if kind in ("broadcast", "reduce") else [25] * ranks), **more
    )


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_asked_for_is_obeyed(kind):
    for algorithm in KINDS[kind]:
        plan = _core.make_pattern_plan(problem(kind), machine(), algorithm, 12345, 7)
        assert (plan.algorithm, plan.chunk_bytes, plan.buffers, plan.why) == (algorithm, 12345, 7, "asked for")
    plan = _core.make_pattern_plan(problem(kind), machine(), chunk_bytes=999)
    assert plan.chunk_bytes == 999 and plan.algorithm in KINDS[kind]
    plan = _core.make_pattern_plan(problem(kind), machine(), buffers=3)
    assert plan.buffers == 3 and 8000 <= plan.chunk_bytes <= 256 << 10
    assert _core.make_pattern_plan(problem(kind), machine(), "mpi", native=True).algorithm == "mpi"


@pytest.mark.parametrize(
    "given, words",
    [
        (
            dict(problem=problem("reduce"), algorithm="rounds"),
            "reduce: algorithm 'rounds' was given; allowed: auto, tree, ring, mpi",
        ),
        (
            dict(problem=problem("spread"), algorithm="tree"),
            "spread: algorithm 'tree' was given; allowed: auto, ring, direct, mpi",
        ),
        (dict(algorithm="mpi"), "runs without MPI; allowed: auto, tree, ring, rounds, direct"),
        (
            dict(problem=problem("spread", columns=[50, 50, 0, 0], block=50), algorithm="mpi", native=True),
            "'mpi' was given with columns dealt in blocks",
        ),
        (dict(algorithm="best"), "algorithm: 'best' was given"),
        (dict(chunk_bytes=-1), "chunk_bytes -1 was given"),
        (dict(chunk_bytes=(1 << 30) + 1), "chunk_bytes 1073741825 was given; 1 to 1073741824"),
        (dict(buffers=1), "buffers 1 was given; 2 to 64"),
        (dict(buffers=65), "buffers 65"),
        (dict(buffers=-2), "buffers -2"),
        (dict(problem=problem(ranks=0)), "0 ranks"),
        (dict(problem=problem(root=4)), "root 4 was given; allowed: 0 to 3"),
        (dict(problem=problem(rows=-1)), "-1 rows"),
        (dict(problem=problem(columns=[3, 3])), "needs 1 numbers of columns"),
        (dict(problem=problem("spread", columns=[3])), "needs 4 numbers of columns"),
        (dict(problem=problem("spread", columns=[3, 3, 3, -1])), "columns >= 0"),
        (dict(problem=problem(block=2)), "block 2 was given"),
        (dict(problem=problem("spread", columns=[4, 4, 4, 4], block=3)), "dealt in blocks of 3"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(given, words):
    with pytest.raises(ValueError, match=words):
        _core.make_pattern_plan(**{"problem": problem(), "machine": machine(), **given})


def test_schedules_that_cannot_be():
    with pytest.raises(ValueError, match="algorithm auto makes no schedule"):
        _core.pattern_schedule(problem(), _core.PatternPlan("auto"), 0, 800, 800)
    with pytest.raises(ValueError, match="into more than 4194304 chunks; take larger chunks"):
        _core.pattern_schedule(problem(rows=1 << 20), _core.PatternPlan("ring", 8), 0, 800, 800)


def test_times_worked_by_hand():
    """L = 4 us, 1 us a chunk, 1 ns a byte."""
    m = machine()

    def microseconds(kind, algorithm, chunk_bytes, ranks=5):
        columns = [10] if kind in ("broadcast", "reduce") else [2] * ranks
        return 1e6 * _core.pattern_time(
            problem(kind, ranks, 1000, columns), _core.PatternPlan(algorithm, chunk_bytes), m
        )

    # 80 000 bytes: 10 chunks of 8 us, 3 levels of the tree
    assert microseconds("broadcast", "tree", 8000) == pytest.approx(3 * (4 + 10 * 1 + 80))
    assert microseconds("broadcast", "ring", 8000) == pytest.approx(4 * (4 - 1) + (10 + 3) * 9)
    assert microseconds("broadcast", "rounds", 8000) == pytest.approx((9 + 3) * (4 + 8))
    assert microseconds("reduce", "ring", 8000) == microseconds("broadcast", "ring", 8000)
    assert microseconds("broadcast", "ring", 30000) == pytest.approx(12 + (3 + 3) * 31)  # 3 chunks, the last not full
    for kind in ("spread", "multi_reduce"):  # a part has 16 000 bytes
        assert microseconds(kind, "ring", 8000) == pytest.approx(4 * 2 * 9)
        assert microseconds(kind, "ring", 1 << 20) == pytest.approx(4 * (4 + 16))  # alone, a chunk shows all latency
        assert microseconds(kind, "direct", 8000) == pytest.approx(4 + 4 * 2 * 9)
    for kind in KINDS:
        assert microseconds(kind, "ring", 8000, ranks=1) == 0


def test_times_with_short_messages_worked_by_hand():
    """As above, and 8000 bytes that the library takes at once: 1 us into its buffers, 1 us out of them."""
    m = machine()
    m.short_s = 1e-6

    def microseconds(kind, algorithm, chunk_bytes):
        columns = [10] if kind == "broadcast" else [2] * 5
        return 1e6 * _core.pattern_time(problem(kind, 5, 1000, columns), _core.PatternPlan(algorithm, chunk_bytes), m)

    assert microseconds("broadcast", "tree", 8000) == pytest.approx(3 * (4 + 10 * 2))
    assert microseconds("broadcast", "ring", 8000) == pytest.approx(4 * (4 - 1) + (10 + 3) * 2)
    assert microseconds("broadcast", "rounds", 8000) == pytest.approx((9 + 3) * (3 + 2))
    assert microseconds("broadcast", "tree", 8001) == pytest.approx(3 * (4 + 10 * (1 + 8.001)))  # not short
    assert microseconds("broadcast", "ring", 500) == pytest.approx(12 + (160 + 3) * 1.5)  # less than a full short one
    assert microseconds("spread", "ring", 8000) == pytest.approx(4 * 2 * 2)
    assert microseconds("spread", "direct", 8000) == pytest.approx(4 + 4 * 2 * 2)
    assert _core.make_pattern_plan(problem("broadcast", 2, 200, [10]), m).chunk_bytes == 8000
    # Beyond 16 KB all bytes would be copied twice.
    assert _core.make_pattern_plan(problem("broadcast", 2, 1000, [10]), m).chunk_bytes >= 64 << 10
    m.short_s = 12e-6  # two more than any other message of 8 us and 1 us
    assert _core.make_pattern_plan(problem("broadcast", 2, 200, [10]), m).chunk_bytes > 8000


def test_times_where_ranks_share_cores_worked_by_hand():
    """2.5 further ranks on a core make a wait 100 us; of 4 buffers 2 are waited for at once: 10 chunks 5 times."""
    alone, shared = machine(), machine()
    shared.ranks_per_core = 3.5
    for m in (alone, shared):
        m.latency_s, m.byte_s, m.chunk_s = 1e-15, 1e-18, 1e-15  # the waits alone

    def waits(kind, algorithm, chunk_bytes, buffers=4):
        columns = [10] if kind in ("broadcast", "reduce") else [10] * 5  # 80 000 bytes a rank
        q, plan = problem(kind, 5, 1000, columns), _core.PatternPlan(algorithm, chunk_bytes, buffers)
        return 1e4 * (_core.pattern_time(q, plan, shared) - _core.pattern_time(q, plan, alone))

    assert waits("broadcast", "tree", 8000) == pytest.approx(3 + 5 - 1)
    assert waits("broadcast", "tree", 80000) == pytest.approx(3)
    assert waits("broadcast", "tree", 8000, buffers=8) == pytest.approx(3 + 3 - 1)
    assert waits("broadcast", "ring", 8000) == pytest.approx(3 + 5)
    assert waits("broadcast", "rounds", 8000) == pytest.approx(9 + 3)
    assert waits("broadcast", "direct", 8000) == pytest.approx(5)
    for kind in ("spread", "multi_reduce"):
        assert waits(kind, "ring", 8000) == pytest.approx(4 * 5)
        assert waits(kind, "direct", 8000) == pytest.approx(5)
    for algorithm in KINDS["reduce"]:  # its order is its algorithm's: it must not depend on who shares cores
        assert waits("reduce", algorithm, 8000) == 0
    shared.byte_s = alone.byte_s = 9e-9  # a network slower than the 3.5 * 2.4 ns of processors
    assert waits("spread", "ring", 8000) == waits("broadcast", "tree", 8000) == 0
    shared.byte_s = alone.byte_s = 8e-9
    assert waits("spread", "ring", 8000) == pytest.approx(4 * 5)
    assert waits("broadcast", "tree", 8000) == 0
    shared.byte_s, shared.short_s = 1e-18, 1e-9  # the library keeps short ones
    alone.byte_s, alone.short_s = 1e-18, 1e-9
    assert waits("broadcast", "direct", 8000) == pytest.approx(1)
    assert waits("broadcast", "direct", 8001) == pytest.approx(5)
    # 9 us a whole matrix, which 4 of 5 ranks copy, all on one core; 160 us a wait
    shared.byte_s, shared.chunk_s, shared.short_s, shared.ranks_per_core = 1e-10, 1e-6, 0, 5
    for kind, algorithm, copies, turns in (
        ("broadcast", "tree", 4, 3),
        ("broadcast", "direct", 4, 1),
        ("spread", "direct", 20, 1),
        ("spread", "ring", 20, 4),
    ):
        q = problem(kind, 5, 1000, [10] if kind == "broadcast" else [10] * 5)
        time = 1e6 * _core.pattern_time(q, _core.PatternPlan(algorithm, 80000), shared)
        assert time == pytest.approx(copies * 9 + turns * 160)


def test_what_is_picked_where_ranks_share_cores():
    m = machine()
    m.latency_s, m.byte_s, m.chunk_s, m.ranks_per_core = 1e-6, 3e-10, 5e-6, 4
    for kind in ("spread", "multi_reduce"):
        for rows in (16, 1000, 10_000, 100_000):  # 8 columns of 8 bytes on each of 8 ranks
            q = problem(kind, 8, rows, [8] * 8)
            plan = _core.make_pattern_plan(q, m)
            assert plan.algorithm == "direct" and "0.12 ms a wait" in plan.numbers
            staged = max(_core.pattern_schedule(q, plan, r, 512, 512).buffer_bytes for r in range(8))
            assert staged <= 16 << 20
    q = problem("broadcast", 8, 1000, [125])
    assert _core.make_pattern_plan(q, m, contiguous=True).algorithm == "tree"
    assert _core.make_pattern_plan(q, m).chunk_bytes >= q.bytes
    assert _core.make_pattern_plan(problem("broadcast", 8, 10, [10]), m).algorithm == "direct"
    shared, m.ranks_per_core = _core.make_pattern_plan(problem("reduce", 8, 1000, [125]), m), 1
    alone = _core.make_pattern_plan(problem("reduce", 8, 1000, [125]), m)
    assert (shared.algorithm, shared.chunk_bytes, shared.compared) == (
        *(alone.algorithm, alone.chunk_bytes, alone.compared),
    )
    assert _core.make_pattern_plan(problem("multi_reduce", 8, 10_000, [8] * 8), m).algorithm == "ring"
    assert _core.make_pattern_plan(problem("broadcast", 8, 10, [10]), m).algorithm == "tree"
    m.byte_s, m.ranks_per_core = 8.4e-9, 4  # 8 hosts at 1 Gb/s on 2 cores
    for rows in (2000, 16_000):
        assert _core.make_pattern_plan(problem("spread", 8, rows, [8] * 8), m).algorithm == "direct"
        assert _core.make_pattern_plan(problem("broadcast", 8, rows, [64]), m).algorithm == "ring"
    assert (
        _core.make_pattern_plan(problem("spread", 200, 16_000, [64] * 200), m).algorithm == "ring"
    )  # too much staging
    m.ranks_per_core = 2
    assert _core.make_pattern_plan(problem("spread", 8, 2000, [8] * 8), m).algorithm == "ring"


def test_what_is_picked_has_its_reason():
    m = machine()
    for kind, algorithms in KINDS.items():
        for rows in (1, 10, 1000, 100_000):
            q = problem(kind, 6, rows)
            plan = _core.make_pattern_plan(q, m, native=True)
            assert plan.algorithm in algorithms and plan.numbers.startswith("contiguous, latency 0.0")
            compared = dict(plan.compared)
            assert set(compared) <= set(algorithms) and compared[plan.algorithm] == min(compared.values())
            one = plan.why == "the only algorithm for it"
            assert one if len(compared) == 1 else f"the fastest of {len(compared)} algorithms" in plan.why


def in_place(case, erased):
    """The schedules of a spread whose parts lie in the whole matrix, as PatternTransfer runs them where `erased`."""
    made = case.schedules()
    for s in made:
        arrays, messages = s.arrays, s.messages
        for number, array in enumerate(arrays):
            array.view = _core.View(number // 2, [], (), 0)
        s.arrays = arrays
        if erased:
            local = ("pack", "unpack")
            s.lanes = [
                [step for step in lane if not (step.op in local and messages[step.item].peer == s.rank)]
                for lane in s.lanes
            ]
    return made


def test_a_part_in_its_place_needs_no_copy_and_allows_none():
    found = refused = 0
    for seed in range(3000):
        case = Case(seed)
        if case.kind != "spread":
            continue
        found += 1
        violation = _core.check(in_place(case, True))
        assert violation is None, f"{violation}; {case}"
        refused += _core.check(in_place(case, False)) is not None
    assert found > 500 and refused > 50, f"{refused} of {found} are refused with their copies"


def spoilt(schedule, pairs):
    """What runs where combine steps write into arrays at once: behind each such pair its buffer holds something else.

    The pairs are next to each other in one lane, so that the array may as well change at the first step.
    """
    lane, messages = schedule.lanes[0], schedule.messages
    steps = []
    for i, step in enumerate(lane):
        steps.append(step)
        if i > 0 and pairs[i - 1] == i:
            combined, unpacked = lane[i - 1], messages[step.item]
            assert combined.op == "combine" and step.op == "unpack"
            assert messages[combined.item].buffer == unpacked.buffer and unpacked.peer == schedule.rank
            other = _core.Message()
            other.peer, other.send, other.array, other.buffer = schedule.rank, True, 0, unpacked.buffer
            other.region, other.bytes, other.tag = unpacked.region, unpacked.bytes, unpacked.tag
            other.array = messages[combined.item].array  # this rank's own values
            messages.append(other)
            steps.append(_core.Step("pack", len(messages) - 1, 0))
    schedule.messages, schedule.lanes = messages, [steps]


def test_combine_steps_that_write_into_arrays_at_once_leave_buffers_that_nobody_reads():
    found = kept = 0
    for seed in range(2400):
        case = Case(seed)
        if case.kind not in ("reduce", "multi_reduce"):
            continue
        made = case.schedules()
        for s in made:
            pairs = _core.straight_combines(s)
            steps = s.lanes[0]
            next_to_each_other = [
                i for i in range(len(steps) - 1) if steps[i].op == "combine" and steps[i + 1].op == "unpack"
            ]
            found += sum(pair > 0 for pair in pairs)
            kept += sum(not pairs[i] for i in next_to_each_other)
            spoilt(s, pairs)
        violation = _core.check(made)
        assert violation is None, f"{violation}; {case}"
    assert found > 1000, f"{found} pairs, {kept} that stay as they are"


@pytest.mark.parametrize("forwards", [False, True])
def test_a_combine_step_leaves_the_buffer_that_is_read_once_more(forwards):
    s, box = _core.Schedule(), ((0,), (4,))
    array = _core.Array()
    array.item_bytes, array.storage, array.owned = 8, box, box
    s.ranks, s.arrays, s.buffers = 2, [array], [32]
    messages = [_core.Message(), _core.Message()]
    for message, send in zip(messages, (False, True), strict=True):
        message.peer, message.tag, message.send, message.buffer, message.region = 1, 3, send, 0, box
        message.bytes = 32
    steps = [("post_recv", 0), ("wait", 0), ("combine", 0, _core.combine_array_left), ("unpack", 0)]
    steps += [("post_send", 1), ("wait", 1)] if forwards else [("post_recv", 0), ("wait", 0)]
    s.messages, s.lanes = messages, [[_core.Step(*step) for step in steps]]
    assert _core.straight_combines(s) == [0, 0, 0 if forwards else 3, 0, 0, 0]
