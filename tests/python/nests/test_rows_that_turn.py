"""Rows that turn round, every other one from right to left: two nests in each time step, a time step for two rows."""

import numpy as np
import pytest
from local_ranks import refused_on_all, results_of

import tilewave as tw


@tw.nest
def to_the_right(f, e, even, white, t, j, *, a, b, c, d):
    value = even[t, j] + a * f[t + 1, j - 1] + b * e[t, j + 1] + c * e[t, j] + d * e[t, j - 1]
    white[t + 1, j] = value > 0.5
    f[t + 1, j] = value - white[t + 1, j]


@tw.nest
def to_the_left(e, f, odd, black, t, j, *, a, b, c, d):
    value = odd[t, j] + a * e[t + 1, j + 1] + b * f[t + 1, j - 1] + c * f[t + 1, j] + d * f[t + 1, j + 1]
    black[t + 1, j] = value > 0.5
    e[t + 1, j] = value - black[t + 1, j]


def looped(image, weights):
    """The points that are set, row after row."""
    (n, m), (a, b, c, d) = image.shape, weights
    found, error = np.zeros((n, m)), np.zeros((n + 1, m))  # error[-1] is that of the row above the first
    for i in range(n):
        to = -1 if i % 2 else 1
        for j in range(1, m - 1)[::to]:
            above = error[i - 1]
            value = image[i, j] + a * error[i, j - to] + b * above[j + to] + c * above[j] + d * above[j - to]
            found[i, j] = value > 0.5
            error[i, j] = value - found[i, j]
    return found


@pytest.mark.parametrize("number", range(10))
def test_random_images(number, seed):
    rng = np.random.default_rng(seed + number)
    ranks, rows, m = int(rng.choice((1, 2, 3, 4, 6))), int(rng.integers(1, 9)), int(rng.integers(3, 40))
    image, weights = rng.random((2 * rows, m)), rng.dirichlet(np.ones(4))

    def body(context):
        def made(shape, init=0.0):
            return tw.field(shape, "f8", init, context=context)

        given = {
            "e": made((m,)),
            "f": made((m,)),
            "even": made((rows, m), image[::2]),
            "odd": made((rows, m), image[1::2]),
        }
        white, black = made((rows + 1, m)), made((rows + 1, m))
        scalars = dict(zip("abcd", weights.tolist(), strict=True))
        nests = to_the_right, to_the_left
        options = {"steps": rows, "reverse": [(), ("j",)], "context": context}
        tw.run(nests, **given, white=white, black=black, **scalars, **options)
        return white.gather(), black.gather()

    white, black = results_of(ranks, 1, body)[0]
    expected = looped(image, weights)
    assert np.array_equal(white[1:], expected[::2]) and np.array_equal(black[1:], expected[1::2]), (ranks, rows, m)


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_direction_that_depends_on_the_row_is_refused(ranks):
    nest = tw.nest_from("def body(A, i, j):\n    A[i, j] = A[i, j-1] + 1\n")

    def body(context):
        tw.run(nest, A=tw.field((5, 5), context=context), reverse={"j": "i % 2"}, context=context)

    refused_on_all(ranks, body, 'of rows that turn round: two nests in each time step, reverse=[(), ("j",)]')
