"""Running nests, and planning without running."""
import dataclasses
import json
import math
import types
import warnings

import numpy as np

from tilewave import _core
from tilewave.bounds import bounds_key
from tilewave.compile import compile_kernel, kernel_key
from tilewave.context import resolve
from tilewave.errors import ConfigError, KernelError
from tilewave.field import Field, Scratch, field, values_at
from tilewave.nest import Nest
from tilewave.plan import CHOICES, Plan, make_plan
from tilewave import reduction
from tilewave.problem import check_arrays, make_problem
from tilewave.report import Report

# Keywords of later families of nests, refused by name until they run.
UNSUPPORTED = ("periodic",)


def run(nest, *, context=None, over=None, reverse=(), steps=None, plan=None, fastmath=False, reduce=None, **arguments):
    """Run a nest: what its plain loops would compute, over ranks and threads; collective.

    Parameters
    ----------
    nest : Nest
        Made with ``@tilewave.nest``.
    context : Context, optional
        Default: all ranks of the launch.
    over : dict, optional
        Half-open bounds by index name, ``{"i": (1, n)}``, that narrow the loops. A bound may be an
        affine expression of outer indices, ``{"j": ("i", "2*i+3")}`` or ``lambda i: i``, or a list of
        bounds, which all hold.
    reverse : tuple of str
        Loop indices that run downwards; the loops stay nested in the order of the indices.
    steps : int, optional
        Time steps, for a nest whose arrays are subscripted first with time at +0 or +1 and have no
        such dimension: level t+1 begins as a copy of level t; the arrays end as the last level.
    plan : Plan, optional
        From `tilewave.plan`, perhaps edited. Default: picked.
    fastmath : bool
        Allow results that differ from the plain loops in rounding.
    reduce : dict, optional
        From names to what is wanted of all values that points write, ``{"best": tilewave.max("H"), "where":
        tilewave.argmax("H")}``: found while they are computed, in the report's ``results``.
    **arguments
        The nest's arrays (fields; NumPy arrays where only read, the same on each rank, or on one
        rank, then written in place; `scratch` for what the nest needs for itself), its scalars, and any
        choice of `tilewave.plan` to fix.

    Returns
    -------
    Report

    Raises
    ------
    ConfigError
        On every rank, before anything runs: for what cannot be run, on any rank, or when ranks
        were given different arguments.
    KernelError
        On every rank, after the run: when the body raised on any. The written array is then
        unspecified.
    KeyboardInterrupt
        On every rank, when one was interrupted.

    Notes
    -----
    Collective. A repeated run of equal nest, shapes and choices reuses kernel and schedule.
    """
    loops = Loops(over, reverse, steps)
    ready = prepare(nest, context, loops, plan, fastmath, arguments, reduce)
    context = ready.context
    if ready.alone:
        core = run_on_one_rank(nest, ready)
    else:
        if ready.small or ready.stored:
            whole = {name: _whole_everywhere(ready.arrays[name], context) for name in ready.small}
            whole.update((name, _stored(ready.arrays[name], context)) for name in ready.stored)
            ready.operands, ready.copies = _operands(nest, {**ready.arrays, **whole}, ready.unset)
        try:
            core = execute(nest, context, ready, ready.operands)
        except (ConfigError, KernelError) as error:  # others may have happened on this rank alone
            raise context._shared(error)
        finally:
            for whole, part in ready.copies:
                whole[...] = part
    if core.interrupted:
        raise KeyboardInterrupt("another rank was interrupted" if context.size > 1 else "")
    found = [(r.any, r.at, r.bytes) for r in core.reduced]
    return Report(core, ready.sequential, ready.alone, tuple(ready.stored), reduction.results(nest, reduce, ready.dtypes, ready.reductions, found))


def execute(nest, context, ready, operands):
    """The run itself, in `context`; collective over it."""
    environment = ready.kernel.pack(ready.scalars, ready.tables)
    try:
        return ready.sweep.run(operands, ready.kernel.address, environment.ctypes.data,
                               lambda site, point: _explain(nest, context, ready.kernel, site, point),
                               [table.ctypes.data for table in ready.tables.values()], bool(nest.numbers),
                               reduction.with_bests(ready.reductions, ready.kernel.bests), ready.kernel.rows_address)
    finally:
        context._heart.done()


