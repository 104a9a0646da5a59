"""Arguments that are wrong on one rank, or that NumPy and the core would refuse in their own words."""

import numpy as np
import pytest
import tilewave as tw
from local_ranks import on_ranks
from tilewave import patterns


@tw.nest
def relax(A, i, j):
    A[i, j] = 0.5 * (A[i-1, j] + A[i, j-1])


@tw.nest
def star(u, t, i, j):
    u[t+1, i, j] = 0.5 * (u[t, i-1, j] + u[t, i, j+1])


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

    results, errors = on_ranks(2, 1, body)
    assert not any(errors), errors
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
        (lambda: tw.save_timelines(None, {}), "path: given None"),
        (lambda: tw.build_schedule(None, 2), "generator: given None"),
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
