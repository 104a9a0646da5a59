"""`bench nests`: Smith-Waterman with affine gaps, against parasail; tables of scores, lanes, ranks, memory."""

import time

import numpy as np
import tilewave as tw

from bench import nests_parasail
from bench.nests_bodies import SCORES, smith_waterman, smith_waterman_by_table
from bench.nests_plain import parasail, plain_loops, sequences, table_calls
from bench.nests_race import compare, lanes, race, rank_rows, skipped
from bench.results import on_ranks, row

RANKS = "bench.nests_ranks"


def aligning(a, b, context):
    """A function that aligns, keeping a rolling window only; its report has the best score."""
    fields = {name: tw.field((a.size + 1, b.size + 1), "i2", keep="window", context=context) for name in "HEF"}
    return lambda: tw.run(smith_waterman, **fields, a=a, b=b, **SCORES, context=context, reduce={"best": tw.max("H")})


def aligning_all(a, b, context):
    """H, and a function that aligns, all of H, E and F being stored, and returns its seconds."""
    fields = {name: tw.field((a.size + 1, b.size + 1), "i2", context=context) for name in "HEF"}
    return fields["H"], lambda: tw.run(smith_waterman, **fields, a=a, b=b, **SCORES, context=context).measured.time_s


def alignment(quick):
    """Cells a second, tables stored, and only a rolling window of them; ranks and memory."""
    a, b = sequences()
    if a is None:
        return skipped("alignment", "examples/cases/data/lambda_virus.fa.gz is not there: run it in a checkout")
    stored = 1000 if quick else 8192
    rows = _stored(a[:stored], b[:stored], 2 if quick else 7)
    length = 3000 if quick else a.size
    rows += _window(a[:length], b[:length], 2 if quick else 5)
    rows += _by_tables(a, b, 2000 if quick else 10000, 2 if quick else 9)
    length = 3000 if quick else int(a.size)
    case = f"alignment {length}x{length} i2, rolling window"
    found = on_ranks(RANKS, 2, {"what": "alignment", "length": length, "repeats": 2 if quick else 5})
    rows += rank_rows(case, found["times"], length * length)
    found = on_ranks(RANKS, 1, {"what": "memory", "length": length})
    rows.append(
        row(
            case,
            "memory of fields and run, limit 64",
            [found["bytes"] / 2**20],
            "MiB",
            fraction_of_limit=found["bytes"] / 2**26,
        )
    )
    return rows


def _contenders(a, b, plain_too):
    """Functions that return the best score, by name."""
    calls, plain = {}, plain_loops()
    name, scores = nests_parasail.best(a[None], b[None]) if plain else (None, None)
    if name:
        calls[name] = lambda: int(scores()[0])
    if plain and plain_too:
        calls["plain loops, g++"] = lambda: plain["smith_waterman"](a, b)
    return calls


def _race(case, a, b, calls, ours, repeats):
    """Rows of calls that return a score, and of ours; ``ours`` has pairs (score, run) by name."""
    runs = {name: (lambda call=call: (call(), None)[1]) for name, call in calls.items()}
    scores = {name: call() for name, call in calls.items()} | {name: score for name, (score, _) in ours.items()}
    if len(set(scores.values())) > 1:
        raise SystemExit(f"{case}: the scores differ: {scores}")
    runs |= {name: run for name, (_, run) in ours.items()}
    return compare(case, race(runs, repeats), a.size * b.size, cells=True)


def _stored(a, b, repeats):
    ours = {}
    for count in (1, 2):
        H, run = aligning_all(a, b, lanes(count))
        run()
        ours[f"tilewave, {count} lane{'s' * (count > 1)}"] = int(H.gather().max()), run
    calls = _contenders(a, b, plain_too=True)
    return _race(f"alignment {a.size}x{b.size} i2, tables stored", a, b, calls, ours, repeats)


def _window(a, b, repeats):
    case = f"alignment {a.size}x{b.size} i2, rolling window"
    ours = {}
    for count in (1, 2):
        run = aligning(a, b, lanes(count))
        ours[f"tilewave, {count} lane{'s' * (count > 1)}"] = (
            int(run().results["best"]),
            lambda run=run: run().measured.time_s,
        )
    calls = _contenders(a, b, plain_too=False)
    rows = _race(case, a, b, calls, ours, repeats)
    plain = plain_loops()
    if plain:  # it takes long: once
        begin = time.perf_counter()
        score = plain["smith_waterman"](a, b)
        rate = a.size * b.size * 1e-9 / (time.perf_counter() - begin)
        rows.append(row(case, "plain loops, g++ (once)", [rate], "Gcells/s"))
        if any(score != best for best, _ in ours.values()):
            raise SystemExit(f"{case}: the score of plain loops differs: {score}")
    return rows


#: Letters of parasail's tables for proteins.
LETTERS = "ARNDCQEGHILKMFPSTWYVBZX*"


def _by_tables(a, b, length, repeats):
    """Scores looked up in a table, 4x4 of bases and 24x24 of proteins, on one lane; the rolling window.

    In 16 bits, and in 8 where scores fit. parasail's "striped, 8 bits" begins again with 16 where they do not.
    """
    if parasail() is None:
        return skipped("alignment by tables", "parasail, whose tables they are, is not there")
    bases = np.array([*b"ACGT"])
    random, library = np.random.default_rng(1), parasail()
    a, b = (np.searchsorted(bases, sequence[:length]).astype("i1") for sequence in (a, b))
    proteins = random.integers(0, 24, (2, length), "i1")
    return [
        *_by_table(
            "bases",
            a,
            b,
            "ACGT",
            library.matrix_create("ACGT", SCORES["match"], SCORES["mismatch"]),
            {"start": SCORES["start"], "extend": SCORES["extend"]},
            repeats,
        ),
        *_by_table("proteins", *proteins, LETTERS, library.blosum62, {"start": 11, "extend": 1}, repeats),
    ]


def _by_table(what, a, b, letters, matrix, gaps, repeats):
    texts = ["".join(letters[code] for code in sequence) for sequence in (a, b)]
    size, context, rows, best = len(letters), lanes(1), [], 0
    for dtype, methods in (
        ("i2", {"striped": "striped_16", "scan": "scan_16", "diag": "diag_16"}),
        ("i1", {"striped, 8 bits": "striped_sat"}),
    ):
        score = matrix.matrix[:size, :size].astype(dtype)
        if best + int(score.max()) > np.iinfo(dtype).max:
            break
        fields = {name: tw.field((a.size + 1, b.size + 1), dtype, keep="window", context=context) for name in "HEF"}

        def run(fields=fields, score=score):
            return tw.run(
                smith_waterman_by_table,
                **fields,
                score=score,
                a=a,
                b=b,
                **gaps,
                context=context,
                reduce={"best": tw.max("H")},
            )

        best = int(run().results["best"])
        rows += _race(
            f"alignment {a.size}x{b.size} {dtype}, table {size}x{size} of {what}, rolling window",
            a,
            b,
            table_calls(*texts, matrix, *gaps.values(), methods),
            {"tilewave, 1 lane": (best, lambda run=run: run().measured.time_s)},
            repeats,
        )
    return rows
