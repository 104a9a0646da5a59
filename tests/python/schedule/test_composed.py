"""Schedules made of schedules: nests, patterns and task graphs behind one another, on mapped lanes, ranks and arrays.

A failure prints its seed: `Composed(seed, ranks)`.
"""


import numpy as np
import pytest
from composed import Composed, along_two, run_on, schedule_of
from local_ranks import on_ranks, results_of
from mutants import naming

import tilewave as tw


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
def test_random_schedules_of_schedules(ranks):
    programs = [Composed(seed, ranks) for seed in range(20)]
    schedules = [schedule_of(program) for program in programs]
    times = [1 + seed % 4 if p.block is not None else 1 for seed, p in enumerate(programs)]
    for program, schedule in zip(programs, schedules, strict=True):
        assert tw.check(schedule) is None, f"{tw.check(schedule)}; {program}\n{schedule.text()}"
        assert tw.predict(schedule, threads=1).time_s > 0 or not sum(schedule.steps.values())

    def body(context):
        return [run_on(context, *case) for case in zip(programs, schedules, times, strict=True)]

    results = results_of(ranks, 1, body)
    assert [said for mine in results for said in mine if said] == []


def change(rng, cores, edit, fits):
    """Edit the steps at a place that fits; whether there was one."""
    found = [
        (core, l, i)
        for core in cores.values()
        for l, lane in enumerate(core.lanes)
        for i, step in enumerate(lane)
        if fits(core, step)
    ]
    if not found:
        return False
    core, l, i = rng.choice(found)
    lanes, repeated = core.lanes, core.repeated
    new = edit(core, lanes[l][i])
    if repeated:
        (begin, end), more = repeated[l], len(new) - 1
        repeated[l] = begin + more * (i < begin), end + more * (i < end)
        core.repeated = repeated
    lanes[l][i : i + 1] = new
    core.lanes = lanes
    return True


def of_nest(core, step):
    if step.op != "compute" or core.works[core.tiles[step.item].work].nest is None:
        return False
    lo, hi = core.tiles[step.item].box
    return all(l < h for l, h in zip(lo, hi, strict=True))


def no_tile(rng, cores):
    """Points of a nest are left out."""
    return change(rng, cores, lambda core, step: [], of_nest)


def tile_twice(rng, cores):
    return change(rng, cores, lambda core, step: [step, step], of_nest)


def short_tile(rng, cores):
    """The last points of a tile are missing."""

    def edit(core, step):
        tiles = core.tiles
        lo, hi = tiles[step.item].box
        tiles[step.item].box = lo, (*hi[:-1], hi[-1] - 1)
        core.tiles = tiles
        return [step]

    return change(rng, cores, edit, of_nest)


def no_combine(rng, cores):
    """Of a pattern."""
    return change(rng, cores, lambda core, step: [], lambda core, step: step.op == "combine")


def no_unpack(rng, cores):
    """Of a pattern: task graphs bring some elements anew that are there from a graph before."""

    def fits(core, step):
        return step.op == "unpack" and core.arrays[core.messages[step.item].array].separate

    return change(rng, cores, lambda core, step: [], fits)


WRONG = r"before (it holds|anything is there)|does not hold|should hold|no order after|is never computed"
KINDS = {
    no_tile: r"never computed|" + WRONG,
    tile_twice: r"computed twice|" + WRONG,
    short_tile: r"never computed|" + WRONG,
    no_combine: WRONG,
    no_unpack: WRONG + r"|sent before it is packed|combined in a buffer",
}


name_mutants = naming(lambda seed: Composed(seed, 1 + seed % 4), schedule_of, lambda kind, _: KINDS[kind])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_mutant_is_named(kind):
    name_mutants(kind, 30, 0)


