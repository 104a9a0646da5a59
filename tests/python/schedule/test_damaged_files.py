"""Files of schedules, machines and plans with random damage: `load` says what is wrong, or what it gives can be used.

Damage is done in a process of its own, as what is looked for may end it.
"""

import contextlib
import copy
import json
import math
import os
import random
import sys
from pathlib import Path

import numpy as np
import pytest
from launches import PYTHON, ended

import tilewave as tw
from tilewave.machine.machine import Curve, Link

SEED = int(os.environ.get("TILEWAVE_SEED", random.SystemRandom().randrange(10**6)))
HERE = Path(__file__).resolve().parent
KINDS = {"schedule": tw.Schedule, "machine": tw.Machine, "plan": tw.Plan}
COUNT = {"schedule": 1500, "machine": 1000, "plan": 1000}


def add(before, value, out):
    out[...] = value + before.sum()


def ring(b):
    """Messages in place and through buffers, several lanes, a block that repeats, values that are combined."""
    A = b.array("A", (6, 4), "f4", owned=(slice(None), slice(2 * b.rank, 2 * b.rank + 2)), storage=slice(None))
    S = b.array("S", 3, "f8", combine="sum", separate=True, owned=slice(None), storage=slice(None))
    one, other = b.lane(), b.lane()
    m = (b.receive if b.rank else b.send)(1 - b.rank, A[:, 1])
    for op in ("post_recv", "wait", "unpack") if b.rank else ("pack", "post_send", "wait"):
        getattr(one, op)(m)
    other.await_signal(one.signal())
    reads = [A[:, 1], A[:, 2:4]] if b.rank else [A[:, 0], A[:, 0:2]]
    other.task(add, reads, [A[:, 2:4] if b.rank else A[:, 0:1]], 2.0, number=1 - b.rank)
    assert S.dtype == "f8"


def repeats(b):
    A, lane = b.array("A", (b.ranks, 4), storage=slice(max(b.rank - 1, 0), b.rank + 1)), b.lane()
    before = A[b.rank - 1] if b.rank else A[0:0]
    with b.repeat():
        if b.rank + 1 < b.ranks:
            m = b.send(b.rank + 1, A[b.rank])
            lane.post_send(m)
            lane.wait(m)
        if b.rank > 0:
            m = b.receive(b.rank - 1, before)
            lane.post_recv(m)
            lane.wait(m)
        lane.task(add, [before, A.owned], [A.owned], number=b.ranks - 1 - b.rank)


@tw.nest
def relax(A, B, i, j):
    A[i, j] = A[i - 1, j] + A[i, j - 1] + B[i, j]


@tw.nest
def below(A, i, j):
    A[i, j] = A[i - 1, j] + 1


@tw.nest
def heat(u, t, i):
    u[t + 1, i] = u[t, i - 1] + u[t, i + 1]


def schedules():
    """Small schedules of all kinds."""
    yield tw.Schedule.build(ring, 2)
    yield tw.Schedule.build(repeats, 2)
    A, B = tw.field((9, 8), init=1.0), np.ones((9, 8))
    for choices in ({"storage": "plain"}, {"storage": "skewed"}):
        yield tw.schedule(relax, A=A, B=B, plan={"threads": 1, "tile": (4, 4), **choices})
    yield tw.schedule(relax, A=tw.field((9, 8), keep="window"), B=B, plan={"threads": 1})
    yield tw.schedule(below, A=A, over={"i": (1, 9), "j": (0, "i")}, plan={"threads": 1})
    u = tw.field((12,), init=1.0)
    yield tw.schedule(heat, u=u, steps=3, plan={"threads": 1})
    yield tw.schedule(heat, u=u, steps=3, periodic=("i",), plan={"threads": 1})
    yield tw.schedule(tw.chain([tw.bind(relax, A=A, B=B), tw.bind(relax, A=A, B=B, reverse=("i",))]))
    yield tw.schedule(tw.chain([tw.bind(heat, u=u, steps=2)]))


def machines():
    curve = {"x": [8, 64], "y": [1e-9, 1e-8]}
    link = {"latency_s": 2e-6, "send_s": 3e-7, "receive_s": 2e-7, "byte_s": 1e-10, "breaks_bytes": [64]}
    link |= {"transfer_s": Curve(**curve), "synchronous_s": Curve(**curve)}
    row = {"progress": "polls", "poll_period_s": 5e-5, "bytes": 9.0, "hidden": 0.1, "slowdown": 1.0}
    row["busy_byte_s"] = 1e-11
    link["overlap"] = [row]
    found = tw.Machine(
        conditions={"hosts": ["a", "b"], "ranks": 2, "threads": 1, "cpu_models": ["x"], "mpi": "", "date": "today"},
        copy_byte_s=Curve(**curve),
        memory=[Curve(**curve)] * 2,
        host_of=[0, 1],
        same_host=Link(**link),
        other_host=Link(**link),
        kernels={"relax": {"point_s": 1e-9, "row_s": 0.0, "tile_s": 0.0, "tile": [4, 4]}},
        spread={"latency_s": 0.1},
    )
    yield found


def plans():
    A, B = tw.field((9, 8), init=1.0), np.ones((9, 8))
    yield tw.plan(relax, A=A, B=B)
    yield tw.plan(heat, u=tw.field((12,), init=1.0), steps=3)


