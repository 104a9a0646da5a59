"""Schedules as values: what they say of themselves, files, predictions, and what is refused."""

import json
import re
import types

import numpy as np
import pytest

import tilewave as tw
from local_ranks import steady_rates
from rings import add, ring
from tilewave.errors import ConfigError
from tilewave.schedule.regions import one_run
from tilewave.schedule.schedule import VERSION


@tw.nest
def relax(A, B, i, j):
    A[i, j] = A[i-1, j] + A[i, j-1] + B[i, j]


@tw.nest
def heat(u, t, i):
    u[t+1, i] = u[t, i-1] + u[t, i+1]


def test_counts():
    s = tw.Schedule.build(ring, 3)
    assert (s.ranks, s.rank, s.arrays, s.functions) == (3, None, ("A",), ("add",))
    assert s.steps == {0: 3, 1: 5, 2: 3}
    assert s.messages == {0: 1, 1: 1, 2: 0} and s.message_bytes == {0: 8, 1: 8, 2: 0}
    assert s.memory_bytes == {0: 96, 1: 96, 2: 96}  # 12 doubles, no buffers
    assert tw.Schedule.build(ring, 3, 6).memory_bytes[0] == 48


def test_a_strided_message_has_a_buffer():
    def columns(b):
        A = b.array("A", (6, 4), "f4", owned=(slice(None), slice(2 * b.rank, 2 * b.rank + 2)), storage=slice(None))
        lane = b.lane()
        m = (b.receive if b.rank else b.send)(1 - b.rank, A[:, 1])
        for op in ("post_recv", "wait", "unpack") if b.rank else ("pack", "post_send", "wait"):
            getattr(lane, op)(m)
        reads = [A[:, 1], A[:, 2:4]] if b.rank else [A[:, 0], A[:, 0:2]]
        lane.task(add, reads, [A[:, 2:4] if b.rank else A[:, 0:1]], number=1 - b.rank)

    s = tw.Schedule.build(columns, 2)
    assert tw.check(s) is None, tw.check(s)
    assert s.memory_bytes == {0: 96 + 24, 1: 96 + 24} and s.message_bytes == {0: 24, 1: 0}
    assert "pack message 0: A[0:6, 1:2], 24 bytes to rank 1, tag 0" in s.text(rank=0)
    assert "unpack message 0: A[0:6, 1:2], 24 bytes from rank 0, tag 0" in s.text(rank=1)


def test_text_is_cut_and_whole():
    def many(b):
        A, lane = b.array("A", 2), b.lane()
        for number in range(60):
            lane.task(add, [A[0], A[1]], [A[1]], number=number)

    s = tw.Schedule.build(many, 1)
    assert "... 36 more steps; s.text(rank=0) shows them" in str(s) and len(str(s).splitlines()) == 29
    assert len(s.text(rank=0).splitlines()) == 64 and "task 59" in s.text()
    with pytest.raises(tw.ConfigError, match="rank: given 1; allowed: 0"):
        s.text(rank=1)
    assert repr(s) == "<tilewave.Schedule of 1 ranks: 60 steps>"


@pytest.mark.parametrize("storage", ["plain", "skewed"])
def test_the_schedule_of_a_nest(tmp_path, monkeypatch, storage):
    steady_rates(monkeypatch)
    A, B = tw.field((20, 30), init=1.0), np.ones((20, 30))
    plan = tw.plan(relax, A=A, B=B, plan={"threads": 1, "tile": (8, 8), "storage": storage})
    s = tw.schedule(relax, A=A, B=B, plan=plan)
    assert s.arrays == ("A", "B") and s.functions == () and tw.check(s) is None
    assert sum(s.steps.values()) == len(tw.run(relax, A=A, B=B, plan=plan).timeline.events)
    assert tw.predict(s).time_s == pytest.approx(plan.predicted.time_s, rel=0.5)
    s.save(tmp_path / "s.json")
    again = tw.Schedule.load(tmp_path / "s.json")
    assert again == s and tw.check(again) is None and str(again) == str(s)
    with pytest.raises(tw.ConfigError, match="a schedule of a nest was given, which tilewave.run runs"):
        s.run(A=np.ones((20, 30)), B=B)