def run_on_one_rank(nest, ready):
    """Run a nest that cannot be shared: rank 0 gathers the fields, computes, gives them back; collective."""
    context, error, core = ready.context, None, None
    wholes = {name: value if isinstance(value, np.ndarray) or value.keep == "frontier" else value.gather()
              for name, value in ready.arrays.items()}
    if context.rank == 0:
        try:
            solo = context.solo()
            stored = {name: _stored(wholes[name], solo) for name in ready.stored}
            core = execute(nest, solo, ready, _operands(nest, {**wholes, **stored}, ready.unset)[0])
        except (Exception, KeyboardInterrupt) as problem:
            error = problem
    interrupted = isinstance(error, KeyboardInterrupt)
    context.agree(None if interrupted else error)
    for name in nest.written:
        if ready.arrays[name].keep == "all":
            ready.arrays[name]._storage.scatter(wholes[name].ctypes.data if context.rank == 0 else 0)
    numbers = {"interrupted": interrupted or core is not None and core.interrupted}
    if core is not None:
        numbers["reduced"] = [(r.any, r.at, r.bytes.hex()) for r in core.reduced]
        numbers.update((name, getattr(core, name)) for name in ("time_s", "points", "points_per_s", "steps", "buffer_bytes"))
    numbers = json.loads(context._core.broadcast(json.dumps(numbers).encode()))
    if context.rank == 0 and core is not None:
        return core
    numbers["reduced"] = [types.SimpleNamespace(any=has, at=at, bytes=bytes.fromhex(data)) for has, at, data in numbers.get("reduced", ())]
    return types.SimpleNamespace(plan=ready.sweep.plan, ranks=1, threads=ready.sweep.plan.lanes, timeline=_core.Timeline(),
                                 overlap_ratio=math.nan, **numbers)


def plan(nest, *, context=None, over=None, reverse=(), steps=None, **arguments):
    """The plan that `run` would use, without running.

    Parameters
    ----------
    nest : Nest
    over, reverse, steps
        As in `run`.
    **arguments
        The nest's arrays and scalars, and any choice to fix: ``grid``, ``tile``, ``factors``,
        ``mapping_dim``, ``grouping``, ``schedule``, ``lookahead``, ``slices``, ``chunk_bytes``,
        ``row``, ``storage``, ``threads``.

    Returns
    -------
    Plan

    Raises
    ------
    ConfigError
        On every rank: as `run`.

    Notes
    -----
    Collective; the first call measures latency, bandwidth and lane hand-over (milliseconds).
    """
    return Plan._from_core(prepare(nest, context, Loops(over, reverse, steps), None, False, arguments, None).sweep.plan)


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


@dataclasses.dataclass(frozen=True)
class Loops:
    """What a run says of the loops beside the nest."""

    over: dict
    reverse: tuple
    steps: int

    def key(self, nest):
        """Equal where the loops are; a function counts by what it says, not by its identity."""
        over = self.over
        if isinstance(over, dict) and over:
            over = sorted((str(name), bounds_key(nest.indices, name, pair)) for name, pair in over.items())
        return repr(over), repr(self.reverse), repr(self.steps)


def prepare(nest, context, loops, plan, fastmath, arguments, reduce):
    """Check, plan, compile; agree. Collective.

    Raises
    ------
    ConfigError
        On every rank alike.
    """
    context = resolve(context)
    context._core.machine()  # collective at first use, so outside what may fail on one rank
    ready, error, description = None, None, ""
    try:
        ready, description = _prepare(nest, context, loops, plan, fastmath, arguments, reduce)
    except Exception as problem:
        error = problem
    context.agree(error, description)
    return ready


def _small_fields(nest, arrays, context, steps):
    """The fields that are only read and lack a loop index that ranks may cut: every rank gets them whole."""
    if context.size == 1:
        return []
    cut = set(nest.indices) - ({nest.time} if steps is not None else set())  # time stays whole on a rank
    return [name for name, axes in nest.axes.items()
            if isinstance(arrays[name], Field) and name not in nest.written and cut - set(axes)]


def _whole_everywhere(field, context):
    """A field as a NumPy array on every rank; collective."""
    whole = field.gather()
    data = context._core.broadcast(whole.tobytes() if context.rank == 0 else b"")
    return np.frombuffer(data, field.dtype).reshape(field.shape)


def _stored(frontier, context):
    """A field that keeps its frontier only, as one that keeps all; collective over `context`."""
    init = frontier._init
    if init is not None and not callable(init):
        whole = init
        init = whole.flat[0] if not any(whole.strides) and whole.size else whole
    return field(frontier.shape, frontier.dtype, init, context=context)


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


