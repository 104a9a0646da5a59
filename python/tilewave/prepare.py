"""What comes before a run: arguments are checked, the body compiled and its rate measured, a plan chosen, all agreed on."""
import dataclasses
import functools
import math
import warnings

import numpy as np

from tilewave import _core, machine, planning, reduction
from tilewave.bounds import Loops
from tilewave.body.streams import Staggered
from tilewave.compile import compile_kernel, kernel_key
from tilewave.context import resolve
from tilewave.errors import ConfigError
from tilewave.field import Field, Scratch, values_at
from tilewave.nest import Nest
from tilewave.plan import ALLOWED, CHOICES, Plan, choose, request_of
from tilewave.problem import check_arrays, make_problem
from tilewave.rate import BUDGET_S, LEAST_BUDGET_S, measured_rate
from tilewave.repeated import Call

# Keywords of later families of nests, refused by name until they run.
UNSUPPORTED = ("periodic",)
# Choices that name dimensions of tiles, which are then the loops'.
CUTS = {"grid", "tile", "factors", "mapping_dim", "skew", "time_block"}


@dataclasses.dataclass
class Ready:
    """All that a run needs; made on all ranks or on none."""

    context: object
    kernel: object
    sweep: object
    operands: list
    scalars: dict
    tables: dict
    copies: list  # (written array, aligned copy): written back after the run
    sequential: str
    arrays: dict
    small: list   # fields that every rank gets whole
    alone: bool   # one rank computes for all
    stored: list  # arrays that could keep their frontier only, but not in this run
    unset: dict   # of the others: what elements hold that nobody computes
    reductions: list
    dtypes: dict
    plan: Plan    # with what it is predicted to take


@dataclasses.dataclass
class Given:
    """The arguments of one call, checked on this rank."""

    nest: Nest
    loops: Loops
    plan: Plan
    choices: dict
    fastmath: bool
    arrays: dict      # as the core sees them
    whole: dict       # as they were given, fields in place of scratch
    small: list
    dtypes: dict
    scalars: dict
    tables: dict
    reductions: list
    reduce: dict
    threads: int
    key: tuple        # equal where a call can be repeated
    description: str = ""  # what must be equal on all ranks


@dataclasses.dataclass
class Prepared:
    """What a repeated call finds: problem and plan, schedule and kernel."""

    problem: object
    alone: bool
    context: object   # where the sweep runs
    choices: dict     # with the rows that suit the body
    sweep: object
    kernel: object
    made_from: tuple  # what the kernel was compiled from
    subscripts: dict  # of arrays kept in planes: the elements that points read and none computes
    plan: Plan = None
    number: int = 0   # stands for the plan in the agreement


def prepare(nest, context, loops, plan, fastmath, arguments, reduce):
    """Check, compile, measure, plan; agree. Collective.

    Repeated calls cost one small allreduce. Only when some rank has not prepared the call, or another plan for it,
    all ranks measure and plan together.

    Raises
    ------
    ConfigError
        On every rank alike.
    """
    context = resolve(context)
    if not context._asked:  # collective, so outside what may fail on one rank
        machine.of(context)
        context._asked = True
    given = found = draft = ready = error = None
    description = ""
    try:
        call = Call.of(nest, context, loops, plan, fastmath, arguments, reduce)
        known = call and call.known(context._calls)
        given = known or _check(nest, context, loops, plan, fastmath, arguments, reduce)
        found = context._prepared.get(given.key)
        if found is None:
            draft = _draft(context, given)
        else:
            ready = _bind(context, given, found)
        if not known:
            given.description = _description(given, (found or draft).problem)
        if call and not known:
            call.keep(context._calls, given)
        description = given.description
    except Exception as problem:
        error = problem
    if not context.agree(error, description, found.number if found else 0):
        ready = _decide(context, given, draft)
    if planning.wanted is not None:
        raise planning.Planned(ready.plan)
    return ready


def _decide(context, given, draft):
    """The plan, from numbers that all ranks have measured together; collective."""
    ready = error = prepared = other = None
    try:
        draft = draft or _draft(context, given)
        other = _row_major(context, given, draft)
    except Exception as problem:
        error = problem
    # What one rank computes for all, it alone measures.
    takes_part = error is None and (not draft.alone or context.rank == 0)
    samples = functools.cache(lambda: _sampled_in_turn(given, [draft, other] if other else [draft]))
    rate = measured_rate(context, None if error else _rate_key(given, draft),
                         (lambda: samples()[0]) if takes_part else None, 1 if error else draft.sweep.plan.lanes)
    try:
        if error is None:
            prepared = _planned(context, given, draft, rate)
            if other:
                rate = measured_rate(context, _rate_key(given, other), lambda: samples()[1], other.sweep.plan.lanes)
                prepared = _cheaper_storage(given, draft, prepared, _planned(context, given, other, rate))
            ready = _bind(context, given, prepared)
    except Exception as problem:
        error = problem
    context.agree(error, f"plan {prepared.plan.choices()}" if prepared else "")
    context._prepared[given.key] = prepared
    return ready


