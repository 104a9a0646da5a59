"""Conditions that no point fulfils since an access ends the loops, and arrays that do so: errors and warnings."""

import re
import warnings

import numpy as np
import pytest
from local_ranks import refused_on_all

import tilewave as tw

A = np.zeros

#: (arrays and indices, body, arguments, the condition) of nests that leave points out.
LEFT_OUT = [
    ("y, x, i", "if i == 0: y[i] = x[i]\nelse: y[i] = x[i] + y[i-1]", {"y": A(6), "x": A(6)}, "i == 0"),
    ("y, x, i", "y[i] = x[i] if i == 0 else x[i] + y[i-1]", {"y": A(6), "x": A(6)}, "i == 0"),
    ("y, x, i", "y[i] = x[i]\nif i > 0: y[i] += y[i-1]", {"y": A(6), "x": A(6)}, "i > 0"),
    ("y, x, i", "if not i: y[i] = x[i]\nelse: y[i] = y[i-1]", {"y": A(6), "x": A(6)}, "i"),
    ("y, x, i", "first = i == 0\nif first: y[i] = x[i]\nelse: y[i] = y[i-1]", {"y": A(6), "x": A(6)}, "first"),
    ("y, x, i", "if i > 0 and x[i] > x[i-1]: y[i] = 1\nelse: y[i] = 0", {"y": A(6), "x": A(6)}, "i > 0"),
    ("y, x, i", "y[i] = x[2*i] if i == 0 else x[2*i-1]", {"y": A(5), "x": A(10)}, "i == 0"),
    ("y, x, i, *, n", "if i == n - 1: y[i] = x[i]\nelse: y[i] = x[i+1]", {"y": A(6), "x": A(6), "n": 6}, "i == n - 1"),
    ("y, x, i, *, c", "if i >= c: y[i] = y[i-1]\nelse: y[i] = x[i]", {"y": A(6), "x": A(6), "c": 1}, "i >= c"),
    ("L, i, j", "if i == 0 or j == 0: L[i, j] = 1\nelse: L[i, j] = L[i-1, j-1]", {"L": A((5, 6))}, "i == 0"),
    ("L, i, j", "if j > 3: L[i, j] = L[i, j-4]\nelif i == j: L[i, j] = 1", {"L": A((5, 6))}, "j > 3"),
    ("L, i, j", "if i + j == 0: L[i, j] = 1\nelif i > 0: L[i, j] = L[i-1, j]", {"L": A((5, 6))}, "i + j == 0"),
    ("u, t, i", "if t == 0: u[t, i] = 1\nelse: u[t, i] = u[t-1, i]", {"u": A((5, 6))}, "t == 0"),
    (
        "u, t, i, *, n",
        "if 0 < i < n - 1: u[t+1, i] = u[t, i-1] + u[t, i+1]\nelse: u[t+1, i] = 0",
        {"u": A(6), "steps": 3, "n": 6},
        "0 < i < n - 1",
    ),
    (
        "V, T, t, s",
        "if t == 0: V[t, s] = 1\nelse: V[t, s] = max(V[t-1, q] + T[q, s] for q in range(len(T)))",
        {"V": A((4, 5)), "T": A((5, 5))},
        "t == 0",
    ),
    ("L, i, j", "L[i, j] = 1 if i == 0 else L[i-1, j]", {"L": A((6, 6)), "over": {"j": (0, "i+1")}}, "i == 0"),
]

#: The same of nests that leave out nothing that they would do.
RIGHT = [
    ("y, x, i", "if i == 0: y[i] = x[i]\nelse: y[i] = y[i-1]", {"y": A(6), "x": A(6), "over": {"i": (1, 6)}}),
    ("v, u, i, *, n", "if 0 < i < n - 1: v[i] = u[i-1] + u[i+1]", {"u": A(6), "v": A(6), "n": 6}),
    ("L, i, j", "if i == j: L[i, j] = 1\nelse: L[i, j] = L[i-1, j]", {"L": A((5, 6))}),
    ("u, i, j, *, c", "if (i + j) % 2 == c: u[i, j] = u[i-1, j] + u[i+1, j]", {"u": A((5, 6)), "c": 0}),
    ("u, i, j", "if (i + j) % 2 == 0: u[i, j] = u[i-1, j]\nelse: u[i, j] *= 2", {"u": A((5, 6))}),
    ("y, x, i, *, c", "if i >= c: y[i] = y[i-1]\nelse: y[i] = x[i]", {"y": A(6), "x": A(6), "c": 3}),
    ("y, x, i, *, c", "if c > 0: y[i] = y[i-1] + i\nelse: y[i] = x[i]", {"y": A(6), "x": A(6), "c": 0}),
    ("y, x, i", "if x[i] > i: y[i] = y[i-1]\nelse: y[i] = x[i]", {"y": A(6), "x": A(6)}),
    ("y, i", "if i == 100: y[i] = 7\nelse: y[i] = y[i-1]", {"y": A(6)}),
    ("y, i", "if i == 0: y[i] = 7\nelse: y[i] = y[i-1]", {"y": A(1)}),
    ("y, i", "if i == 0: raise ValueError('no')\ny[i] = y[i-1]", {"y": A(6)}),
    ("y, i", "assert i > 0\ny[i] = y[i-1]", {"y": A(6)}),
    ("u, t, i", "u[t+1, i] = 1 if t == 0 else u[t, i-1]", {"u": A(6), "steps": 1}),
    ("u, t, i", "u[t+1, i] = 1 if i == 0 else u[t, i-1]", {"u": A(6), "steps": 3, "periodic": ("i",)}),
    ("L, i, j", "L[i, j] = 1 if i == 0 else L[i-1, j]", {"L": A((6, 6)), "over": {"j": (0, "i")}}),
    ("y, z, i", "if i == 0: z[i] = 1\ny[i+1] = y[i]", {"y": A(7), "z": A(7)}),
]


