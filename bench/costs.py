"""What functions, updates, norms, sums and records cost, one lane: against NumPy, Numba or the nest without them.

``tilewave bench costs [--case NAME] [--json FILE] [--quick]``; NAME: functions (of independent points, against NumPy on
whole arrays), dependent (an exponential of the point before), order (``S[b] = max(S[b], h)``), norms (in the sweep, and
looked at each tenth time), sums (exact ones of short rows) or records (200 receivers of a wave), several with commas.
"""

import numpy as np
import tilewave as tw

from bench import costs_bodies as bodies
from bench.nests_race import lanes, race
from bench.results import compared, parser_of, publish, warn_of_load

ROUNDS = 7


def costs(json_path=None, quick=False, args=()):
    """Functions, updates, norms, sums and records of nests."""
    options = parser_of("costs", __doc__, CASES).parse_args(list(args))
    warn_of_load("costs")
    rows = []
    for name in options.case:
        rows += CASES[name](quick, 1 if quick else ROUNDS)
    publish("costs", rows, json_path)


def _raced(case, runs, points, repeats, against=None):
    """Rows in ns a point; the ratio of ours is the time of `against`, or of the best other one, to ours."""
    times = race({name: run for name, run in runs.items() if run}, repeats)
    return compared(case, times, lambda s: s / points * 1e9, "ns/point", against)


def _timed(nest, **arguments):
    """A run of a nest, in seconds of its report."""
    return lambda: tw.run(nest, **arguments).measured.time_s


def _untimed(function, *arguments):
    return function and (lambda: (function(*arguments), None)[1])


# --- cases ----------------------------------------------------------------------------------------


def functions(quick, repeats):
    """NumPy's functions of arrays in the second-level cache, with NumPy's bits; with fastmath against Numba's."""
    n, rows, context = 50 if quick else 200, [], lanes(1)
    for dtype in ("f8", "f4"):
        start = np.random.default_rng(1).uniform(0.1, 3, (n, n)).astype(dtype)
        for name, whole in bodies.WHOLE.items():
            nest = getattr(bodies, name)
            A, B = (tw.field((n, n), dtype, init=init, context=context) for init in (None, start))
            given = {"A": A, "B": B, "context": context}
            runs = {"NumPy, whole arrays": _untimed(whole, start), "tilewave": _timed(nest, **given)}
            runs["tilewave"]()
            if not np.array_equal(A.gather(), whole(start)):
                raise SystemExit(f"bench costs: {name}: the results are not equal bit for bit")
            rows += _raced(f"{name}, {dtype}", runs, n * n, repeats)
        loops = bodies.compiled(bodies.loops_of_functions, fastmath=True)
        runs = {"Numba, fastmath": _untimed(loops, np.empty_like(start), start)}
        runs["tilewave, fastmath"] = _timed(bodies.functions, **{**given, "fastmath": True})
        rows += _raced(f"functions, fastmath, {dtype}", runs, n * n, repeats)
    return rows


def dependent(quick, repeats):
    n, rows, context = 50 if quick else 1500, [], lanes(1)
    for dtype in ("f8", "f4"):
        start = np.random.default_rng(1).uniform(0, 3, (n, n)).astype(dtype)
        A, B = (tw.field((n, n), dtype, init=init, context=context) for init in (0.1, start))
        loops = bodies.compiled(bodies.loops_of_dependent)
        runs = {"plain loops, Numba": _untimed(loops, np.full((n, n), 0.1, dtype), start)}
        runs["tilewave"] = _timed(bodies.dependent, A=A, B=B, context=context)
        rows += _raced(f"dependent exp, {dtype}", runs, (n - 1) ** 2, repeats)
    return rows