def _small_fields(nest, arrays, context, steps):
    """The fields that are only read and lack a loop index that ranks may cut: every rank gets them whole."""
    if context.size == 1:
        return []
    cut = set(nest.indices) - ({nest.time} if steps is not None else set())  # time stays whole on a rank
    return [name for name, axes in nest.axes.items()
            if isinstance(arrays[name], Field) and name not in nest.written and cut - set(axes)]


def _fields_for_scratch(nest, arrays, context, steps):
    """The fields of arrays that were given as scratch: along each index but time as long as the longest other array."""
    longest = {}
    for name, value in arrays.items():
        if isinstance(value, Scratch) or name not in nest.axes:
            continue
        for index, extent in zip(reversed(nest.axes[name]), reversed(getattr(value, "shape", ()))):
            longest[index] = max(longest.get(index, 0), extent)
    made = {}
    for name, value in arrays.items():
        if isinstance(value, Scratch):
            if name in nest.tables or name not in nest.written:
                raise ConfigError(f"array {name!r}: given scratch; allowed: where nest {nest.name!r} writes it")
            axes = nest.axes[name][steps is not None and nest.axes[name][0] == nest.time:]
            if missing := [index for index in axes if index not in longest]:
                raise ConfigError(f"array {name!r}: given scratch, and no other array has index {missing[0]!r}, "
                                  "from which its length would follow; allowed: a field with keep='frontier'")
            shape = tuple(longest[index] for index in axes)
            init = value.init if callable(value.init) else np.broadcast_to(np.asarray(value.init, value.dtype), shape)
            value = Field(context, shape, value.dtype, "frontier", init)
        made[name] = value
    return made


def _check(nest, context, loops, plan, fastmath, arguments, reduce):
    """The arguments as they are; local."""
    if not isinstance(nest, Nest):
        raise ConfigError(f"run: given {type(nest).__name__}; allowed: a function under @tilewave.nest")
    arrays, scalars, choices = _sort(nest, arguments)
    arrays = _fields_for_scratch(nest, arrays, context, loops.steps)
    check_arrays(nest, arrays, context)
    scalars = nest.bind_scalars(scalars)
    if plan is not None and not isinstance(plan, Plan):
        raise ConfigError(f"plan: given {type(plan).__name__}; allowed: a tilewave.Plan")
    if plan is not None and choices:
        raise ConfigError(f"plan= and {', '.join(choices)}= were both given; allowed: one of them")
    dtypes = {name: arrays[name].dtype for name in nest.arrays}
    tables = {name: arrays[name] for name in nest.tables}
    small = _small_fields(nest, arrays, context, loops.steps)
    seen = {name: np.zeros(value.shape, value.dtype) if name in small else value for name, value in arrays.items()}
    reductions = reduction.check(nest, reduce, dtypes)
    lie = tuple((isinstance(a, Field), a.shape, a.keep if isinstance(a, Field) else a.strides) for a in seen.values())
    key = ((kernel_key(nest, dtypes, scalars, fastmath), reduction.bests(reductions)), nest.name, nest.line, loops.key(nest), lie,
           plan and plan.choices(), repr(sorted(choices.items())), id(context._machine))
    return Given(nest, loops, plan, choices, fastmath, seen, arrays, small, dtypes, scalars, tables, reductions, reduce,
                 context.threads, key)


def _description(given, problem):
    """What must be equal on all ranks, as text."""
    nest, arrays, dtypes = given.nest, given.arrays, given.dtypes
    values = ", ".join(f"{name}={value!r}" for name, value in given.scalars.items())
    plan = f"plan {given.plan.choices()}" if given.plan else (
        ", ".join(f"{name}={value!r}" for name, value in sorted(given.choices.items())) or f"threads {given.threads}")
    return (f"nest {nest.name!r} {nest.signature()[:12]}, loops {problem.bounds.box} {problem.bounds.constraints} "
            f"downwards {problem.downwards} steps {given.loops.steps}, "
            f"{', '.join(f'{n}: {dtypes[n]} {arrays[n].shape} {_kind(arrays[n])}' for n in nest.arrays)}, scalars {values or 'none'}, "
            f"fastmath {given.fastmath}, {plan}, reductions {given.reduce!r}")


