"""Kinds of nests, by each door and with each feature: what a cell of the table runs, and what plain loops make of it.

The table itself is `kinds_table.py`; `tools/kinds.py` makes a page of it.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re

import numpy as np
from local_ranks import on_ranks
from plain_loops import Times
from random_programs.plain import Functions

import tilewave as tw
from tilewave.cli import plan_script
from tilewave.context import dry_run

DOORS = "run", "bind", "chain", "several", "plan", "schedule", "measure", "dry run"
STEPS, RUNS, LONG_S = 4, 2, 100  # time steps of a run; runs of what is bound; seconds after which a run hangs


@dataclasses.dataclass(frozen=True)
class Body:
    """A body, as text, and what it is given.

    Attributes
    ----------
    text : str
        Of the function. Its local `d` is reduced.
    loops : dict
        From indices, but for time, to half-open ranges: the largest box.
    arrays : dict
        From names to shapes.
    times : str
        Names of the arrays that lack a dimension for time; "" for a body without time steps.
    tables, integers, windows : str
        Names of NumPy arrays, of arrays of integers, and of fields that keep a rolling window only.
    stride : str
        The loop that has a stride.
    periodic : tuple
        The loop that wraps around, and its elements.
    cut : int
        Which loop is divided among ranks where that is fixed; None: it cannot be fixed.
    lanes : dict
        What a plan says, beside the lanes, where no factors are allowed.
    """

    text: str
    loops: dict
    arrays: dict
    times: str = ""
    tables: str = ""
    integers: str = ""
    windows: str = ""
    stride: str = "j"
    periodic: tuple = ("j", 10)
    cut: int | None = 0
    lanes: dict = dataclasses.field(default_factory=dict)
    scalars: dict = dataclasses.field(default_factory=dict)

    def changed(self, old="", new="", text=None, **more):
        """The same with other text in place of some, or another text, and other facts."""
        assert old in self.text, old
        return dataclasses.replace(self, text=text or self.text.replace(old, new, 1 + 9 * bool(old)), **more)

    def backwards(self):
        """The same with time that runs the other way."""
        return self.changed(text=self.text.replace("t+1", "t!").replace("t-1", "t+1").replace("t!", "t-1"))

    def written(self):
        return [name for name in self.arrays if f"    {name}[" in self.text]

    def values(self):
        """The arrays before the run. A window does not depend on its first index."""
        rng = np.random.default_rng(7)
        made = {}
        for name, shape in self.arrays.items():
            scale, dtype = (3, "i8") if name in self.integers else (1, "f8")
            made[name] = (scale * rng.random(shape)).astype(dtype)
            if name in self.windows:
                made[name][...] = begin_of_window(*np.indices(shape))
        return made


def begin_of_window(*index):
    return 0.25 * sum(index[1:])


@dataclasses.dataclass(frozen=True)
class Kind:
    """A body without time steps, one with them, and one for periodic loops, where they differ; or several nests."""

    plain: Body | None = None
    timed: Body | None = None
    wrapped: Body | None = None
    window: Body | None = None
    second: str = ""  # the text of a second nest of each time step


CONSTANT = Body(
    "def body(u, f, i, j):\n    d = 0.5 * (u[i-1, j] + u[i, j-1]) + f[i, j]\n    u[i, j] = d",
    {"i": (1, 9), "j": (1, 10)},
    {"u": (9, 10), "f": (9, 10)},
)
HEAT = Body(
    "def body(u, f, t, i, j):\n"
    "    d = 0.25 * (u[t, i-1, j] + u[t, i+1, j] + u[t, i, j-1] + u[t, i, j+1]) + f[i, j]\n    u[t+1, i, j] = d",
    {"i": (1, 8), "j": (1, 9)},
    {"u": (9, 10), "f": (9, 10)},
    times="u",
)
READ = Body(
    "def body(c, u, i, j):\n    d = 0.5 * (u[2*i, j] + u[2*i+1, j])\n    c[i, j] = c[i, j] + d",
    {"i": (0, 6), "j": (0, 9)},
    {"c": (6, 9), "u": (12, 9)},
    periodic=("j", 9),
)
READ_IN_TIME = Body(
    "def body(c, u, t, i, j):\n    d = 0.5 * (u[t, 2*i, j] + u[t, 2*i+1, j])\n    c[t+1, i, j] = c[t, i, j] + d",
    {"i": (0, 6), "j": (0, 9)},
    {"c": (6, 9), "u": (12, 9)},
    times="cu",
    periodic=("j", 9),
)
WRITTEN = Body(
    "def body(u, c, i, j):\n    d = 0.5 * (u[2*i, j] + u[2*i+2, j]) + c[i, j]\n    u[2*i+1, j] = d",
    {"i": (0, 6), "j": (0, 9)},
    {"u": (13, 9), "c": (6, 9)},
    periodic=("j", 9),
)
WRITTEN_IN_TIME = Body(
    "def body(u, c, t, i, j):\n"
    "    d = 0.5 * (u[t, 2*i, j] + u[t, 2*i+2, j]) + c[i, j]\n    u[t+1, 2*i+1, j] = d",
    {"i": (0, 6), "j": (0, 9)},
    {"u": (13, 9), "c": (6, 9)},
    times="u",
    periodic=("j", 9),
)
TABLE = CONSTANT.changed(
    "f[i, j]", "w[f[i, j]]", arrays={"u": (9, 10), "f": (9, 10), "w": (3,)}, tables="w", integers="f"
).changed("(u, f,", "(u, f, w,")
TABLE_IN_TIME = HEAT.changed("f[i, j]", "w[f[i, j]]", arrays=TABLE.arrays, tables="w", integers="f").changed(
    "(u, f,", "(u, f, w,"
)
ANY_ORDER = Body(
    "def body(u, S, x, b, i, j):\n    d = x[b, i, j] + max(u[b, i-1, j], u[b, i, j-1])\n    u[b, i, j] = d\n"
    "    S[i] = S[i] + d",
    {"b": (0, 4), "i": (1, 5), "j": (1, 6)},
    {"u": (4, 5, 6), "S": (5,), "x": (4, 5, 6)},
    integers="uSx",
    periodic=("b", 4),
)
ANY_ORDER_IN_TIME = Body(
    "def body(u, S, x, t, b, i, j):\n    d = x[b, i, j] + max(u[t, b, i-1, j], u[t, b, i, j-1])\n"
    "    u[t+1, b, i, j] = d\n    S[t+1, i] = S[t+1, i] + d",
    {"b": (0, 4), "i": (1, 5), "j": (1, 6)},
    {"u": (4, 5, 6), "S": (STEPS + 1, 5), "x": (4, 5, 6)},
    times="u",
    integers="uSx",
    periodic=("b", 4),
)
ANY_ORDER_WRAPPED = Body(
    "def body(S, x, b, i, j):\n    d = x[b-1, i, j] + x[b, i, j-1]\n    S[i] = S[i] + d",
    {"b": (0, 4), "i": (0, 5), "j": (1, 6)},
    {"S": (5,), "x": (4, 5, 6)},
    integers="Sx",
    periodic=("b", 4),
)
BATCH = Body(
    "def body(D, S, x, b, i, j):\n    d = x[b, i] + min(D[b, i-1, j], D[b, i, j-1])\n    D[b, i, j] = d\n    S[b] = d",
    {"b": (0, 20), "i": (1, 5), "j": (1, 6)},
    {"D": (20, 5, 6), "S": (20,), "x": (20, 5)},
    windows="D",
    periodic=("b", 20),
)
BATCH_IN_TIME = Body(
    "def body(D, S, x, t, b, i, j):\n    d = x[b, i] + min(D[t+1, b, i-1, j], D[t, b, i, j-1])\n"
    "    D[t+1, b, i, j] = d\n    S[t+1, b] = d",
    {"b": (0, 20), "i": (1, 5), "j": (1, 6)},
    {"D": (20, 5, 6), "S": (STEPS + 1, 20), "x": (20, 5)},
    times="D",
    periodic=("b", 20),
)
GATHERED = Body(
    "def body(V, T, k, s, *, n):\n    d = max(V[k-1, q] + T[q, s] for q in range(n))\n    V[k, s] = d",
    {"k": (1, 6), "s": (0, 9)},
    {"V": (6, 9), "T": (9, 9)},
    tables="T",
    stride="s",
    periodic=("s", 9),
    cut=1,
    lanes={"grid": (1, 1)},
    scalars={"n": 9},
)
GATHERED_IN_TIME = Body(
    "def body(V, T, t, s, *, n):\n    d = max(V[t, q] + T[q, s] for q in range(n))\n    V[t+1, s] = d",
    {"s": (0, 9)},
    {"V": (9,), "T": (9, 9)},
    times="V",
    tables="T",
    stride="s",
    periodic=("s", 9),
    lanes={"grid": (1, 1)},
    scalars={"n": 9},
)
PIVOT = Body(
    "def body(D, k, i, j):\n    d = D[i, k] + D[k, j]\n    D[i, j] = min(D[i, j], d)",
    {"k": (0, 9), "i": (0, 9), "j": (0, 9)},
    {"D": (9, 9)},
    periodic=("i", 9),
    cut=None,
)
ROWS = HEAT.changed(text=HEAT.text + "\n    w[t // 3, i, j] = u[t, i, j]", arrays={**HEAT.arrays, "w": (2, 9, 10)})
ROWS = ROWS.changed("(u, f,", "(u, f, w,")

KINDS = {
    "constant offsets": Kind(CONSTANT, HEAT),
    "factors of what is read": Kind(READ, READ_IN_TIME),
    "factors of what is written": Kind(WRITTEN, WRITTEN_IN_TIME),
    "look-up tables": Kind(TABLE, TABLE_IN_TIME),
    "updates in any order": Kind(ANY_ORDER, ANY_ORDER_IN_TIME, ANY_ORDER_WRAPPED),
    "batches": Kind(BATCH, BATCH_IN_TIME),
    "loops in the body": Kind(GATHERED, GATHERED_IN_TIME),
    "a pivot": Kind(PIVOT),
    "step rows": Kind(None, ROWS),
    "several nests": Kind(
        None, HEAT, second="def second(v, u, t, i, j):\n    v[t+1, i, j] = 0.5 * v[t, i, j] + u[t+1, i-1, j]"
    ),
}
#: The other nest of a time step: over as many loops, so that ranks may divide both alike.
BESIDE = "def second(z, t, {0}):\n    z[t+1, {0}] = 0.5 * z[t, {0}] + 1.0"
BESIDE_EXTENT = 7


@dataclasses.dataclass
class Call:
    """What one cell runs."""

    body: Body
    second: str = ""
    ranks: int = 2
    lanes: int = 1
    fixed: bool = True  # whether the division among ranks is given where that is possible
    history: bool = False
    keywords: dict = dataclasses.field(default_factory=dict)  # of `tw.run`
    repetitions: bool = False  # whether points and reductions are of each repetition, in place of each time step

    @property
    def bodies(self):
        """Of the nests of a time step: the second one runs over the same loops, or one of its own."""
        if not self.second:
            return [self.body]
        if "{0}" not in self.second:
            v = {"v": self.body.arrays["u"]}
            return [self.body, Body(self.second, {"i": (1, 9), "j": (0, 10)}, v, times="vu")]
        own = "pqr"[: len(self.body.loops)]
        z, loops = {"z": (BESIDE_EXTENT,) * len(own)}, dict.fromkeys(own, (0, BESIDE_EXTENT))
        return [self.body, Body(self.second.format(", ".join(own)), loops, z, times="z" + self.body.times)]


REDUCED = {"reduce": {"total": tw.sum("d"), "most": tw.max("d")}}


def call_of(kind, feature, door):
    """The call of a cell; None where the kind has no such form."""
    timed = door == "several" or kind.plain is None or feature.split("+")[0] in ("steps", "back", "history")
    timed = timed or feature in ("points", "until") and door != "chain"
    body = kind.timed if timed else kind.plain
    if body is None:
        return None
    call, keywords = Call(body, kind.second), {}
    if door == "several":
        call.second = BESIDE
    if feature == "ranks":
        call.ranks = 3
    elif feature == "lanes":
        call.ranks, call.lanes = 1, 2
    elif feature == "periodic":
        body = kind.wrapped if kind.wrapped and door != "several" else kind.timed or body
        timed = bool(body.times)
        index, extent = body.periodic
        call.body = body = body.changed(loops={**body.loops, index: (0, extent)})
        keywords["periodic"] = (index,)
    elif feature.startswith("strides"):
        low, high = body.loops[body.stride]
        keywords["over"] = {body.stride: (low, high, 2)}
        keywords |= REDUCED if feature.endswith("+") else {}
    elif feature == "affine":
        outer, inner = [*body.loops][-2:] if len(body.loops) > 1 else ("t", [*body.loops][-1])
        keywords["over"] = {inner: (outer, body.loops[inner][1])}
        if not timed and len(body.loops) < 2:
            return None
    elif feature.startswith("back"):
        call.body, keywords["reverse"] = body.backwards(), ("t",)
        call.second = call.second and Body(call.second, {}, {}).backwards().text
        keywords |= REDUCED if feature.endswith("+") else {}
    elif feature == "history":
        name = body.written()[0]
        at = body.text.split(f"    {name}[t+1")[1].split("]")[0]
        factor = 3 if name in body.integers else 0.125
        call.body, call.history = body.changed(" d = ", f" d = {factor} * {name}[t-1{at}] + "), True
    elif feature == "reduce":
        keywords |= REDUCED
    elif feature == "points":
        name = next(name for name in body.written() if name not in body.windows)
        points = [(1,) * len(body.arrays[name]), (3, *(2,) * (len(body.arrays[name]) - 1))]
        values = np.arange(2.0 * STEPS).reshape(STEPS, 2)[: RUNS if door == "chain" else STEPS]
        values = values.astype("i8") if name in body.integers else values
        keywords |= {"inject": {name: (points, values)}, "record": {name: points}}
    elif feature == "window":
        call.body = kind.window or body.changed(windows=body.windows or body.written()[0])
        if call.body.written() == [call.body.windows] and not call.second and door != "schedule":
            keywords |= REDUCED
    elif feature == "until":
        keywords = {**REDUCED, "until": {"most": 0.0}}
    if timed:
        keywords["steps"] = STEPS
    call.keywords, call.repetitions = keywords, door == "chain"
    return call


class Wrapped:
    """An array whose subscripts wrap around."""

    def __init__(self, array):
        self.array, self.shape = array, array.shape

    def _at(self, at):
        return tuple(s % n for s, n in zip(at if isinstance(at, tuple) else (at,), self.shape, strict=True))

    def __getitem__(self, at):
        return self.array[self._at(at)]

    def __setitem__(self, at, value):
        self.array[self._at(at)] = value


def plain(call, runs):
    """(arrays, results, recorded) after some runs, by plain loops."""
    bodies, keywords, seen = call.bodies, call.keywords, []
    steps, back = keywords.get("steps"), "reverse" in keywords
    arrays = {name: value for body in bodies[::-1] for name, value in body.values().items()}
    times = {name for body in bodies for name in body.times}
    functions = [function_of(body, keywords.get("reduce") and body is call.body, seen) for body in bodies]
    levels = {name: [arrays[name].copy()] for name in times}  # of the last time step, and those before it
    recorded = {name: [] for name in keywords.get("record", {})}
    for run in range(runs):
        seen.clear()
        for name in call.body.windows:
            arrays[name] = call.body.values()[name]
            levels[name] = [arrays[name].copy()]
        if steps is None:
            run_loops(call, bodies[0], functions[0], arrays, seen)
        given, depth = dict(arrays), 1
        for name in times if steps else ():
            before = (levels[name] + [levels[name][0]] * depth)[: depth + 1][::-1]
            all_times = np.array([*before, *[before[-1]] * steps])
            given[name] = Times(all_times[::-1].copy() if back else all_times, 0 if back else depth)
        for each in recorded.values() if not call.repetitions else ():
            each.clear()
        for number in range(steps or 0):
            t, ahead = (steps - number, -1) if back else (number, 1)
            if "until" in keywords and not call.repetitions or len(bodies) > 1:  # they are of the last time step
                seen.clear()
            for name in times & {n for body in bodies for n in body.written()}:
                given[name][t + ahead,] = given[name][t,]
            for body, function in zip(bodies, functions, strict=True):
                run_loops(call, body, function, given, seen, t)
            if not call.repetitions:
                visit(call, {name: given[name][t + ahead,] for name in times}, number, recorded)
        for name in times if steps else ():
            last = 0 if back else steps
            levels[name] = [given[name][last - k if not back else k,].copy() for k in range(depth + 1)]
            arrays[name] = levels[name][0]
        if call.repetitions:
            visit(call, arrays, run, recorded)
            for name in times:
                levels[name][0] = arrays[name]
    results = {"total": math.fsum(map(float, seen)), "most": max(seen)} if seen else {}
    results = {name: results[name] for name in keywords.get("reduce", {})}
    return arrays, results, {name: np.array(rows) for name, rows in recorded.items()}


def visit(call, arrays, row, recorded):
    """Add a row of values to elements, and record elements."""
    for name, (points, values) in call.keywords.get("inject", {}).items():
        np.add.at(arrays[name], tuple(np.transpose(points)), values[row])
    for name, points in call.keywords.get("record", {}).items():
        recorded[name].append(arrays[name][tuple(np.transpose(points))])


def function_of(body, reduced, seen):
    """The Python function of a body, which notes what is reduced."""
    namespace = {"np": np, "tw": Functions, "seen": seen}
    exec(body.text + ("\n    seen.append(d)" if reduced else ""), namespace)
    return namespace[body.text.split("(")[0].removeprefix("def ")]


def run_loops(call, body, function, arrays, seen, t=None):
    """The loops in space."""
    over, wraps = call.keywords.get("over", {}), "periodic" in call.keywords
    names = [name.strip() for name in body.text.split("(")[1].split(")")[0].split(",")]
    names = [name for name in names if name != "*"]

    def level(indices, place):
        if not indices:
            given = {**arrays, **place, **body.scalars}
            if wraps:
                given |= {name: wrapped(given[name], name in body.times) for name in body.arrays}
            function(**{name: given[name] for name in names})
            return
        index = indices[0]
        low, high, *step = over.get(index, body.loops[index])
        low = max(place[low], body.loops[index][0]) if isinstance(low, str) else low
        for at in range(low, high, *step):
            level(indices[1:], {**place, index: at})

    level([*body.loops], {} if t is None else {"t": t})


class WrappedTimes(Wrapped):
    """One with time steps, which do not."""

    def __init__(self, times):
        self.times, self.array, self.shape = times, times, times.all_times.shape[1:]

    def _at(self, at):
        return at[0], *Wrapped._at(self, at[1:])


def wrapped(array, in_time):
    return WrappedTimes(array) if in_time and isinstance(array, Times) else Wrapped(array)


@functools.lru_cache(512)
def nest_of(text):
    """The nest of a text: all ranks and doors may have one."""
    return tw.nest_from(text, {"tw": tw})


@dataclasses.dataclass
class Cell:
    """One run of a call through a door: what it leaves, and how it went."""

    call: Call
    door: str
    predicted: bool = False  # whether a prediction is asked for

    def arrays(self, context):
        call, given = self.call, {}
        for body in call.bodies[::-1]:
            for name, value in body.values().items():
                if name in body.tables:
                    given[name] = value
                    continue
                window = name in body.windows
                given[name] = tw.field(
                    value.shape, value.dtype, begin_of_window if window else value, context=context,
                    keep="window" if window else "all", history=int(call.history and name in body.times),
                )  # fmt: skip
        return given

    def keywords(self, context, nests, fixed):
        call, found = self.call, dict(self.call.keywords)
        loops = len(call.body.loops) + bool(call.body.times)
        cut = (call.body.cut or 0) + bool(call.body.times)
        if fixed and call.body.cut is not None and call.ranks > 1:
            found["plan"] = {"grid": tuple(call.ranks if d == cut else 1 for d in range(loops))}
        if call.lanes > 1:
            factors = tuple(call.lanes if d == cut else 1 for d in range(loops))
            lanes = {**call.body.lanes, "threads": call.lanes}
            found["plan"] = {"factors": factors} if fixed and not call.body.lanes else lanes
        return {**found, **call.body.scalars, "context": context}

    def run(self, context):
        """(how, why, arrays, results, recorded) on a rank. The division among ranks is fixed where that is allowed."""
        nests = tuple(nest_of(body.text) for body in self.call.bodies)
        for fixed in (True, False):
            given = self.arrays(context)
            try:
                return self.through(nests, given, self.keywords(context, nests, fixed))
            except tw.ConfigError as error:
                if not fixed or not re.search("grid|factors|lanes", str(error)):
                    raise
        raise AssertionError

    def through(self, nests, given, keywords):
        """(how, why, arrays, results, recorded) of the door itself."""
        door, nest = self.door, nests if len(nests) > 1 else nests[0]
        report, plans, apart, predicted_s = None, [], "", None
        if door == "plan":
            found = tw.plan(nest, **given, **keywords)
            plans = found if len(nests) > 1 else [found]
        elif door == "schedule":
            made = tw.schedule(nest, **given, **keywords)
            wrong = tw.check(made)
            assert wrong is None, wrong
            predicted_s = tw.predict(made).time_s
            ranks = len(made._cores)
        elif door == "measure":
            found = tw.measure(True, nest=nest, **given, **keywords)
            predicted_s = all(found.kernels[each.name]["point_s"] for each in nests)
            ranks = self.call.ranks
        elif door == "bind":
            bound = tw.bind(nest, **given, **keywords)
            for _ in range(RUNS):
                report = bound.run()
            plans = bound.plans if len(nests) > 1 else [bound.plan]
            apart = getattr(report, "separate", "")
        elif door == "chain":
            points = {name: keywords.pop(name) for name in ("inject", "record") if name in keywords}
            until = {"until": keywords.pop("until")} if "until" in keywords else {}
            chain = tw.chain([tw.bind(nest, **given, **keywords)], **points)
            report = chain.run(times=RUNS, **until)
            apart, plans = chain.separate, chain.plans
        else:
            report = tw.run(nest, **given, **keywords)
            several = hasattr(report, "by_nest")
            plans = [each.plan for each in report.by_nest] if several else [report.plan]
            apart = report.separate if several else ""
        if plans:
            ranks = max(math.prod(plan.grid) for plan in plans)
            predicted_s = all(plan.predicted and plan.predicted.time_s for plan in plans)
        order = "; ".join(filter(None, (plan.notes.get("sequential") for plan in plans)))
        how = "a" if apart else "y"
        if order or ranks == 1 < self.call.ranks:
            how = "o" if order else "r"
        why = order or apart
        if self.predicted:
            how, why = ("y", "") if predicted_s else ("n", "the plan has no predicted time")
        arrays = {n: v.gather() for n, v in given.items() if isinstance(v, tw.Field) and v.keep == "all"}
        if report is None or door == "dry run":
            return how, why, {}, {}, {}
        return how, why, arrays, report.results, getattr(report, "recorded", {})


def is_taken(feature, door):
    """Whether a door has a parameter for a feature."""
    if feature == "points":
        return door not in ("plan", "schedule", "measure")
    if feature == "until":
        return door not in ("bind", "plan", "schedule", "measure")
    if feature == "time":
        return door not in ("measure", "dry run")
    return door != "schedule" or feature != "reduce" and "+" not in feature  # strides+: with reduce=


def outcome(kind, feature, door):
    """(how a cell runs, why not otherwise): the results of a run are compared with the plain loops, bit for bit."""
    if not is_taken(feature, door):
        return "x", ""
    call = call_of(kind, feature, door)
    if call is None:
        return ".", ""
    cell = Cell(call, door, feature == "time")
    if door == "dry run":
        return dry(cell)
    results, errors = on_ranks(call.ranks, call.lanes, cell.run, LONG_S)
    if any(errors):
        error = next(filter(None, errors))
        if not all(isinstance(each, tw.ConfigError) for each in errors):
            raise error
        assert len({str(each) for each in errors}) == 1, errors
        return "-", str(error)
    how, why, arrays, found, recorded = results[0]
    wanted, numbers, rows = plain(call, RUNS if door in ("bind", "chain") else 1) if arrays else ({}, {}, {})
    for name, array in arrays.items():
        assert array.tobytes() == wanted[name].tobytes(), (name, array, wanted[name])
    for name, number in numbers.items():
        assert found[name] == number, (name, found[name], number)
    for name, values in rows.items():
        assert recorded[name].tobytes() == values.tobytes(), name
    return how, why


def dry(cell):
    """How a run would go that is only planned, where it is counted."""
    launch = dry_run.Launch(cell.call.ranks, cell.call.lanes, None, "")
    with plan_script._dry("kinds.py", [], launch):
        try:
            how, why, *_ = cell.run(tw.Context())
        except tw.ConfigError as error:
            return "-", str(error)
    counted = any(call.time_s > 0 and call.what[0].startswith("nest ") for call in launch.calls.predicted)
    return (how, why) if counted else ("n", "no time is counted")
