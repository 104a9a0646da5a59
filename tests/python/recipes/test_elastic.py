"""Time warping, edit distances and alignments, against plain loops."""

import numpy as np
import pytest
from local_ranks import refused_on_all, results_of

import tilewave as tw
from tilewave import recipes


def plain_dtw(x, y, window=None):
    """Series (n, d) and (m, d): the path's smallest sum in doubles."""
    n, m = len(x), len(y)
    D = np.full((n + 1, m + 1), np.inf)
    D[0, 0] = 0
    for i in range(n):
        for j in range(m):
            # The band of the library that people know: element i of the shorter series meets i - r to i + r + m - n.
            short, long = (i, j) if n <= m else (j, i)
            if window is None or short - window <= long <= short + window + abs(n - m):
                cost = 0.0
                for q in range(x.shape[1]):
                    d = x[i, q] - y[j, q]
                    cost = cost + d * d
                D[i+1, j+1] = cost + min(D[i, j+1], D[i+1, j], D[i, j])
    return np.sqrt(D[n, m])


def plain_edits(a, b):
    D = np.add.outer(np.arange(len(a) + 1), np.arange(len(b) + 1))
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            D[i, j] = min(D[i-1, j] + 1, D[i, j-1] + 1, D[i-1, j-1] + (a[i-1] != b[j-1]))
    return D[-1, -1]


def plain_align(a, b, scores, gap, start, local):
    """Every gap's length is tried: nothing of Gotoh's tables."""
    H = np.zeros((len(a) + 1, len(b) + 1))
    for i in range(len(a) + 1):
        for j in range(len(b) + 1):
            found = [0.0] if local or i == j == 0 else []
            found += [H[i-k, j] - start - (k - 1) * gap for k in range(1, i + 1)]
            found += [H[i, j-k] - start - (k - 1) * gap for k in range(1, j + 1)]
            if i and j:
                x, y = a[i-1], b[j-1]
                found.append(H[i-1, j-1] + (scores[x, y] if scores.ndim == 2 else scores[int(x != y)]))
            H[i, j] = max(found)
    return H.max() if local else H[-1, -1]


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_dtw_of_pairs_and_batches(ranks, seed):
    rng = np.random.default_rng(seed)
    for channels in (1, 3, 9):
        n, m, pairs = (int(v) for v in (*rng.integers(1, 14, 2), rng.choice([1, 3, 11])))
        window = [None, 0, 2][rng.integers(3)]
        x, y = rng.random((pairs, n, channels)), rng.random((pairs, m, channels))
        wanted = np.array([plain_dtw(a, b, window) for a, b in zip(x, y)])

        def body(context):
            options = {"window": window, "context": context}
            one = recipes.dtw(x[0], y[0], **options)
            if channels == 1:
                assert recipes.dtw(x[0, :, 0], y[0, :, 0], **options) == one
            fields = [tw.field(each, context=context) for each in (x, y)]
            return one, recipes.dtw(x, y, **options), recipes.dtw(*fields, window=window)

        for one, batch, of_fields in results_of(ranks, 1 + ranks % 2, body):
            assert one == wanted[0], (seed, channels, n, m, window)
            assert np.array_equal(batch, wanted) and np.array_equal(of_fields, wanted), (seed, channels, n, m, window)


def test_dtw_of_many_channels_and_long_rows():
    rng = np.random.default_rng(1)
    for n, m, pairs in ((10, 11, 1), (13, 9, 9), (40, 33, 1), (33, 40, 12)):
        x, y = rng.random((pairs, n, 9)), rng.random((pairs, m, 9))
        assert recipes.dtw(x, y).tolist() == [plain_dtw(a, b) for a, b in zip(x, y)]


