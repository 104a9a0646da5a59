"""Nests that use the same fields in turn: where fields move between them again and again, one layout for all may be
quicker.
"""

import collections
import math

#: Calls that are looked back at, for the nests that take turns.
LOOKED_BACK = 64
#: Moving that is not worth planning for: less than so many seconds in all calls since the first, or this part of the
#: run's time.
LEAST_MOVED_S, LEAST_MOVING_PART = 5e-3, 0.05
#: One layout for all must take this much less than moving, as predictions are no better.
WORTH = 0.95
#: Of layouts that nests want themselves, at most so many are compared with row-major ones.
MOST_OWN = 2
#: After so many runs of one nest behind each other it takes no more turns.
ENOUGH_UNDISTURBED = 8


class Turns:
    """The runs of a context in their order. Whatever follows from them is the same on all ranks: they run the same
    calls, and times are those of the slowest rank."""

    def __init__(self, off=False):
        self.recent = collections.deque(maxlen=LOOKED_BACK)
        self.off = off  # no layout is looked for

    def cycle(self, last):
        """The prepared calls since the run before the last one of `last` that share a field with it, `last` first; only
        that where there is no such run.
        """
        found = [last]
        for turn in list(self.recent)[-2::-1]:
            if turn is last:
                return found
            if turn not in found and turn.fields & last.fields:
                found.append(turn)
        return [last]


class Turn:
    """What one prepared call has to do with those that it takes turns with.

    Attributes
    ----------
    plan : Plan
    own : tuple or None
        The layout that its plan wants; None where other nests cannot have it.
    base : Turn or None
        Of a plan for a layout that was taken for all: that of the plan it stands for.
    fields : frozenset of int
        Numbers of the fields of its last call.
    wanted : tuple
        Layouts that are to be planned for at the next call.
    times : dict
        By layout the predicted seconds, infinite where the nest cannot have it, and what was prepared for it, None for
        its own.
    scale : float
        What a call takes in terms of what was planned: blocks of time steps.
    taken : Prepared or None
        What runs in its place.
    """

    def __init__(self, prepared, base=None):
        self.plan, self.base, self.own = (
            prepared.plan,
            base,
            layout_of(prepared),
        )  # not its schedule, which may be large
        self.fields, self.wanted, self.times, self.taken, self.cycle = frozenset(), (), {}, None, ()
        self.runs = self.undisturbed = 0
        self.moving_s, self.moved_s, self.scale = 0.0, 0.0, 1.0
        self.settled = False

    @property
    def state(self):
        """Differs where ranks would not do the same next."""
        return len(self.wanted) + 8 * (self.taken is not None)

    @property
    def predicted_s(self):
        """Of a call: as many time steps as its last one had."""
        return self.plan.predicted.time_s * self.scale

    def ran(self, turns, fields, time_s, moving_s):
        """Note a run; the times are those of the slowest rank."""
        before = turns.recent[-1] if turns.recent else None
        turns.recent.append(self)
        self.fields = fields
        self.runs += 1
        if self.base is not None:
            self.undisturbed = self.undisturbed + 1 if before is self else 0
            if self.undisturbed >= ENOUGH_UNDISTURBED:
                self.base.start_anew()
        elif moving_s > 0 and self.runs > 1 and not self.settled and not turns.off:
            self._moved(turns, time_s, moving_s)

    def start_anew(self):
        self.taken, self.wanted, self.runs, self.settled, self.moving_s, self.moved_s = None, (), 0, False, 0.0, 0.0

    def _moved(self, turns, time_s, moving_s):
        self.moving_s = moving_s
        self.moved_s += moving_s
        if self.moved_s < LEAST_MOVED_S or moving_s < LEAST_MOVING_PART * time_s:
            return
        cycle = turns.cycle(self)
        if len(cycle) == 1 or any(turn.base is not None for turn in cycle):
            return
        own = {turn.own for turn in cycle} - {None}
        across = sorted(layout for layout in own if layout[0] != "plain")
        layouts = tuple(sorted({("plain", (), grid) for _, _, grid in own})) + (
            tuple(across) if len(across) <= MOST_OWN else ()
        )
        for turn in cycle:
            turn.cycle = tuple(cycle)
            turn.wanted = tuple(layout for layout in layouts if layout not in turn.times)

    def decide(self):
        """Once all know what each layout takes: the one that all take from now on, if that is quicker than moving;
        returns it or None.
        """
        cycle = self.cycle
        if not cycle or self.settled or any(turn.wanted for turn in cycle):
            return None
        layouts = set.intersection(*(set(turn.times) for turn in cycle))
        now_s = sum(turn.predicted_s + turn.moving_s for turn in cycle)
        together = {layout: sum(turn.times[layout][0] for turn in cycle) for layout in layouts}
        best = min(sorted(together), key=together.get, default=None)
        taken = {turn: turn.times[best][1] if best else None for turn in cycle}
        for turn in cycle:
            turn.settled, turn.times, turn.cycle = True, {}, ()
        if best is None or together[best] > WORTH * now_s:
            return None
        notes = {
            "nests": sorted({turn.plan.notes["nest"] for turn in cycle}),
            "moving_s": now_s,
            "together_s": together[best],
        }
        for turn, prepared in taken.items():
            if prepared is not None:
                prepared.turn = Turn(prepared, turn)
                turn.taken = prepared
            (prepared or turn).plan.notes["turns"] = notes
        return best


#: What a layout takes that a nest cannot have.
NEVER = (math.inf, None)


def layout_of(prepared):
    """(storage, row, grid) of the arrays' own dimensions, or None where loops are not these."""
    problem, plan = prepared.problem, prepared.plan
    signs = _signs(problem)
    if prepared.on_one_rank or signs is None:
        return None
    first = len(signs) - _dimensions(problem)
    row = (
        tuple(s * r for s, r in zip(signs, plan.row or (0,) * len(signs), strict=True))
        if plan.storage == "skewed"
        else ()
    )
    return plan.storage, row[first:], tuple(plan.grid[first:])


def choices_for(layout, prepared):
    """The choices of a plan with that layout, or None."""
    storage, row, grid = layout
    signs = _signs(prepared.problem)
    if prepared.on_one_rank or signs is None or len(grid) != _dimensions(prepared.problem):
        return None
    time = (0,) * (len(signs) - len(grid))
    choices = {"storage": storage}
    if prepared.context.size > 1:
        choices["grid"] = tuple(1 for _ in time) + grid
    if storage == "skewed":
        if any(sign < 0 for sign, step in zip(signs, time + row, strict=True) if step):
            return None  # the row would go along no loop and back along another
        choices["row"] = time + row
    return choices


def _signs(problem):
    """The direction of each loop, None where they are skewed or a spread array has its dimensions in another order."""
    nest = problem.nest
    for view in problem.spread:
        at = [nest.indices.index(axis) for axis in view.axes]
        if at != sorted(at):
            return None
    loops = problem.core.loops
    n = len(loops)
    if any(loops[k][m] for k in range(n) for m in range(n) if k != m):
        return None
    return tuple(loops[k][k] for k in range(n))


def _dimensions(problem):
    """Of the arrays: the loops but for time."""
    return len(problem.nest.indices) - bool(problem.in_time)