def test_a_rolling_window_and_time_steps(tmp_path):
    A = tw.field((30, 40), "f8", keep="window")
    one = tw.schedule(relax, A=A, B=np.ones((30, 40)), plan={"threads": 1})
    two = tw.schedule(heat, u=tw.field((50,), init=1.0), steps=4, plan={"threads": 1})
    blocks = tw.schedule(heat, u=tw.field((50,), init=1.0), steps=100_000, plan={"threads": 1})
    assert "of 100000 time steps" in str(blocks)
    for s in (one, two, blocks):
        assert tw.check(s) is None
        s.save(tmp_path / "s.json")
        again = tw.Schedule.load(tmp_path / "s.json")
        assert again == s and tw.check(again) is None and again.memory_bytes == s.memory_bytes
    assert one.memory_bytes[0] < 2 * 30 * 40 * 8 and two.memory_bytes[0] >= 2 * 50 * 8


def test_a_bound_nest_gives_its_own():
    A, B = tw.field((20, 30), init=1.0), np.ones((20, 30))
    bound = tw.bind(relax, A=A, B=B, plan={"threads": 1, "tile": (8, 8)})
    s = tw.schedule(bound)
    assert s == tw.schedule(relax, A=A, B=B, plan=bound.plan) and tw.check(s) is None
    with pytest.raises(tw.ConfigError, match="allowed: context"):
        tw.schedule(bound, A=A)
    with pytest.raises(tw.ConfigError, match="is bound on another"):
        tw.schedule(bound, context=tw.Context(threads=1))


def test_what_is_ready_gives_its_own():
    class Bound:
        def _schedules(self, context):
            yield f"for {context.size} ranks"
            return tw.Schedule.build(ring, context.size)

    assert tw.schedule(Bound()) == tw.Schedule.build(ring, 1)


def test_rates():
    s = tw.Schedule.build(ring, 4, 12, 5.0)
    for key in (add, "add"):
        assert tw.predict(s, rates={key: (1.0, 0.0)}).time_s == pytest.approx(4, rel=1e-2)
        assert tw.predict(s, rates={key: (0.0, 1.0)}).time_s == pytest.approx(20, rel=1e-2)
        assert tw.predict(s, rates={key: 2.0}).time_s == pytest.approx(8, rel=1e-2)
    foretold = tw.predict(s)
    assert len(foretold.timeline.events) == sum(s.steps.values()) and foretold.parts.total_s == foretold.time_s
    slow = tw.Machine(conditions={}, same_host=None)
    slow.latency_s = 1.0
    assert tw.predict(s, slow).time_s >= foretold.time_s


@pytest.mark.parametrize(
    ("rates", "words"),
    [
        ({"other": 1.0}, "given one of 'other'; allowed: functions of the schedule: add"),
        ({add: "fast"}, "given 'fast'"),
        ({add: (1.0, 2.0, 3.0)}, "seconds of a call"),
        ({add: -1.0}, "-1"),
        ([1.0], "given list"),
    ],
)
def test_rates_that_make_no_sense(rates, words):
    with pytest.raises(tw.ConfigError, match=re.escape(words)):
        tw.predict(tw.Schedule.build(ring, 2), rates=rates)


def test_the_part_of_one_rank_is_neither_proved_nor_predicted():
    part = tw.Schedule.build(ring, 5, rank=3)
    assert part.rank == 3 and part.ranks == 5 and list(part.steps) == [3] and "the part of rank 3" in str(part)
    for refused in (tw.check, tw.predict):
        with pytest.raises(tw.ConfigError, match="the part of rank 3 was given"):
            refused(part)
        with pytest.raises(tw.ConfigError, match="given int"):
            refused(3)


def saved(tmp_path, change=None):
    path = tmp_path / "s.json"
    tw.Schedule.build(ring, 2).save(path)
    data = json.loads(path.read_text())
    if change:
        change(data)
    path.write_text(json.dumps(data))
    return path


def remove(data, name):
    del data["schedules"][1][name]


def array(data):
    return data["schedules"][0]["arrays"][0]


def task(data):
    return data["schedules"][0]["works"][0]


