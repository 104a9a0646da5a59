"""Arguments that are wrong on one rank, or that NumPy and the core would refuse in their own words."""

import numpy as np
import pytest
import tilewave as tw
from local_ranks import results_of
from tilewave import patterns
from tilewave.allgather import allgather


@tw.nest
def relax(A, i, j):
    A[i, j] = 0.5 * (A[i - 1, j] + A[i, j - 1])


@tw.nest
def star(u, t, i, j):
    u[t + 1, i, j] = 0.5 * (u[t, i - 1, j] + u[t, i, j + 1])


class Strange:
    def __repr__(self):
        raise OSError("no text")

    __eq__ = __hash__ = None


@pytest.mark.parametrize("bad", [[1], {}, True, 2**70, np.array([1, 2]), Strange()], ids=lambda bad: type(bad).__name__)
def test_steps_and_times_of_one_rank(bad):
    def body(context):
        u = tw.field((9, 9), init=1.0, context=context)
        steps, chain = tw.bind(star, u=u, steps=2), tw.chain([tw.bind(relax, A=tw.field((9, 9), context=context))])
        said = []
        for call in (lambda n: steps.run(steps=n), lambda n: chain.run(times=n)):
            call(1)
            with pytest.raises(tw.ConfigError) as caught:
                call(bad if context.rank else 1)
            assert caught.value.agreed
            said.append(str(caught.value))
            call(1)  # the ranks are where they were
        return said

    results = results_of(2, 1, body)
    assert results[0] == results[1] and all("allowed" in text for text in results[0])


def test_names_of_algorithms_that_are_no_text():
    with pytest.raises(tw.ConfigError, match="algorithm .* was given; allowed: a name"):
        patterns.broadcast(np.ones((2, 2)), algorithm="\udc80")


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: tw.run(star, u=None, steps=2, record={"u": [(3, 4)]}), "array 'u': given NoneType"),
        (lambda: tw.run(star, u=tw.field((9, 9)), steps=2, reverse=(2**70,), record={"u": [(3, 4)]}), "reverse: given"),
        (lambda: tw.scratch(init=[[1, 2], [3]]), "scratch: init: given"),
        (lambda: tw.plan(star, u=tw.field((9, 9)), steps=2, record={}), "record= was given, which this call"),
        (lambda: tw.plan((star,), u=tw.field((9, 9)), steps=2, until={}), "until= was given, which this call"),
        (lambda: tw.schedule(star, u=tw.field((9, 9)), steps=2, until={}), "until= was given, which this call"),
        (lambda: tw.bind(star, u=tw.field((9, 9)), steps=2).run(every=2), "every= was given, which this call"),
        (lambda: tw.save_timelines(None, {}), "path: given None"),
        (lambda: tw.Schedule.build(None, 2), "generator: given None"),
        (lambda: tw.Schedule.load(None), "path: given None"),
    ],
)
def test_each_says_what_is_allowed(call, text):
    with pytest.raises(tw.ConfigError, match=f"(?s){text}.*allowed: "):
        call()


def masked():
    return np.ma.masked_greater(np.array([[1.0, 2.0], [3.0, 1e30]]), 100)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: tw.field(x),
        lambda x: tw.field((2, 2), "f8", x),
        lambda x: tw.field((2, 2)).__setitem__(..., x),
        lambda x: tw.run(relax, A=x),
        lambda x: tw.bind(relax, A=x),
        lambda x: tw.multigrid.Poisson((2, 2)).solve(x),
        lambda x: tw.multigrid.Poisson((2, 2), k=x),
        lambda x: tw.linalg.matrix(x),
        lambda x: tw.linalg.lu(x),
        lambda x: tw.linalg.lu(np.eye(2)).solve(x),
        lambda x: patterns.broadcast(x),
        lambda x: tw.run(star, u=tw.field((9, 9)), steps=2, inject={"u": ([(3, 4), (4, 4)], x)}),
    ],
)
def test_masked_arrays_are_refused(call):
    with pytest.raises(tw.ConfigError, match="[mM]asked"):
        call(masked())


def test_a_factor_is_not_overwritten():
    a = tw.linalg.matrix(np.eye(6) * 4 + 1)
    for factor in (tw.linalg.lu(a), tw.linalg.cholesky(a), tw.linalg.qr(a)):
        with pytest.raises(tw.ConfigError, match="would be overwritten; allowed: a matrix that is no factor"):
            tw.linalg.matmul(a, a, c=factor)
        with pytest.raises(tw.ConfigError, match="would be overwritten"):
            tw.linalg.lu(factor, overwrite_a=True)
    assert np.allclose(tw.linalg.lu(a).solve(np.ones(6)), np.linalg.solve(np.eye(6) * 4 + 1, np.ones(6)))


