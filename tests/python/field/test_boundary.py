"""Halos beyond the ends of an array: bit for bit as numpy.pad has them, on any ranks."""

import numpy as np
import pytest
import tilewave as tw
from local_ranks import refused_on_all, results_of


def padded(a, widths, periodic, boundary):
    for axis, pair in enumerate(widths):
        along = [(0, 0)] * a.ndim
        along[axis] = pair
        if axis in periodic:
            a = np.pad(a, along, "wrap")
        elif isinstance(boundary, str):
            a = np.pad(a, along, boundary)
        else:
            a = np.pad(a, along, "constant", constant_values=boundary)
    return a


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
def test_random_halos_are_those_of_pad(ranks, seed):
    rng = np.random.default_rng(seed)
    for _ in range(12):
        ndim = int(rng.integers(1, 4))
        shape = tuple(int(n) for n in rng.integers(1, 9, ndim))
        dtype = str(rng.choice(["f8", "f4", "c16", "i4"]))
        a = (rng.standard_normal(shape) * 9).astype(dtype)
        first, second = (["reflect", "edge", 3, -2.5][k] for k in rng.integers(4, size=2))
        widths = [(int(rng.integers(0, n + 1)),) * 2 for n in shape]
        if "reflect" not in (first, second):
            widths = [tuple(int(w) for w in rng.integers(0, n + 1, 2)) for n in shape]
        periodic = tuple(axis for axis in range(ndim) if rng.random() < 0.3)
        how = int(rng.integers(3))
        what = f"seed {seed}, ranks {ranks}, {shape}, {dtype}, {widths}, {periodic}, {first} {second}, {how}"

        def body(context):
            u = tw.field(a, halo=tuple(widths), periodic=periodic, boundary=first, context=context)
            assert u.periodic == periodic
            prepared = tw.exchange(u, boundary=second, start=False) if how == 2 else None
            for boundary, given in ((first, None), (second, second)):
                if prepared and given is not None:
                    prepared.run()
                elif how == 1:
                    tw.exchange(u, boundary=given, wait=False).wait()
                else:
                    tw.exchange(u, boundary=given)
                whole = padded(a, widths, periodic, boundary)
                if u.local.size:
                    begins = [o + low for o, (low, _) in zip(u.origin, widths, strict=True)]
                    at = tuple(slice(b, b + n) for b, n in zip(begins, u.local.shape, strict=True))
                    assert np.array_equal(u.local, whole[at]), (what, u.local, whole[at])
            v = u.copy()
            tw.exchange(v)
            assert not v.local.size or np.array_equal(v.local[v.inside], u.local[u.inside]), what

        results_of(ranks, 1, body)


def test_what_cannot_be_is_refused():
    made = lambda c: tw.field((4,), halo=1, boundary=0, context=c)
    cases = [
        (lambda c: tw.field((4,), boundary="edge", context=c), "boundary='edge' was given without halo="),
        (lambda c: tw.field((4,), halo=1, boundary="wrap", context=c), "allowed: 'reflect', 'edge', a number"),
        (lambda c: tw.field((4,), halo=((1, 2),), boundary="reflect", context=c), "one width on both sides"),
        (lambda c: tw.exchange(tw.field((4,), halo=1, context=c), boundary="edge"), "no halo beyond its ends"),
        (lambda c: tw.exchange(made(c), boundary=[1]), "exchange: boundary: given"),
        (lambda c: tw.exchange(made(c), boundary=c.rank), "tw.exchange, boundary=0"),
    ]
    for call, text in cases:
        refused_on_all(2, call, text)