DEEP = "many lists in each other"
VALUES = [None, True, False, 0, 1, -1, 2, 3, 7, 100, 1 << 20, (1 << 31) - 1, 1 << 31, -(1 << 31), 1 << 40, (1 << 62)]
VALUES += [(1 << 63) - 1, 1 << 63, -(1 << 63), 10**30, 10**400, 0.5, -0.0, 1e300, float("nan"), float("inf")]
VALUES += ["", "x", "compute", "wait", "<f8", "\ud800", "\0", [], {}, [[]], [0], [[0], [1]], [1, 2, 3, 4, 5], {"x": 1}]


def places(data, found):
    """(container, key) of all that is in plain data."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        found.append((data, key))
        if isinstance(value, dict | list):
            places(value, found)
    return found


def damage(data, rng):
    """Change plain data in one to three places; gives what was done."""
    done = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        all_of = places(data, [])
        if not all_of:
            break
        where, key = rng.choice(all_of)
        how = rng.choice((0, 1, 2, 3, 3, 3, 4, 5, 6, 7, 7))
        if how == 0:
            del where[key]
        elif how == 1 and isinstance(where, list):
            where.insert(rng.randrange(len(where) + 1), json.loads(json.dumps(where[key])))
        elif how == 2:
            other, at = rng.choice(all_of)
            try:
                where[key] = json.loads(json.dumps(other[at]))
            except (KeyError, IndexError):
                continue
        elif how == 3 and type(where[key]) is int:
            where[key] += rng.choice((-1, 1, 2, -3, 10))
        elif how == 4 and isinstance(where[key], list):
            rng.shuffle(where[key])
        elif how == 5 and rng.random() < 0.1:
            where[key] = DEEP
        elif how == 7:
            same = [value for value in VALUES if type(value) is type(where[key])]
            where[key] = copy.deepcopy(rng.choice(same or VALUES))
        else:
            where[key] = copy.deepcopy(rng.choice(VALUES))
        done.append((how, key))
    return done


ERRORS = (tw.ConfigError, tw.KernelError, tw.MpiError)


def use(value, rng, schedule):
    """All that can be done with what was read; only Tilewave's errors are fine."""

    def fine(call):
        with contextlib.suppress(ERRORS):
            call()

    if isinstance(value, tw.Schedule):
        str(value), value.text(), value.memory_bytes, value.message_bytes, value.steps, repr(value)
        assert value == value
        if value.rank is None:
            fine(lambda: tw.check(value))
            fine(lambda: tw.predict(value, threads=rng.choice((None, 1))))
            fine(lambda: tw.predict(value, times=2))
        arrays = {n: np.zeros(shape, d) for n, shape, d in value._arrays if shape and d and math.prod(shape) < 1e6}
        functions = {name: lambda *views: None for name in value.functions}
        fine(lambda: value.run(functions=functions, **arrays))
    elif isinstance(value, tw.Machine):
        str(value), repr(value)
        fine(lambda: tw.predict(schedule, value))
    else:
        str(value), repr(value), value.explain(), value._repr_html_()
        fine(lambda: tw.run(relax, A=np.ones((9, 8)), B=np.ones((9, 8)), plan=value))


def fuzz(kind, seed, count, first=0):
    """Damage files of one kind; prints what was done before it is tried."""
    originals = [tmp_text(value) for value in {"schedule": schedules, "machine": machines, "plan": plans}[kind]()]
    schedule, path = tw.Schedule.build(ring, 2), Path(f"damaged-{kind}-{seed}.json")
    loaded = 0
    for number in range(first, count):
        rng = random.Random(seed * 1_000_003 + number)
        data = json.loads(rng.choice(originals))
        done = damage(data, rng)
        deep = rng.choice((10, 200, 3000, 100_000))
        text = json.dumps(data).replace(f'"{DEEP}"', "[" * deep + "]" * deep)
        if rng.random() < 0.05:
            at = rng.randrange(len(text))
            text = text[:at] + rng.choice(("", "}", "[", "9", "\\", "\x00")) + text[at + rng.randrange(3) :]
        path.write_text(text)
        print(f"TILEWAVE_SEED={seed} number {number}: {done}", file=sys.stderr, flush=True)
        try:
            value = KINDS[kind].load(path)
        except tw.ConfigError as error:
            assert path.name in str(error)
            continue
        loaded += 1
        use(value, rng, schedule)
    print(f"{loaded} of {count} loaded")


def tmp_text(value):
    path = Path("original.json")
    value.save(path)
    return path.read_text()


def run(kind, seed, count, folder, timeout=600, first=0):
    path = [str(HERE), str(HERE.parent / "support"), *filter(None, [os.environ.get("PYTHONPATH")])]
    program = f"import test_damaged_files as t; t.fuzz({kind!r}, {seed}, {count}, {first})"
    env = {"PYTHONPATH": os.pathsep.join(path), "TILEWAVE_MACHINE": "default"}
    done = ended(PYTHON, "-W", "ignore", "-c", program, env=env, cwd=folder, timeout=timeout)
    last = done.stderr.strip().splitlines()[-25:]
    assert done.returncode == 0, "\n".join([f"exit code {done.returncode}", *last])
    loaded = int(done.stdout.split()[0])
    assert 0 < loaded < count, loaded  # both happen


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files(tmp_path, kind):
    run(kind, SEED, COUNT[kind], tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_many_damaged_files(tmp_path, kind):
    run(kind, SEED + 1, 30_000, tmp_path, timeout=3600)


def test_memory_shared_by_arrays_of_other_extents(tmp_path):
    """Damage that made the checker write beyond its memory."""
    run("schedule", 304994, 890, tmp_path, first=889)