class Odd:
    """Raises whatever it is asked for; what it raises has a text that cannot be encoded."""

    def _raises(self, *_):
        raise OSError("odd \udc80")

    __iter__ = __len__ = __index__ = __int__ = __float__ = __complex__ = __bool__ = __array__ = __getitem__ = _raises
    __eq__ = __hash__ = __lt__ = __str__ = __repr__ = __fspath__ = __call__ = __contains__ = _raises


class OddTuple(tuple):
    """A tuple that can be counted, but not gone through."""

    def __iter__(self):
        raise OSError("odd \udc80")


def odd_values():
    """Those that a check may meet unprepared, by name."""
    objects = np.empty(1, object)
    objects[0] = Odd()
    return {
        "odd": Odd(), "odd tuple": OddTuple((1, 2)), "odd list": [Odd()], "odd dict": {"A": Odd()},
        "surrogates": "\udc80", "surrogate key": {"\udc80": 1}, "large": 2**64, "objects": objects,
    }


def of_all_families(context, folder):
    """By name a collective function and arguments that are right; by name as well, so that each can be replaced."""
    c, g = context, np.eye(4) * 4
    A, B = (tw.field((9, 9), init=1.0, halo=1, context=c) for _ in range(2))
    G = tw.linalg.matrix(g, context=c)
    A.save(f"{folder}/A.zarr")
    L, Q = tw.linalg.lu(G), tw.linalg.qr(G)
    bound = tw.bind(relax, A=A)
    chain, solver = tw.chain([bound]), tw.multigrid.Poisson((4, 4), context=c)
    M = np.ones((2, 2 * c.size))
    shared = {"algorithm": "auto", "chunk_bytes": None, "buffers": None, "wait": True, "start": True, "explain": False}
    shared |= {"context": c}
    nest = {"nest": relax, "A": A, "over": None, "reverse": (), "steps": None, "periodic": (), "fastmath": False}
    nest |= {"reduce": None, "plan": None, "context": c}
    linalg, wish = tw.linalg, {"overwrite_a": False, "block": None}
    return {
        "barrier": (tw.barrier, {"context": c}),
        "field": (
            tw.field,
            {"shape": (4, 4), "dtype": "f8", "init": 1.0, "keep": "all", "history": 0, "halo": None, "periodic": None}
            | {"grid": None, "blocks": None, "context": c},
        ),
        "fill": (A.fill, {"value": 1.0}),
        "save": (A.save, {"path": f"{folder}/A.zarr", "dims": None, "attributes": None}),
        "save an image": (A.save, {"path": f"{folder}/A.pvti", "spacing": 1.0, "origin": 0.0}),
        "load": (tw.load, {"path": f"{folder}/A.zarr", "context": c}),
        "checkpoint": (tw.checkpoint, {"path": f"{folder}/c", "step": 1, "every": None, "A": A, "n": 1, "context": c}),
        "resume": (tw.resume, {"path": f"{folder}/c", "context": c}),
        "elements": (A.__getitem__, {"given": (1, 2)}),
        "set elements": (A.__setitem__, {"given": (1, 2), "value": 1.0}),
        "exchange": (lambda field, **more: tw.exchange(field, **more), {"field": A, "corners": True, "wait": True}),
        "sum": (tw.sum, {"array": B}),
        "norm": (tw.norm, {"array": B, "ord": 2}),
        "dot": (tw.dot, {"array": A, "other": B}),
        "run": (tw.run, nest | {"inject": None, "record": None}),
        "plan": (tw.plan, {name: value for name, value in nest.items() if name != "fastmath"}),
        "bind": (tw.bind, nest),
        "bound": (bound.run, {"steps": None, "context": c}),
        "chain": (tw.chain, {"nests": [bound], "context": c}),
        "chain run": (chain.run, {"times": 1, "until": None, "every": 1, "scalars": None}),
        "schedule": (tw.schedule, {"nest": relax, "A": A, "context": c}),
        "broadcast": (patterns.broadcast, {"M": M, "root": 0} | shared),
        "reduce": (patterns.reduce, {"M": M, "root": 0, "op": "sum", "out": None} | shared),
        "spread": (patterns.spread, {"M": M, "out": None, "block": None} | shared),
        "multi_reduce": (patterns.multi_reduce, {"M": M, "out": None, "op": "sum", "block": None} | shared),
        "allreduce": (patterns.allreduce, {"M": M, "op": "sum", "out": None} | shared | {"algorithm": "tree"}),
        "matrix": (
            linalg.matrix,
            {"shape": (4, 4), "dtype": "f8", "init": g, "layout": "rows", "block": None, "context": c},
        ),
        "redistribute": (G.redistribute, {"layout": "cyclic", "block": 2, "grid": None}),
        "matmul": (linalg.matmul, {"a": G, "b": G, "c": None, "alpha": 1.0, "beta": 0.0, "algorithm": "auto"}),
        "lu": (linalg.lu, {"a": G} | wish),
        "cholesky": (linalg.cholesky, {"a": G} | wish),
        "qr": (linalg.qr, {"a": G, "mode": "economic"} | wish),
        "inv": (linalg.inv, {"a": G, "block": None}),
        "lstsq": (linalg.lstsq, {"a": G, "b": G}),
        "solve_triangular": (linalg.solve_triangular, {"a": G, "b": G, "lower": True, "unit_diagonal": False}),
        "lu solve": (L.solve, {"b": G}),
        "apply": (Q.apply, {"b": G}),
        "Poisson": (
            tw.multigrid.Poisson,
            {"shape": (4, 4), "spacing": 1.0, "boundary": "dirichlet", "k": 1.0, "sigma": 0.0, "cycle": "V", "pre": 1}
            | {"smoother": "jacobi", "post": 1, "grid": None, "context": c},
        ),
        "Poisson solve": (
            solver.solve,
            {"f": np.ones((4, 4)), "tol": 1.0, "x0": None, "max_cycles": 1, "method": "cg"},
        ),
        "precondition": (solver.precondition, {"r": np.ones((4, 4))}),
    }