def order(quick, repeats):
    pairs, n = (4, 30) if quick else (64, 200)
    random, context = np.random.default_rng(1), lanes(1)
    X, Y = random.integers(0, 4, (2, pairs, n)).astype("i2")
    arrays = lambda: {"H": np.zeros((pairs, n, n), "i2"), "S": np.zeros(pairs, "i2")}
    ours, theirs = arrays(), arrays()
    loops = bodies.compiled(bodies.loops_of_best)
    runs = {"plain loops, Numba": _untimed(loops, *theirs.values(), X, Y)}
    runs["tilewave"] = _timed(bodies.best_of_each, **ours, X=X, Y=Y, context=context)
    rows = _raced(f"best of each of {pairs} tables of {n}^2", runs, pairs * (n - 1) ** 2, repeats)
    if loops and not np.array_equal(ours["S"], theirs["S"]):
        raise SystemExit("bench costs: order: the results are not equal")
    return rows


def norms(quick, repeats):
    """Sweeps of over-relaxation; then some that are looked at each tenth time."""
    n, sweeps, context = 40 if quick else 400, 10 if quick else 300, lanes(1)
    f = tw.field((n, n), init=float(n) ** -2, context=context)

    def chain(*reductions):
        u = tw.field((n, n), init=lambda i, j: 1.0 * (i == 0), context=context)
        return tw.chain([tw.bind(bodies.relax, u=u, f=f, w=1.5, reduce=r, context=context) for r in reductions])

    def run(chain, times, **more):
        return lambda: chain.run(times=times, **more).measured.time_s

    found = {"2": {"x": tw.norm("d")}, "inf": {"x": tw.norm("d", ord=np.inf)}}
    runs = {"tilewave, no norm": run(chain(None), sweeps)}
    runs |= {f"tilewave, norm {name}": run(chain(reduce), sweeps, until={"x": -1.0}) for name, reduce in found.items()}
    rows = _raced(f"over-relaxation {n}^2", runs, sweeps * (n - 2) ** 2, repeats, "tilewave, no norm")
    none, looked = "tilewave, nine sweeps without a norm and one with", "tilewave, every=10"
    runs = {
        none: run(chain(*[None] * 9, found["2"]), sweeps // 10, until={"x": 0.0}),
        looked: run(chain(found["2"]), sweeps, until={"x": 0.0}, every=10),
    }
    return rows + _raced(
        f"over-relaxation {n}^2, looked at each tenth time", runs, sweeps * (n - 2) ** 2, repeats, none
    )


def sums(quick, repeats):
    rows, context = [], lanes(1)
    for shape in ((30, 16),) if quick else ((62, 62, 62),):
        u, v = (tw.field(np.random.default_rng(k).normal(size=shape), context=context) for k in (1, 2))
        a = [np.ascontiguousarray(each.gather()) for each in (u, v)]
        for name, ours, theirs in (
            ("sum", lambda u=u: tw.sum(u), lambda a=a: a[0].sum()),
            ("norm", lambda u=u: tw.norm(u), lambda a=a: np.sqrt((a[0] ** 2).sum())),
            ("dot", lambda u=u, v=v: tw.dot(u, v), lambda a=a: (a[0] * a[1]).sum()),
        ):
            runs = {"NumPy, not exact": _untimed(theirs), "tilewave": _untimed(ours)}
            rows += _raced(f"exact {name} of {'x'.join(map(str, shape))}", runs, u.gather().size, repeats)
    return rows


def records(quick, repeats):
    n, steps, context = 60 if quick else 700, 10 if quick else 200, lanes(1)
    c = tw.field((n, n), init=0.2, context=context)
    receivers = [(n // 2, k) for k in np.linspace(1, n - 2, min(n - 2, 200)).astype(int).tolist()]
    runs = {}
    for name, more in {"no receivers": {}, f"{len(receivers)} receivers": {"record": {"u": receivers}}}.items():
        u = tw.field((n, n), init=lambda i, j: 1.0 * (i == j), context=context)
        runs[f"tilewave, {name}"] = _timed(bodies.wave, u=u, c=c, steps=steps, context=context, **more)
    points = steps * (n - 2) ** 2
    return _raced(f"wave {n}^2, {steps} steps", runs, points, repeats, "tilewave, no receivers")


CASES = {
    "functions": functions,
    "dependent": dependent,
    "order": order,
    "norms": norms,
    "sums": sums,
    "records": records,
}