def _kind(array):
    """Of what is given for an array: it decides who has which elements."""
    return f"field {array._number}, keep {array.keep}" if isinstance(array, Field) else "NumPy array"


def _sort(nest, arguments):
    """Split keywords into arrays, scalars and choices; names of the nest come first."""
    arrays, scalars, choices = {}, {}, {}
    for name, value in arguments.items():
        if name in nest.arrays:
            arrays[name] = value
        elif name in nest.scalars:
            scalars[name] = value
        elif name in CHOICES or name == "threads":
            choices[name] = value
        elif name in UNSUPPORTED:
            raise ConfigError(f"{name}= is not supported by this version: nests run once, over a box")
        else:
            raise ConfigError(
                f"run: nest {nest.name!r} has no argument {name!r}; allowed: arrays "
                f"{', '.join(nest.arrays)}; scalars {', '.join(nest.scalars) or 'none'}; choices "
                f"{', '.join(CHOICES)}, threads")
    if missing := [name for name in nest.arrays if name not in arrays]:
        raise ConfigError(f"run: nest {nest.name!r} needs its array {missing[0]!r}")
    return arrays, scalars, choices


def _draft(context, given, alone=False):
    """The problem, and a sweep and a kernel by rules, to measure with; local.

    Where boxes of skewed loops would be mostly padding, arrays stay row-major, on one rank.
    """
    nest, arrays = given.nest, given.arrays
    problem = make_problem(nest, arrays, given.loops.over, given.loops.reverse, given.loops.steps)
    problem.core.once = bool(given.reductions)
    cuts = any(problem.core.may_cut(k) for k in range(nest.rank))
    alone = context.size > 1 and (alone or not cuts)
    numbers, everyone = context._core.machine(), context
    if alone:
        context = context.solo()
    choices, rows = given.choices, {}
    if skew := given.plan.skew if given.plan else choices.get("skew"):
        problem = dataclasses.replace(problem, core=_skewed(problem.core, skew))
        if context.size > 1 and not any(problem.core.may_cut(k) for k in range(nest.rank)):
            raise ConfigError(f"skew {skew} was given; so no loop index can be cut over {context.size} ranks; allowed: another or none")
    if given.plan is None and not {"row", "storage"} & choices.keys() and problem.core.planes[0] < 0:
        rows = _fast_rows(nest, problem, given.dtypes, given.scalars, given.fastmath)
        if rows and not CUTS & choices.keys():
            problem, rows = _along_rows(context, given, problem, rows)
        choices = {**choices, **rows}
    if given.plan is None:
        request = request_of(choices, context.threads)
        if planning.wanted is not None:  # the lanes that are here measure for those that are not
            request.threads = min(request.threads, len(_core.allowed_cpus()))
        try:
            core = _core.make_plan(problem.core, context.size, request, numbers)
        except ConfigError:
            if not rows:
                raise
            return _draft(everyone, dataclasses.replace(given, choices={**given.choices, "storage": "plain"}), alone)  # rows across would be mostly padding
        row = _core.row_of_blocks(problem.core, core)
        if rows and "skew" not in rows and row != core.row:  # ranks have cut what was the longer of its dimensions
            choices, request.row = {**choices, "row": row}, row
            core = _core.make_plan(problem.core, context.size, request, numbers)
        if context.size > 1 and "grid" not in given.choices and _core.mostly_padding(problem.core, core):
            return _draft(everyone, given, alone=True)
    else:
        core = given.plan._to_core()
    draft = Prepared(problem, alone, context, choices, None, None, (), {})
    return _with_plan(given, draft, core)


def _along_rows(context, given, problem, rows):
    """The problem cut along rows that go across two loops, where steps of time then go together or ranks have them; else as it was."""
    threads, numbers = request_of(given.choices, context.threads).threads, context._core.machine()
    skew = _core.skew_for_time(problem.core, context.size, threads, rows["row"], numbers)
    if skew:
        other = dataclasses.replace(problem, core=problem.core.skewed(*skew))
        along = {**_fast_rows(given.nest, other, given.dtypes, given.scalars, given.fastmath), "skew": skew}
        together = _core.make_plan(other.core, context.size, request_of({**given.choices, **along}, threads), numbers).time_block > 1
        if together or context.size > 1:  # a rank's tile has long rows so, however low it is
            return other, along
    return problem, rows


