"""Running nests, and planning without running."""
import json
import math
import types

import numpy as np

from tilewave import _core, reduction
from tilewave.bounds import Loops
from tilewave.errors import ConfigError, KernelError
from tilewave.field import field
from tilewave.prepare import operands_of, prepare
from tilewave.report import Report


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
            ready.operands, ready.copies = operands_of(nest, {**ready.arrays, **whole}, ready.unset)
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
    return Report(core, ready.plan, ready.sequential, ready.alone, tuple(ready.stored), reduction.results(nest, reduce, ready.dtypes, ready.reductions, found))


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
            operands, copies = operands_of(nest, {**wholes, **stored}, ready.unset)
            core = execute(nest, solo, ready, operands)
            for whole, part in copies:
                whole[...] = part
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
    return types.SimpleNamespace(plan=ready.sweep.plan, ranks=1, threads=ready.sweep.plan.lanes, timeline=_core.Timeline(), parts=_core.parts(_core.Timeline()),
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
        ``row``, ``storage``, ``skew``, ``time_block``, ``bundle``, ``poll_period_s``, ``helper``, ``synchronous``, ``threads``.

    Returns
    -------
    Plan
        With what it is predicted to take, and the others that were tried: ``plan.explain()``.

    Raises
    ------
    ConfigError
        On every rank: as `run`.

    Notes
    -----
    Collective; the first call measures the machine, and the first for a nest the rate of its body (0.1 s). A run of the same
    nest with the same arrays then takes this plan.
    """
    return prepare(nest, context, Loops(over, reverse, steps), None, False, arguments, None).plan


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


def _explain(nest, context, kernel, site, point):
    name, message, line = kernel.sites[site - 1]
    where = ", ".join(f"{i}={p}" for i, p in zip(nest.indices, point, strict=True))
    return f"nest {nest.name!r} raised {name}({message!r}) at {where} on rank {context.rank}, line {line}"