def end_of(function, given):
    try:
        function(**given)
    except tw.ConfigError as error:
        return str(error) if error.agreed else f"of this rank alone: {error!r}"
    except BaseException as error:
        marked = getattr(error, "agreed", False) and not isinstance(error, tw.InternalError)
        return type(error).__name__ if marked else f"of this rank alone: {type(error).__name__}: {str(error)!a}"
    return "fine"


@pytest.mark.ranks([2])
def test_odd_arguments_of_one_rank_in_every_family(tmp_path):
    context, found = tw.set_default(threads=1), {}
    for name, (function, good) in of_all_families(context, tmp_path).items():
        for parameter in good:
            for odd, value in odd_values().items():
                if name in ("sum", "norm", "dot") and isinstance(value, str):
                    continue  # of a nest's array by its name, which is no collective call
                case = f"{name}({parameter}={odd})"
                found[case] = end_of(function, good | ({parameter: value} if context.rank else {}))
                context.agree(None, case)  # the ranks are where they were
        found[name] = end_of(function, good)
    zero, one = allgather(context, found)
    wrong = {case: (zero[case], one[case]) for case in zero if zero[case] != one[case] or "alone" in zero[case]}
    wrong |= {case: end for case, end in zero.items() if "(" not in case and end != "fine"}
    assert not wrong, "\n".join(f"{case}: {ends}" for case, ends in wrong.items())


@pytest.mark.parametrize("call", [tw.run, tw.plan, tw.bind, tw.schedule])
def test_odd_arguments_of_pivots_and_loops_in_bodies(call):
    paths = tw.nest_from("def paths(D, k, i, j): D[i, j] = min(D[i, j], D[i, k] + D[k, j])")
    best = tw.nest_from("def best(V, T, t, s): V[t+1, s] = max(V[t, q] + T[q, s] for q in range(len(T)))")
    D, V, T = np.zeros((5, 5)), np.zeros(5), np.zeros((5, 5))
    for nest, arguments in [
        (paths, {"D": D, "periodic": None}),
        (paths, {"D": D, "steps": np.zeros(2)}),
        (paths, {"D": np.zeros(())}),
        (best, {"V": np.zeros(()), "T": T, "steps": 1}),
        (best, {"V": np.zeros((4, 5, 6)), "T": T}),
        (best, {"V": V, "T": np.zeros(3), "steps": 2}),
        (best, {"V": V, "T": None, "steps": 2}),
        (best, {"V": V, "T": T, "steps": 2, "periodic": None}),
    ]:
        with pytest.raises(tw.ConfigError, match="allowed") as caught:
            call(nest, **arguments)
        assert "Error:" not in str(caught.value)
