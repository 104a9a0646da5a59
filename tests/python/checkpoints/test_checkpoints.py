"""Checkpoints: what they keep, on how many ranks they are written and read, what happens to damaged ones."""

import json
import math
import os
import random
import shutil
import warnings

import numpy as np
import pytest
from local_ranks import on_ranks, refused_on_all, results_of

import tilewave as tw
from tilewave import units
from tilewave.checkpoints import checkpoint as writing, folders, interval, manifest, plain
from tilewave.field import zarr3

SHAPE = (11, 7)


@pytest.fixture(autouse=True)
def no_disk(monkeypatch):
    """Nothing here depends on what survives a power cut."""
    monkeypatch.setattr(os, "fsync", lambda number: None)


@tw.nest
def wave(u, f, t, i, j):
    u[t+1, i, j] = 2*u[t, i, j] - u[t-1, i, j] + 0.2*(u[t, i-1, j] + u[t, i+1, j] - 2*u[t, i, j]) + f[i, j]


def first(context):
    return {
        "step": 0,
        "u": tw.field(SHAPE, init=lambda i, j: np.sin(i + 0.3 * j), history=1, context=context),
        "f": tw.field(SHAPE, "f8", context=context),
        "rng": np.random.default_rng(5),
    }


def run(context, path, until, last=None):
    """Waves with random sources: from the newest checkpoint on, to a step."""
    state = tw.resume(path, context=context) or first(context)
    u, f, rng = state["u"], state["f"], state["rng"]
    for step in range(state["step"], until):
        f[...] = 0.01 * rng.normal(size=SHAPE)
        tw.run(wave, u=u, f=f, steps=1, context=context)
        tw.checkpoint(path, step + 1, u=u, f=f, rng=rng, context=context)
    return u.gather(), u.buffer(-1).gather()


@pytest.mark.parametrize("ranks, other", [(1, 3), (2, 1), (3, 2), (2, 4)])
def test_a_run_goes_on_with_the_same_bits(tmp_path, ranks, other):
    whole = results_of(1, 1, lambda context: run(context, tmp_path / "whole", 6))[0]
    results_of(ranks, 1, lambda context: run(context, tmp_path / "c", 3))
    again = results_of(other, 1, lambda context: run(context, tmp_path / "c", 6))[0]
    assert all(a.tobytes() == b.tobytes() for a, b in zip(whole, again))
    assert sorted(os.listdir(tmp_path / "c")) == ["00000005-step-5", "00000006-step-6"]


DATA = {
    "a": None, "b": True, "c": 2**200, "d": 0.1, "e": float("nan"), "f": -float("inf"), "g": 1 - 2j, "h": "tést\n\0",
    "i": b"\0\xff", "j": [1, (2.0, "x"), {}], "k": {1: [], "x": (None,), (1, 2): -0.0}, "l": np.float32(0.1),
    "m": np.arange(6, dtype=">i2").reshape(2, 3).T, "n": np.array(3), "o": np.zeros((0, 4), "c8"),
    "p": np.array(["a", "bcd"]), "q": np.array([(1, 2.5)], dtype=[("x", "i4"), ("y", "f8")]), "r": np.int8(-3),
    "s": np.array("2020-01-01", "M8[D]"), "t": complex(float("inf"), -0.0), "u": np.array([True, False]),
    "v": (), "w": "",
}  # fmt: skip


def same(a, b):
    if isinstance(a, np.ndarray | np.generic):
        return type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return type(b) is dict and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    return type(a) is type(b) and repr(a) == repr(b)


def test_plain_data_comes_back(tmp_path):
    tw.checkpoint(tmp_path, 3, **DATA)
    state = tw.resume(tmp_path)
    assert state.pop("step") == 3 and list(state) == list(DATA)
    for name, value in DATA.items():
        assert same(value, state[name]), (name, value, state[name])


@pytest.mark.parametrize("name", plain._BITS)
def test_generators_go_on(name):
    rng = np.random.Generator(getattr(np.random, name)(7))
    rng.normal(size=5), rng.integers(0, 9, dtype="u4"), rng.spawn(2)
    again = plain.decoded(plain.encoded("rng", rng))
    for draw in (lambda g: g.normal(size=9), lambda g: g.integers(0, 2**32, 5, dtype="u4"), lambda g: g.bytes(9)):
        assert np.array_equal(draw(rng), draw(again))
    for child, other in zip(rng.spawn(3), again.spawn(3)):
        assert np.array_equal(child.random(4), other.random(4))


