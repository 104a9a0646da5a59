"""Every collective call begins alike: ranks that do not call the same, or are given what cannot be, all raise one
error and go on.
"""

import itertools
import os
import re
import threading

import numpy as np
import pytest

import tilewave as tw
from tilewave.context import interrupts

pytestmark = pytest.mark.mpi(ranks=[2, 3])
patterns = tw.patterns


@tw.nest
def sums(A, i, j, *, c=1):
    A[i, j] = A[i-1, j] + c * A[i, j-1]


@tw.nest
def steps(u, t, i):
    u[t+1, i] = u[t, i-1] + u[t+1, i-1]


@tw.nest
def looked_up(A, S, a, i, j):
    A[i, j] = A[i-1, j] + S[a[j]]


class Things:
    def __init__(self, context):
        self.context, self.rank = context, context.rank
        self.A, self.B = (tw.field((9, 8), "i8", init=1, context=context) for _ in range(2))
        self.window = tw.field((9, 8), "i8", init=1, keep="window", context=context)
        self.M, self.wide = np.ones((3, 2 * context.size)), np.zeros((3, 2 * context.size * context.size))


@pytest.fixture(scope="module")
def things():
    return Things(tw.set_default())  # where a call without a usable context= happens, too


def calls(t):
    c, M = t.context, t.M
    return {
        "field": lambda: tw.field((4, 4), context=c),
        "run": lambda: tw.run(sums, A=t.A),
        "run another": lambda: tw.run(sums, A=t.B),
        "run in time": lambda: tw.run(steps, u=tw.field((8,), "i8", init=1, context=c), steps=2),
        "plan": lambda: tw.plan(sums, A=t.A),
        "measure": lambda: tw.measure(1, context=c),  # refused by itself: it would take 3 s
        "gather": t.A.gather,
        "gather another": t.B.gather,
        "element": lambda: t.A[1, 2],
        "max": lambda: tw.max(t.A),
        "min another": lambda: tw.min(t.B),
        "sum": lambda: tw.sum(t.A),
        "argmax": lambda: tw.argmax(t.A),
        "barrier": lambda: tw.barrier(context=c),
        "agree": lambda: c.agree(None, "a text"),
        "broadcast": lambda: patterns.broadcast(M, context=c),
        "broadcast later": lambda: patterns.broadcast(M, wait=False, context=c).wait(),
        "broadcast kept": lambda: patterns.broadcast(M, start=False, context=c),
        "reduce": lambda: patterns.reduce(M, context=c),
        "reduce by a function": lambda: patterns.reduce(M, op=lambda a, b: a + b, context=c),
        "reduce by another": lambda: patterns.reduce(M, op=lambda a, b: a * b, context=c),
        "spread": lambda: patterns.spread(M, context=c),
        "multi_reduce": lambda: patterns.multi_reduce(M, context=c),
    }


def outcome(call):
    try:
        call()
        return None
    except tw.ConfigError as error:
        assert error.agreed
        return str(error)


def works(t):
    A = tw.field((9, 8), "i8", init=1, context=t.context)
    tw.run(sums, A=A)
    assert tw.max(A) == 6435
    assert (patterns.broadcast(np.full((2, 2), float(t.rank)), context=t.context) == 0).all()


def test_ranks_that_call_different_functions(things):
    t = things
    all_of = calls(t)
    for call in all_of.values():
        outcome(call)  # machine, plans and rates are known from here on
    wrong = []
    last = t.context.size - 1
    for n, (one, other) in enumerate(itertools.combinations(all_of, 2)):
        if n % t.context.size > 1:
            continue  # more ranks than cores take long
        odd = n // 2 % t.context.size  # this rank alone calls another
        text = outcome(all_of[other if t.rank == odd else one])
        if {one, other} == {"broadcast", "broadcast later"}:
            continue  # whether a rank waits is its own affair
        if text is None or not re.search(
            r"different functions: rank 0 .*, test_collective_calls.py:\d+; rank|different arguments", text
        ):
            wrong.append((one, other, odd, text))
    assert not wrong
    texts = outcome(all_of["max"] if t.rank == last else all_of["min another"])
    assert (
        "tw.max(field 1), test_collective_calls.py:" in texts and "tw.min(field 2), test_collective_calls.py:" in texts
    )
    t.context.agree(None, texts)  # the same on all
    works(t)


