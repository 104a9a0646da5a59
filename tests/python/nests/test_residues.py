"""Conditions on remainders of the loop indices, as those of red and black points: rows are then independent."""

import os
import random

import numpy as np
import pytest

import tilewave as tw
from tests.python.support.local_ranks import results_of
from tests.python.support.random_paths import random_paths
from tilewave.nest.bounds import loop_bounds
from plain_loops import plain_loops

SEED = int(os.environ.get("TILEWAVE_SEED", "20611"))

def never(text):
    """The offsets of what no point writes, of a body of u and other arrays."""
    nest = tw.nest_from(f"def body(u, v, i, j, *, c=0, s=1.0):\n    {text}\n")
    return sorted(key[1] for key in nest._unwritten)


BESIDE = [(0, -1), (0, 1)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if (i + j) % 2 == c: u[i, j] = u[i, j-1] + u[i, j+1] + u[i-1, j-1] + v[i, j]", BESIDE),
        ("if c == (i - 3*j + 7) % 2: u[i, j] = u[i, j-1] + u[i, j+1] + v[i, j]", BESIDE),
        ("if (i + j) & 1 == 1 - c: u[i, j] = u[i, j-1] + u[i, j+1] + v[i, j]", BESIDE),
        ("if (i + j) % 2: u[i, j] = u[i, j-1] + u[i, j+1] + v[i, j]", BESIDE),
        ("if not (i + j) % 2 and v[i, j] > 0: u[i, j] = u[i, j-1] + u[i, j+1]", BESIDE),
        ("if (i + j) % 2 != 0 and v[i, j] > 0:\n        if s > 0: u[i, j] = u[i, j-1] + u[i, j+1]", BESIDE),
        ("r = u[i, j-1] + u[i, j+1] - v[i, j]\n    if (i + j) % 2 == c: u[i, j] = s * r", BESIDE),
        ("if (i + j) % 2 == 0: v[i, j] = s\n    else: u[i, j] = u[i, j-1] + u[i, j+1]", BESIDE),
        ("if (i + 2*j) % 4 == c: u[i, j] = u[i, j-1] + u[i, j-2] + u[i-2, j+1] + v[i, j]", [(0, -1)]),
        ("if j % 3 == 1: u[i, j] = u[i, j-1] + u[i, j-2] + u[i, j-3] + v[i, j]", [(0, -2), (0, -1)]),
        # Not so: another number for each point, no remainder, other conditions of other statements, a value that is
        # needed at every point, a call that may raise.
        ("if (i + j) % 2 == v[i, j]: u[i, j] = u[i, j-1]", []),
        ("k = i\n    if (k + j) % 2 == 0: u[i, j] = u[i, j-1] + v[i, j]", []),
        ("if (i + j) % 2 == i: u[i, j] = u[i, j-1] + v[i, j]", []),
        ("if (i + j) % 2 != c: u[i, j] = u[i, j-1] + v[i, j]", []),
        ("if (i + j + s) % 2 == 0: u[i, j] = u[i, j-1] + v[i, j]", []),
        ("if (i + j) % 2 == 0 or v[i, j] > 0: u[i, j] = u[i, j-1]", []),
        ("if (i + j) % 2 == c: u[i, j] = u[i, j-1]\n    else: u[i, j] = v[i, j]", []),
        ("v[i, j] = u[i, j-1]\n    if (i + j) % 2 == c: u[i, j] = s", []),
        ("r = int(u[i, j-1] + v[i, j])\n    if (i + j) % 2 == c: u[i, j] = s * r", []),
        ("if (i + j) % 2 == c:\n        u[i, j] = u[i, j-1] + v[i, j]\n        u[i, j-2] = s", []),
    ],
)
def test_what_no_point_writes(text, expected):
    assert never(text) == expected


def test_a_value_that_is_reduced_is_needed_at_every_point():
    """The local is computed of both colours: in the order of the loops."""
    body = "def body(u, v, i, j, *, c):\n    r = u[i, j-1] - v[i, j]\n    if (i + j) % 2 == c: u[i, j] = 0.5 * r\n"
    nest, n = tw.nest_from(body), 12
    start, v = np.random.default_rng(SEED).random((2, n, n))
    u, plain, total = start.copy(), start.copy(), 0.0
    for i in range(n):
        for j in range(1, n):
            total = max(total, plain[i, j-1] - v[i, j])
            nest.function(plain, v, i, j, c=1)
    report = tw.run(nest, u=u, v=v, c=1, reduce={"most": tw.max("r")})
    assert report.results["most"] == total and np.array_equal(u, plain)


def _condition(rng, indices):
    modulus = rng.choice((2, 2, 2, 3, 4))
    form = " + ".join(f"{rng.randint(1, 3)}*{name}" for name in indices if rng.random() < 0.9) or indices[-1]
    left = rng.choice((f"({form}) % {modulus}", f"({form} - {rng.randint(0, 5)}) % {modulus}"))
    right = rng.choice(("c", str(rng.randint(0, modulus - 1))))
    test = f"{left} == {right}"
    return rng.choice((test, test, f"{test} and v[{', '.join(indices)}] > 0.3", f"not {left}"))


def _body(rng):
    indices = ("i", "j", "k")[: rng.choice((1, 2, 2, 2, 3))]
    here = ", ".join(indices)
    terms = [f"v[{here}]"]
    for _ in range(rng.randint(1, 4)):
        offsets = [rng.randint(-2, 2) if rng.random() < 0.6 else 0 for _ in indices]
        terms.append("u[" + ", ".join(f"{name}{o:+d}" for name, o in zip(indices, offsets, strict=True)) + "]")
    lines = [f"if {_condition(rng, indices)}:", f"    u[{here}] = 0.4 * ({' + '.join(terms)})"]
    if rng.random() < 0.3:
        lines = [f"r = 0.4 * ({' - '.join(terms)})", lines[0], f"    u[{here}] = u[{here}] + r"]
    if rng.random() < 0.3:
        lines += ["else:", f"    w[{here}] = w[{here}] + 1.5"]
    else:
        lines.append(f"w[{here}] = w[{here}] * 0.5")
    text = f"def body(u, v, w, {here}, *, c):\n    " + "\n    ".join(lines) + "\n"
    return text, len(indices)


@pytest.mark.parametrize("seed", range(24))
def test_random_conditions_equal_plain_loops(seed):
    rng = random.Random(SEED + seed)
    text, dims = _body(rng)
    print(f"seed {SEED + seed}:\n{text}")
    nest = tw.nest_from(text)
    shape = tuple(rng.randint(6, 40 if dims < 3 else 14) for _ in range(dims))
    values = np.random.default_rng(SEED + seed)
    start = {name: values.random(shape).astype(rng.choice(("f8", "f4"))) for name in "uvw"}
    plain = {name: array.copy() for name, array in start.items()}
    reverse = tuple(name for name in nest.indices if rng.random() < 0.2)
    plain_loops(nest, loop_bounds(nest.indices, nest.iteration_box(shape)), plain, {"c": 1}, reverse)
    ranks, threads = rng.choice(((1, 1), (1, 2), (2, 1), (3, 1), (2, 2)))

    def run(context):
        fields = {name: tw.field(shape, array.dtype, array, context=context) for name, array in start.items()}
        tw.run(nest, **fields, c=1, reverse=reverse, context=context)
        wholes = {name: field.gather() for name, field in fields.items()}
        if context.rank == 0:
            for name, whole in wholes.items():
                assert whole.tobytes() == plain[name].tobytes(), name

    results_of(ranks, threads, run, without=random_paths(SEED + seed) if seed % 2 else None)

