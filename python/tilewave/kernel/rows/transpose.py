"""Small matrices in vector registers: rows become columns."""

from llvmlite import ir

from tilewave.kernel.types.values import I32

#: Bytes within which instructions that interleave vectors work.
LANE_BYTES = 16


def shuffle(build, left, right, picks):
    """The picked elements of two vectors, those of the second counted after those of the first."""
    return build.shuffle_vector(left, right, ir.Constant(ir.VectorType(I32, len(picks)), list(picks)))


def transpose(build, rows, vector_bytes, item_bytes):
    """The columns of a square matrix, given its rows: as many vectors of as many elements, a power of two."""
    count = len(rows)
    piece = min(count, max(vector_bytes // item_bytes, 1))
    columns = []
    for across in range(0, count, piece):
        parts = [
            _square(build, [_part(build, row, across, piece) for row in rows[down : down + piece]], item_bytes)
            for down in range(0, count, piece)
        ]
        columns += [_joined(build, [part[k] for part in parts]) for k in range(piece)]
    return columns


def _part(build, vector, begin, count):
    if count == vector.type.count:
        return vector
    return shuffle(build, vector, ir.Constant(vector.type, ir.Undefined), range(begin, begin + count))


def _joined(build, vectors):
    while len(vectors) > 1:
        both = range(2 * vectors[0].type.count)
        vectors = [shuffle(build, *vectors[k : k + 2], both) for k in range(0, len(vectors), 2)]
    return vectors[0]


def _square(build, rows, item_bytes):
    """A matrix whose rows are a register each.

    First its quarters change places, as long as rows are longer than what instructions interleave; then the same step
    as often as it takes: interleave row k with the one half the rows further on."""
    count = len(rows)
    groups, width = [rows], count
    while width * item_bytes > LANE_BYTES:
        width //= 2
        groups = [half for group in groups for half in _quarters(build, group, width)]
    return [column for group in groups for column in _interleaved(build, group, width)]


def _quarters(build, group, width):
    """Two groups of half the rows: the even parts of `width` elements of row k and of the row half the rows on, and the
    odd ones.
    """
    half, all_of = len(group) // 2, group[0].type.count
    picks = [[], []]
    for begin in range(0, all_of, 2 * width):
        for odd in (0, 1):
            first = [begin + odd * width + k for k in range(width)]
            picks[odd] += first
            picks[odd] += [all_of + k for k in first]
    return [[shuffle(build, group[k], group[k + half], picks[odd]) for k in range(half)] for odd in (0, 1)]


def _interleaved(build, rows, width):
    count, all_of = len(rows), rows[0].type.count
    low = [
        which * all_of + begin + k for begin in range(0, all_of, width) for k in range(width // 2) for which in (0, 1)
    ]
    high = [pick + width // 2 for pick in low]
    for _ in range(count.bit_length() - 1):
        pairs = [(rows[k], rows[k + count // 2]) for k in range(count // 2)]
        rows = [shuffle(build, *pair, picks) for pair in pairs for picks in (low, high)]
    return rows
