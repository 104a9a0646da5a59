"""When the plan of a run stays for another run of the same nest."""

import itertools
import random
from types import SimpleNamespace

import pytest

import tilewave as tw
from tilewave.nests.plan import kernel_maker
from tilewave.nests.plan.earlier_plan import MOST_SLOWER, MOST_TIMES, STEPS_ENOUGH, similar, as_good


def space(*extents, first=3):
    return [first] * len(extents), [first + n for n in extents]


@pytest.mark.parametrize(
    "was, now, in_time, same",
    [
        ((10, 10), (10, 10), False, True),
        ((10, 10), (20, 5), False, True),
        ((10, 10), (21, 10), False, False),
        ((10, 10), (10, 4), False, False),
        ((10, 10), (10, 0), False, False),
        ((0, 10), (0, 10), False, True),
        ((0, 10), (1, 10), False, False),
        ((8, 10), (800, 10), True, True),  # time steps, of which there are enough
        ((8, 10), (7, 10), True, True),
        ((7, 10), (800, 10), True, False),
        ((8, 10), (800, 10), False, False),
        ((8, 8), (8, 800), True, False),  # no time
        ((1000, 10), (8, 10), True, True),
        ((1000, 10), (7, 10), True, False),
    ],
)
@pytest.mark.exhaustive
def test_extents_may_double_and_time_steps_do_not_count(was, now, in_time, same):
    assert similar(was, space(*now), in_time) is same


def test_it_does_not_matter_which_of_two_runs_came_first(seed):
    pick = random.Random(seed)
    for _ in range(200):
        one, other = ([pick.randrange(0, 40) for _ in range(pick.choice([2, 2, 2]))] for _ in range(2))
        in_time = pick.random() < 0.5
        assert similar(one, space(*other), in_time) == similar(other, space(*one), in_time), (seed, one, other)
        plain = all(
            a == b or 0 < max(a, b) <= MOST_TIMES * min(a, b) or k == 0 and in_time and min(a, b) >= STEPS_ENOUGH
            for k, (a, b) in enumerate(zip(one, other, strict=True))
        )
        assert similar(one, space(*other), in_time) == plain, (seed, one, other, in_time)


def plan(time_s, *extents):
    return SimpleNamespace(predicted=SimpleNamespace(time_s=time_s), notes={"extents": extents})


@pytest.mark.parametrize(
    "now, then, good",
    [
        (plan(1.0, 10, 10), plan(1.0, 10, 10), True),
        (plan(MOST_SLOWER, 10, 10), plan(1.0, 10, 10), True),
        (plan(1.01 * MOST_SLOWER, 10, 10), plan(1.0, 10, 10), False),
        (plan(2 * MOST_SLOWER, 20, 10), plan(1.0, 10, 10), True),
        (plan(2.02 * MOST_SLOWER, 20, 10), plan(1.0, 10, 10), False),
        (plan(1.01 * MOST_SLOWER, 5, 10), plan(1.0, 10, 10), False),  # fewer points have no more time
        (plan(1.0, 5, 10), plan(1.0, 10, 10), True),
        (plan(1.0, 1, 1), plan(1.0, 0, 10), True),
    ],
)
def test_a_plan_is_as_good_where_a_point_takes_about_as_long(now, then, good):
    assert as_good(now, then) is good


def test_a_space_of_other_loops_is_no_question():
    for was, now in itertools.product([(3,), (3, 3, 3)], [(3, 3)]):
        with pytest.raises(ValueError):
            similar(was, space(*now), False)


@tw.nest
def add(H, i, j):
    H[i, j] = H[i - 1, j] + 0.5 * H[i, j - 1]


def test_a_fitted_plan_has_the_rate_that_it_was_chosen_with(monkeypatch):
    """It is that of the plan's lanes already: one of two, which alone is twice as fast."""
    sizes = (50.0, 20000.0, 2e-5), (500.0, 12000.0, 1.2e-5), (4.0, 8.0, 8e-9), (50.0, 20000.0, 1e-5)
    samples = [(*size, 0.0) for size in sizes]
    monkeypatch.setattr(kernel_maker, "sampled", lambda *_: samples)
    context = tw.Context(threads=2)
    machine = context._core.machine()
    machine.hand_over_s = 1.0  # so one lane is best
    context._core.use_machine(machine)
    H = tw.field((400, 400), init=1.0, context=context)
    first = tw.run(add, H=H, context=context).plan
    other = tw.run(add, H=H, context=context, over={"i": (1, 300)}).plan
    assert first.threads == other.threads == 1 and other.notes["chosen_for"] == first.notes["extents"]
    assert other.notes["rate"] == first.notes["rate"] and first.notes["rate"]["one_lane_factor"] == 0.5
