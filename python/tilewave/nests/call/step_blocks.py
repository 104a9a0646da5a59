"""Blocks of time steps: what is prepared for a block of them runs as often as steps are asked for."""

import dataclasses

import numpy as np

from tilewave import _core
from tilewave.errors import ConfigError
from tilewave.nest.bounds import loop_bounds
from tilewave.nests.call.problem import arrays_in_time, box_of_loops, read_beside_in_history
from tilewave.timeline.parts import Parts, Predicted

#: Points and steps of a block (src/nests/tuning.hpp).
BLOCK_POINTS, FEWEST_STEPS, MOST_STEPS = _core.BLOCK_POINTS, _core.FEWEST_BLOCK_STEPS, _core.MOST_BLOCK_STEPS


def block_of(nest, arrays, loops, plan, choices):
    """Steps of a block; None where the run is no longer than one, or its steps differ in more than their time.

    They differ where bounds of the loops depend on time, or what is written has it as a dimension: such a run is
    prepared step by step.

    Raises
    ------
    ConfigError
        For steps that the nest cannot be run with.
    """
    steps = loops.steps
    if nest.time is None or isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 1:
        return None
    if steps < 2 and not loops.stepwise:
        return None
    if steps <= FEWEST_STEPS and not nest.reads_history and not loops.stepwise:
        return None
    in_time = arrays_in_time(nest, arrays, steps)
    place = read_beside_in_history(nest, in_time)
    if nest.parameters.wholes and not loops.stepwise and not place:
        return None  # all steps are gathered, or go in the order of the loops
    box = box_of_loops(nest, arrays, steps, loops.periodic)
    if loops.over and (not isinstance(loops.over, dict) or nest.time in loops.over):
        return 1 if loops.stepwise and steps > 1 else None
    bounds = loop_bounds(nest.indices, box, loops.over)
    uneven = any(coefficients[0] for coefficients, _ in bounds.constraints)
    recorded = [name for name in nest.written if name not in in_time]
    if loops.stepwise:
        if recorded and steps > 1:
            raise ConfigError(
                f"inject= or record=: nest {nest.name!r} writes array {recorded[0]!r}, which has time as a dimension; "
                f"allowed: the same call with ({nest.name},), a tuple of one nest, whose time steps run one by one"
            )
        return 1 if steps > 1 else None
    if place:
        _check_steps_by_themselves(nest, place, uneven, recorded)
        return 1  # between the first steps the run looks after what no point writes
    if uneven or recorded or steps <= FEWEST_STEPS:
        return None
    box = bounds.box
    points = 1
    for low, high in box[1:]:
        points *= max(high - low, 1)
    block = min(max(BLOCK_POINTS // points, FEWEST_STEPS), MOST_STEPS)
    # Tiles that the user has fixed are not longer than a block.
    tile, together = (plan.tile, plan.temporal_block) if plan else (choices.get("tile"), choices.get("temporal_block"))
    for wanted in (tile[0] if isinstance(tile, tuple) and tile else 0, together):
        block = max(block, wanted if isinstance(wanted, int) else 0)
    return block if steps > block else None


def _check_steps_by_themselves(nest, place, uneven, recorded):
    """Where such a place is read, each step is run by itself."""
    if uneven:
        why, other = "with bounds that depend on time", f"bounds without {nest.time!r}"
    elif recorded:
        why, other = (
            f"and writes array {recorded[0]!r}, which has time as a dimension",
            f"a nest of its own for {recorded[0]!r}",
        )
    else:
        return
    raise ConfigError(
        f"nest {nest.name!r} reads {nest.text_of(place)} {why}; allowed: of time steps before {nest.time}, elements at "
        "the point "
        f"itself, or {other}"
    )


def whole_blocks(block, plan):
    """The block, with as many steps as go together once or more; of one step where it must be."""
    return 1 if block == 1 else max(block // plan.temporal_block, 1) * plan.temporal_block


def for_steps(plan, planned, block, border_s, steps):
    """The plan with what it is predicted to take for a number of steps.

    Parameters
    ----------
    plan : Plan
        Predicted for `planned` steps.
    planned, block : int
    border_s : float
        Additional seconds of a block that follows another.
    steps : int
        More than `block`.
    """
    factor, blocks = steps / planned, -(-steps // block)
    was = plan.predicted
    time_s = max(was.time_s * factor + (blocks - 1) * border_s, was.time_s)
    # Lanes and ranks fill once and drain once; in between they wait for each other.
    parts = {
        name: seconds if name in ("fill_s", "drain_s", "total_s") else seconds * factor
        for name, seconds in dataclasses.asdict(was.parts).items()
    }
    rest = time_s - sum(seconds for name, seconds in parts.items() if name != "total_s")
    between = "hand_over_s" if plan.threads > 1 else "wait_s"
    parts[between] = max(parts[between] + rest, 0.0)
    parts["total_s"] = sum(seconds for name, seconds in parts.items() if name != "total_s")
    ranked = [
        {**other, "time_s": other["time_s"] * time_s / was.time_s if was.time_s else 0.0} for other in plan.ranked
    ]
    notes = {**plan.notes, "extents": [steps, *plan.notes["extents"][1:]], "block": block}
    return dataclasses.replace(
        plan, predicted=Predicted(time_s, Parts(**parts), was._simulate), ranked=ranked, notes=notes
    )