def message(data, field, value):
    data["schedules"][0]["messages"][0][field] = value


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.update(tilewave_schedule=VERSION + 1), f"of version {VERSION + 1}; allowed: version {VERSION}"),
        (lambda d: d.pop("tilewave_schedule"), "is no saved schedule"),
        (lambda d: remove(d, "lanes"), "schedules[1].lanes is missing"),
        (lambda d: remove(d, "rank"), "schedules[1].rank is missing"),
        (lambda d: d["schedules"].pop(), "rank: given None; allowed: null with the parts of all ranks"),
        (lambda d: d["schedules"][0]["messages"][0].pop(), "schedules[0].messages[0]: given"),
        (lambda d: d["schedules"][0]["lanes"][0].append(["fly", 0, 0]), "[0][3][0]: given 'fly'; allowed: compute"),
        (lambda d: d["schedules"][0]["lanes"].append([["wait", "x", 0]]), "schedules[0].lanes[1][0][1]: given 'x'"),
        (lambda d: d["schedules"][0]["tiles"][0].append(5), "schedules[0].tiles[0]: given"),
        (lambda d: d["arrays"].append(["B", [1], "<f8"]), "allowed: the 2 of the entry arrays"),
        (lambda d: d["arrays"].append(d["arrays"][0]), "allowed: a name for each"),
        (lambda d: d["arrays"][0].__setitem__(2, "nonsense"), "arrays[0][2]: given 'nonsense'; allowed: a NumPy dtype"),
        (lambda d: d["arrays"][0].__setitem__(2, "<f4"), "item_bytes: given 8; allowed: 4, as array 'A' is float32"),
        (
            lambda d: d["arrays"][0].__setitem__(2, "<c16"),
            "item_bytes: given 8; allowed: 16, as array 'A' is complex128",
        ),
        (lambda d: d["arrays"][0].__setitem__(1, [5]), "arrays[0].storage: given [(0,), (12,)]; allowed: within"),
        (lambda d: d["schedules"][0].update(ranks=10**30), "schedules[0].ranks: given 1000"),
        (lambda d: d["schedules"][0].update(ranks=True), "schedules[0].ranks: given True"),
        (lambda d: d.update(schedules=7), "schedules: given 7; allowed: a list"),
        (lambda d: d.update(more=7), "given 'more'; allowed: the fields note"),
        (lambda d: d["combine"].update(A="twice"), "combine.A: given 'twice'; allowed: sum"),
        (lambda d: array(d)["owned"].__setitem__(0, []), "arrays[0].owned: its corners have 0 and 1 components"),
        (lambda d: array(d).update(owned=[[], []]), "owned: its corners have 0 and 0 components; allowed: 1"),
        (lambda d: array(d).update(storage=[[-3], [4]]), "within array 'A' of shape (12,)"),
        (lambda d: array(d).update(stride=[1, 1]), "arrays[0].stride: (1, 1) has 2 components; allowed: none or 1"),
        (lambda d: array(d)["view"].update(rows=[[1]]), "arrays[0].view: an array has a view without a memory"),
        (lambda d: task(d).update(operation=1), "works[0].operation: given 1; allowed: one of the 1 functions"),
        (lambda d: task(d).update(amount=float("nan")), "works[0].amount: given nan; allowed: a number"),
        (lambda d: task(d)["writes"][0].__setitem__(0, 9), "works[0].writes[0]: work 0 names array 9 of 1"),
        (lambda d: message(d, 0, 5), "messages[0].peer: message 0 has peer 5 of 2 ranks"),
        (lambda d: message(d, 1, -1), "messages[0].tag: message 0 has tag -1; allowed: 0 and above"),
        (lambda d: message(d, 5, 3), "messages[0].buffer: message 0 names buffer 3 of 0"),
        (lambda d: message(d, 6, [[1, 2], [3, 4]]), "messages[0].region: message 0 has region [1:3, 2:4]"),
        (lambda d: d["schedules"][0].update(buffers=[1 << 59] * 4), "buffers[2]: it has"),
        (lambda d: d["schedules"][0].update(repeated=[[0, 9]]), "repeated[0]: the block has steps 0 to 9 of a lane"),
        (lambda d: d["schedules"][0].update(advance=[1]), "advance: it has 1 components"),
    ],
)
def test_files_that_are_none(tmp_path, change, words):
    with pytest.raises(tw.ConfigError, match=re.escape(words)):
        tw.Schedule.load(saved(tmp_path, change))


def test_other_files(tmp_path):
    with pytest.raises(tw.ConfigError, match="is no saved schedule"):
        tw.Schedule.load(tmp_path / "none.json")
    for text in ("", "{", "[1]", "null", "\0"):
        (tmp_path / "s.json").write_text(text)
        with pytest.raises(tw.ConfigError, match="is no saved schedule"):
            tw.Schedule.load(tmp_path / "s.json")


def test_a_schedule_from_a_file_runs_with_its_functions(tmp_path):
    tw.Schedule.build(ring, 1).save(tmp_path / "s.json")
    s, A = tw.Schedule.load(tmp_path / "s.json"), np.arange(12.0)
    with pytest.raises(tw.ConfigError, match="function 'add' is missing"):
        s.run(A=A)
    with pytest.raises(tw.ConfigError, match="given 'sub'; allowed: add"):
        s.run(A=A, functions={"sub": add})
    s.run(A=A, functions={"add": lambda before, value, out: out.fill(7)})
    assert (A == 7).all()


