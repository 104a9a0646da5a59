"""Least squares of matrices without full rank: QR with column pivoting of what a first QR has left."""

import numpy as np

from tilewave.linalg.layout import by_block_columns
from tilewave.linalg.matrix import Matrix
from tilewave.patterns.calls import spread

#: Diagonal elements of R, relative to the largest one, this many times above what counts as 0 are not looked at twice:
#: without pivoting they show singular values to about a factor of the order of the matrix.
SAFE = 1e3


def scaled(a, largest):
    """(a, 0), or a copy times 2**exponent and the exponent where elements are so small or large that squares of them
    leave the range, as LAPACK's gels does. Local.
    """
    info = np.finfo(a.dtype)
    least = float(info.tiny) / float(info.eps)
    if not 0 < largest < np.inf or least <= largest <= 1 / least:
        return a, 0
    exponent = -int(np.frexp(float(largest))[1])
    made = Matrix(a.context, a.shape, a.dtype, a.layout)
    made.local[...] = a.local
    times_power(made.local, exponent)
    return made, exponent


def times_power(values, exponent):
    """Times 2**exponent, in place; in two steps, as 2**exponent may be out of range."""
    real = np.finfo(values.dtype).dtype.type
    with np.errstate(all="ignore"):
        for part in (exponent // 2, exponent - exponent // 2):
            np.multiply(values, real(2.0) ** part, out=values)


def with_pivots(t, c, bound):
    """Turn t x = c into W x = d with as many independent rows as t has rank; collective.

    Parameters
    ----------
    t, c : Matrix
        Square, and right-hand sides; both by columns in blocks of one. They are overwritten.
    bound : float
        A column counts where its part beyond the ones before it is more than this times the largest column.

    Returns
    -------
    (Matrix, Matrix)
        W and d. The columns of W are in the order of t: R times the inverse permutation.

    Notes
    -----
    One message of a column from every rank a step, and one pass over what is left of t: no blocks, unlike LAPACK's
    geqp3.
    """
    context, n, local, sides, columns = t.context, t.shape[0], t.local, c.local, t.columns
    left, rank, largest = np.ones(len(columns), bool), n, None
    with np.errstate(all="ignore"):
        for i in range(n):
            norms = np.where(left, np.linalg.norm(local[i:], axis=0), -1) if len(columns) else np.zeros(0)
            best = int(np.argmax(norms)) if len(norms) else -1
            column = local[i:, best] if best >= 0 else np.zeros(n - i, t.dtype)
            size, number = (norms[best], columns[best]) if best >= 0 else (-1, n)
            head = np.array([size, -number]).view(np.uint8)
            both = np.concatenate([head, np.ascontiguousarray(column).view(np.uint8)])
            every = np.asarray(spread(both, context=context)).reshape(context.size, -1)
            size, number, found = max((*every[r, :16].view("f8"), r) for r in range(context.size))
            largest = size if largest is None else largest
            if not size > bound * largest:
                rank = i
                break
            v = every[found, 16:].copy().view(t.dtype)
            beta = -size if v[0].real >= 0 else size
            tau = (beta - v[0]) / beta
            v = v / (v[0] - beta)
            v[0] = 1
            if found == context.rank:  # its column is known, and reflected as the others would round it
                left[best] = False
                local[i, best], local[i + 1 :, best] = beta, 0
            part = local[i:, left]
            local[i:, left] = part - tau.conj() * v[:, None] * (v.conj() @ part)
            sides[i:] -= tau.conj() * v[:, None] * (v.conj() @ sides[i:])
    shapes = (rank, n), (rank, c.shape[1])
    made = [Matrix(context, shape, t.dtype, by_block_columns(shape, 1, context.size)) for shape in shapes]
    for target, source in zip(made, (local, sides), strict=True):
        target.local[...] = source[:rank]
    return made
