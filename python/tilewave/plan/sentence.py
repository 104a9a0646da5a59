"""A plan in a sentence: what runs where, what a lane takes at a time, and why."""

import math


def sentence(plan, verb):
    """Return what was chosen, and why, in words: "relax runs on 2 ranks ...".

    Parameters
    ----------
    plan : Plan
    verb : str
        "runs", "ran".
    """
    ranks = math.prod(plan.grid)
    where = f"{ranks} ranks in a process grid of {by(plan.grid, ' x ')}" if ranks > 1 else "1 rank"
    if ranks > 1 and plan.weights:
        where += f", with points in proportion to {weights_of(plan.weights)}"
    how = "; ".join([*_of_lanes(plan, ranks), _of_tiles(plan, ranks)])
    return f"{plan.notes.get('nest') or 'The nest'} {verb} on {where}: {how}{_because(plan)}."


def _of_lanes(plan, ranks):
    """Return what the lanes of a rank share, where it has several."""
    names, lanes = plan.notes.get("loops", ()), math.prod(plan.factors)
    if lanes > 1:
        along = " and ".join(name for name, count in zip(names, plan.factors) if count > 1)
        yield f"{lanes} lanes{' of each' * (ranks > 1)} share {f'the points along {along}' if along else 'its points'}"
    if plan.helper:
        yield f"a helper thread{' of each' * (ranks > 1)} moves messages"


def _of_tiles(plan, ranks):
    """Return what a lane computes at a time, and what messages do meanwhile."""
    several, block = ranks > 1, plan.temporal_block
    if plan.generator == "pivot":
        pivot = (plan.notes.get("loops") or ["k"])[0]
        travels = ", whose rows travel meanwhile" if several else ""
        return (
            f"rows and columns {pivot} are kept for {plan.tile[0]} steps at a time, from which all others do these "
            f"steps at once; the next panel is made first{travels}"
        )
    if plan.generator == "gather":
        cut, names = divided(plan), plan.notes.get("loops", ())
        travels = f", and goes to the ranks that read it, {plan.tile[cut]} elements at a time" if several else ""
        return f"{names[cut] if cut < len(names) else f'loop {cut}'} is divided in each step{travels}"
    meanwhile = ""
    if several:
        overlaps = plan.schedule == "overlapping"
        meanwhile = " while messages travel" if overlaps else ", and messages are awaited in between"
    if plan.generator == "stencil":
        exchanged = f", and halos are exchanged once in {block} time steps" if block > 1 else ""
        return f"each time step is computed as a whole{meanwhile}{exchanged}"
    if block > 1:  # tiles are one point along time
        return f"tiles of {by(plan.tile[1:], ' x ')} points take {block} time steps at a time{meanwhile}"
    points = by(plan.tile, " x ")
    if _one_tile(plan):
        whose = "each lane has" if math.prod(plan.factors) > 1 else "there is" if not several else "each rank has"
        return f"{whose} one tile of {points} points"
    return f"tiles of {points} points are computed one after another{meanwhile}"


def divided(plan):
    """The number of the loop that ranks and lanes divide, of several the first; the last one where none is."""
    counts = [ranks * lanes for ranks, lanes in zip(plan.grid, plan.factors)]
    return next((d for d, count in enumerate(counts) if count > 1), len(counts) - 1)


def _one_tile(plan):
    """Return whether each lane has one tile of all loops, where their extents are known."""
    extents, parts = plan.notes.get("extents", ()), zip(plan.grid, plan.factors, plan.tile)
    return len(extents) == len(plan.tile) and all(
        tile * ranks * lanes >= extent for extent, (ranks, lanes, tile) in zip(extents, parts)
    )


def _because(plan):
    """Why this plan and no other; empty where nothing is known."""
    notes = plan.notes
    if not notes:
        return ""
    if notes.get("given_whole"):
        return ", because this plan was given"
    if sequential := notes.get("sequential"):
        return f", because the dependence {sequential} needs the order of the loops"
    if chosen_for := notes.get("chosen_for"):
        return f", because the plan of an earlier run over {points_of(chosen_for)} was fitted"
    given = f" with the given {', '.join(notes['fixed'])}" if notes.get("fixed") else ""
    if notes.get("considered", 0) < 2:
        return f", because no other plan is possible{given}"
    return f", because this is predicted to be the fastest of {notes['considered']} plans{given}"


def by(entries, times="x"):
    """Numbers with a sign between them: 5x6."""
    return times.join(map(str, entries))


def weights_of(weights, most=8):
    """Numbers of ranks in a line, of many ranks the first ones."""
    return " : ".join([*map(str, weights[:most]), *["..."] * (len(weights) > most)])


def points_of(extents):
    """How many points loops have, along each."""
    return f"{' x '.join(map(str, extents))} points"
