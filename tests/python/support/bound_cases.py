"""Nests that tests bind, fields for them, and runs on ranks as threads."""



import tilewave as tw
from local_ranks import on_ranks

RANKS = [(1, 1), (2, 1), (3, 2)]


@tw.nest
def smooth(u, f, i, j, *, w=1.0):
    u[i, j] = (1 - w) * u[i, j] + w * 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + f[i, j])


@tw.nest
def residual(r, u, f, i, j):
    r[i, j] = f[i, j] - 4 * u[i, j] + u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]


@tw.nest
def heat(u, t, i, j):
    u[t + 1, i, j] = u[t, i, j] + 0.125 * (u[t, i - 1, j] + u[t, i + 1, j] + u[t, i, j - 1] + u[t, i, j + 1])


@tw.nest
def wave(u, t, i):
    u[t + 1, i] = 2 * u[t, i] - u[t - 1, i] + 0.25 * (u[t, i - 1] - 2 * u[t, i] + u[t, i + 1])


@tw.nest
def align(H, a, b, i, j, *, gap=2):
    H[i, j] = max(0, H[i - 1, j - 1] + (3 if a[i] == b[j] else -1), H[i - 1, j] - gap, H[i, j - 1] - gap)


@tw.nest
def grow(A, i, j):
    A[i, j] = A[i - 1, j] + 2 * A[i, j - 1]


@tw.nest
def across(A, i, j):
    A[i, j] = A[i, j + 1] + A[i - 1, j] - 3


@tw.nest
def divide(A, d, i, *, limit=0):
    if d[i] == limit:
        raise ValueError("no divisor")
    A[i] = A[i - 1] // (d[i] - limit)


def filled(context, shape, dtype="f8", history=0):
    return tw.field(
        shape,
        dtype,
        init=lambda *at: sum((k + 2) * x for k, x in enumerate(at)) % 11 + 1,
        history=history,
        context=context,
    )


def results(ranks, threads, body, timeout_s=120, without=None):
    """What body gives on each rank; raises the first error."""
    found, errors = on_ranks(ranks, threads, body, timeout_s, without)
    for error in errors:
        if error is not None:
            raise error
    return found


def same(a, b):
    """Whether two fields have the same bits; True on other ranks than 0."""
    x, y = a.gather(), b.gather()
    return x is None or x.tobytes() == y.tobytes()
