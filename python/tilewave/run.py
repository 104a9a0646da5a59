"""Running nests, and planning without running."""
import dataclasses
import warnings

import numpy as np

from tilewave import _core
from tilewave.compile import compile_kernel, kernel_key
from tilewave.context import resolve
from tilewave.errors import ConfigError, KernelError
from tilewave.field import DTYPES, Field
from tilewave.nest import Nest
from tilewave.plan import CHOICES, Plan, make_plan
from tilewave.report import Report

# Keywords of later families of nests, refused by name until they run.
UNSUPPORTED = ("steps", "periodic", "reverse")


def run(nest, *, context=None, over=None, plan=None, fastmath=False, **arguments):
    """Run a nest: what its plain loops would compute, over ranks and threads; collective.

    Parameters
    ----------
    nest : Nest
        Made with ``@tilewave.nest``.
    context : Context, optional
        Default: all ranks of the launch.
    over : dict, optional
        Half-open bounds by index name, ``{"i": (1, n)}``, that narrow the loops.
    plan : Plan, optional
        From `tilewave.plan`, perhaps edited. Default: picked.
    fastmath : bool
        Allow results that differ from the plain loops in rounding.
    **arguments
        The nest's arrays (fields; NumPy arrays where only read, the same on each rank, or on one
        rank, then written in place), its scalars, and any choice of `tilewave.plan` to fix.

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
    ready = prepare(nest, context, over, plan, fastmath, arguments)
    context = ready.context
    slots = ready.kernel.pack_scalars(ready.scalars)
    try:
        core = ready.sweep.run(ready.operands, ready.kernel.address, slots.ctypes.data,
                               lambda site, point: _explain(nest, context, ready.kernel, site, point))
    except (ConfigError, KernelError) as error:  # others may have happened on this rank alone
        raise context._shared(error)
    finally:
        context._heart.done()
        for whole, part in ready.copies:
            if whole is not None:
                whole[...] = part
    if core.interrupted:
        raise KeyboardInterrupt("another rank was interrupted" if context.size > 1 else "")
    return Report(core)


def plan(nest, *, context=None, over=None, **arguments):
    """The plan that `run` would use, without running.

    Parameters
    ----------
    nest : Nest
    over : dict, optional
        As in `run`.
    **arguments
        The nest's arrays and scalars, and any choice to fix: ``grid``, ``tile``, ``factors``,
        ``mapping_dim``, ``grouping``, ``schedule``, ``lookahead``, ``slices``, ``chunk_bytes``,
        ``threads``.

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
    return Plan._from_core(prepare(nest, context, over, None, False, arguments).sweep.plan)


@dataclasses.dataclass
class Ready:
    """All that a run needs; made on all ranks or on none."""

    context: object
    kernel: object
    sweep: object
    operands: list
    scalars: dict
    copies: list  # (written array or None, contiguous copy): written back after the run


def prepare(nest, context, over, plan, fastmath, arguments):
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
        ready, description = _prepare(nest, context, over, plan, fastmath, arguments)
    except Exception as problem:
        error = problem
    context.agree(error, description)
    return ready


def _prepare(nest, context, over, plan, fastmath, arguments):
    if not isinstance(nest, Nest):
        raise ConfigError(f"run: given {type(nest).__name__}; allowed: a function under @tilewave.nest")
    arrays, scalars, choices = _sort(nest, arguments)
    shape = _check_arrays(nest, arrays, context)
    scalars = nest.bind_scalars(scalars)
    nest.check_box_sweep()
    box = nest.iteration_box(shape, over)
    if plan is not None and not isinstance(plan, Plan):
        raise ConfigError(f"plan: given {type(plan).__name__}; allowed: a tilewave.Plan")
    if plan is not None and choices:
        raise ConfigError(f"plan= and {', '.join(choices)}= were both given; allowed: one of them")
    dtypes = {name: arrays[name].dtype for name in nest.arrays}
    signature = nest.signature()
    key = (kernel_key(nest, dtypes, scalars, fastmath), nest.name, nest.line, shape, box, str(plan),
           repr(sorted(choices.items())), tuple(isinstance(arrays[name], Field) for name in nest.arrays))
    found = context._prepared.get(key)
    if found is None:
        found = _make(nest, context, shape, box, dtypes, arrays, scalars, plan, choices, fastmath)
        context._prepared[key] = found
    kernel, sweep = found
    operands, copies = _operands(nest, arrays)
    values = ", ".join(f"{name}={value!r}" for name, value in scalars.items())
    description = (f"nest {nest.name!r} {signature[:12]}, shape {shape}, box {box}, "
                   f"{', '.join(f'{n}: {dtypes[n]}' for n in nest.arrays)}, scalars {values or 'none'}, "
                   f"fastmath {fastmath}, plan {sweep.plan}")
    return Ready(context, kernel, sweep, operands, scalars, copies), description


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


