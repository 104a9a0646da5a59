"""TILEWAVE_VERIFY: what a run gives is compared with the plain loops of its nests, and a difference is an error."""

import numpy as np
import pytest
from launches import TILEWAVE, ended
from local_ranks import on_ranks, results_of

import tilewave as tw
from tilewave.context.context import Context
from tilewave.nests.rewrites import reductions
from tilewave.nests.points.points import Points
from tilewave.nests.verify import plain_nest

RANKS = pytest.mark.parametrize("ranks, threads", [(1, 2), (2, 1), (3, 1)])


@tw.nest
def relax(A, i, j, *, c=0.5):
    A[i, j] = c * (A[i-1, j] + A[i, j-1]) + A[i, j]


@tw.nest
def heat(u, t, i, j):
    u[t+1, i, j] = u[t, i, j] + 0.1 * (u[t, i-1, j] + u[t, i, j+1] - 2 * u[t, i, j]) + 0.01 * t


@tw.nest
def wave(u, film, t, i, j):
    film[t+1, i, j] = u[t, i, j]
    u[t+1, i, j] = 2 * u[t, i, j] - u[t-1, i, j] + 0.2 * (u[t, i+1, j] - u[t, i, j-1])


@tw.nest
def pulse(u, t, i, j):
    u[t+1, i, j] = 2 * u[t, i, j] - u[t-1, i, j] + 0.2 * (u[t, i+1, j] - u[t, i, j-1])


@tw.nest
def look_up(v, u, at, t, i, j):
    v[t+1, i, j] = v[t, i, j] + u[at[i], j]


@tw.nest
def adjoint(v, t, i, j):
    v[t-1, i, j] = 2 * v[t, i, j] - v[t+1, i, j] + 0.1 * v[t, i, j-1]


