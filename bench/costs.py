"""What functions, updates, norms, sums and records cost, one lane: against NumPy, Numba or the nest without them.

``tilewave bench costs [--case NAME,...] [--json FILE] [--quick]``; cases: functions (of independent points, against
NumPy on whole arrays), dependent (an exponential of the point before), order (``S[b] = max(S[b], h)``), norms (in the
sweep, and looked at each tenth time), sums (exact ones of short rows), records (200 receivers of a wave).
"""

import numpy as np
import tilewave as tw

from bench import costs_bodies as bodies
from bench.contenders import plain
from bench.runner import Own, benchmark, compared, lanes, must_equal, own, raced

#: What NumPy does with whole arrays, of nests with independent points.
WHOLE = {"functions": lambda B: np.exp(-B) * 0.5 + np.sin(B), "exp": np.exp, "log": np.log}


def _raced(case, runs, points, options, against=None):
    """Rows in ns a point; the ratio of ours is the time of `against`, or of the best other one, to ours."""
    return compared(case, raced(lanes(1), runs, options.repeats), "ns/point", points, against=against)


def functions(options):
    """NumPy's functions of arrays in the second-level cache, with NumPy's bits; with fastmath against Numba's."""
    n, rows, context = 50 if options.quick else 200, [], lanes(1)
    for dtype in ("f8", "f4"):
        start = np.random.default_rng(1).uniform(0.1, 3, (n, n)).astype(dtype)
        for name, whole in WHOLE.items():
            A, B = (tw.field((n, n), dtype, init=init, context=context) for init in (None, start))
            given = {"A": A, "B": B, "context": context}
            tw.run(nest := getattr(bodies, name), **given)
            must_equal(f"bench costs: {name}", {"tilewave": A.gather(), "NumPy": whole(start)})
            runs = {"NumPy, whole arrays": lambda whole=whole, a=start: whole(a), "tilewave": own(nest, **given)}
            rows += _raced(f"{name}, {dtype}", runs, n * n, options)
        runs = {"tilewave, fastmath": own(bodies.functions, **given, fastmath=True)}
        if loops := plain(bodies.functions, "i in range(len(A))", "j in range(len(A))", fastmath=True):
            runs["Numba, fastmath"] = lambda loops=loops, a=start: loops(np.empty_like(a), a)
        rows += _raced(f"functions, fastmath, {dtype}", runs, n * n, options)
    return rows


def dependent(options):
    n, rows, context = 50 if options.quick else 1500, [], lanes(1)
    for dtype in ("f8", "f4"):
        start = np.random.default_rng(1).uniform(0, 3, (n, n)).astype(dtype)
        A, B = (tw.field((n, n), dtype, init=init, context=context) for init in (0.1, start))
        runs = {"tilewave": own(bodies.dependent, A=A, B=B, context=context)}
        if loops := plain(bodies.dependent, "i in range(1, len(A))", "j in range(1, len(A))"):
            given = np.full((n, n), 0.1, dtype), start
            runs["plain loops, Numba"] = lambda loops=loops, given=given: loops(*given)
        rows += _raced(f"dependent exp, {dtype}", runs, (n - 1) ** 2, options)
    return rows


def order(options):
    pairs, n = (4, 30) if options.quick else (64, 200)
    random, context = np.random.default_rng(1), lanes(1)
    X, Y = random.integers(0, 4, (2, pairs, n)).astype("i2")
    arrays = lambda: {"H": np.zeros((pairs, n, n), "i2"), "S": np.zeros(pairs, "i2")}
    ours, theirs = arrays(), arrays()
    runs = {"tilewave": own(bodies.best_of_each, **ours, X=X, Y=Y, context=context)}
    around = "b in range(len(H))", *(f"{index} in range(1, H.shape[1])" for index in "ij")
    if loops := plain(bodies.best_of_each, *around):
        runs["plain loops, Numba"] = lambda: loops(*theirs.values(), X, Y)
    rows = _raced(f"best of each of {pairs} tables of {n}^2", runs, pairs * (n - 1) ** 2, options)
    must_equal("bench costs: order", {"tilewave": ours["S"], "Numba": theirs["S"] if loops else None})
    return rows


def norms(options):
    """Sweeps of over-relaxation; then some that are looked at each tenth time."""
    n, sweeps, context = 40 if options.quick else 400, 10 if options.quick else 300, lanes(1)
    f, points = tw.field((n, n), init=float(n) ** -2, context=context), sweeps * (n - 2) ** 2

    def run(*reductions, times=sweeps, **more):
        u = tw.field((n, n), init=lambda i, j: 1.0 * (i == 0), context=context)
        chain = tw.chain([tw.bind(bodies.relax, u=u, f=f, w=1.5, reduce=r, context=context) for r in reductions])
        return lambda: Own(chain.run(times=times, **more).measured.time_s)

    two, largest = {"x": tw.norm("d")}, {"x": tw.norm("d", ord=np.inf)}
    runs = {
        "tilewave, no norm": run(None),
        "tilewave, norm 2": run(two, until={"x": -1.0}),
        "tilewave, norm inf": run(largest, until={"x": -1.0}),
    }
    rows = _raced(f"over-relaxation {n}^2", runs, points, options, "tilewave, no norm")
    none = "tilewave, nine sweeps without a norm and one with"
    runs = {
        none: run(*[None] * 9, two, times=sweeps // 10, until={"x": 0.0}),
        "tilewave, every=10": run(two, until={"x": 0.0}, every=10),
    }
    return rows + _raced(f"over-relaxation {n}^2, looked at each tenth time", runs, points, options, none)


def sums(options):
    rows, context, shape = [], lanes(1), (30, 16) if options.quick else (62, 62, 62)
    u, v = (tw.field(np.random.default_rng(k).normal(size=shape), context=context) for k in (1, 2))
    a, b = (np.ascontiguousarray(each.gather()) for each in (u, v))
    for name, ours, theirs in (
        ("sum", lambda: tw.sum(u), a.sum),
        ("norm", lambda: tw.norm(u), lambda: np.sqrt((a**2).sum())),
        ("dot", lambda: tw.dot(u, v), lambda: np.add.reduce(a * b, None)),
    ):
        runs = {"NumPy, not exact": theirs, "tilewave": ours}
        rows += _raced(f"exact {name} of {'x'.join(map(str, shape))}", runs, a.size, options)
    return rows


def records(options):
    n, steps, context = 60 if options.quick else 700, 10 if options.quick else 200, lanes(1)
    c = tw.field((n, n), init=0.2, context=context)
    receivers = [(n // 2, k) for k in np.linspace(1, n - 2, min(n - 2, 200)).astype(int).tolist()]
    runs = {}
    for name, more in {"no receivers": {}, f"{len(receivers)} receivers": {"record": {"u": receivers}}}.items():
        u = tw.field((n, n), init=lambda i, j: 1.0 * (i == j), context=context)
        runs[f"tilewave, {name}"] = own(bodies.wave, u=u, c=c, steps=steps, context=context, **more)
    points = steps * (n - 2) ** 2
    return _raced(f"wave {n}^2, {steps} steps", runs, points, options, "tilewave, no receivers")


CASES = {
    "functions": functions,
    "dependent": dependent,
    "order": order,
    "norms": norms,
    "sums": sums,
    "records": records,
}


@benchmark("costs", __doc__, cases=CASES, repeats=7)
def costs(options):
    for name in options.case:
        yield from CASES[name](options)