def test_the_context_is_as_it_was_after_each(things):
    t = things
    all_of = calls(t)
    for one, other in [
        ("run", "gather"), ("broadcast", "run"), ("plan", "spread"), ("field", "max"), ("barrier", "multi_reduce"),
    ]:
        assert outcome(all_of[one] if t.rank else all_of[other])
        works(t)
        assert outcome(all_of[other] if t.rank else all_of[one])
        works(t)


def test_making_a_context_while_others_do_something_else(things):
    tw.barrier()  # makes the default context
    text = outcome(lambda: tw.Context() if things.rank else tw.barrier())
    assert "tw.Context" in text and "tw.barrier" in text
    tw.barrier()
    works(things)


class NoText(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def raises(error):
    def init(*_):
        raise error

    return init


TWO = np.ones(2)
OF_FIELDS = ("gather", "__getitem__", "__setitem__", "copy", "fill")
#: What one rank alone is given wrongly, by functions: what the others are given, and by argument the wrong values.
WRONG = {
    "field": (
        {"shape": (4, 4)},
        {
            "shape": [3.5, "ab", (4, -1), TWO[:, None]], "dtype": ["no", TWO], "keep": [TWO, 3],
            "init": [raises(ValueError("name \udc80")), raises(NoText()), TWO, "x"], "context": [3], "other": [1],
        },
    ),
    "run": (
        {"A": "A"},
        {
            "A": [3, None, "window"], "fastmath": [TWO, "x"], "over": [TWO, {"i": TWO}, 3], "reverse": [TWO, 5],
            "steps": [TWO, "x", 2**70], "plan": [TWO, 3], "reduce": [TWO, {"x": 3}], "context": [3],
            "c": [TWO, "x", 2**70], "skew": [TWO], "tile": [TWO], "grid": [TWO], "lookahead": [TWO],
            "threads": [TWO, 2**64, 0], "helper": [TWO], "poll_period_s": [TWO], "storage": [TWO], "row": [TWO],
            "grouping": [TWO], "chunk_bytes": [2**70], "slices": [TWO], "nest": [3, TWO], "unknown": [1],
            "temporal_block": [TWO], "aggregate": [TWO], "synchronous": [TWO],
        },
    ),
    "plan": (
        {"A": "A"},
        {"A": [3], "over": [TWO], "reverse": [TWO], "steps": [TWO], "context": ["x"], "nest": [None], "skew": [TWO]},
    ),
    "measure": ({"quick": True}, {"quick": [TWO, 1], "nest": [3], "context": [3], "A": [3]}),
    "max argmin sum": ({"array": "A"}, {"array": [3, TWO, "window"], "field": [1]}),
    "gather copy": ({}, {"array": ["window"], "other": [1]}),
    "__getitem__": ({"given": (1, 2)}, {"given": [99, TWO, (0, 1)], "array": ["window"]}),
    "__setitem__": ({"given": (1, 2), "value": 3}, {"given": [99], "value": [TWO, 4, "x", NoText()]}),
    "fill": ({"value": 1}, {"value": [TWO, "x", None, 2, raises(NoText())], "other": [1]}),
    "load": ({"path": os.devnull}, {"path": [TWO], "context": [3], "other": [1]}),
    "barrier": ({}, {"context": [TWO], "other": [1]}),
    "broadcast reduce spread multi_reduce allreduce": (
        {"M": "M"},
        {
            "M": [3], "wait": [TWO, 1], "start": [TWO, 0], "explain": [TWO, "x"], "algorithm": [TWO, 3],
            "chunk_bytes": [TWO, 2**70], "buffers": [TWO, -1], "context": [3, TWO], "other": [1],
        },
    ),
    "broadcast reduce": ({"M": "M"}, {"root": [TWO, -1, 2**70, "x"]}),
    "reduce multi_reduce allreduce": ({"M": "M"}, {"op": [TWO, 3, "no"]}),
    "spread multi_reduce": ({"M": "M"}, {"block": [TWO, 0, "x"]}),
    "context": ({}, {"threads": [2**64, TWO, "x"], "comm": [3, TWO]}),
}
BAD = [
    (function, good, {name: value})
    for functions, (good, wrong) in WRONG.items()
    for function in functions.split()
    for name, values in wrong.items()
    for value in values
]


def test_one_bad_argument_on_one_rank(things):
    t, wrong = things, []
    named = {"A": t.A, "window": t.window, "M": t.M}

    def call(function, given):
        given = {name: named.get(value, value) if isinstance(value, str) else value for name, value in given.items()}
        if function in ("broadcast", "reduce", "spread", "multi_reduce", "allreduce"):
            return getattr(patterns, function)(**given)
        if function in ("run", "plan"):
            return getattr(tw, function)(given.pop("nest", sums), **given)
        if function in OF_FIELDS:
            return getattr(given.pop("array", t.A), function)(**given)
        return {"context": tw.Context}.get(function, getattr(tw, function, None))(**given)

    for n, (function, good, bad) in enumerate(BAD):
        odd = n % t.context.size
        of_fields = function in ("max", "argmin", "sum", "run", "plan", "context", *OF_FIELDS)
        base = good if of_fields else {"context": t.context, **good}
        try:
            call(function, {**base, **bad} if t.rank == odd else base)
            wrong.append((function, bad, "nothing was raised"))
        except (tw.ConfigError, TypeError) as error:
            if not getattr(error, "agreed", False) or (isinstance(error, TypeError) and t.rank != odd):
                wrong.append((function, bad, repr(error)))
        except BaseException as error:
            wrong.append((function, bad, repr(error)))
    assert not wrong
    works(t)


def test_an_interrupt_in_a_local_part_is_one_of_all(things):
    for odd in range(things.context.size):
        with pytest.raises(KeyboardInterrupt):
            tw.field((4, 4), init=raises(KeyboardInterrupt()) if things.rank == odd else 1.0, context=things.context)
        works(things)
        if things.rank == odd:
            interrupts.keep(KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            tw.max(things.A)
        works(things)


def test_two_threads_on_one_context(things):
    """A call that comes while another thread is at one is an error of all ranks, whatever order they see; then all
    goes on.
    """
    t = things
    entered, go_on, found = threading.Event(), threading.Event(), []

    def slow(*_):
        entered.set()
        go_on.wait(300)
        return 1.0

    def first():
        found.append(outcome(lambda: tw.field((4, 4), init=slow, context=t.context)))

    worker = threading.Thread(target=first)
    worker.start()
    assert entered.wait(300)
    if t.rank == 0:  # on the others the second call comes later, and its order is the same
        threading.Timer(0.1, go_on.set).start()
    else:
        go_on.set()
        worker.join(300)
    text = outcome(lambda: tw.max(t.A))
    worker.join(300)
    assert found == [None] and "another thread was in tw.field" in text
    works(t)


def test_inputs_that_differ_between_ranks(things):
    t = things
    S, a = np.arange(4.0), np.arange(8) % 4
    A = tw.field((9, 8), context=t.context)
    tw.run(looked_up, A=A, S=S, a=a)
    tw.run(looked_up, A=A, S=S, a=a)
    other = S + (t.rank == t.context.size - 1)
    text = outcome(lambda: tw.run(looked_up, A=A, S=other, a=a))
    assert "different arguments" in text and "S: float64 (4,) NumPy array, checksum" in text
    text = outcome(lambda: tw.run(looked_up, A=A, S=S, a=a[::-1] if t.rank == 0 else a))
    assert "different arguments" in text
    tw.run(looked_up, A=A, S=S, a=a)
    works(t)


def test_functions_of_the_launch(things, capsys):
    assert (tw.rank, tw.size) == (things.rank, things.context.size)
    tw.barrier()
    tw.print("said", "once")
    assert capsys.readouterr().out == ("said once\n" if tw.rank == 0 else "")
    with pytest.raises(AttributeError, match="no attribute 'ranks_of'"):
        tw.ranks_of
    before = tw.set_default()
    assert tw.set_default(before) is before and tw.barrier() is None
    text = outcome(lambda: tw.set_default(3 if tw.rank else before))
    assert text is None or "set_default" in text
    A = tw.field((9, 8), "i8", init=1, context=things.context)
    assert tw.run(sums, A=A).ranks <= things.context.size  # on the context of its field
