"""What is wrong on one rank of three is one clear error on every rank; what is there stays, and the next call runs."""

import json

import numpy as np
import pytest
from local_ranks import on_ranks, results_of

import tilewave as tw
from tilewave.schedule.schedule import VERSION

RANKS, BAD = 3, 1


@tw.nest
def grow(A, i):
    A[i] = A[i - 1] + A[i]


@tw.nest
def both(u, v, i):
    u[i] = u[i - 1] + v[i]


@tw.nest
def back(A, i):
    A[i] = A[i + 1] - A[i]


def count(before, out):
    out[...] = before + 1


def schedule_of(b):
    lane, A, B = b.lane(), b.array("A", 6), b.array("B", 6)
    lane.task(count, [A.owned], [B.owned], number=b.rank)


def on_all(body):
    """Body gives the error of its rank; all are the same, and agreed on."""
    results = results_of(RANKS, 1, body)
    assert len({text for text, _ in results}) == 1, results
    assert all(agreed for _, agreed in results)
    return results[0][0]


def refused(call, kind=tw.ConfigError):
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value), caught.value.agreed


def runs(context, schedule):
    A, B = np.arange(2.0), np.zeros(2)
    schedule.run(context=context, A=A, B=B)
    assert np.array_equal(B, A + 1)


def test_nests_bound_on_different_contexts():
    def body(context):
        A = tw.field((12,), init=1, context=context)
        here = tw.bind(grow, A=A)
        alone = tw.bind(grow, A=tw.field((12,), init=1, context=context.solo()))
        found = refused(lambda: tw.chain([here, alone if context.rank == BAD else here], context=context))
        tw.chain([here, tw.bind(back, A=A)]).run()
        return found

    assert "was bound on" in on_all(body)


def test_an_array_under_two_names():
    schedule = tw.Schedule.build(schedule_of, RANKS)

    def body(context):
        A, B = np.arange(2.0), np.zeros(2)
        found = refused(lambda: schedule.run(context=context, A=A, B=A if context.rank == BAD else B))
        assert np.array_equal(A, np.arange(2.0))
        runs(context, schedule)
        return found

    assert "share memory" in on_all(body)


def test_a_field_under_two_names():
    def body(context):
        u, v = (tw.field((12,), init=1, context=context) for _ in range(2))
        found = refused(lambda: tw.bind(both, u=u, v=u if context.rank == BAD else v))
        tw.bind(both, u=u, v=v).run()
        return found

    assert "share memory" in on_all(body)


@pytest.mark.parametrize("check", [True, False])
def test_a_task_whose_region_is_outside_its_array(check):
    def body(context):
        schedule, right = (tw.Schedule.build(schedule_of, RANKS) for _ in range(2))
        core = schedule._cores[BAD]
        works = core.works
        works[0].task.writes = [tw._core.Region(1, ((2,), (9,)))]
        core.works = works
        found = refused(lambda: schedule.run(context=context, check=check, A=np.arange(2.0), B=np.zeros(2)))
        runs(context, right)
        return found

    if check:
        assert "outside its storage" in on_all(body)
        return
    results, errors = on_ranks(RANKS, 1, body)  # each rank looks at its own part
    assert errors == [None] * RANKS
    assert all("outside its storage" in text and agreed for text, agreed in results)


def test_a_nest_whose_tile_reads_outside_its_array():
    def write(b):
        A = b.array("A", 6)  # without the halo
        b.lane().compute(b.nest(grow, {"A": A}, number=0), slice(max(A.owned.lo[0], 1), A.owned.hi[0]))

    schedule, right = tw.Schedule.build(write, RANKS), tw.Schedule.build(schedule_of, RANKS)
    assert "it reads [1:2] of array 'A', outside its storage" in tw.check(schedule)

    def body(context):
        found = refused(lambda: schedule.run(context=context, check=False, A=np.zeros(2)))
        runs(context, right)
        return found

    assert "a tile reads" in on_all(body)


def test_a_field_that_was_closed_and_one_that_was_moved():
    def body(context):
        A, u, v = (tw.field((12,), init=1, context=context) for _ in range(3))
        bound, other = tw.bind(grow, A=A), tw.bind(both, u=u, v=v)
        tw.run(grow, A=A, plan={"tile": (1,)})  # another layout perhaps: brought back
        bound.run()
        whole = A.gather()
        if context.rank == BAD:
            v.close()
        found = refused(other.run)
        assert context.rank or np.array_equal(whole, np.cumsum(np.cumsum(np.ones(12))))
        bound.run()
        return found

    assert "was closed" in on_all(body)


def test_a_file_of_one_rank_that_is_none_or_of_another_kind(tmp_path):
    """Run by their paths, all ranks have the error of one."""
    tw.Schedule.build(schedule_of, RANKS).save(tmp_path / "good.json")
    A = tw.field((9,), init=1)
    tw.schedule(grow, A=A).save(tmp_path / "nest.json")
    tw.Schedule.build(schedule_of, RANKS + 1).save(tmp_path / "more.json")
    tw.plan(grow, A=A).save(tmp_path / "plan.json")
    (tmp_path / "text.json").write_text("schedule")
    text = (tmp_path / "good.json").read_text()
    (tmp_path / "short.json").write_text(text[:-20])
    (tmp_path / "damaged.json").write_text(text.replace('"lanes"', '"lines"'))

    def body(context):
        def run(name, **options):
            A, B = np.arange(2.0), np.zeros(2)
            tw.Schedule.load(tmp_path / name, context=context).run(context=context, A=A, B=B, **options)
            return B.tolist()

        functions, found = {"functions": {"count": count}}, []
        for name in ("nest.json", "more.json", "plan.json", "text.json", "short.json", "damaged.json", "missing.json"):
            one = name if context.rank == BAD else "good.json"
            found.append(refused(lambda one=one: run(one, **functions)))
            assert run("good.json", **functions) == [1, 2]
        found.append(refused(lambda: run("nest.json", **functions)))
        return "; ".join(text for text, _ in found), all(agreed for _, agreed in found)

    found = on_all(body)
    for said in ("1 ranks was given", "4 ranks was given", "no saved schedule: it has no", "damaged", "No such file"):
        assert said in found, found


def test_a_file_of_another_version(tmp_path):
    """Loading is local: each rank has the error by itself, and meets nobody."""
    schedule = tw.Schedule.build(schedule_of, RANKS)
    schedule.save(tmp_path / "s.json")
    data = json.loads((tmp_path / "s.json").read_text())
    data["tilewave_schedule"] = VERSION - 1
    (tmp_path / "old.json").write_text(json.dumps(data))

    def body(context):
        with pytest.raises(tw.ConfigError, match=f"of version {VERSION - 1}; allowed: version {VERSION}; make it anew"):
            tw.Schedule.load(tmp_path / "old.json")
        read = tw.Schedule.load(tmp_path / "s.json")
        A, B = np.arange(2.0), np.zeros(2)
        read.run(context=context, functions={"count": count}, A=A, B=B)
        return B.tolist()

    assert results_of(RANKS, 1, body) == [[1, 2]] * RANKS