@pytest.mark.parametrize("shape", [(5,), (4, 6)])
@pytest.mark.parametrize(
    "kind, algorithm",
    [("broadcast", a) for a in ("tree", "ring", "rounds", "direct")]
    + [("reduce", a) for a in ("tree", "ring")]
    + [(kind, a) for kind in ("spread", "multi_reduce") for a in ("ring", "direct")],
)
def test_patterns_among_some_ranks(kind, algorithm, shape):
    """Ranks 3, 0 and 2 of four, of a part of the arrays, with gaps between rows."""
    ranks, cut = [3, 0, 2], tuple(slice(1, n - 1) for n in shape)
    width = shape[-1] - 2
    columns = [1, width - 1, 0]

    def write(b):
        A = b.array("A", shape, "i8", separate=True, combine="sum")
        B = b.array("B", shape, "i8", separate=True)
        more = {"columns": columns} if kind in ("spread", "multi_reduce") else {"root": 1}
        into = None if kind == "broadcast" else B
        b.pattern(kind, A[cut], into, number=0, ranks=ranks, algorithm=algorithm, chunk_bytes=16, buffers=2, **more)

    schedule = tw.Schedule.build(write, 4)
    assert tw.check(schedule) is None
    values = [np.arange(np.prod(shape)).reshape(shape) * (r + 1) for r in range(4)]

    def body(context):
        A, B = values[context.rank].copy(), np.zeros(shape, np.int64)
        schedule.run(context=context, A=A, B=B)
        return A if kind == "broadcast" else B

    found = results_of(4, 1, body)
    ends = np.cumsum([1, *columns])
    for place, rank in enumerate(ranks):
        want = values[rank].copy() if kind == "broadcast" else np.zeros(shape, np.int64)
        if kind == "broadcast":
            want[cut] = values[0][cut]
        elif kind == "reduce" and place == 1:
            want[cut] = sum(values[r][cut] for r in ranks)
        elif kind == "spread":
            for p, r in enumerate(ranks):
                part = (*cut[:-1], slice(ends[p], ends[p + 1]))
                want[part] = values[r][part]
        elif kind == "multi_reduce":
            part = (*cut[:-1], slice(ends[place], ends[place + 1]))
            want[part] = sum(values[r][part] for r in ranks)
        assert np.array_equal(found[rank], want), rank
    assert np.array_equal(found[1], values[1] if kind == "broadcast" else np.zeros(shape))


@tw.nest
def downwards(i, j, u, v, *, a):
    u[i, j] = a * u[i - 1, j - 1] + v[i, j]


@tw.nest
def divided(i, u):
    if u[i] == 0:
        raise ValueError("zero")
    u[i] = 1 // u[i]


@pytest.mark.parametrize("lanes", [1, 3])
def test_nests_of_a_triangle(lanes):
    """Bounds that depend on each other, a row a tile, in several lanes; two nests of one body."""
    n = 9

    def write(b):
        U, V = b.array("U", (n, n)), b.array("V", (n, n))
        made, done = [b.lane() for _ in range(lanes)], None
        for number, a in enumerate((0.5, 2.0)):
            work = b.nest(downwards, {"u": U, "v": V}, over={"j": (1, "i")}, number=number, a=a)
            assert work.over[1] == (1, n - 1)
            for k, row in enumerate(range(*work.over[0])):
                lane = made[k % lanes]
                if done is not None and lane is not done.lane:
                    lane.await_signal(done)
                lane.compute(work, row)
                done = lane.signal()

    schedule = tw.Schedule.build(write, 1)
    assert tw.check(schedule) is None
    rng = np.random.default_rng(2)
    u, v = rng.random((n, n)), rng.random((n, n))
    right = u.copy()
    for a in (0.5, 2.0):
        for i in range(1, n):
            for j in range(1, i):
                right[i, j] = a * right[i - 1, j - 1] + v[i, j]
    results_of(1, 1, lambda c: schedule.run(context=c, U=u, V=v))
    assert np.array_equal(u, right)


def test_a_body_that_raises_ends_the_run_on_every_rank():
    def write(b):
        U = b.array("U", 4, "i8")
        b.lane().compute(b.nest(divided, {"u": U}, number=0), slice(U.owned.lo[0], U.owned.hi[0]))

    schedule = tw.Schedule.build(write, 2)
    assert tw.check(schedule) is None

    def body(context):
        with pytest.raises(tw.KernelError, match="'divided' raised ValueError.'zero'. at i=3, line .* on rank 1"):
            schedule.run(context=context, U=np.array([2, 1] if context.rank == 0 else [1, 0]))

    results_of(2, 1, body)


def test_parts_files_and_predictions_have_nests(tmp_path):
    def write(b):
        U = b.array("U", 8, "i8")
        b.lane().compute(b.nest(divided, {"u": U}, number=0), slice(U.owned.lo[0], U.owned.hi[0]))

    parts = [tw.Schedule.build(write, 2, rank=rank) for rank in range(2)]

    def body(context):
        U = np.full(4, -1)
        parts[context.rank].run(context=context, U=U)
        return U

    results = results_of(2, 1, body)
    assert (np.concatenate(results) == -1).all()
    whole = tw.Schedule.build(write, 2)
    slow, quick = (tw.predict(whole, rates={divided: point_s}).time_s for point_s in (1e-3, 1e-6))
    assert slow > 500 * quick
    whole.save(tmp_path / "s.json")
    read = tw.Schedule.load(tmp_path / "s.json")
    assert read == whole and tw.check(read) is None
    _, errors = on_ranks(2, 1, lambda c: read.run(context=c, U=np.full(4, -1)))
    assert all("with nests, from a file" in str(error) for error in errors)


@tw.nest
def with_table(i, u, t):
    u[i] = t[u[i]]


@tw.nest
def of_lower_rank(i, j, u, v):
    u[i, j] = v[j]


