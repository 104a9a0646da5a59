"""Hosts that one link joins, or two: a spread, a halo exchange and a product, and what was predicted.

``tilewave bench cards [--rate 1gbit] [--ranks 2] [--repeats N] [--json FILE] [--quick]``; needs root. Two hosts in a
box, each link of the same rate and with a subnet of its own. Messages go over both links as `tilewave run` sets it.
"""

import statistics

import numpy as np
import tilewave as tw
from tilewave.launch.cards import rails

from bench.cluster import cluster_tool, on_hosts
from bench.dense import error_percent, measured_context, other, refuse, timed, uniform
from bench.results import on_ranks, parser_of, publish, row

HOSTS, LINKS = 2, (1, 2)


# --- on the ranks ---------------------------------------------------------------------------------


def worker(spread_mb, face, product, repeats):
    """{case: (seconds of each turn, seconds that were predicted)}, on rank 0."""
    context = measured_context()
    runs = {
        f"spread, {spread_mb:g} MB a rank": _spread(context, int(spread_mb * 1e6) // 8),
        f"halo, faces of {face}x{face}": _halo(context, face),
        f"product, n = {product}": _product(context, product),
    }
    found = {}
    for case, (run, check, predicted) in runs.items():
        run()
        check()
        found[case] = [timed(context, run) for _ in range(repeats)], predicted()
    return found if context.rank == 0 else None


def _spread(context, count):
    part, whole = np.full((1, count), 1.0 + context.rank), np.zeros((1, count * context.size))
    handle = tw.patterns.spread(part, out=whole, start=False, context=context)

    def check():
        right = np.array_equal(whole[0, ::count], 1.0 + np.arange(context.size))
        refuse(context, "bench cards: spread", right)

    return handle.run, check, lambda: dict(handle._core.plan.compared)[handle.algorithm]


def _halo(context, extent):
    """Blocks one behind the other; each face goes in one message."""
    shape, grid = (4 * context.size, extent, extent), (context.size, 1, 1)
    field = tw.field(shape, init=lambda i, j, k: i, halo=(1, 0, 0), grid=grid, context=context)
    handle = tw.exchange(field, corners=False, start=False)

    def check():
        first = field.owned[0].start - (context.rank > 0)
        refuse(context, "bench cards: halo", bool((field.local[:, 0, 0] == first + np.arange(len(field.local))).all()))

    return handle.run, check, lambda: context._core.machine().other_host.message_s(8 * extent**2)


def _product(context, n):
    a, b, c = (
        tw.linalg.matrix((n, n), init=init, layout=layout, context=context)
        for init, layout in ((uniform, "rows"), (other, "columns"), (None, "rows"))
    )

    def check():
        k = np.arange(n)
        right = not c.local.size or abs(float(uniform(c.rows[0], k) @ other(k, 1)) - c.local[0, 1]) < 1e-10 * n
        refuse(context, "bench cards: product", right)

    return lambda: tw.linalg.matmul(a, b, c, context=context), check, lambda: c.report.plan.predicted_s


# --- here -----------------------------------------------------------------------------------------


def cards(json_path=None, quick=False, args=()):
    """How many times as fast two links are as one."""
    parser = parser_of("cards", __doc__)
    parser.add_argument("--rate", default="1gbit", help="of each link (default 1gbit)")
    parser.add_argument("--ranks", type=int, default=HOSTS, help="on both hosts together (default 2)")
    parser.add_argument("--product", type=int, default=512, help="rows of its matrices (default 512)")
    parser.add_argument("--repeats", type=int, default=9, help="turns (default 9)")
    options = parser.parse_args(list(args))
    arguments = {
        "spread_mb": 0.1 if quick else 8,
        "face": 64 if quick else 512,
        "product": 64 if quick else options.product,
        "repeats": 1 if quick else options.repeats,
    }
    found = {}
    for links in LINKS:
        settings = rails({f"eth{k}": 0 for k in range(links)})
        with cluster_tool("cards").Cluster(HOSTS, options.rate, "twcards", links=links) as cluster:
            found[links] = on_ranks(WORKER, options.ranks, arguments, runner=on_hosts(cluster, env=settings))
    rows = []
    for case, (one, _) in found[1].items():
        for links in LINKS:
            seconds, predicted_s = found[links][case]
            gain = statistics.median(one) / statistics.median(seconds)
            name = f"{links} link{'s' * (links > 1)} of {options.rate}, {options.ranks} ranks"
            rows.append(row(case, name, [1e3 * s for s in seconds], "ms", ratio_to_contender=gain))
            rows.append(row(case, f"{links}: prediction error", [error_percent(predicted_s, seconds)], "%"))
    publish("cards", rows, json_path)


WORKER = "bench.cards"
