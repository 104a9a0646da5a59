"""Errors show the lines of the user, not those of this package."""

import re
import sys
import traceback

import numpy as np
import pytest
from local_ranks import on_ranks

import tilewave as tw
from tilewave import notices, tracebacks
from tilewave.errors import InternalError


@tw.nest
def heat(u, t, i):
    u[t+1, i] = 0.5 * (u[t, i-1] + u[t, i+1])


@tw.nest
def careful(A, i):
    if A[i] == 0:
        raise ValueError("no")
    A[i] = A[i-1]


def refuses(i):
    raise ArithmeticError(f"no {i}")


def ours(error):
    """The frames of the package, of an error and of what caused it."""
    found = []
    while error is not None:
        frames = traceback.extract_tb(error.__traceback__)
        found += [frame for frame in frames if frame.filename.startswith(notices.HERE)]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return found


MISTAKES = {
    "run": lambda: tw.run(heat, u=np.zeros(5), steps=[1]),
    "an array that is missing": lambda: tw.run(heat, steps=1),
    "a name that is none": lambda: tw.run(heat, u=np.zeros(5), steps=1, other=3),
    "plan": lambda: tw.plan(heat, u=np.zeros(5), steps=-1),
    "bind": lambda: tw.bind(heat, u=np.zeros(5), steps=-1),
    "chain": lambda: tw.chain([3]),
    "field": lambda: tw.field((-5,)),
    "buffer": lambda: tw.field((5,)).buffer(-9),
    "exchange": lambda: tw.exchange(np.zeros(3)),
    "nest_from": lambda: tw.nest_from("def f(A, i):\n    A[i*i] = 1\n"),
    "scratch": lambda: tw.scratch(init=[1]),
    "Plan.save": lambda: tw.Plan((1,), 0, (1,), (1,)).save("/none/plan.json"),
    "Plan.load": lambda: tw.Plan.load("/none"),
    "Machine.load": lambda: tw.Machine.load("/none"),
    "Schedule.load": lambda: tw.Schedule.load("/none"),
    "check": lambda: tw.check(3),
    "Schedule.build": lambda: tw.Schedule.build(3, 2),
    "matrix": lambda: tw.linalg.matrix((3,), "f8"),
    "cholesky": lambda: tw.linalg.cholesky(-np.eye(4)),
    "Poisson": lambda: tw.multigrid.Poisson((0,), spacing=1),
    "broadcast": lambda: tw.patterns.broadcast(np.zeros(3), -1),
    "send": lambda: tw.patterns.send(np.zeros(3), -1),
    "timeline": lambda: tw.save_timelines("x.png", 3),
    "an argument too many": lambda: tw.bind(heat, u=np.zeros(5), steps=1).run("x", 3),
    "no argument": lambda: tw.run(),
    "a body that raises": lambda: tw.run(careful, A=np.zeros(5)),
}


MISTAKEN = tw.ConfigError, tw.KernelError, TypeError


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.delenv(tracebacks.VARIABLE, raising=False)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_shows_the_users_lines(name, monkeypatch):
    with pytest.raises(MISTAKEN) as short:
        MISTAKES[name]()
    frames = traceback.extract_tb(short.value.__traceback__)
    assert [frame.name for frame in frames][-1] == "<lambda>" and all(f.filename == __file__ for f in frames)
    assert not [f for f in ours(short.value) if f not in traceback.extract_tb(_last(short.value))]
    monkeypatch.setenv(tracebacks.VARIABLE, "all")
    with pytest.raises(MISTAKEN) as whole:
        MISTAKES[name]()
    assert ours(whole.value) and str(whole.value) == str(short.value)


def _last(error):
    """The traceback of the cause, where it is ours: its innermost frame alone stays."""
    cause = error.__cause__
    assert cause is None or cause.__traceback__ is None or cause.__traceback__.tb_next is None
    return cause and cause.__traceback__


def test_functions_of_the_user_keep_their_frames():
    with pytest.raises(tw.ConfigError, match="init raised") as found:
        tw.field((5,), init=refuses)
    assert isinstance(found.value.__cause__, ArithmeticError)
    assert traceback.extract_tb(found.value.__cause__.__traceback__)[-1].name == "refuses"
    assert not ours(found.value)
    text = "".join(traceback.format_exception(found.value))
    assert "in refuses" in text and "direct cause" in text and len(text.splitlines()) < 30


def test_every_rank(monkeypatch):
    def body(context):
        tw.run(heat, u=tw.field((9,), context=context), steps=[1] if context.rank else 1)

    _, errors = on_ranks(2, 1, body)
    for error in errors:
        assert isinstance(error, tw.ConfigError) and not ours(error)


def test_what_was_not_foreseen_keeps_all(monkeypatch):
    def broken(*arguments, **keywords):
        raise InternalError("broken")

    monkeypatch.setattr(sys.modules["tilewave.nests.doors.run"], "prepare", broken)
    with pytest.raises(InternalError) as found:
        tw.run(heat, u=np.zeros(5), steps=1)
    assert len(ours(found.value)) > 2


def test_internal_errors_that_cause_others_keep_all():
    @tracebacks.door
    def outer():
        try:
            raise InternalError("broken")
        except InternalError as error:
            raise tw.ConfigError("wrong") from error

    with pytest.raises(tw.ConfigError) as found:
        outer()
    assert found.value.__cause__.__traceback__ is not None


def test_doors_are_what_they_were():
    import inspect
    import pickle

    assert pickle.loads(pickle.dumps(tw.nest)) is tw.nest and pickle.loads(pickle.dumps(tw.run)) is tw.run
    assert list(inspect.signature(tw.nest_from).parameters) == ["text", "names"]
    assert tw.run.__doc__.startswith("Run a nest") and tw.Plan.load.__self__ is tw.Plan


def test_notebooks():
    ultratb = pytest.importorskip("IPython.core.ultratb")
    shown = ultratb.VerboseTB(include_vars=False)
    try:
        tw.run(heat, u=np.zeros(5), steps=[1])
    except tw.ConfigError as error:
        text = "\n".join(map(str, shown.structured_traceback(type(error), error, error.__traceback__)))
        text = re.sub(r"\x1b\[[\d;]*m", "", text)
        assert "steps=[1]" in text and "collective.py" not in text and len(text.splitlines()) < 25
