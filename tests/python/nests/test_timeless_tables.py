"""Tables without a dimension for time, in loops of bodies and look-ups; fields as tables. Plain loops."""

import numpy as np
import pytest
from local_ranks import refused_on_all, results_of

import tilewave as tw


@tw.nest
def move(V, W, t, s):
    V[t + 1, s] = 2 * W[t, s] + s


@tw.nest
def follow(V, W, t, s):
    V[t + 1, s] = 2 * W[t + 1, s] + s


@tw.nest
def norm(W, V, t, s):
    W[t + 1, s] = V[t + 1, s] - min(V[t + 1, q] for q in range(V.shape[1]))


@tw.nest
def late(W, V, t, s):
    W[t + 1, s] = max(V[t, q] for q in range(5)) + s


@tw.nest
def looked_up(W, V, a, t, s):
    W[t + 1, s] = W[t, s] + V[t, a[s]]


def plain(nests, steps, **arrays):
    """The arrays after the loops over arrays with all of time."""
    times = {n: np.empty((steps + 1, *a.shape), a.dtype) for n, a in arrays.items() if n in "VW"}
    for name, every in times.items():
        every[0] = arrays[name]
    for t in range(steps):
        for every in times.values():
            every[t + 1] = every[t]
        for nest in nests:
            for s in range(5):
                nest.function(*(times.get(n, arrays.get(n)) for n in nest.arrays), t, s)
    return {name: every[steps] for name, every in times.items()}


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("nests", [(move, norm), (late, follow), (looked_up, follow), (norm,), (late,), (looked_up,)])
def test_as_with_all_of_time(ranks, nests):
    start = np.array([3.0, -1.0, 4.0, 1.0, 5.0])
    arrays = {"V": start, "W": start[::-1].copy(), "a": np.array([4, 0, 0, 2, 1])}
    used = {name for nest in nests for name in nest.arrays}
    # Alone, `norm` has a V that is the same at all times.
    expected = {"W": start - start.min(), "V": start} if nests == (norm,) else plain(nests, 3, **arrays)

    def body(context):
        fields = {n: tw.field((5,), "f8", arrays[n], context=context) for n in "VW" if n in used}
        others = {"a": arrays["a"]} if "a" in used else {}
        what = nests if len(nests) > 1 else nests[0]
        tw.run(what, steps=3, context=context, **fields, **others)
        return {name: field.gather() for name, field in fields.items()}

    for name, value in results_of(ranks, 1, body)[0].items():
        assert np.array_equal(value, expected[name]), name


def test_times_that_are_gone_or_not_there_yet():
    def call(nests, **more):
        def body(context):
            V, W = (tw.field((5,), context=context) for _ in "VW")
            tw.run(nests, V=V, W=W, steps=2, context=context, **more)

        return body

    refused_on_all(2, call((move, late)), "`V[t, q]` is a time step that 'V' no longer has")
    refused_on_all(2, call((norm, move)), "is read before a nest of the time step has written it")
    long = tw.nest_from("def long(W, V, t, s): W[t+1, s] = sum(V[t, q] for q in range(len(V)))")
    refused_on_all(2, call(long), "`len(V)` is the length in time of 'V'")


@pytest.mark.parametrize("wrong", [3, 1.5, [1, 2], (), {}, ..., object(), None, np.zeros(()), np.zeros((2, 2, 2, 2))])
def test_no_array_for_several_nests(wrong):
    for name in "VW":
        given = {"V": tw.field((5,)), "W": tw.field((5,))} | {name: wrong}
        with pytest.raises(tw.ConfigError, match="array '.'|table 'V'"):
            tw.run((move, norm), steps=2, **given)


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("body", ["A[i] = A[i] * T[s]", "A[i] = A[i-1] + T[s] + T[i % 5]"])
def test_fields_as_tables_of_long_rows(ranks, body):
    """Kernels of long rows have copies of small tables: of the whole field, as it is when the run begins."""
    nest = tw.nest_from(f"def some(A, T, i, *, s): {body}")
    first, second = np.array([2, 3, 4, 5, 6], "f4"), np.array([1, 2, 1, 2, 1], "f4")
    expected = np.ones(131, "f4")
    for table in (first, first, second):
        for i in range(1 if "i-1" in body else 0, 131):
            nest.function(expected, table, i, s=1)

    def run(context):
        A, T = tw.field((131,), "f4", init=1.0, context=context), tw.field(first, context=context)
        tw.run(nest, A=A, T=T, s=1, context=context)
        bound = tw.bind(nest, A=A, T=T, s=1, context=context)
        bound.run()
        T[...] = second
        bound.run()
        return A.gather()

    assert np.array_equal(results_of(ranks, 1, run)[0], expected)


@tw.nest
def kept(W, V, t, s):
    W[t + 1, s] = max(V[t - 1, q] for q in range(5)) + s


@pytest.mark.parametrize("nests", [kept, (kept,)])
def test_earlier_time_steps_of_a_table_that_keeps_some_and_that_nobody_writes_are_refused(nests):
    def program(context):
        W = tw.field(np.zeros(5), context=context)
        V = tw.field(np.ones(5), history=[np.zeros(5)], context=context)
        tw.run(nests, W=W, V=V, steps=2, context=context)

    refused_on_all(2, program, "reads an earlier time step of 'V', which it does not write")