def a_nest(b, nest, shape=(4, 5), **more):
    arrays = {"u": b.array("U", shape)}
    return b.nest(nest, arrays | more.pop("arrays", {}), **{"number": 0, **more})


def other_part(b):
    b.array("B", 4)
    b.lane()


@pytest.mark.parametrize(
    "write, words",
    [
        (lambda b: b.nest(print, {}, number=0), "allowed: a function under @tilewave.nest"),
        (lambda b: a_nest(b, along_two, arrays={"v": 3}), "has no array 'v'"),
        (lambda b: b.nest(along_two, {"u": 3}, number=0), "u: given 3; allowed: an array of this builder"),
        (lambda b: a_nest(b, of_lower_rank, arrays={"v": b.array("V", 5)}), "array 'v', whose subscripts are not i, j"),
        (
            lambda b: (A := b.array("A", (4, 5))) and b.nest(downwards, {"u": A, "v": A}, number=0, a=1.0),
            "array 'A' was given as 'u' and 'v'; allowed: under one name",
        ),
        (lambda b: a_nest(b, along_two, number=1.5), "nest: number: given 1.5"),
        (lambda b: a_nest(b, along_two, c=1), "has no scalar 'c'"),
        (lambda b: a_nest(b, along_two, over={"k": (0, 2)}), "over"),
        (lambda b: b.lane().compute(3), "compute: given 3; allowed: what b.nest"),
        (lambda b: b.lane().compute(a_nest(b, along_two), slice(0, 9)), r"compute: i: \[0:9\] was given"),
        (lambda b: b.lane().compute(a_nest(b, along_two), 1, 1, 1), "3 ranges were given; the nest has 2"),
        (lambda b: b.pattern("scan", b.array("A", 4)[:], number=0), "pattern: given 'scan'"),
        (lambda b: b.pattern("reduce", b.array("A", 4)[:], number=0), "into: given None"),
        (
            lambda b: b.pattern("reduce", b.array("A", 4)[:], b.array("B", 4), number=0),
            "allowed: one with separate=True and combine=",
        ),
        (lambda b: b.pattern("broadcast", b.array("A", 4)[:], number=0, algorithm="best"), "best"),
        (lambda b: b.pattern("broadcast", b.array("A", 4)[:], number=0, ranks=[0, 0]), "ranks: given .0, 0."),
        (
            lambda b: b.pattern("spread", b.array("A", 4)[:], b.array("B", 4), number=0, columns=[1, 1]),
            "their sum is 4",
        ),
        (lambda b: b.append(3, number=0), "append: given 3; allowed: a tilewave.Schedule"),
        (lambda b: b.append(tw.Schedule.build(other_part, 3), number=0), "a schedule of 3 ranks for the ranks"),
        (lambda b: b.append(tw.Schedule.build(other_part, 2), number=0), "array 'B': given None"),
        (
            lambda b: b.append(tw.Schedule.build(other_part, 2), {"B": b.array("A", 5)}, number=0),
            "equal dtypes, extents and combine=",
        ),
        (
            lambda b: b.append(tw.Schedule.build(other_part, 2), {"B": b.array("A", 4), "C": 1}, number=0),
            "the schedule has no array 'C'",
        ),
        (
            lambda b: b.append(tw.Schedule.build(other_part, 2), {"B": b.array("A", 4)}, number=0, lanes=[]),
            "0 lanes for 1",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(write, words):
    with pytest.raises(tw.ConfigError, match=words):
        tw.Schedule.build(write, 2)


@tw.nest
def onward(i, u):
    u[i] = u[i - 1]


@pytest.mark.parametrize("planned", [False, True])
def test_a_nest_in_place_of_a_schedule_is_told_how_it_is_added(planned):
    given = tw.schedule(onward, u=tw.field((8,))) if planned else onward
    with pytest.raises(tw.ConfigError, match=r"tilewave.Schedule.build made; .* nest is added by work = b.nest\(nest"):
        tw.Schedule.build(lambda b: b.append(given, number=0), 1)


def test_works_of_both_and_tables_are_refused():
    def task(out):
        out[...] = 0

    def part(b):
        b.lane().task(task, [], [b.array("A", 2).owned], number=b.rank)

    def whole(b, first):
        b.array("A", 2)
        b.append(tw.Schedule.build(part, 2), number=0)
        b.append(tw.Schedule.build(part, 2), number=first)

    assert tw.check(tw.Schedule.build(whole, 2, 2)) is None
    with pytest.raises(tw.ConfigError, match="work 0 is in both"):
        tw.Schedule.build(whole, 2, 0)
    with pytest.raises(tw.ConfigError, match="has table 't'; allowed among the works"):
        tw.Schedule.build(lambda b: b.nest(with_table, {"u": b.array("U", 4, "i8")}, number=0), 1)
