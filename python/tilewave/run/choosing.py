"""Choosing a plan: the ways in which a nest may lie are tried, its body's rate measured on their tiles, until the best
was measured.
"""

import dataclasses
import math
import time

import numpy as np

from tilewave import _core
from tilewave.errors import ConfigError, shown
from tilewave.field.values import values_at
from tilewave.kernel.compile import compile_kernel
from tilewave.machine import kept_rates
from tilewave.machine.busy import queued_s
from tilewave.notices import warn
from tilewave.plan import planning, rate
from tilewave.plan.plan import ALLOWED, choose, request_of
from tilewave.run.operands import order_of
from tilewave.run.prepared import Prepared, core_kernel, probe, shapes_of_tables, with_plan
from tilewave.run.problem import with_names
from tilewave.run.replicated import copies_of, count_copies
from tilewave.run.steps import whole_blocks

#: Further kinds of tiles that a rate is measured on, at most.
MOST_MORE_RATES = _core.tuning["most_more_rates"]


def drafts(context, given):
    """The ways in which the nest may lie, those to prefer first, each with a sweep and a kernel by rules to measure
    with; local.
    """
    problem = given.problem
    if given.plan is not None:
        with with_names(given.nest):
            return [_as_planned(context, given, problem)]
    if skew := given.choices.get("skew"):
        _check_skew(skew)
    request = request_of(given.choices, context.threads)
    if planning.wanted is not None:  # the lanes that are here measure for those that are not
        request.threads = min(request.threads, len(_core.allowed_cpus()))
    found, machine = [], context._core.machine()
    with with_names(given.nest):
        ways = _core.alternatives(problem.core, context.size, request, machine, _rows_across(given, problem))
    for way in ways:
        fixed = {name: getattr(way.request, name) for name in ("row", "storage", "skew")}
        choices = {**given.choices, **{name: value for name, value in fixed.items() if value is not None}}
        there = context.solo() if way.on_one_rank else context
        draft = Prepared(
            dataclasses.replace(problem, core=way.problem), way.on_one_rank, there, choices, None, None, (), {}
        )
        draft = with_plan(given, draft, way.plan)
        found.append(dataclasses.replace(draft, others=tuple(with_plan(given, draft, plan) for plan in way.others)))
    # Point by point is never faster than vectors: arrays as they are pay only where they need not be brought there.
    best = [
        draft
        for draft in found
        if draft.choices.get("storage") == "skewed" or draft.kernel.simd_rows_from or _brought(given)
    ]
    return best or found


def _as_planned(context, given, problem):
    """The way that a given plan says."""
    on_one_rank = context.size > 1 and not any(problem.core.may_cut(k) for k in range(given.nest.rank))
    if skew := given.plan.skew:
        _check_skew(skew)
        problem = dataclasses.replace(problem, core=problem.core.skewed(*skew))
        if context.size > 1 and not any(problem.core.may_cut(k) for k in range(given.nest.rank)):
            raise ConfigError(
                f"skew {skew} was given; so no loop index can be cut over {context.size} ranks; allowed: another or "
                "none"
            )
    there = context.solo() if on_one_rank else context
    return with_plan(
        given, Prepared(problem, on_one_rank, there, given.choices, None, None, (), {}), given.plan._to_core()
    )


def _check_skew(skew):
    if not isinstance(skew, tuple) or len(skew) != 2 or not all(type(k) is int and abs(k) < 2**31 for k in skew):
        raise ConfigError(f"skew: given {shown(skew)}; allowed: {ALLOWED['skew']}")


def _rows_across(given, problem):
    """Whether the body is made of vectors where points of a row across two loops are neighbours; False, too, where the
    choices leave no such rows, so that no kernel is made to know it."""
    if "row" in given.choices or given.choices.get("storage") == "plain" or not _core.skewed_row(problem.core):
        return False
    nest = given.reductions.nest
    return compile_kernel(
        nest,
        given.dtypes,
        given.scalars,
        fastmath=given.fastmath,
        steps=[1] * len(nest.places),
        independent=True,
        captured=given.captured,
        shapes=shapes_of_tables(given),
        off=problem.core.paths_off,
    ).vectors


@dataclasses.dataclass(eq=False)
class Way:
    """One way in which a nest may lie: what was prepared for a plan by rules, and what is known of its body's rate."""

    draft: Prepared
    rates: rate.Rates
    bringing_s: float = 0.0  # to bring NumPy arrays into its order and back

    def measured(self, numbers, plan):
        """Whether a rate is known for tiles like those of a plan."""
        return _core.rate_is_measured(self.draft.problem.core, plan, numbers, self.rates.core())