def _skewed(core, skew):
    if not isinstance(skew, tuple) or len(skew) != 2 or not all(type(k) is int for k in skew):
        raise ConfigError(f"skew: given {skew!r}; allowed: {ALLOWED['skew']}")
    return core.skewed(*skew)


def _with_plan(given, draft, core):
    """The same with the schedule and the kernel for a plan; local."""
    context, nest = draft.context, given.nest
    sweep = _core.PreparedSweep(context._core, draft.problem.core, core)
    arrays = _arrays_there(given, draft)
    names = [name for name in nest.arrays if name not in nest.tables]
    subscripts = {name: np.frombuffer(sweep.unset(a), np.int64).reshape(-1, arrays[name].ndim)
                  for a, name in enumerate(names) if sweep.rolls(a)}
    operands = _probe(given, draft, subscripts)[0]
    steps = tuple(_elements(step, given.dtypes[place.array].itemsize)
                  for step, place in zip(sweep.row_steps(operands), nest.places, strict=True))
    made_from = (steps, sweep.independent_rows, bool(subscripts), _beside(sweep, steps), reduction.bests(given.reductions), _staggered(sweep, operands))
    kernel = draft.kernel
    if made_from != draft.made_from:
        try:
            kernel = _kernel(given, made_from)
        except ConfigError:
            raise
        except Exception as error:
            raise ConfigError(f"nest {nest.name!r} does not compile: {type(error).__name__}: {error}") from error
    return dataclasses.replace(draft, sweep=sweep, kernel=kernel, made_from=made_from, subscripts=subscripts)


def _kernel(given, made_from):
    """The kernel; one that is still in use, as for other shapes or tiles, is not made again."""
    nest = given.nest
    key = (kernel_key(nest, given.dtypes, given.scalars, given.fastmath), made_from)
    if (kernel := nest.kernels.get(key)) is None:
        kernel = nest.kernels[key] = compile_kernel(nest, given.dtypes, given.scalars, given.fastmath, *made_from)
    return kernel


def _arrays_there(given, draft):
    """The arrays of the rank that computes for all, or of each."""
    if not draft.alone:
        return given.arrays
    return {name: value if isinstance(value, np.ndarray) or value.keep == "frontier" else np.zeros(value.shape, value.dtype)
            for name, value in given.arrays.items()}


def _probe(given, draft, subscripts, unset=None):
    """Operands that lie in memory as those of a run: where they are is not theirs to keep."""
    context = draft.context
    memory = {name: Field(context, value.shape, value.dtype) if isinstance(value, Field) and value.keep == "frontier" and name not in subscripts
              else value for name, value in _arrays_there(given, draft).items()}
    return operands_of(given.nest, memory, unset or {name: np.zeros(1, given.dtypes[name]) for name in subscripts})


def _rate_key(given, draft):
    return given.key[:5] + (str(draft.sweep.plan),)


def _sampled_in_turn(given, drafts):
    """Of each, times of tiles of three shapes on this rank, all its lanes at once: see `measured_rate`.

    Two are measured twice in turn, and the lesser times count: what else the machine does is seldom beside both visits of one.
    """
    visits = len(drafts)
    times = [[_sampled(given, draft, visits) for draft in drafts] for _ in range(visits)]
    return [[min(alike, key=lambda sample: sample[2] / max(sample[1], 1)) for alike in zip(*each)] for each in zip(*times)]


def _sampled(given, draft, visits):
    """Of one of so many visits."""
    nest = given.nest
    unset = {name: values_at(given.whole[name], points) for name, points in draft.subscripts.items()}
    operands, copies = _probe(given, draft, draft.subscripts, unset)
    environment = draft.kernel.pack(given.scalars, given.tables)
    # A small nest is not measured for much longer than it runs.
    points = math.prod(max(hi - lo, 0) for lo, hi in zip(*draft.problem.core.space)) / draft.context.size
    budget_s = min(BUDGET_S, max(LEAST_BUDGET_S, 10 * _core.Machine().point_s * points)) / visits
    return draft.sweep.sample(operands, draft.kernel.address, environment.ctypes.data,
                              [table.ctypes.data for table in given.tables.values()], bool(nest.numbers),
                              reduction.with_bests(given.reductions, draft.kernel.bests), draft.kernel.rows_address, budget_s)