@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, [lambda: 0], np.array([None]), np.ma.masked_array([1], [True]), {"a": [1, object()]},
     np.random.RandomState(1)],
)  # fmt: skip
def test_other_data_is_refused_at_once(tmp_path, value):
    with pytest.raises(tw.ConfigError, match=r"checkpoint: x.*: given .*; allowed: None, bool"):
        tw.checkpoint(tmp_path / "c", 1, x=value, every="10 min")
    within = []
    within.append(within)
    with pytest.raises(tw.ConfigError, match="checkpoint: x: given a value within itself"):
        tw.checkpoint(tmp_path / "c", 1, x=within)
    assert not (tmp_path / "c").exists()


def fields(context):
    """A field of every kind, and matrices of every layout."""
    rng = np.random.default_rng(3)
    halo = tw.field((9, 8), init=rng.normal(size=(9, 8)), halo=((1, 2), 1), periodic=("i",), context=context)
    values = {
        "plain": tw.field(rng.normal(size=(5, 6, 7)), context=context),
        "bytes": tw.field((30,), "u1", init=lambda i: i, context=context),
        "none": tw.field((0, 3), "c16", context=context),
        "old": tw.field((12,), "f4", init=1.0, history=[2.0, lambda i: -i], context=context),
        "halo": halo,
        "blocks": tw.field((10, 10), init=rng.normal(size=(10, 10)), blocks=tw.Blocks(8, shift=1), context=context),
    }
    a = rng.normal(size=(13, 9))
    for name, how in {
        "rows": {}, "columns": {"layout": "columns"}, "cyclic": {"layout": "cyclic", "block": 2},
        "dealt": {"layout": "rows", "block": 2},
    }.items():  # fmt: skip
        values[name] = tw.linalg.matrix(a, context=context, **how)
    return values


@pytest.mark.parametrize("ranks, other", [(1, 2), (3, 1), (2, 6), (4, 3)])
def test_fields_and_matrices(tmp_path, monkeypatch, ranks, other):
    monkeypatch.setattr(zarr3, "CHUNK_BYTES", 100)

    def save(context):
        values = fields(context)
        report = tw.checkpoint(tmp_path, 7, **values)
        assert str(report).startswith("checkpoint of step 7: ") and report.share is None
        return report

    reports = results_of(ranks, 1, save)
    assert len(set(map(str, reports))) == 1
    size = sum(os.path.getsize(os.path.join(at, n)) for at, _, names in os.walk(tmp_path) for n in names)
    assert reports[0].bytes == size - os.path.getsize(os.path.join(reports[0].path, folders.MANIFEST))

    def load(context):
        found, expected = tw.resume(tmp_path, context=context), fields(context)
        assert found.pop("step") == 7 and list(found) == list(expected)
        for name, value in expected.items():
            other = found[name]
            assert type(other) is type(value) and other.dtype == value.dtype
            if isinstance(value, tw.Field):
                assert other.history == value.history and other.halo == value.halo and other._cuts == value._cuts
                assert not value.halo or other.periodic == value.periodic
                for back in range(1 + value.history):
                    a, b = (each.buffer(-back).gather() for each in (value, other))
                    assert a is None or a.tobytes() == b.tobytes(), (name, back)
            else:
                assert other.layout == value.layout
                a, b = value.gather(), other.gather()
                assert a is None or a.tobytes() == b.tobytes(), name
        assert tw.sum(found["bytes"]) == sum(range(30))

    results_of(other, 1, load)


def test_a_checkpoint_is_a_group_of_zarr(tmp_path):
    zarr = pytest.importorskip("zarr", minversion="3")
    u = tw.field((4, 5), init=lambda i, j: i - j, history=[1.0])
    group = zarr.open(tw.checkpoint(tmp_path, 1, u=u, k=3).path + "/fields.zarr", mode="r")
    assert sorted(group) == ["u", "u-1"] and np.array_equal(group["u"][...], u[...]) and group["u-1"][0, 0] == 1.0


def two(path, **more):
    """Steps 1 and 2."""
    for step in (1, 2):
        tw.checkpoint(path, step, u=tw.field((20,), init=float(step)), k=step, **more)
    return sorted(os.path.join(path, name) for name in os.listdir(path))