@tw.nest
def snapshots(u, w, t, i, j):
    u[t+1, i, j] = 0.5 * u[t, i, j-1] + u[t, i, j]
    w[t//3, i, j] = u[t, i, j]


@tw.nest
def align(H, S, a, b, i, j):
    H[i, j] = max(H[i-1, j-1] + S[a[i-1], b[j-1]], H[i-1, j] - 2, H[i, j-1] - 2, 0)


@tw.nest
def viterbi(V, T, E, t, s):
    V[t, s] = max(V[t-1, q] + T[q, s] for q in range(len(T))) + E[t, s]


@tw.nest
def shortest(D, k, i, j):
    D[i, j] = min(D[i, j], D[i, k] + D[k, j])


@tw.nest
def largest(best, B, i, j):
    best[j] = max(best[j], B[i, j])


@tw.nest
def distance(A, B, i, j):
    d = B[i, j] - A[i, j]
    if d > 0.2:
        A[i, j] = A[i, j] + 0.5 * d


@tw.nest
def coarse(C, A, i, j):
    C[i, j] = A[2*i, j] + A[2*i+1, j]


def values(*shape, seed=1):
    return np.random.default_rng(seed).random(shape)


def runs(context):
    """A run of each kind; what each one is."""
    field = lambda array, **more: tw.field(array.shape, array.dtype, array, context=context, **more)
    A, B, u = field(values(12, 17)), field(values(12, 17, seed=2)), field(values(12, 17))
    yield "a sweep", lambda: tw.run(relax, A=A, c=0.25, plan={"threads": 1})
    yield "reverse", lambda: tw.run(relax, A=A, reverse=("i",), over={"j": (2, ("i", 9)), "i": (3, 11)})
    yield "strides", lambda: tw.run(relax, A=A, over={"j": (1, 17, 3)})
    sums = {"s": tw.sum("d"), "where": tw.argmax("A"), "n": tw.norm("d*d", ord=1), "p": tw.dot("A", "B")}
    yield "reductions", lambda: tw.run(distance, A=A, B=B, reduce={**sums, "some": tw.min("A + d")})
    yield "time", lambda: tw.run(heat, u=u, steps=7)
    yield "periodic", lambda: tw.run(heat, u=u, steps=3, periodic=("i", "j"))
    w, film = field(values(12, 17), history=[values(12, 17, seed=5)]), field(np.zeros((6, 12, 17)))
    points = {"u": ([[3, 4], [3, 4], [11, 0]], values(5, 3))}
    yield "history", lambda: tw.run(wave, u=w, film=film, steps=5)
    near = tw.OffGrid([(2.5, 3.25), (10.0, 3.5)], "sinc", radius=2)
    record = {"u": near}
    yield "sources", lambda: tw.run(pulse, u=w, steps=5, inject=points, record=record)
    off = {"u": (tw.OffGrid(1 + values(5, 2, 2) * 8), values(5, 2))}
    yield "moving sources", lambda: tw.run(pulse, u=w, steps=5, inject=off, record={"u": [[3, 4]]})
    yield "backwards", lambda: tw.run(adjoint, v=w, steps=4, reverse=("t",))
    rows = field(np.zeros((3, 12, 17)))
    yield "rows of steps", lambda: tw.run(snapshots, u=u, w=rows, steps=8)
    letters = np.random.default_rng(3).integers(0, 4, (2, 40))
    H = field(np.zeros((41, 41), "i4"))
    given = {"S": np.eye(4, dtype="i4") * 3 - 1, "a": letters[0], "b": letters[1]}
    yield "tables", lambda: tw.run(align, H=H, **given, reduce={"best": tw.max("H")})
    window = tw.field((41, 41), "i4", keep="window", context=context)
    yield "a window", lambda: tw.run(align, H=window, **given, reduce={"best": tw.max("H")})
    yield "scratch", lambda: tw.run(align, H=tw.scratch("i4"), **given, reduce={"at": tw.argmax("H")}, context=context)
    V = field(values(20, 9))
    yield "loops in the body", lambda: tw.run(viterbi, V=V, T=values(9, 9), E=values(20, 9))
    D = field(values(15, 15))
    yield "a pivot", lambda: tw.run(shortest, D=D)
    best, K = field(np.zeros(17, "i8")), np.random.default_rng(4).integers(0, 7, (12, 17))
    yield "updates in any order", lambda: tw.run(largest, best=best, B=K)
    half = field(np.zeros((6, 17)))
    yield "every second element", lambda: tw.run(coarse, C=half, A=A)
    yield "several nests", lambda: tw.run((heat, wave), u=w, film=film, steps=5)
    yield "no time step", lambda: tw.run((heat, pulse), u=u, steps=0, reduce={"all": tw.sum("u")})
    v, at = field(values(12, 17)), np.arange(12)[::-1]
    yield "a table that another nest writes", lambda: tw.run((heat, look_up), u=u, v=v, at=at, steps=3)
    bound = tw.bind(relax, A=A, reduce={"s": tw.sum("A")})
    yield "a bound nest", lambda: [bound.run(), bound.run(c=0.125)]
    steps = tw.bind(heat, u=u, steps=2)
    yield "bound time steps", lambda: [steps.run(), steps.run(steps=5)]
    chain = tw.chain([steps, tw.bind(relax, A=A), steps])
    yield "a chain", lambda: chain.run(times=3)
    record, reduce = {"u": [[0, 7], [1, 7]]}, {"all": tw.sum("u")}
    both = tw.bind((heat, pulse), u=u, steps=2, inject={"u": ([[2, 3]], values(2, 1))}, record=record, reduce=reduce)
    nests, added = [tw.bind(relax, A=A), both, steps, both], {"A": ([[5, 6]], values(4, 1))}
    mixed = tw.chain(nests, inject=added, record={"A": [[1, 1]]})
    yield "a chain of several nests", lambda: mixed.run(times=4, until={"all": -1e9}, every=2, c=0.25)
    until = tw.chain([bound])
    yield "until", lambda: until.run(times=9, until=lambda found: found["s"] > 400, every=2)
    yield "expressions", lambda: A.__setitem__(..., 2 * A + np.sqrt(B))


def verified(monkeypatch, in_python=True):
    monkeypatch.setenv("TILEWAVE_VERIFY", "1")
    if not in_python:
        monkeypatch.setattr(plain_nest, "MOST_IN_PYTHON", 0)


@RANKS
@pytest.mark.parametrize("in_python", [True, False])
def test_right_runs_pass(ranks, threads, in_python, monkeypatch):
    verified(monkeypatch, in_python)

    def body(context):
        for _, run in runs(context):
            run()

    results_of(ranks, threads, body)


def damaged(monkeypatch, at):
    """Have each run change element `at` of the field `context.victim` behind its back."""
    finished = Context._finished

    def damaging(self, ran):
        victim = getattr(self, "victim", None)
        if victim is not None:
            low, high = victim._storage.owned
            if all(a <= x < b for a, x, b in zip(low, at, high, strict=True)):
                victim._view(0)[tuple(x - a for a, x in zip(low, at, strict=True))] += 1
        return finished(self, ran)

    monkeypatch.setattr(Context, "_finished", damaging)


def doors(context):
    """Runs through each door that write to a field, the field, and what the error says."""
    field = lambda array: tw.field(array.shape, array.dtype, array, context=context)
    A, B, u, square = field(values(12, 17)), field(values(12, 17)), field(values(12, 17)), field(values(15, 15))
    yield A, "nest 'relax' differs from its plain loops at i=5, j=6: A[5, 6] is", lambda: tw.run(relax, A=A)
    bound = tw.bind(relax, A=A)
    yield A, "nest 'relax' differs from its plain loops at i=5, j=6: A[5, 6] is", bound.run
    yield u, "nest 'heat' differs from its plain loops at i=5, j=6: u[5, 6] is", lambda: tw.run(heat, u=u, steps=2)
    steps = tw.bind(heat, u=u, steps=2)
    chain = tw.chain([steps, bound, steps])
    yield u, "nest 'heat' differs from its plain loops at i=5, j=6: u[5, 6] is", lambda: chain.run(times=3)
    mixed = tw.chain([steps, tw.bind((heat, pulse), u=u, steps=3), bound])
    yield u, "nest 'pulse' differs from its plain loops at i=", lambda: mixed.run(times=3)
    yield u, "nest 'pulse' differs from its plain loops at i=", lambda: tw.run((heat, pulse), u=u, steps=2)
    yield square, "nest 'shortest' differs from its plain loops at i=5, j=6", lambda: tw.run(shortest, D=square)
    yield B, "nest 'distance' differs from its plain loops: B[5, 6] is", lambda: tw.run(distance, A=A, B=B)


@RANKS
@pytest.mark.parametrize("in_python", [True, False])
def test_a_changed_element_is_an_error_on_all_ranks(ranks, threads, in_python, monkeypatch):
    verified(monkeypatch, in_python)
    damaged(monkeypatch, (5, 6))

    def body(context):
        for victim, text, run in doors(context):
            context.victim = victim
            with pytest.raises(tw.KernelError) as raised:
                run()
            context.victim = None
            assert text in str(raised.value)
            assert f"on {ranks} rank" in str(raised.value) and "TILEWAVE_WITHOUT" in str(raised.value)
            run()  # the next run is right again

    results_of(ranks, threads, body)


def test_without_the_variable_nothing_is_compared(monkeypatch):
    monkeypatch.delenv("TILEWAVE_VERIFY", raising=False)
    damaged(monkeypatch, (5, 6))

    def body(context):
        context.victim = A = tw.field((12, 17), context=context)
        tw.run(relax, A=A)

    results_of(2, 1, body)


@RANKS
def test_a_wrong_kernel_is_found_at_its_first_point(ranks, threads, monkeypatch):
    verified(monkeypatch)
    wrong = tw.nest_from("def relax(A, i, j, *, c=0.5):\n    A[i, j] = c * (A[i-1, j] + A[i, j-1]) - A[i, j]\n")
    monkeypatch.setattr(wrong, "function", relax.function)  # the plain loops; kernels are made of the text

    def body(context):
        A = tw.field((12, 17), init=lambda i, j: 1.0 * (i >= 4) * (j == 9), context=context)
        with pytest.raises(tw.KernelError, match=r"i=11, j=9: A\[11, 9\] is .*, the plain loops give .* elements"):
            tw.run(wrong, A=A, reverse=("i",))

    results_of(ranks, threads, body)


@RANKS
def test_wrong_results_and_recorded_values_are_found(ranks, threads, monkeypatch):
    verified(monkeypatch)
    value_of = reductions.value_of
    monkeypatch.setattr(reductions, "value_of", lambda *given: value_of(*given) * 2)
    monkeypatch.setattr(Points, "finish", lambda self, context: self.recorded["u"].fill(7))

    def body(context):
        A, u = tw.field((9, 8), init=1, context=context), tw.field((9, 8), init=1, context=context)
        bound = tw.bind(distance, A=A, B=A.copy(), reduce={"s": tw.sum("d + 1")})
        texts = ["the result 's' is 144.0, the plain loops give 72.0"] * 3
        texts += ["recorded['u'][0, 0] is 7.0, the plain loops give 1.0 (6 of 6 elements differ)"]
        chain, record = tw.chain([bound]), {"u": [[0, 7], [1, 7]]}
        given = bound.run, chain.run, lambda: chain.run(times=3, until={"s": 0})
        for text, run in zip(texts, (*given, lambda: tw.run(heat, u=u, steps=3, record=record)), strict=True):
            with pytest.raises(tw.KernelError) as raised:
                run()
            assert text in str(raised.value)

    results_of(ranks, threads, body)


@pytest.mark.parametrize("ranks", [1, 2])
def test_loops_that_raise_where_the_run_does_not(ranks, monkeypatch):
    verified(monkeypatch)
    wrong = tw.nest_from("def relax(A, i, j):\n    A[i, j] = A[i-1, j]\n")

    def function(A, i, j):
        A[i, j] = A[i - 1, j] + 0 // (i - 2)

    monkeypatch.setattr(wrong, "function", function)
    _, errors = on_ranks(ranks, 1, lambda context: tw.run(wrong, A=tw.field((5, 3), "i8", 1, context=context)))
    assert all(isinstance(error, tw.KernelError) for error in errors)
    assert "the plain loops of nest 'relax' at i=2, j=0 raise" in str(errors[0])


PROGRAM = """
import tilewave as tw
@tw.nest
def step(A, i):
    A[i] = A[i-1] + 1
def other(A, i):
    A[i] = A[i-1] + (2 if i == 7 else 1)
A = tw.field((20,), "i8")
tw.run(step, A=A)
print("right")
step.function = other
tw.run(step, A=A)
print("not compared")
"""


@pytest.mark.parametrize("ranks", ["1", "2"])
@pytest.mark.parametrize("how", ["the switch", "the variable", "neither"])
def test_programs(ranks, how, tmp_path):
    script, verify = tmp_path / "program.py", ["--verify"] * (how == "the switch")
    script.write_text(PROGRAM)
    env = {"TILEWAVE_VERIFY": "1" if how == "the variable" else "0"}
    done = ended(*TILEWAVE, "run", *verify, "-n", ranks, script, env=env)
    assert done.stdout.count("right") == int(ranks), done.stdout + done.stderr
    if how == "neither":
        assert done.returncode == 0 and "not compared" in done.stdout
        return
    assert done.returncode and "not compared" not in done.stdout
    text = "nest 'step' differs from its plain loops at i=7: A[7] is 7, the plain loops give 8 (13 of 20 elements"
    assert done.stderr.count(text) == 1, done.stderr


def test_what_one_rank_is_given_wrongly_is_an_error_of_all(monkeypatch):
    verified(monkeypatch)
    odd = {"reduce": np.arange(2)}, {"over": 7}, {"steps": "x"}, {"c": []}, {"record": 3}, {"A": None}, {"c": 0.25}

    def body(context):
        A = tw.field((12, 17), context=context)
        for more in odd:
            with pytest.raises(tw.ConfigError):
                tw.run(relax, **{"A": A, "context": context, **(more if context.rank else {})})
        tw.run(relax, A=A)

    results_of(2, 1, body)