def nest_of(parameters, body):
    lines = "\n".join(f"    {line}" for line in body.split("\n"))
    return tw.nest_from(f"def some({parameters}):\n{lines}\n")


@pytest.mark.parametrize("parameters, body, arguments, condition", LEFT_OUT)
@pytest.mark.parametrize("call", [tw.run, tw.plan, tw.bind, tw.schedule])
def test_a_condition_that_no_point_fulfils_is_named(parameters, body, arguments, condition, call):
    text = re.escape(f"`{condition}`: this is ") + "(true|false) at no point that runs: `.*allowed: over="
    with pytest.raises(tw.ConfigError, match=text):
        call(nest_of(parameters, body), **arguments)


@pytest.mark.parametrize("parameters, body, arguments", RIGHT)
def test_what_is_meant_runs(parameters, body, arguments):
    tw.run(nest_of(parameters, body), **arguments)


def test_the_message_says_which_access_and_what_to_write():
    nest, arguments = nest_of(*LEFT_OUT[0][:2]), LEFT_OUT[0][2]
    text = (
        ":2:8: `i == 0`: this is true at no point that runs: `y[i-1]` is inside its array for i in range(1, 6), to "
        "which it limits the loop also where the condition leaves it out, so that i=0 does not run; allowed: "
        'over={"i": (1, 6)} where these points are meant; '
    )
    with pytest.raises(tw.ConfigError, match=re.escape(text)):
        tw.run(nest, **arguments)
    refused_on_all(2, lambda c: tw.run(nest, x=A(6), y=tw.field((6,), context=c), context=c), text)


def test_points_of_another_nest_of_the_time_step():
    ends = nest_of("u, t, i", "if i == 0: u[t+1, i] = 1\nelse: u[t+1, i] = u[t+1, i] + u[t, i-1]")
    still = tw.nest_from("def still(u, t, i): u[t+1, i] = 2 * u[t, i]")
    tw.run((still, ends), u=tw.field((6,)), steps=2)
    with pytest.raises(tw.ConfigError, match="at no point that runs"):
        tw.run(ends, u=tw.field((6,)), steps=2)


def warned(body, parameters, **arguments):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        tw.run(nest_of(parameters, body), **arguments)
    return [str(each.message) for each in found if "elements along" in str(each.message)]


def test_an_array_that_ends_the_loops_is_a_warning():
    plain = "y[i] = 2 * x[i]", "y, x, i"
    (text,) = warned(*plain, y=A(6), x=A(5))
    assert text == (
        "array 'x' has 5 elements along index 'i' of nest 'some', and 'y', which is written, has 6: the loop runs over "
        "(0, 5) and leaves the others as they are. If this is meant, over={\"i\": (0, 5)} says so; else 'x' needs 6 "
        "elements"
    )
    assert warned("y[i, j] = x[j]", "y, x, i, j", y=A((3, 6)), x=A(4))
    assert warned("u[t+1, i] = w[i]", "u, w, t, i", u=tw.field((6,)), w=A(4), steps=2)
    assert warned("R[i, j] = R[i, j] + R[i, k] + x[j]", "R, x, k, i, j", R=A((4, 4)), x=A(3), over={"k": (0, 3)})
    assert not warned(*plain, y=A(6), x=A(5), over={"i": (0, 5)})
    assert not warned(*plain, y=A(5), x=A(6))
    assert not warned("y[i] = x[2*i]", "y, x, i", y=A(6), x=A(9))
    assert not warned("y[i] = y[i] + x[i-1]", "y, x, i", y=A(6), x=A(4))
    assert not warned("E[i] = E[i] + c[i] * (H[i] - H[i-1])", "E, H, c, i", E=A(6), H=A(5), c=A(5))
    assert not warned("u[t+1, i] = u[t, i] + w[t]", "u, w, t, i", u=tw.field((6,)), w=A(3), steps=3)


def test_it_warns_once_at_a_line():
    nest = nest_of("y, x, i", "y[i] = 2 * x[i]")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        for size in (5, 5, 5):
            tw.run(nest, y=A(6), x=A(size))
        tw.run(nest, y=A(6), x=A(5))
    assert len([each for each in found if "elements along" in str(each.message)]) == 2
