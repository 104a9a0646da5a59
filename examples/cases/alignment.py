"""Alignment of two genomes with traceback
=======================================

Smith-Waterman with affine gaps: the genome of phage lambda against a relative, 48,502 x 48,502 cells.

``tilewave run -n 2 examples/cases/alignment.py [--small] [--output demo/alignment.png]``

Score and end of the best local alignment need no more of the tables than what later cells still read, so the fields
keep a rolling window only: megabytes in place of 14 GB. A second such run, backwards from the end, finds where the
alignment starts. A third keeps everything, but only of the piece around the end, and the path is traced back in it.

The relative is made from lambda (examples/cases/data): a third of its bases drawn anew, some lost or doubled, and the
stretch between one third and one half turned round, onto the other strand.

Checks: the score against parasail's where it is installed (pip install parasail); the score backwards; all scores
of the piece against NumPy, anti-diagonal by anti-diagonal; the path's score counted along it. About 10 s on one core.
"""
import argparse
import gzip
from pathlib import Path

import numpy as np
import tilewave as tw

GENOME = Path(__file__).with_name("data") / "lambda_virus.fa.gz"
BASES, PARTNERS = (np.frombuffer(letters, "i1") for letters in (b"ACGT", b"TGCA"))
MATCH, MISMATCH, OPEN, EXTEND = 2, -3, 5, 2  # a gap of n bases costs OPEN + (n - 1) * EXTEND
PIECE = 300


# E: best score of an alignment that ends in a gap along b, F: along a, H: of all. Rim zeros are right for E and F
# too: what grows out of them is below 0, and H never takes it.
@tw.nest
def smith_waterman(H, E, F, a, b, i, j, *, match, mismatch, start, extend):
    e = max(E[i, j-1] - extend, H[i, j-1] - start)
    f = max(F[i-1, j] - extend, H[i-1, j] - start)
    pair = match if a[i-1] == b[j-1] else mismatch
    E[i, j] = e
    F[i, j] = f
    H[i, j] = max(max(H[i-1, j-1] + pair, 0), max(e, f))


SCORES = {"match": MATCH, "mismatch": MISMATCH, "start": OPEN, "extend": EXTEND}


def best_alignment(a, b):
    """The best score, the cell where it ends, and the report; the tables are not kept."""
    H, E, F = (tw.field((a.size + 1, b.size + 1), "i2", keep="window") for _ in range(3))
    report = tw.run(smith_waterman, H=H, E=E, F=F, a=a, b=b, **SCORES,
                    reduce={"best": tw.max("H"), "where": tw.argmax("H")})
    return int(report.results["best"]), report.results["where"], report


def tables(a, b):
    """H, E and F on rank 0, None elsewhere."""
    fields = {name: tw.field((a.size + 1, b.size + 1), "i2") for name in "HEF"}
    tw.run(smith_waterman, **fields, a=a, b=b, **SCORES)
    return [field.gather() for field in fields.values()]


# --- the sequences --------------------------------------------------------------------------------

def genome():
    """The bases as int8 character codes."""
    with gzip.open(GENOME, "rt") as lines:
        text = "".join(line.strip() for line in lines if not line.startswith(">"))
    return np.frombuffer(text.upper().encode(), "i1")


def other_strand(bases):
    """The bases of the other strand, in its own direction."""
    return PARTNERS[np.searchsorted(BASES, bases)][::-1]