def decide(context, given, found):
    """The plan and what was prepared for it, the same on all ranks; collective.

    Parameters
    ----------
    context : Context
    given : Given
    found : list of Prepared, or None
        What `drafts` gave; None: this rank has failed, and only takes part.

    Returns
    -------
    Prepared
        None where some rank has failed or was interrupted.
    """
    ways = None if found is None else [Way(draft, _known_rates(context, given, draft)) for draft in found]
    if not rate.agree(context, ways and [way.rates for way in ways]):
        return None
    kept = _KeptRates(context, given, ways)
    numbers = context._core.machine()
    first = [(way, way.draft) for way in ways if not way.measured(numbers, way.draft.sweep.plan)]
    first += [(way, other) for way in ways for other in way.draft.others if not way.measured(numbers, other.sweep.plan)]
    if not _measure(context, given, first):
        return None
    for way in ways if len(ways) > 1 else ():
        way.bringing_s = _bringing_s(given, way.draft)
    best = None
    for _ in range(0 if any(_is_brief(given, way.draft, way.rates, numbers) for way in ways) else MOST_MORE_RATES):
        other, best = _next_to_measure(context, given, ways)
        (go,) = context._core.allreduce_min([int(other is not None)])
        if not go:
            break
        if not _measure(context, given, [other]):
            return None
        best = None
    kept.write()
    for way in ways:
        context._rates[_body_key(given, way.draft)] = way.rates
    return _prepared(context, given, best or _best(context, given, ways, measured_only=True))


class _KeptRates:
    """The rates of ways of which no rate is known, from disk; and what is measured from then on. Collective."""

    def __init__(self, context, given, ways):
        self._context, self._ways, launch = context, ways, kept_rates.launch_of(context)
        found = [(way.draft.kernel.digest, _rate_key(given, way.draft)) for way in ways if launch]
        self._keys = [f"{digest}\n{dataclasses.replace(key, kernel=())}\n{launch}" for digest, key in found]
        lacking = [k for k in range(len(self._keys)) if not ways[k].rates.measured]
        found = kept_rates.read(context, [self._keys[k] for k in lacking]) if lacking else []
        for k, rates in zip(lacking, found, strict=True):
            ways[k].rates.measured = rates or []
        self._known = [len(way.rates.measured) for way in ways]
        self._begun, self._queued = time.perf_counter(), queued_s()

    def write(self):
        """Keep what was measured, unless others had the CPUs meanwhile; on rank 0."""
        lanes = max(way.draft.sweep.plan.lanes for way in self._ways)
        undisturbed = kept_rates.DISTURBED * lanes * (time.perf_counter() - self._begun)
        if self._context.rank or queued_s() - self._queued > undisturbed:
            return
        for key, way, known in zip(self._keys, self._ways, self._known, strict=False):
            if len(way.rates.measured) > known:
                kept_rates.keep(key, way.rates.measured)


def _known_rates(context, given, draft):
    """The rates of a body on arrays of these shapes; where a run is brief those of any shapes."""
    rates = context._rates.setdefault(_rate_key(given, draft), rate.Rates())
    others = context._rates.get(_body_key(given, draft))
    unknown = not rates.measured and others is not None and others.measured
    if unknown and _is_brief(given, draft, others, context._core.machine()):
        rates.measured, rates.of_all_tiles = list(others.measured), True
    return rates


def _is_brief(given, draft, rates, numbers):
    """Whether the plan by rules, with these rates, takes less than what is worth a measurement. Local, and the same on
    all ranks with the same rates."""
    try:
        core, plan = draft.problem.core, draft.sweep.plan
        played = _core.evaluate(core, plan, numbers, _core.rate_for(core, plan, numbers, rates.core()))
    except ConfigError:
        return False
    return played.time_s * _blocks(given) < _core.tuning["least_run_s"]


def _next_to_measure(context, given, ways):
    """(way, what was prepared for the best plan) if tiles like its own have not been measured, and that plan as `_best`
    gives it where they have; None each otherwise, as where that fails: the last choice says why."""
    try:
        best = way, plan, _, measured = _best(context, given, ways, measured_only=False)
        if measured:
            return None, best
        if plan.predicted.time_s * _blocks(given) < _core.tuning["least_run_s"]:
            return None, None
        return (way, with_plan(given, way.draft, plan._to_core())), None
    except Exception:
        return None, None


def _measure(context, given, some):
    """Rates of all of them, (way, what was prepared for a plan) each, measured in turn; collective.

    False where some rank was interrupted.
    """
    if not some:
        return True
    takes_part = [not draft.on_one_rank or context.rank == 0 for _, draft in some]

    def sample():
        samples = iter(
            _sampled_in_turn(given, [draft for (_, draft), part in zip(some, takes_part, strict=True) if part])
        )
        return [next(samples) if part else None for part in takes_part]

    found = rate.measure(context, len(some), sample, [draft.sweep.plan.lanes for _, draft in some])
    if found is None:
        return False
    for (way, draft), one in zip(some, found, strict=True):
        way.rates.measured.append((draft.sweep.plan, one))
    return True