def test_data_with_numbers_that_name_nothing_is_no_crash():
    """As programs may write it that fill the core's classes by themselves."""
    s = tw.Schedule.build(ring, 2)
    s._cores[0].lanes = [[tw._core.Step(step.op, 99, 99) for step in s._cores[0].lanes[0]]]
    assert "99" in s.text() and "names item 99" in tw.check(s)
    with pytest.raises(tw.ConfigError, match="names item 99"):
        tw.predict(s)


def build(steps, ranks=2):
    return tw.Schedule.build(steps, ranks)


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        (lambda b: b.array("A", 4)[0:5], "array 'A': region [0:5] was given; allowed: within [0:4]"),
        (lambda b: b.array("A", 4)[-1], "region [-1:0] was given"),
        (lambda b: b.array("A", 4)[::2], "slices without a step"),
        (lambda b: b.array("A", 4)[0, 0], "2 subscripts were given; it has 1"),
        (lambda b: b.array("A", 4)[1.5], "subscript 1.5 was given"),
        (lambda b: b.array("check", 4), "given 'check'"),
        (lambda b: (b.array("A", 4), b.array("A", 4)), "array 'A' is declared twice"),
        (lambda b: b.array("A", (1, 2, 3, 4, 5, 6, 7)), "1 to 6 extents"),
        (lambda b: b.array("A", 4, object), "dtype object"),
        (lambda b: b.array("A", 4 + b.rank), "rank 1 declares other arrays than rank 0"),
        (lambda b: b.send(b.rank, b.array("A", 4)[:]), "gave peer 0; allowed: another of the 2 ranks"),
        (lambda b: b.send(2, b.array("A", 4)[:]), "gave peer 2"),
        (lambda b: b.send(1 - b.rank, b.array("A", 4)[:], tag=-1), "tag -1"),
        (lambda b: b.send(1 - b.rank, "A"), "given 'A'; allowed: a region"),
        (lambda b: b.lane().task(add, ["A"], number=0), "given 'A'; allowed: a region"),
        (lambda b: b.lane().task(3, number=0), "given 3; allowed: what can be called"),
        (lambda b: b.lane().task(add, number="first"), "given 'first'; allowed: an integer"),
        (lambda b: b.lane().wait(0), "given 0; allowed: a message of this rank"),
        (lambda b: b.lane().await_signal(1), "given 1; allowed: what lane.signal()"),
        (lambda b: b.lane().post_recv(b.send(1 - b.rank, b.array("A", 4)[:])), "message 0 of rank 0 is a send"),
    ],
)
def test_a_builder_refuses(steps, words):
    with pytest.raises(tw.ConfigError, match=re.escape(words)):
        build(steps)


def test_other_refusals():
    with pytest.raises(tw.ConfigError, match="ranks: given 0"):
        tw.Schedule.build(ring, 0)
    with pytest.raises(tw.ConfigError, match="rank: given 2; allowed: 0 to 1"):
        tw.Schedule.build(ring, 2, rank=2)

    def differs(b):
        A, lane = b.array("A", 4), b.lane()
        lane.task(add, [A[0], A[1]], [A[1]], number=0)
        lane.task(add, [A[0], A[2]], [A[2]], number=0)

    with pytest.raises(tw.ConfigError, match="task 0 is given twice"):
        build(differs, 1)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({}, "array 'A' is missing"),
        ({"A": np.zeros(12), "B": np.zeros(12)}, "array 'B' is none of the schedule's"),
        ({"A": np.zeros(11)}, "given float64 (11,); allowed: float64"),
        ({"A": np.zeros(12, "i8")}, "given int64 (12,)"),
        ({"A": np.broadcast_to(0.0, (12,))}, "was given read-only"),
        ({"A": np.zeros(12)[::-1]}, "negative strides"),
        ({"A": 3}, "given int"),
    ],
)
def test_arrays_that_do_not_fit(arrays, words):
    with pytest.raises(tw.ConfigError, match=re.escape(words)):
        tw.Schedule.build(ring, 1).run(**arrays)