def relative(bases, seed=1):
    """A sequence that shares most of its stretches with `bases`."""
    random = np.random.default_rng(seed)
    other = np.where(random.random(bases.size) < 0.33, random.choice(BASES, bases.size), bases)
    turned = slice(bases.size // 3, bases.size // 2)
    other[turned] = other_strand(other[turned])
    copies = random.choice(3, other.size, p=(0.01, 0.98, 0.01))  # lost, kept, doubled
    return np.repeat(other, copies)


# --- checks ---------------------------------------------------------------------------------------

def by_diagonals(a, b):
    """H in NumPy, one anti-diagonal at a time."""
    H, E, F = (np.zeros((a.size + 1, b.size + 1), "i4") for _ in range(3))
    for t in range(2, a.size + b.size + 1):
        i = np.arange(max(1, t - b.size), min(a.size, t - 1) + 1)
        j = t - i
        E[i, j] = np.maximum(E[i, j-1] - EXTEND, H[i, j-1] - OPEN)
        F[i, j] = np.maximum(F[i-1, j] - EXTEND, H[i-1, j] - OPEN)
        pair = np.where(a[i-1] == b[j-1], MATCH, MISMATCH)
        H[i, j] = np.maximum(np.maximum(H[i-1, j-1] + pair, 0), np.maximum(E[i, j], F[i, j]))
    return H


def trace(H, E, F, a, b):
    """The best path that ends in the last cell: its cells, last first, and its score counted anew."""
    (i, j), state, cells, score = (n - 1 for n in H.shape), "H", [], 0
    while state != "H" or (i and j and H[i, j]):  # it starts where the score was 0 or at the rim
        pair = MATCH if a[i-1] == b[j-1] else MISMATCH
        if state == "H" and H[i, j] != H[i-1, j-1] + pair:
            state = "E" if H[i, j] == E[i, j] else "F"
            continue
        cells.append((i, j))
        if state == "H":
            i, j, score = i - 1, j - 1, score + pair
            continue
        best, before = (E, (i, j - 1)) if state == "E" else (F, (i - 1, j))
        opens = best[i, j] == H[before] - OPEN
        score -= OPEN if opens else EXTEND
        (i, j), state = before, "H" if opens else state
    return np.array(cells), score


def parasail_score(a, b):
    """The score by parasail, in as many bits as it takes, or None where it is not installed."""
    try:
        import parasail
    except ImportError:
        return None
    matrix = parasail.matrix_create("ACGT", MATCH, MISMATCH)
    return parasail.sw_striped_sat(bytes(a).decode(), bytes(b).decode(), OPEN, EXTEND, matrix).score


# --- the picture ----------------------------------------------------------------------------------

def shared_words(a, b, length):
    """Positions (in a, in b) where both have the same `length` bases."""
    def words(x):
        codes = np.searchsorted(BASES, x).astype("i8")
        return sum(codes[k:x.size - length + 1 + k] << (2 * k) for k in range(length))

    first, second = words(a), words(b)
    order = np.argsort(first, kind="stable")
    low, high = (np.searchsorted(first[order], second, side) for side in ("left", "right"))
    where = np.repeat(np.arange(second.size), high - low)
    within = np.arange(where.size) - np.repeat(np.cumsum(high - low) - (high - low), high - low)
    return order[low[where] + within], where


def draw(a, b, start, end, piece, cells, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.5, 5.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    length = int(np.log2(a.size * b.size) / 2) - 3  # so that few words are shared by chance
    x, y = shared_words(a, b, length)
    left.plot(y / 1000, x / 1000, ".", color="0.35", markersize=1.5, label=f"same {length} bases")
    x, y = shared_words(other_strand(a), b, length)
    left.plot(y / 1000, (a.size - length - x) / 1000, ".", color="tab:blue", markersize=1.5,
              label="on the other strand")
    left.plot([start[1] / 1000, end[1] / 1000], [start[0] / 1000, end[0] / 1000], color="tab:red", linewidth=6,
              alpha=0.4, label="best local alignment")
    left.set(title="stretches that both have", xlabel="relative (thousand bases)", ylabel="lambda (thousand bases)",
             aspect="equal", xlim=(0, b.size / 1000), ylim=(a.size / 1000, 0))
    left.legend(loc="lower left", markerscale=3, fontsize=9)
    corner = end[0] - piece.shape[0] + 1, end[1] - piece.shape[1] + 1
    box = (corner[1], end[1] + 1, end[0] + 1, corner[0])
    shown = right.imshow(piece, cmap="viridis", extent=box)
    right.plot(cells[:, 1] + corner[1] + 0.5, cells[:, 0] + corner[0] + 0.5, color="tab:red", linewidth=1)
    right.set(title=f"scores of the last {PIECE} bases, and the path", xlabel="relative (base)", ylabel="lambda (base)")
    right.ticklabel_format(useOffset=False)
    figure.colorbar(shown, ax=right, label="score within the piece")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--small", action="store_true", help="the first 1500 bases")
    options.add_argument("--output", type=Path, default=Path("demo/alignment.png"))
    given = options.parse_args()
    a = genome()[:1500 if given.small else None]
    b = relative(a)

    score, end, report = best_alignment(a, b)
    upto_a, upto_b = a[:end[0]], b[:end[1]]
    score_back, length, _ = best_alignment(*(np.ascontiguousarray(x[::-1]) for x in (upto_a, upto_b)))
    start = tuple(e - n for e, n in zip(end, length, strict=True))
    near_a, near_b = upto_a[-PIECE:], upto_b[-PIECE:]
    H, E, F = tables(near_a, near_b)
    if H is None:
        return
    print(f"{a.size} x {b.size} cells in {report.measured.time_s:.3g} s, {report.points_per_s * 1e-9:.3g} billion a "
          f"second, ranks: {report.ranks}, lanes of each: {report.threads}")
    print(f"best local alignment: score {score}, bases {start[0]} to {end[0]} of lambda and {start[1]} to {end[1]} "
          f"of its relative")
    print(f"best score backwards from there: {score_back}")
    theirs = parasail_score(a, b)
    print("parasail is not installed (pip install parasail): its score is not compared" if theirs is None else
          f"parasail's score: {theirs}")
    difference = abs(H - by_diagonals(near_a, near_b)).max()
    print(f"largest difference of {H.size} scores from NumPy's: {difference}")
    cells, counted = trace(H, E, F, near_a, near_b)
    print(f"path of the last {len(cells)} columns: score {H[-1, -1]}, counted along it {counted}")
    draw(a, b, start, end, H, cells, given.output)
    print(f"picture: {given.output}")
    if score_back != score or theirs not in (None, score) or difference or counted != H[-1, -1]:
        raise SystemExit("the scores differ")


if __name__ == "__main__":
    main()