def _best(context, given, ways, measured_only):
    """(way, plan, rate, whether that was measured) of what takes least, bringing arrays included. Local, and the same
    on all ranks.
    """
    best, times = None, []
    for way in ways:
        there = way.draft.context
        plan, found, measured = choose(
            way.draft.problem,
            there.size,
            there.threads,
            cpus_of(context),
            context._core.machine(),
            way.rates,
            choices=way.draft.choices,
            fixed=given.choices,
            plan=given.plan,
            measured_only=measured_only,
        )
        total_s = plan.predicted.time_s * _blocks(given) + way.bringing_s
        times.append(
            {
                "time_s": plan.predicted.time_s,
                "bringing_s": way.bringing_s,
                "on_one_rank": way.draft.on_one_rank,
                "choices": {name: way.draft.choices.get(name) for name in ("row", "storage", "skew")},
            }
        )
        if best is None or total_s < best[0]:
            best = total_s, (way, plan, found, measured)
    if len(ways) > 1:
        best[1][1].notes["ways"] = [{**time, "taken": way is best[1][0]} for way, time in zip(ways, times, strict=True)]
    return best[1]


def _prepared(context, given, best):
    """What was prepared for the best plan, as `_best` gives it; local."""
    way, plan, found, _ = best
    draft, border_s = way.draft, 0.0
    count_copies(given, draft.on_one_rank, plan)
    if given.block:
        border_s = _core.border_s(draft.problem.core, plan._to_core(), context._core.machine(), found.core())
        draft = dataclasses.replace(
            draft,
            problem=dataclasses.replace(
                draft.problem, core=draft.problem.core.with_steps(whole_blocks(given.block, plan))
            ),
        )
    prepared = with_plan(given, draft, plan._to_core())
    return dataclasses.replace(prepared, plan=plan, rate=found, border_s=border_s, number=plan._number(), others=())


def _blocks(given):
    return given.loops.steps / given.block if given.block else 1


def _rate_key(given, draft):
    """Equal where a rate serves: the body, its arrays, the extents of its loops, how they lie, and the lanes that are
    measured at once.
    """
    extents = tuple(hi - lo for lo, hi in zip(*draft.problem.core.space, strict=True))
    return given.key.body((*_lie(given, draft), extents), given.key.memory)


def _body_key(given, draft):
    """The same of a body on arrays of any shapes that lie alike."""
    return given.key.body(_lie(given, draft))


def _lie(given, draft):
    """How arrays and loops lie, and the lanes."""
    plan = draft.sweep.plan
    return (
        tuple(map(order_of, given.arrays.values())),
        tuple(map(_either_way, draft.problem.core.loops)),
        draft.on_one_rank,
        plan.lanes,
        plan.row,
        plan.storage,
    )


def _either_way(loop):
    """The same of a loop that runs in the other direction: its rate is that of this one."""
    first = next((factor for factor in loop if factor), 1)
    return tuple(factor if first > 0 else -factor for factor in loop)


def _sampled_in_turn(given, some):
    """Of each, times of tiles of three shapes on this rank, all its lanes at once: see `rate.measure`.

    Several are measured twice in turn, and the lesser times count: other load seldom disturbs both
    visits of one.
    """
    visits = min(len(some), 2)
    times = [[_sampled(given, draft, visits) for draft in some] for _ in range(visits)]
    return [
        [min(alike, key=lambda sample: sample[2] / max(sample[1], 1)) for alike in zip(*each)] for each in zip(*times)
    ]


def _sampled(given, draft, visits):
    """Of one of so many visits."""
    if draft.context._interrupted():
        return []  # nobody will use it
    initial = {name: values_at(given.whole[name], points) for name, points in draft.subscripts.items()}
    for name in copies_of(given.whole, given.replicated):
        given.arrays[name].fill(0)  # memory that has never been written is one page of zeros, which the caches hold
    operands, _ = probe(given, draft, draft.subscripts, initial)
    environment = draft.kernel.pack({**given.scalars, **given.captured}, given.tables)
    # A small nest is not measured for much longer than it runs.
    points = math.prod(max(hi - lo, 0) for lo, hi in zip(*draft.problem.core.space)) / draft.context.size
    budget_s = min(rate.BUDGET_S, max(rate.LEAST_BUDGET_S, 10 * _core.Machine().point_s * points)) / visits
    kernel = core_kernel(draft.kernel, environment.ctypes.data, given.tables, given.reductions)
    return draft.sweep.sample(operands, kernel, budget_s)


def _brought(given):
    return any(isinstance(given.arrays[name], np.ndarray) for name in given.nest.written)


def _bringing_s(given, draft):
    """Seconds that bring NumPy arrays into the order of rows across and back; measured on this rank, which is then the
    only one.
    """
    if draft.choices.get("storage") != "skewed" or not _brought(given):
        return 0.0
    return draft.sweep.conversion_s(probe(given, draft, draft.subscripts)[0])


def cpus_of(context):
    """CPUs of each rank; None where the ranks are not here."""
    return None if planning.wanted is not None else context.share


def warn_of_unused_threads(context, there, plan):
    """On rank 0, where a plan has more lanes than a rank has CPUs and threads of its context."""
    cpus = len(_core.allowed_cpus())
    if plan.threads > max(there.threads, cpus) and context.rank == 0 and planning.wanted is None:
        warn(f"{plan.threads} threads are more than the {cpus} CPUs allowed here: the run is slower")
