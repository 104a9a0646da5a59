"""Bad input: one clear error on every rank, no hang, and the next run is fine."""

import numpy as np
import pytest

import tilewave as tw

pytestmark = pytest.mark.ranks([1, 2, 3])


@tw.nest
def good(A, i, j, *, c=1.0):
    A[i, j] = c * A[i-1, j] + A[i, j-1]


@tw.nest
def beside(A, t, i, j):
    A[t+1, i, j+1] = A[t, i, j] + A[t, i-1, j]


@tw.nest
def other(A, B, i, j):
    A[i, j] = A[i-1, j] + B[i, j]


@tw.nest
def third(A, B, C, i, j):
    A[i, j] = A[i-1, j] + B[i-1, j] + C[i+2, j]


@tw.nest
def cube(A, i, j, k):
    A[i, j, k] = A[i-1, j, k] + 1.0


@tw.nest
def stops(A, i, j, *, where):
    if i == where:
        raise ValueError("reached the row")
    A[i, j] = A[i-1, j] + 1.0


@tw.nest
def captures(A, i, j):
    A[i, j] = A[i-1, j] + undefined_constant  # noqa: F821


@pytest.fixture(scope="module")
def context():
    return tw.Context(threads=2)


def field(context, shape=(12, 10), dtype="f8"):
    return tw.field(shape, dtype, init=lambda i, j: 1.0 + 0 * i, context=context)


def works(context):
    A = field(context)
    tw.run(good, A=A, context=context)
    whole = A.gather()
    plain = np.ones((12, 10))
    good.reference(good.iteration_box((12, 10)), {"A": plain})
    assert whole is None or np.array_equal(whole, plain)


def refused(context, words, nest=good, error=tw.ConfigError, **arguments):
    with pytest.raises(error, match=words) as caught:
        tw.run(nest, context=context, **arguments)
    assert caught.value.agreed
    works(context)
    return str(caught.value)


def test_an_array_with_time_steps_that_is_written_beside_the_point(context):
    text = refused(context, "written at a non-zero offset in space", beside, A=field(context), steps=2)
    assert "test_errors.py:" in text and "allowed" in text


def test_subscripts(context):
    for body in ("A[i, j] = A[-i, j]", "A[i, j] = A[j, i]", "A[i, j] = A[i-j, j]", "A[i, j] = A[i-c, j]"):
        import linecache

        name = f"<body {body}>"
        source = f"def body(A, i, j, *, c=1):\n    {body}\n"
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        space = {}
        exec(compile(source, name, "exec"), space)
        with pytest.raises(tw.ConfigError, match="allowed") as caught:
            tw.nest(space["body"])
        assert ":2:" in str(caught.value)


def test_shapes(context):
    refused(context, "shapes of rank 2", A=tw.field((4, 4, 4), context=context))


def test_grid_and_tile(context):
    p = context.size
    refused(context, f"multiply to at most {p}", A=field(context), plan={"grid": (p + 1, 1)})
    refused(context, "must be >= 1", A=field(context), plan={"grid": (1 << 62, 1 << 62)})
    refused(context, "must be >= 1", A=field(context), plan={"grid": (0, 1)})
    refused(context, "poll_period_s .* allowed: a number >= 0", A=field(context), plan={"poll_period_s": -1.0})
    refused(context, "poll_period_s .* allowed: a number >= 0", A=field(context), plan={"poll_period_s": float("nan")})
    refused(context, "poll_period_s: given 'often'", A=field(context), plan={"poll_period_s": "often"})
    refused(context, "helper: given 1; allowed: True, False", A=field(context), plan={"helper": 1})
    refused(context, "synchronous: given 'no'; allowed: True, False", A=field(context), plan={"synchronous": "no"})
    refused(context, "dimensions", A=field(context), plan={"grid": (p, 1, 1)})
    refused(context, "largest block", A=field(context), plan={"tile": (13, 1)})
    refused(context, "outside 1 to", A=field(context), plan={"tile": (0, 4)})
    refused(context, "outside 1 to", A=field(context), plan={"tile": (4, -1)})
    refused(context, "mapping_dim", A=field(context), plan={"mapping_dim": 2})
    refused(context, "lookahead", A=field(context), plan={"lookahead": 0})
    refused(context, "'hyperplane', 'vertical'", A=field(context), plan={"grouping": "diagonal"})
    refused(context, "allowed: a tuple of integers", A=field(context), plan={"tile": "big"})


def test_arguments(context):
    refused(context, "needs its array 'A'")
    refused(context, "no argument 'D'", A=field(context), D=1)
    refused(context, "has no time", A=field(context), steps=3)
    refused(context, "no index 'z'", A=field(context), reverse=("z",))
    refused(
        context,
        r'tile=\(2, 2\), threads=1: choices are .*write plan=\{"tile": \(2, 2\), "threads": 1\}',
        A=field(context),
        tile=(2, 2),
        threads=1,
    )
    refused(context, "plan: given int; allowed: a tilewave.Plan, or a dict", A=field(context), plan=3)
    refused(
        context,
        "no choice 'tiles'; allowed: tile, grid, .*, threads. Was 'tile' meant",
        A=field(context),
        plan={"tiles": 1},
    )
    refused(context, "a dict with the key 1; allowed: grid, ", A=field(context), plan={1: 2})
    refused(context, "independent of each other", A=field(context), periodic=("i",))
    refused(context, "given a list", A=[[1.0]])
    refused(context, "scalar 'c'", A=field(context), c="x")
    refused(context, "float16", other, A=field(context), B=np.ones((12, 10), "f2"))
    A = field(context)
    refused(context, "share memory", other, A=A, B=A)
    B = field(context)  # its ghosts would be those of one of the two
    refused(context, "they are one field", third, A=A, B=B, C=B)
    refused(context, "allowed range|allowed", A=field(context), over={"i": (0, 5)})
    refused(context, "no index 'z'", A=field(context), over={"z": (0, 5)})
    refused(context, "given function", lambda A: A, A=field(context))
    if context.size > 1:
        refused(context, "NumPy array", A=np.ones((12, 10)))