def _prepare(nest, context, loops, plan, fastmath, arguments, reduce):
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
    given = arrays
    small = _small_fields(nest, arrays, context, loops.steps)
    arrays = {name: np.empty(value.shape, value.dtype) if name in small else value for name, value in arrays.items()}
    reductions = reduction.check(nest, reduce, dtypes)
    signature = nest.signature()
    bests = reduction.bests(reductions)
    key = (kernel_key(nest, dtypes, scalars, fastmath), bests, nest.name, nest.line, loops.key(nest), str(plan),
           repr(sorted(choices.items())),
           tuple((isinstance(a, Field), a.shape, a.keep if isinstance(a, Field) else a.strides) for a in arrays.values()))
    found = context._prepared.get(key)
    if found is None:
        found = _make(nest, context, loops, dtypes, arrays, scalars, plan, choices, fastmath, bests)
        context._prepared[key] = found
    kernel, sweep, problem, alone, subscripts = found
    unset = {name: values_at(given[name], points) for name, points in subscripts.items()}
    stored = [name for name in nest.written if given[name].__class__ is Field and given[name].keep == "frontier" and name not in subscripts]
    operands, copies = ([], []) if stored or alone else _operands(nest, arrays, unset)
    values = ", ".join(f"{name}={value!r}" for name, value in scalars.items())
    description = (f"nest {nest.name!r} {signature[:12]}, loops {problem.bounds.box} {problem.bounds.constraints} "
                   f"downwards {problem.downwards} steps {loops.steps}, "
                   f"{', '.join(f'{n}: {dtypes[n]} {arrays[n].shape} {_kind(arrays[n])}' for n in nest.arrays)}, scalars {values or 'none'}, "
                   f"fastmath {fastmath}, plan {sweep.plan}, reductions {reduce!r}")
    ready = Ready(context, kernel, sweep, operands, scalars, tables, copies, problem.sequential, given, [] if alone else small, alone,
                  stored, unset, reductions, dtypes)
    return ready, description


def _kind(array):
    """Of what is given for an array: it decides who has which elements."""
    return f"field, keep {array.keep}" if isinstance(array, Field) else "NumPy array"


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


def _make(nest, context, loops, dtypes, arrays, scalars, plan, choices, fastmath, bests):
    problem = make_problem(nest, arrays, loops.over, loops.reverse, loops.steps)
    cuts = any(problem.core.may_cut(k) for k in range(nest.rank))
    if alone := context.size > 1 and not cuts:
        context = context.solo()
        arrays = {name: value if isinstance(value, np.ndarray) or value.keep == "frontier" else np.empty(value.shape, value.dtype)
                  for name, value in arrays.items()}
    if plan is None and not {"row", "storage"} & choices.keys() and problem.core.planes[0] < 0:
        choices = {**choices, **_fast_rows(nest, problem, dtypes, scalars, fastmath)}
    chosen = make_plan(problem.core, context, choices) if plan is None else plan._to_core()
    sweep = _core.PreparedSweep(context._core, problem.core, chosen)
    if sweep.plan.lanes > max(context.threads, len(_core.allowed_cpus())) and context.rank == 0:
        warnings.warn(f"{sweep.plan.lanes} threads are more than the {len(_core.allowed_cpus())} CPUs allowed here: "
                      "the run is slower", RuntimeWarning, stacklevel=2)
    names = [name for name in nest.arrays if name not in nest.tables]
    subscripts = {name: np.frombuffer(sweep.unset(a), np.int64).reshape(-1, arrays[name].ndim)
                  for a, name in enumerate(names) if sweep.rolls(a)}
    # Only where memory would lie counts here.
    memory = {name: Field(context, value.shape, value.dtype) if isinstance(value, Field) and value.keep == "frontier" and name not in subscripts
              else value for name, value in arrays.items()}
    operands, _ = _operands(nest, memory, {name: np.empty(1, dtypes[name]) for name in subscripts})
    steps = [_elements(step, dtypes[place.array].itemsize)
             for step, place in zip(sweep.row_steps(operands), nest.places, strict=True)]
    try:
        kernel = compile_kernel(nest, dtypes, scalars, fastmath, steps, sweep.independent_rows, bool(subscripts),
                                _beside(sweep, steps), bests)
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f"nest {nest.name!r} does not compile: {type(error).__name__}: {error}") from error
    return kernel, sweep, problem, alone, subscripts


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


def _operands(nest, arrays, unset):
    """The core's arrays, in the order of the nest's that are no tables; `unset`: of those kept in planes."""
    operands, copies = [], []
    for name in nest.arrays:
        value = arrays[name]
        if name in nest.tables:
            continue
        if name in unset:
            operands.append(_core.RunArray.planes(unset[name].ctypes.data, len(unset[name]) == 1))
            continue
        if isinstance(value, Field):
            operands.append(_core.RunArray(value._storage))
            continue
        if not value.flags.aligned or (name in nest.written and _overlaps_itself(value)):
            copy = np.array(value, order="C")
            if name in nest.written:
                copies.append((value, copy))
            value = copy
        operands.append(_core.RunArray(value.ctypes.data, value.strides))
    return operands, copies


def _overlaps_itself(array):
    return array.size > 0 and any(s == 0 and n > 1 for s, n in zip(array.strides, array.shape, strict=True))


def _explain(nest, context, kernel, site, point):
    name, message, line = kernel.sites[site - 1]
    where = ", ".join(f"{i}={p}" for i, p in zip(nest.indices, point, strict=True))
    return f"nest {nest.name!r} raised {name}({message!r}) at {where} on rank {context.rank}, line {line}"
