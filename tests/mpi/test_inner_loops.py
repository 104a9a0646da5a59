"""Loops inside bodies over ranks: what the plain loops compute, bit for bit."""

import numpy as np
import pytest

import tilewave as tw
from tilewave.errors import ConfigError, KernelError

pytestmark = pytest.mark.ranks([1, 2, 3, 4, 6])


REFUSED = {
    "max(V[q, t] + T[q, s] for q in range(4))": "in place of the last loop index, 's', alone",
    "max(V[t-1, q] + T[q, s] for q in T)": "looping over this is not supported",
    "max(V[t-1, q] + T[q, s] for q in range(0, 4, 2))": "looping over this is not supported",
    "max((V[t-1, q] for q in range(4)), default=0)": "of a generator with keywords",
    "max(V[t-1, s] + T[s, s] for s in range(4))": "a parameter of the nest as a loop",
    "max(V[t-1, q] + T[q, s] for q in range(len(V)))": "or a scalar with the extent",
    "max(V[t-1, q] + T[q, s] for q in range(4)) + q": "'q' may be read before it is assigned",
    "max(V[t-1, q] + T[q, s] for q in range(0.5))": "a Python float as a bound of a range",
    "sum(V[t-1, q] + T[q, s] if q > 1 else 0 for q in range(4))": "terms of several types",
}


@pytest.mark.ranks([1, 2])
@pytest.mark.parametrize("value", REFUSED)
def test_refused_bodies(value):
    V = tw.field((3, 4), "f8", init=1.0)
    with pytest.raises(ConfigError, match=REFUSED[value].replace("(", "[(]")):
        tw.run(
            tw.nest_from(f"def body(V, T, t, s): V[t, s] = {value} + 0 * T[s, s]", {"tw": tw}), V=V, T=np.ones((4, 4))
        )


def test_beyond_the_arrays():
    V = tw.field((3, 3), "f8", init=1.0)
    body = tw.nest_from("def body(V, T, t, s): V[t, s] = max(V[t-1, q] + T[q, s] for q in range(len(T)))")
    with pytest.raises(KernelError, match="index out of bounds for axis 1 of V"):
        tw.run(body, V=V, T=np.ones((4, 4)))


def test_loops_end_where_lookups_do():
    y = tw.field((9,), "f8")
    body = tw.nest_from("def body(y, A, i): y[i] = sum(A[i-1, q] for q in range(A.shape[1])) + A[i-1, 0]")
    report = tw.run(body, y=y, A=np.ones((5, 3)))
    assert report.points == 5
    whole = y.gather()
    assert whole is None or whole.tolist() == [0, 4, 4, 4, 4, 4, 0, 0, 0]


@pytest.mark.ranks([1])
def test_forward_substitution():
    def solve(x, L, b, i):
        x[i] = (b[i] - sum(L[i, q] * x[q] for q in range(i))) / L[i, i]

    rng = np.random.default_rng(3)
    L, b = np.tril(rng.random((20, 20))) + np.eye(20), rng.random(20)
    x, plain = np.zeros(20), np.zeros(20)
    tw.run(tw.nest(solve), x=x, L=L, b=b)
    tw.nest(solve).reference(((0, 20),), {"x": plain, "L": L, "b": b})
    assert np.array_equal(x, plain) and np.allclose(L @ x, b)