def test_a_body_that_does_not_compile(context):
    refused(context, "undefined_constant", captures, A=field(context))


def test_different_arguments_on_different_ranks(context):
    if context.size == 1:
        return
    text = refused(context, "different arguments", A=field(context), c=float(context.rank))
    assert "c=0.0" in text and "c=1.0" in text
    refused(
        context,
        "different arguments",
        good if context.rank else stops,
        A=field(context),
        **({} if context.rank else {"where": -1}),
    )
    refused(context, "different arguments", A=field(context), plan={"lookahead": 1 + (context.rank == 1)})


def test_a_repeated_call_that_differs_on_one_rank(context):
    A, another = field(context), field(context)
    for _ in range(3):
        tw.run(good, A=A, context=context, c=0.5)
    if context.size > 1:
        for different in ({"c": 0.25}, {"c": 1}, {"plan": {"tile": (2, 2)}}, {"over": {"i": (1, 3)}}):
            mine = different if context.rank == context.size - 1 else {}
            with pytest.raises(tw.ConfigError):
                tw.run(good, A=A, context=context, **{"c": 0.5, **mine})
    with pytest.raises(tw.ConfigError):
        tw.run(good, A=A if context.rank else 7, context=context, c=0.5)
    if context.size > 1:
        with pytest.raises(tw.ConfigError, match="different arguments"):
            tw.run(good, A=another if context.rank else A, context=context, c=0.5)
    works(context)


def test_numbers_beyond_64_bits(context):
    for number in (2**63, 2**64, 2**70 + 1):
        refused(context, r"steps: given .* up to 2\*\*40", beside, A=field(context), steps=number)
        refused(context, "skew: given .* a tuple of integers", A=field(context), plan={"skew": (number, 1)})
        refused(
            context,
            "reach numbers beyond 64 bits",
            cube,
            A=tw.field((5, 6, 7), context=context),
            over={"k": (0, [f"{number}*i - {number * 3 + 1}*j + 2", 7])},
        )
    for number in (2**61, 3 * 2**61, 2**63 - 1, 2**64 + 1):  # where arithmetic of 64 bits would wrap round
        A, plain = field(context), np.ones((12, 10))
        tw.run(good, A=A, over={"j": (1, [f"{number}*i - {number * 5 - 4}", 10])}, context=context)
        for i in range(1, 12):
            for j in range(1, min(10, number * (i - 5) + 4)):
                good.function(plain, i, j)
        whole = A.gather()
        assert whole is None or np.array_equal(whole, plain)


def test_a_bad_argument_on_one_rank_only(context):
    for r in range(context.size):
        refused(context, "no argument 'bad'", A=field(context), **({"bad": 1} if context.rank == r else {}))


def test_a_kernel_that_raises_on_one_rank(context):
    rows = np.array_split(np.arange(1, 12), context.size)
    for row in [part[len(part)//2] for part in rows]:
        text = refused(
            context,
            rf"ValueError\('reached the row'\).*at i={row}, j=",
            stops,
            error=tw.KernelError,
            A=field(context),
            where=int(row),
            plan={"grid": (context.size, 1)},
        )
        assert "on rank" in text


def test_nan_inputs_propagate(context):
    start = np.ones((12, 10))
    start[3, 4] = np.nan
    A = tw.field(start.shape, init=start, context=context)
    B = start.copy()
    tw.run(other, A=A, B=B, context=context)
    other.reference(other.iteration_box(start.shape), {"A": start, "B": B})
    whole = A.gather()
    assert whole is None or np.array_equal(whole, start, equal_nan=True)


def test_threads_that_are_wrong_on_one_rank_only(context):
    with pytest.raises(tw.ConfigError, match="threads: given 0") as caught:
        tw.Context(threads=0 if context.rank == context.size - 1 else 1)
    assert caught.value.agreed and caught.value.quiet == (context.rank != 0)
    works(context)


@pytest.mark.mpi(ranks=[1, 2, 3])
def test_a_rank_that_is_in_no_communicator_is_told_so(context):
    """Alone: the others make their context without it."""
    MPI = pytest.importorskip("mpi4py.MPI")
    color = MPI.UNDEFINED if context.rank == context.size - 1 else 0
    part = MPI.COMM_WORLD.Split(color, context.rank)
    if context.rank == context.size - 1:
        with pytest.raises(tw.ConfigError, match="comm: given MPI.COMM_NULL, as Split gives ranks without a color"):
            tw.Context(comm=part)
    else:
        assert tw.Context(comm=part).size == context.size - 1
    works(context)


@pytest.mark.mpi(ranks=[2, 3])
def test_an_error_of_some_of_the_ranks_says_so(context):
    MPI = pytest.importorskip("mpi4py.MPI")
    world = MPI.COMM_WORLD
    part = tw.Context(comm=world.Split(world.rank % 2, world.rank))
    with pytest.raises(tw.ConfigError) as caught:
        tw.run(good, A=field(part), plan={"grid": (7, 7)}, context=part)
    assert caught.value.partial == (part.size < world.size) and caught.value.quiet == (part.rank != 0)
    works(context)
