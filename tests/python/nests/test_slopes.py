"""Bounds with rational slopes, as bands of alignments of unequal lengths have them, against the plain loops."""

import random

import numpy as np
import pytest
from local_ranks import results_of

import tilewave as tw

ALIGN = "    H[i, j] = max(0, H[i-1, j-1] + (3 if a[i] == b[j] else -1), H[i-1, j] - 2, H[i, j-1] - 2)\n"
BODIES = {
    "align": ("def body(H, a, b, i, j):\n" + ALIGN, ("i", "j")),
    "paths": ("def body(H, a, b, i, j):\n    H[i, j] = H[i-1, j+1] + 2 * H[i, j-1] - a[i] + b[j]\n", ("i", "j")),
    "cube": (
        "def body(H, a, b, i, j, k):\n    H[i, j, k] = H[i-1, j, k] + H[i, j-1, k+1] - H[i, j, k-1] + a[i] * b[j]\n",
        ("i", "j", "k"),
    ),
    "stencil": (
        "def body(H, a, b, t, i, j):\n"
        "    H[t+1, i, j] = H[t, i-1, j] + H[t, i+1, j] - H[t, i, j-1] + H[t, i, j+1] + a[i] * b[j]\n",
        ("t", "i", "j"),
    ),
}


def slope(rng, outer, low, high, extent):
    """A bound that goes from about `low` to about `high` over an outer index, as text."""
    n, r = rng.choice((1, 2, 3, 5, 7, extent)), rng.randint(-2, 2)
    m = (high - low) * n // extent
    texts = f"{outer}*{m}//{n} + {low + r}", f"{low + r} - (-{outer}*{m}//{n})", f"({outer}*{m} + {r})//{n}"
    return rng.choice(texts)


def random_over(rng, names, box):
    over = {}
    for k, name in enumerate(names):
        low, high = box[k]
        if name == "t" or (k == 0 and rng.random() < 0.5):
            continue
        if k == 0:
            over[name] = (low + 1, high)
            continue
        outer, extent = names[rng.randrange(k)], box[0][1] + 1
        ends = rng.choice(((low, high), (high, low), (low, low)))
        band = rng.randint(0, 5)
        over[name] = (low, slope(rng, outer, *ends, extent)), (high, slope(rng, outer, *ends, extent) + f" + {band}")
        if rng.random() < 0.2:
            over[name] = (over[name][0], high)
        elif rng.random() < 0.2:
            over[name] = (low, over[name][1])
    return over


def points(names, over, box, reverse, at=()):
    """The points of the plain loops."""
    if len(at) == len(names):
        yield at
        return
    name, known = names[len(at)], dict(zip(names, at, strict=False))
    sides = over.get(name, box[len(at)])
    first, end = (
        pick(eval(str(each), {}, known) for each in (side if isinstance(side, tuple) else (side,)))
        for pick, side in zip((max, min), sides, strict=True)
    )
    values = range(first, end)
    for x in values[::-1] if name in reverse else values:
        yield from points(names, over, box, reverse, (*at, x))


@pytest.mark.parametrize("number", range(40))
def test_random_slopes(number, seed):
    seed += number
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    ranks = (1, 2, 3, 4, 6)[number % 5]
    text, names = BODIES[rng.choice(list(BODIES))]
    nest, timed = tw.nest_from(text), names[0] == "t"
    space = [rng.randint(6, 40 if len(names) == 2 else 16) for _ in names[timed:]]
    start = {"H": numbers.integers(-9, 9, space), "a": numbers.integers(-3, 3, space[0])}
    start["b"] = numbers.integers(-3, 3, space[1])
    steps = rng.randint(1, 12) if timed else None
    if timed:
        box = [(0, steps), *((1, extent - 1) for extent in space)]
    else:
        box = nest.iteration_box({name: array.shape for name, array in start.items()})
    over = random_over(rng, names, box)
    reverse = () if timed else tuple(n for n in names if rng.random() < 0.2)
    print(f"seed {seed}, {ranks} ranks, {text}, {space}, over {over}, reverse {reverse}, steps {steps}")
    expected = start["H"].copy()
    if timed:
        times = np.stack([expected] * (steps + 1))
        for t, *at in points(names, over, box, reverse):
            nest.function(times, start["a"], start["b"], t, *at)
            times[(slice(t + 2, None), *at)] = times[(t + 1, *at)]
        expected = times[-1]
    else:
        for at in points(names, over, box, reverse):
            nest.function(expected, start["a"], start["b"], *at)

    def body(context):
        H = tw.field(space, "i8", start["H"], context=context)
        more = {"steps": steps} if timed else {"reverse": reverse}
        for _ in range(2):  # planned, then as planned
            H[...] = start["H"]
            tw.run(nest, H=H, a=start["a"], b=start["b"], over=over, context=context, **more)
        return H.gather()

    assert np.array_equal(results_of(ranks, rng.choice((1, 2)), body)[0], expected)