def test_one_array_under_two_names():
    def two(b):
        A, B = b.array("A", (4, 2)), b.array("B", (4, 2))
        b.lane().task(add, [A[0, 0], A[:]], [B[:]], number=0)

    s, M = tw.Schedule.build(two, 1), np.ones((4, 4))
    with pytest.raises(tw.ConfigError, match="arrays 'A' and 'B' share memory"):
        s.run(A=M[:, :2], B=M[:, 1:3])
    s.run(A=M[:, :2], B=M[:, 2:])
    assert (M[:, 2:] == 2).all() and (M[:, :2] == 1).all()


def test_lanes_run_tasks_in_the_order_of_signals():
    def two_lanes(b):
        A, one, other = b.array("A", 3), b.lane(), b.lane()
        one.task(add, [A[0], A[1]], [A[1]], number=0)
        other.await_signal(one.signal())
        other.task(add, [A[1], A[2]], [A[2]], number=1)

    A = np.array([1.0, 1.0, 1.0])
    report = tw.Schedule.build(two_lanes, 1).run(A=A)
    assert A.tolist() == [1, 2, 3] and len(report.timeline.events) == 4 and report.time_s > 0

    def without(b):
        A, one, other = b.array("A", 3), b.lane(), b.lane()
        one.task(add, [A[0], A[1]], [A[1]], number=0)
        other.task(add, [A[1], A[2]], [A[2]], number=1)

    assert tw.check(tw.Schedule.build(without, 1)).endswith(
        "it reads [1:2] with no order after the step that writes it"
    )


def test_a_compiled_function_as_task():
    numba = pytest.importorskip("numba")
    compiled = numba.njit(nogil=True)(add_all)

    def two_lanes(b):
        A = b.array("A", (2, 1000))
        for number in range(2):
            b.lane().task(compiled, [A[number]], [A[number]], number=number)

    A = np.ones((2, 1000))
    s = tw.Schedule.build(two_lanes, 1)
    assert s.functions == ("add_all",)
    s.run(A=A)
    assert np.array_equal(A, np.broadcast_to(np.arange(1.0, 1001.0), (2, 1000)))


def add_all(before, after):
    total = 0.0
    for k in range(before.shape[1]):
        total += before[0, k]
        after[0, k] = total


def test_of_a_chain(tmp_path):
    A, B = tw.field((19, 23), "f8"), tw.field((19, 23), "f8", init=1.0)
    chain = tw.chain([tw.bind(relax, A=A, B=B), tw.bind(relax, A=B, B=A, reverse=("i",)), tw.bind(relax, A=A, B=B)])
    s = tw.schedule(chain)
    assert tw.check(s) is None and s.arrays[:3] == ("A of nest 1", "B of nest 1", "A of nest 2")
    assert tw.predict(s).time_s > 0 and "3 nests" in str(s)
    assert [work.number for work in s._cores[0].works] == [0, 1, 2]
    s.save(tmp_path / "chain.json")
    assert tw.Schedule.load(tmp_path / "chain.json") == s
    u = tw.field((64,), "f8")
    s = tw.schedule(tw.chain([tw.bind(heat, u=u, steps=3)]))
    assert tw.check(s) is None and s.arrays == ("u of nest 1 in repetition 1", "u of nest 1 in repetition 2")
    assert s.functions == ("carry elements to the next step", "turn buffers by 1")
    assert tw.predict(s, times=5).time_s > 0
    s.save(tmp_path / "steps.json")
    assert tw.Schedule.load(tmp_path / "steps.json") == s
    apart = tw.chain([tw.bind(heat, u=u, steps=0)])
    with pytest.raises(ConfigError, match="no single schedule: nest 1, 'heat', runs no time step; allowed: the sched"):
        tw.schedule(apart)


def test_a_region_is_one_run_where_its_elements_follow_each_other():
    """Of what the rank stores; brute force, axes of one element among the others."""
    rng = np.random.default_rng(11)
    for _ in range(400):
        shape = tuple(int(n) for n in rng.integers(1, 4, rng.integers(1, 5)))
        array = types.SimpleNamespace(storage=types.SimpleNamespace(lo=(0,) * len(shape), hi=shape))
        lo = tuple(int(rng.integers(0, n)) for n in shape)
        hi = tuple(int(rng.integers(l + 1, n + 1)) for l, n in zip(lo, shape, strict=True))
        numbers = np.arange(np.prod(shape)).reshape(shape)[tuple(map(slice, lo, hi))].ravel()
        together = bool((np.diff(numbers) == 1).all())
        assert one_run(types.SimpleNamespace(array=array, lo=lo, hi=hi)) <= together, (shape, lo, hi)
        if 1 not in shape:
            assert one_run(types.SimpleNamespace(array=array, lo=lo, hi=hi)) == together, (shape, lo, hi)