def flip(name):
    def damage(folder):
        path = os.path.join(folder, name)
        data = bytearray(open(path, "rb").read())
        data[len(data) // 2] ^= 4
        open(path, "wb").write(data)

    return damage


DAMAGE = {
    "a bit of a chunk": (flip("fields.zarr/u/c.0"), "the checksum of fields.zarr/u/c.0 is another one"),
    "a bit of metadata": (flip("fields.zarr/u/zarr.json"), "the checksum of fields.zarr/u/zarr.json is another one"),
    "a bit of the group": (flip("fields.zarr/zarr.json"), "the checksum of fields.zarr/zarr.json is another one"),
    "a bit of values": (flip(manifest.VALUES), f"the checksum of {manifest.VALUES} is another one"),
    "a bit of the manifest": (flip(folders.MANIFEST), "manifest.json: "),
    "a missing chunk": (lambda at: os.unlink(f"{at}/fields.zarr/u/c.0"), "fields.zarr/u/c.0 is missing"),
    "a short chunk": (lambda at: os.truncate(f"{at}/fields.zarr/u/c.0", 3), "u/c.0 has 3 bytes; 160 were written"),
    "a missing folder": (lambda at: shutil.rmtree(f"{at}/fields.zarr"), "is missing"),
    "no manifest": (lambda at: os.unlink(f"{at}/{folders.MANIFEST}"), "it has no manifest.json"),
    "an empty manifest": (lambda at: os.truncate(f"{at}/{folders.MANIFEST}", 0), "manifest.json: "),
    "a list": (lambda at: open(f"{at}/{folders.MANIFEST}", "w").write("[]"), "manifest.json: "),
    "an empty folder": (lambda at: [shutil.rmtree(at), os.mkdir(at)], "it has no manifest.json"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_the_one_before_a_damaged_one_is_taken(tmp_path, name):
    damage, words = DAMAGE[name]
    before, newest = two(tmp_path)
    damage(newest)

    def body(context):
        found = tw.resume(tmp_path, context=context)
        return found["step"], found["k"], found["u"].gather()

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = results_of(2, 1, body)
    assert [each[:2] for each in found] == [(1, 1)] * 2 and np.array_equal(found[0][2], np.ones(20))
    told = [str(each.message) for each in told if "resume" in str(each.message)]
    assert len(told) == 1 and words in told[0] and "The checkpoint of step 1 before it was taken" in told[0]
    # The damaged one goes first.
    tw.checkpoint(tmp_path, 3, k=3)
    left = sorted(os.listdir(tmp_path))
    assert [os.path.join(tmp_path, left[0]), left[1]] == [before, "00000003-step-3"], left
    damage(before)
    shutil.rmtree(tmp_path / "00000003-step-3")
    refused_on_all(2, lambda context: tw.resume(tmp_path, context=context), "can be read: ")


@pytest.mark.parametrize("seed", range(2))
def test_every_byte_counts(tmp_path, seed):
    """A bit of any file is turned: it is noticed."""
    print(f"seed {seed}")
    pick = random.Random(seed)
    _, newest = two(tmp_path, rng=np.random.default_rng(1), m=tw.linalg.matrix(np.eye(3)))
    names = [os.path.join(at, name) for at, _, found in os.walk(newest) for name in found]
    for _ in range(40):
        path = pick.choice(names)
        data = open(path, "rb").read()
        if not data:
            continue
        wrong = bytearray(data)
        wrong[pick.randrange(len(data))] ^= 1 << pick.randrange(8)
        open(path, "wb").write(wrong)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            state = tw.resume(tmp_path)
        open(path, "wb").write(data)
        assert state["step"] == 1 and told, path
    assert tw.resume(tmp_path)["step"] == 2


def test_nothing_there(tmp_path):
    assert tw.resume(tmp_path / "none") is None and tw.resume(tmp_path) is None
    (tmp_path / "notes").write_text("somebody's")
    (tmp_path / "step-3").mkdir()
    assert tw.resume(tmp_path) is None
    for step in range(4):
        tw.checkpoint(tmp_path, step, k=step)
    assert sorted(os.listdir(tmp_path)) == ["00000003-step-2", "00000004-step-3", "notes", "step-3"]
    tw.checkpoint(tmp_path, 0, k=-1)  # an earlier step is the newest, if it was written last
    assert tw.resume(tmp_path)["k"] == -1


WRONG = {
    "no path": lambda c, at: tw.checkpoint(3, 1, context=c),
    "a file": lambda c, at: tw.checkpoint(at / "file", 1, context=c),
    "resume from a file": lambda c, at: tw.resume(at / "file", context=c),
    "below a file": lambda c, at: tw.checkpoint(at / "file" / "c", 1, context=c),
    "a step": lambda c, at: tw.checkpoint(at / "c", -1, context=c),
    "a step of text": lambda c, at: tw.checkpoint(at / "c", "1", context=c),
    "every": lambda c, at: tw.checkpoint(at / "c", 1, every="ten minutes", context=c),
    "every below 0": lambda c, at: tw.checkpoint(at / "c", 1, every=-1, context=c),
    "every day": lambda c, at: tw.checkpoint(at / "c", 1, every="1 day", context=c),
    "other steps": lambda c, at: tw.checkpoint(at / "c", c.rank, context=c),
    "other names": lambda c, at: tw.checkpoint(at / "c", 1, context=c, **{f"x{c.rank}": 1}),
    "other kinds": lambda c, at: tw.checkpoint(at / "c", 1, x=tw.field((3,), context=c) if c.rank else 1, context=c),
    "other values": lambda c, at: tw.checkpoint(at / "c", 1, x=1, rng=np.random.default_rng(c.rank), context=c),
    "a window": lambda c, at: tw.checkpoint(at / "c", 1, u=tw.field((3,), keep="window", context=c)),
    "a time buffer": lambda c, at: tw.checkpoint(at / "c", 1, u=tw.field((3,), context=c).buffer(0), context=c),
    "a factor": lambda c, at: tw.checkpoint(at / "c", 1, u=tw.linalg.lu(tw.linalg.matrix(np.eye(3), context=c))),
    "a closed field": lambda c, at: [u := tw.field((3,), context=c), u.close(), tw.checkpoint(at / "c", 1, u=u)],
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused_is_refused_on_every_rank(tmp_path, name):
    (tmp_path / "file").write_text("somebody's")
    _, errors = on_ranks(2, 1, lambda context: WRONG[name](context, tmp_path))
    assert all(isinstance(error, tw.ConfigError) for error in errors), errors
    assert len(set(map(str, errors))) == 1 and os.listdir(tmp_path) == ["file"]
    print(errors[0])
    words = {"other values": "checkpoint: rng: other values on some rank", "a factor": "given LuFactor; allowed: the m"}
    assert words.get(name, "") in str(errors[0])


@pytest.mark.parametrize("call", ["fsync", "rename", "mkdir"])
@pytest.mark.parametrize("at", range(1, 12, 2))
def test_a_full_disk_on_one_rank_is_an_error_of_all(tmp_path, monkeypatch, call, at):
    """The n-th call of any rank fails; older checkpoints stay, nothing else does, and the next one works."""
    monkeypatch.setattr(zarr3, "CHUNK_BYTES", 100)
    two(tmp_path)
    done, calls = getattr(os, call), []

    def full(*arguments, **more):
        if arguments[0] != str(tmp_path):
            calls.append(call)
        if len(calls) == at:
            raise OSError(28, "No space left on device")
        return done(*arguments, **more)

    def save(context):
        u = tw.field((100,), init=3.0, history=1, context=context)
        tw.checkpoint(tmp_path, 3, u=u, k=3, context=context)

    monkeypatch.setattr(os, call, full)
    _, errors = on_ranks(2, 1, save)
    monkeypatch.setattr(os, call, done)
    failed = len(calls) >= at
    assert all(isinstance(e, tw.ConfigError) and "No space left" in str(e) if failed else e is None for e in errors)
    assert len(set(map(str, errors))) == 1
    assert tw.resume(tmp_path)["step"] == (2 if failed else 3)
    assert len(os.listdir(tmp_path)) == 2
    results_of(2, 1, save)
    assert tw.resume(tmp_path)["step"] == 3 and len(os.listdir(tmp_path)) == 2


def test_another_program_that_removes_what_is_written_is_named(tmp_path, monkeypatch):
    made = os.mkdir

    def mkdir(path, *more):
        made(path, *more)
        if path.endswith("fields.zarr/u"):
            shutil.rmtree(path)

    monkeypatch.setattr(os, "mkdir", mkdir)
    words = "No such file.*; every rank must see the same disk, and no other program may save to this path"
    with pytest.raises(tw.ConfigError, match=words):
        tw.checkpoint(tmp_path, 1, u=tw.field((3,)))
    with pytest.raises(tw.ConfigError, match="every rank must see the same disk$"):
        tw.load(tmp_path / "none.npy")


def test_every(tmp_path, monkeypatch):
    """By the clock of rank 0, whatever those of others say."""
    times = [100.0, 0.0]

    class Clock:
        @staticmethod
        def monotonic():
            return times[0] if __import__("threading").current_thread() in zero else times[0] + 1e6

    zero = []
    monkeypatch.setattr(writing, "time", Clock)

    def body(context):
        if context.rank == 0:
            zero.append(__import__("threading").current_thread())
        context._core.barrier()
        written = []
        for step, after in enumerate((0, 59, 2, 1, 70, 59, 2)):
            context._core.barrier()
            if context.rank == 0:
                times[0] += after
            context._core.barrier()
            written.append(tw.checkpoint(tmp_path, step, every="1 min", k=step, context=context))
        assert tw.resume(tmp_path, context=context)["step"] == 6
        return written

    found = results_of(2, 1, body)
    assert [[report and report.step for report in each] for each in found] == [[None, None, 2, None, 4, None, 6]] * 2
    assert found[0][2].share == 0.0
    assert [found[0][step].next_s for step in (2, 4, 6)] == [60.0] * 3
    for given, seconds in {"30 s": 30, "1.5min": 90, " 2 h ": 7200, 5: 5, 0.5: 0.5}.items():
        assert interval.every_s(given) == seconds


@pytest.mark.parametrize("cost, between, best", [(5, 24 * 60, 117), (5, 6 * 60, 57), (5, 15, 9.1)])
def test_intervals_of_the_paper(cost, between, best):
    """Minutes, of figures 3 to 5 of Daly's paper."""
    assert interval.best_s(cost, between) == pytest.approx(best, abs=0.5 if best > 10 else 0.05)


@pytest.mark.parametrize("seed", range(20))
def test_no_interval_is_much_better(seed):
    """By the complete model of that paper, where a checkpoint takes less than half of the time between failures."""
    pick = random.Random(seed)
    between = 10 ** pick.uniform(0, 6)
    cost = between * 10 ** pick.uniform(-6, -0.3)

    def time(work):  # for each second of work, without what a restart takes
        return between * math.expm1((work + cost) / between) / work

    best = interval.best_s(cost, between)
    assert time(best) <= 1.001 * min(time(best * 1.01**n) for n in range(-300, 300)), (seed, cost, between)


def test_every_auto(tmp_path, monkeypatch):
    """The first is written, and measured; then the interval follows what the last ones took."""
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    pick = random.Random(seed)
    between = pick.uniform(1e3, 1e5)
    monkeypatch.setenv("TILEWAVE_MTBF", f"{between:.6f} s")
    now, costs, finish = [0.0], [], folders.finish

    class Clock:
        @staticmethod
        def monotonic():
            return now[0]

    def slow(*arguments):
        costs.append(pick.uniform(0.01, 1.0))
        now[0] += costs[-1]
        return finish(*arguments)

    monkeypatch.setattr(writing, "time", Clock)
    monkeypatch.setattr(folders, "finish", slow)
    wait = 0.0
    for number in range(6):
        if number:
            now[0] += wait * 0.999
            assert tw.checkpoint(tmp_path, number, every="auto", k=1) is None
            now[0] += wait * 0.002
        report = tw.checkpoint(tmp_path, number, every="auto", k=1)
        wait = report.next_s
        last = costs[-3:]
        assert wait == pytest.approx(interval.best_s(sum(last) / len(last), between))
        assert report.share_of_run == pytest.approx(sum(costs) / now[0])
    print(report)
    assert str(report).endswith("% of the run; the next after " + units.seconds(wait))


@pytest.mark.parametrize("given", ["a day", "0 s", "-1 h", "1"])
def test_times_between_failures_that_are_none(tmp_path, monkeypatch, given):
    monkeypatch.setenv("TILEWAVE_MTBF", given)
    with pytest.raises(tw.ConfigError, match=f"TILEWAVE_MTBF='{given}'; allowed: a time above 0, as"):
        tw.checkpoint(tmp_path, 1, every="auto")


def test_a_manifest_says_what_is_there(tmp_path):
    folder = two(tmp_path)[1]
    manifest = json.loads(open(os.path.join(folder, folders.MANIFEST)).read())["manifest"]
    there = {os.path.relpath(os.path.join(at, n), folder) for at, _, names in os.walk(folder) for n in names}
    assert set(manifest["files"]) == there - {folders.MANIFEST} and manifest["step"] == 2
