"""When the plan of a run stays for another one of the same nest and arrays, whose bounds or number of steps differ."""

import math

#: Extents of loops may differ by so much. A window that moves has the same; one that grows is planned anew when it has
#: doubled.
MOST_TIMES = 2
#: From so many time steps on their number does not decide.
STEPS_ENOUGH = 8
#: The time that a plan is predicted to take may be so much more than what it took, a point, where it was chosen.
MOST_SLOWER = 1.25


def alike(chosen_for, space, in_time):
    """Whether a plan that was chosen for some extents may do for a space.

    Parameters
    ----------
    chosen_for : sequence of int
        Of each loop index.
    space : pair of sequences of int
        First and end.
    in_time : bool
        Whether the first loop index is time.
    """
    for k, (was, low, high) in enumerate(zip(chosen_for, *space, strict=True)):
        least, most = sorted((was, high - low))
        if least == most or 0 < most <= MOST_TIMES * least:
            continue
        if k > 0 or not in_time or least < STEPS_ENOUGH:
            return False
    return True


def as_good(plan, chosen):
    """Whether a plan is predicted to be about as fast where it is taken to as where it was chosen: fewer points in no
    more time.
    """
    now, then = (math.prod(each.notes["extents"]) for each in (plan, chosen))
    return plan.predicted.time_s <= MOST_SLOWER * chosen.predicted.time_s * max(now / max(then, 1), 1.0)
