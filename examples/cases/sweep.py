"""Three square roots, the sweep of the literature
===============================================

The first nest: three square roots, each of a point computed before.

``tilewave run -n 2 examples/cases/sweep.py [--input FILE.npy] [--shape 64,64,16384] [--out demo/sweep]``

With --input it sweeps over any 2-D or 3-D array of numbers: each point becomes its own value plus
the mean of the smoothed values before it. Every result is checked against plain loops. About 7 s on one core, most of
it Numba and the pictures.
"""
import argparse
from pathlib import Path

import numba
import numpy as np
import tilewave as tw


@tw.nest
def roots(A, i, j, k):
    A[i, j, k] = np.sqrt(A[i-1, j, k]) + np.sqrt(A[i, j-1, k]) + np.sqrt(A[i, j, k-1])


@tw.nest
def smooth2(A, B, i, j, *, c):
    A[i, j] = B[i, j] + c * (A[i-1, j] + A[i, j-1])


@tw.nest
def smooth3(A, B, i, j, k, *, c):
    A[i, j, k] = B[i, j, k] + c * (A[i-1, j, k] + A[i, j-1, k] + A[i, j, k-1])


@numba.njit
def plain_roots(A):
    for i in range(1, A.shape[0]):
        for j in range(1, A.shape[1]):
            for k in range(1, A.shape[2]):
                A[i, j, k] = np.sqrt(A[i-1, j, k]) + np.sqrt(A[i, j-1, k]) + np.sqrt(A[i, j, k-1])


@numba.njit
def plain_smooth2(A, B, c):
    for i in range(1, A.shape[0]):
        for j in range(1, A.shape[1]):
            A[i, j] = B[i, j] + c * (A[i-1, j] + A[i, j-1])


@numba.njit
def plain_smooth3(A, B, c):
    for i in range(1, A.shape[0]):
        for j in range(1, A.shape[1]):
            for k in range(1, A.shape[2]):
                A[i, j, k] = B[i, j, k] + c * (A[i-1, j, k] + A[i, j-1, k] + A[i, j, k-1])


def sweep_ones(shape):
    """The square-root sweep over an array of ones; returns report, result, plain-loop result."""
    A = tw.field(shape, "f4", init=lambda i, j, k: 1.0)
    report = tw.run(roots, A=A)
    whole = A.gather()
    if whole is None:
        return report, None, None
    plain = np.ones(shape, "f4")
    plain_roots(plain)
    return report, whole, plain


def sweep_input(path):
    """The smoothing sweep over the array in a file."""
    try:
        data = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise SystemExit(f"--input {path}: {error}") from None
    if data.ndim not in (2, 3) or data.dtype.kind not in "biuf":
        raise SystemExit(f"--input {path}: an array of shape {data.shape}, dtype {data.dtype} was "
                         "given; allowed: 2-D or 3-D, of numbers")
    data = np.ascontiguousarray(data, "f4" if data.dtype == np.float32 else "f8")
    nest, plain_loops = ((smooth2, plain_smooth2), (smooth3, plain_smooth3))[data.ndim - 2]
    c = 1 / (data.ndim + 1)
    A = tw.field(data.shape, data.dtype, init=data)
    B = tw.field(data.shape, data.dtype, init=data)
    report = tw.run(nest, A=A, B=B, c=c)
    whole = A.gather()
    if whole is None:
        return report, None, None
    plain = data.copy()
    plain_loops(plain, data, data.dtype.type(c))
    return report, whole, plain


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--input", type=Path, metavar="FILE.npy", help="sweep over this array")
    options.add_argument("--shape", default="64,64,16384", help="i,j,k of the default sweep")
    options.add_argument("--out", type=Path, default=Path("demo/sweep"), help="name of the pictures")
    given = options.parse_args()
    report, whole, plain = sweep_input(given.input) if given.input else sweep_ones(
        tuple(int(n) for n in given.shape.split(",")))
    report.timeline.save(given.out.with_suffix(".json"))
    report.timeline.save(given.out.with_suffix(".png"))
    if whole is None:
        return
    print(report)
    same = np.array_equal(whole.view(f"u{whole.itemsize}"), plain.view(f"u{plain.itemsize}"))
    print(f"{'plain loops':16} {'equal, bit for bit' if same else 'DIFFERENT'}")
    print(f"{'written':16} {given.out.with_suffix('.json')} (open in ui.perfetto.dev), "
          f"{given.out.with_suffix('.png')}")
    if not same:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