def _planned(context, given, draft, rate):
    """The plan chosen, its schedule and kernel; local, and the same on all ranks."""
    there = draft.context
    plan = choose(draft.problem, there.size, there.threads, context._core.machine(), rate, draft.choices, given.choices, given.plan)
    prepared = _with_plan(given, draft, plan._to_core())
    if plan.threads > max(there.threads, len(_core.allowed_cpus())) and context.rank == 0 and planning.wanted is None:
        warnings.warn(f"{plan.threads} threads are more than the {len(_core.allowed_cpus())} CPUs allowed here: "
                      "the run is slower", RuntimeWarning, stacklevel=2)
    return dataclasses.replace(prepared, plan=plan, number=plan._number())


def _row_major(context, given, draft):
    """The same with arrays as they are, where one rank's could lie so or in the order of rows across, and nobody has asked for one of them; or None."""
    if (context.size > 1 or draft.alone or given.plan is not None or {"row", "storage"} & given.choices.keys()
            or draft.choices.get("storage") != "skewed"):
        return None
    other = _draft(context, dataclasses.replace(given, choices={**given.choices, "storage": "plain"}))
    # Point by point is never faster than vectors: it pays only where arrays need not be brought there.
    return other if _brought(given) or other.kernel.lanes_from else None


def _brought(given):
    return any(isinstance(given.arrays[name], np.ndarray) for name in given.nest.written)


def _cheaper_storage(given, draft, skewed, plain):
    """The one of two that takes less, with what brings NumPy arrays into the order of rows across and back."""
    bringing_s = draft.sweep.conversion_s(_probe(given, draft, draft.subscripts)[0]) if _brought(given) else 0.0
    plain_s, skewed_s = plain.plan.predicted.time_s, skewed.plan.predicted.time_s
    taken = plain if plain_s < skewed_s + bringing_s else skewed
    taken.plan.notes["storages"] = {"plain_s": plain_s, "skewed_s": skewed_s, "bringing_s": bringing_s}
    return taken


def _bind(context, given, found):
    """What was prepared, with this call's arrays."""
    nest = given.nest
    unset = {name: values_at(given.whole[name], points) for name, points in found.subscripts.items()}
    stored = [name for name in nest.written
              if given.whole[name].__class__ is Field and given.whole[name].keep == "frontier" and name not in found.subscripts]
    operands, copies = ([], []) if stored or found.alone else operands_of(nest, given.arrays, unset)
    return Ready(context, found.kernel, found.sweep, operands, given.scalars, given.tables, copies, found.problem.sequential, given.whole,
                 [] if found.alone else given.small, found.alone, stored, unset, given.reductions, given.dtypes, found.plan)


def _fast_rows(nest, problem, dtypes, scalars, fastmath):
    """Skewed rows and storage, where they make vectors of a body that would else run point by point."""
    row = _core.skewed_row(problem.core)
    if not row:
        return {}
    kernel = compile_kernel(nest, dtypes, scalars, fastmath, [1] * len(nest.places), True)
    return {"row": row, "storage": "skewed"} if kernel.vectors else {}


def _elements(step, item_bytes):
    """Steps that are worth a kernel of their own: to the neighbour, or none."""
    return step // item_bytes if abs(step) in (0, item_bytes) else None


def _beside(sweep, steps):
    """For each place another one of its array in the same row, and how many elements it is behind that."""
    return tuple((other, points * steps[q]) if other >= 0 and steps[q] and steps[other] == steps[q] else None
                 for q, (other, points) in enumerate(sweep.beside()))


def _staggered(sweep, operands):
    """How rows whose points depend on each other may be computed together, or None."""
    points = sweep.stagger()
    return Staggered(points, sweep.rows_meet(operands), tuple(sweep.neighbours())) if points else None


def operands_of(nest, arrays, unset):
    """The core's arrays, in the order of the nest's that are no tables; `unset`: of those kept in planes."""
    operands, copies = [], []
    for name in nest.arrays:
        value = arrays[name]
        if name in nest.tables:
            continue
        if name in unset:
            operands.append(_core.RunArray.planes(unset[name].ctypes.data, len(unset[name]) == 1, unset[name]))
            continue
        if isinstance(value, Field):
            operands.append(_core.RunArray(value._storage))
            continue
        if not value.flags.aligned or (name in nest.written and _overlaps_itself(value)):
            copy = np.array(value, order="C")
            if name in nest.written:
                copies.append((value, copy))
            value = copy
        operands.append(_core.RunArray(value.ctypes.data, value.strides, value))
    return operands, copies


def _overlaps_itself(array):
    return array.size > 0 and any(s == 0 and n > 1 for s, n in zip(array.strides, array.shape, strict=True))