def test_dtw_is_that_of_its_dtype():
    x = np.linspace(0, 1, 30, dtype="f4")
    assert recipes.dtw(x, x[::-1]).dtype == "f4" and recipes.dtw(x, x[::-1].astype("f8")).dtype == "f8"
    assert recipes.dtw([1, 2, 3], [1, 2, 2, 3]) == 0.0
    assert recipes.dtw([0, 0], [3, 4]) == 5.0


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_edit_distances(ranks, seed):
    rng = np.random.default_rng(seed)
    pairs = int(rng.choice([2, 9]))
    a, b = rng.integers(0, 3, (pairs, int(rng.integers(1, 12)))), rng.integers(0, 3, (pairs, int(rng.integers(1, 12))))
    wanted = [plain_edits(x, y) for x, y in zip(a, b)]

    def body(context):
        assert recipes.edit_distance("kitten", "sitting", context=context) == 3
        assert recipes.edit_distance(b"", b"abc", context=context) == 3
        assert recipes.edit_distance("é🙂x", "e🙂", context=context) == 2
        return recipes.edit_distance(a, b, context=context), recipes.edit_distance(a[0], b[0], context=context)

    for batch, one in results_of(ranks, 2, body):
        assert batch.tolist() == wanted and one == wanted[0] and isinstance(one, int), seed
    assert recipes.edit_distance(np.zeros((0, 3), int), np.zeros((0, 2), int)).shape == (0,)


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("mode", ["global", "local"])
def test_scores_of_alignments(ranks, mode, seed):
    rng = np.random.default_rng(seed)
    for floats in (False, True):
        pairs = int(rng.choice([1, 8]))
        a, b = (rng.integers(0, 4, (pairs, int(rng.integers(1, 12)))) for _ in range(2))
        scores = rng.integers(-4, 6, (4, 4)) if rng.integers(2) else np.array([3, -2])
        gap = int(rng.integers(0, 3))
        start = gap + int(rng.integers(0, 4)) if rng.integers(2) else None
        if floats:
            scores, gap = scores * 0.5, gap * 0.25  # sums are exact
        opened = gap if start is None else start
        wanted = [plain_align(x, y, scores, gap, opened, mode == "local") for x, y in zip(a, b)]

        def body(context):
            options = {"scores": scores, "gap": gap, "gap_open": start, "mode": mode, "context": context}
            return recipes.align(a, b, **options), recipes.align(a[0], b[0], **options)

        for batch, one in results_of(ranks, 2, body):
            assert batch.tolist() == wanted and one == wanted[0], (seed, scores, gap, start)
            assert batch.dtype == ("f8" if floats else "i4")


def test_alignments_of_texts_and_of_nothing():
    assert recipes.align("GATTACA", "GCATGCU", scores=(1, -1), gap=1) == 0
    assert recipes.align("TTGATTACATT", "CCGATTACACC", scores=(2, -3), gap=2, gap_open=5, mode="local") == 14
    assert recipes.align("", "ABC", scores=(1, -1), gap=1, gap_open=5) == -7
    assert recipes.align("", "ABC", scores=(1, -1), gap=1, mode="local") == 0
    large = recipes.align("AB", "AB", scores=(2**40, -1), gap=1)
    assert large == 2**41 and large.dtype == "i8"


def test_what_elastic_functions_refuse():
    def refused(text, call):
        with pytest.raises(tw.ConfigError, match=text):
            call()

    refused("dtw: given series of shapes", lambda: recipes.dtw([], [1.0]))
    refused("dtw: given series of shapes", lambda: recipes.dtw(np.ones((3, 2)), np.ones((3, 1))))
    refused("dtw: given shapes", lambda: recipes.dtw(np.ones((2, 3, 1)), np.ones((3, 3, 1))))
    refused("dtw: x: given elements of complex128", lambda: recipes.dtw([1j], [1.0]))
    refused("dtw: x: given shape", lambda: recipes.dtw(1.0, [1.0]))
    refused("dtw: window: given -1", lambda: recipes.dtw([1.0], [1.0], window=-1))
    refused("edit_distance: a: given elements of float64", lambda: recipes.edit_distance([1.0], [1.0]))
    refused("align: a: given letters 0 to 5", lambda: recipes.align([0, 5], [0], scores=np.eye(4), gap=1))
    refused("align: mode: given 'semi'", lambda: recipes.align("A", "A", scores=(1, -1), gap=1, mode="semi"))
    refused("align: gap: given -1", lambda: recipes.align("A", "A", scores=(1, -1), gap=-1))
    refused("align: scores: given shape", lambda: recipes.align("A", "A", scores=(1, -1, 3), gap=1))
    refused("leave int64", lambda: recipes.align("A", "A", scores=(2**62, -1), gap=1))
    refused_on_all(2, lambda context: recipes.dtw([1.0] * (1 + context.rank), [1.0], context=context), "dtw")