def _check_arrays(nest, arrays, context):
    shapes = {}
    for name, value in arrays.items():
        if not isinstance(value, (Field, np.ndarray)) or isinstance(value, np.ma.MaskedArray):
            raise ConfigError(f"array {name!r}: given {type(value).__name__}; allowed: a field or a "
                              "NumPy array")
        if value.dtype not in DTYPES:
            raise ConfigError(f"array {name!r} has dtype {value.dtype}; allowed: "
                              f"{', '.join(d.name for d in DTYPES)}, in native byte order")
        if isinstance(value, Field) and value.context is not context:
            raise ConfigError(f"array {name!r} is a field of another context")
        shapes[name] = tuple(value.shape)
    if len(set(shapes.values())) > 1:
        raise ConfigError(
            f"the arrays of nest {nest.name!r} have different shapes: "
            f"{', '.join(f'{n} {s}' for n, s in shapes.items())}; they must be equal")
    written = arrays[nest.written]
    if isinstance(written, np.ndarray):
        if context.size > 1:
            raise ConfigError(f"array {nest.written!r} is written and a NumPy array, on {context.size} "
                              "ranks; allowed: a field, or a NumPy array on one rank")
        if not written.flags.writeable:
            raise ConfigError(f"array {nest.written!r} is written, but its memory is read-only")
    for name, value in arrays.items():
        if name != nest.written and _share(value, written):
            raise ConfigError(f"arrays {name!r} and {nest.written!r} share memory; an array that is "
                              "written must be given once")
    return shapes[nest.written]


def _share(a, b):
    if isinstance(a, Field) or isinstance(b, Field):
        return a is b or (isinstance(a, np.ndarray) and isinstance(b, Field) and np.may_share_memory(a, b.local)) or (
            isinstance(b, np.ndarray) and isinstance(a, Field) and np.may_share_memory(a.local, b))
    return np.shares_memory(a, b) if a.size and b.size else False


def _make(nest, context, shape, box, dtypes, arrays, scalars, plan, choices, fastmath):
    order = _order(nest)
    problem = _core.SweepProblem(
        shape, (tuple(b[0] for b in box), tuple(b[1] for b in box)),
        [(dtypes[name].itemsize, isinstance(arrays[name], np.ndarray) and name != nest.written)
         for name in order],
        [(order.index(name), offset) for name, offset in nest.accesses])
    chosen = make_plan(problem, context, choices) if plan is None else plan._to_core()
    sweep = _core.PreparedSweep(context._core, problem, chosen)
    if sweep.plan.lanes > max(context.threads, len(_core.allowed_cpus())) and context.rank == 0:
        warnings.warn(f"{sweep.plan.lanes} threads are more than the {len(_core.allowed_cpus())} CPUs allowed here: "
                      "the run is slower", RuntimeWarning, stacklevel=2)
    try:
        kernel = compile_kernel(nest, dtypes, scalars, fastmath)
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f"nest {nest.name!r} does not compile: {type(error).__name__}: {error}") from error
    return kernel, sweep


def _order(nest):
    """Arrays as the core counts them: the written one first."""
    return [nest.written, *(name for name in nest.arrays if name != nest.written)]


def _operands(nest, arrays):
    operands, copies = [], []
    for name in _order(nest):
        value = arrays[name]
        if isinstance(value, Field):
            operands.append(_core.RunArray(value._storage))
            continue
        if value.size and (value.strides[-1] != value.itemsize or not value.flags.aligned):
            copy = np.array(value, order="C")  # rows need unit stride
            copies.append((value if name == nest.written else None, copy))
            value = copy
        operands.append(_core.RunArray(value.ctypes.data, value.strides))
    return operands, copies


def _explain(nest, context, kernel, site, point):
    name, message, line = kernel.sites[site - 1]
    where = ", ".join(f"{i}={p}" for i, p in zip(nest.indices, point, strict=True))
    return f"nest {nest.name!r} raised {name}({message!r}) at {where} on rank {context.rank}, line {line}"
