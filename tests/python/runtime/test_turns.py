"""Nests that use the same fields in turn: when one layout for all is looked for and taken; no run is made."""

import itertools
import random
from types import SimpleNamespace

import pytest

from tilewave.runtime import turns

PLAIN, SKEWED = ("plain", (), (1, 2)), ("skewed", (1, -1), (2, 1))


def problem(indices=("i", "j"), signs=(1, 1), axes=(("i", "j"),), in_time=False, loops=None):
    n = len(indices)
    loops = loops or [[signs[k] if k == m else 0 for m in range(n)] for k in range(n)]
    return SimpleNamespace(
        nest=SimpleNamespace(indices=indices),
        spread=[SimpleNamespace(axes=a) for a in axes],
        core=SimpleNamespace(loops=loops),
        in_time=in_time,
    )


def prepared(name="nest", layout=PLAIN, time_s=1.0, ranks=2, on_one_rank=False, of=None):
    storage, row, grid = layout
    plan = SimpleNamespace(
        storage=storage, row=row, grid=grid, predicted=SimpleNamespace(time_s=time_s), notes={"nest": name}
    )
    return SimpleNamespace(
        plan=plan, problem=of or problem(), on_one_rank=on_one_rank, context=SimpleNamespace(size=ranks), turn=None
    )


def turn(name, layout=PLAIN, time_s=1.0):
    return turns.Turn(prepared(name, layout, time_s))


def test_the_runs_since_the_last_one_that_share_a_field():
    """Against a plain look at a random row of runs."""
    for seed in range(100):
        pick = random.Random(seed)
        made = [turn(f"t{k}") for k in range(5)]
        for each in made:
            each.fields = frozenset(pick.sample(range(5), pick.randrange(1, 4)))
        all_turns, row = turns.Turns(), [pick.choice(made) for _ in range(12)]
        all_turns.recent.extend(row)
        last = row[-1]
        before = [k for k, each in enumerate(row[:-1]) if each is last]
        between = row[before[-1] + 1 : -1] if before else []
        wanted = [last] + [t for t in dict.fromkeys(reversed(between)) if t.fields & last.fields] if before else [last]
        assert all_turns.cycle(last) == wanted, seed


def alternate(one, other, calls, time_s=0.1, moving_s=0.05):
    """Two nests in turn on one field, which moves each time."""
    all_turns = turns.Turns()
    for each in itertools.islice(itertools.cycle([one, other]), calls):
        each.ran(all_turns, frozenset({1}), time_s, moving_s)
    return all_turns


def test_layouts_are_wanted_once_moving_has_cost_enough():
    one, other = turn("one", PLAIN), turn("other", SKEWED)
    alternate(one, other, 2)
    assert one.wanted == other.wanted == () and one.moved_s == 0  # the first run of each does not count
    all_turns = alternate(one := turn("one", PLAIN), other := turn("other", SKEWED), 3)
    assert one.wanted == other.wanted == (("plain", (), (1, 2)), ("plain", (), (2, 1)), SKEWED)
    assert one.cycle == other.cycle == (one, other) and one.state == 3
    assert all_turns.recent[-1] is one


@pytest.mark.parametrize(
    "time_s, moving_s, calls",
    [
        (0.1, 0.9 * turns.LEAST_MOVED_S, 3),  # little in all
        (0.1, 0.9 * turns.LEAST_MOVING_PART * 0.1, 9),  # a small part of the run
        (0.1, 0.0, 20),
    ],
)
def test_little_moving_wants_nothing(time_s, moving_s, calls):
    one, other = turn("one", PLAIN), turn("other", SKEWED)
    alternate(one, other, calls, time_s, moving_s)
    assert one.wanted == other.wanted == ()


def test_a_nest_that_runs_alone_or_on_other_fields_wants_nothing():
    one, other, all_turns = turn("one"), turn("other", SKEWED), turns.Turns()
    for number, each in enumerate(itertools.islice(itertools.cycle([one, other]), 12)):
        each.ran(all_turns, frozenset({number % 2}), 0.1, 0.05)
    assert one.wanted == other.wanted == ()


def test_many_layouts_of_their_own_are_not_compared():
    made = [turn(f"t{k}", ("skewed", (1, -1), (2 + k, 1))) for k in range(turns.MOST_OWN + 1)]
    all_turns = turns.Turns()
    for each in made * 2:
        each.ran(all_turns, frozenset({1}), 0.1, 0.05)
    assert all(layout[0] == "plain" for layout in made[0].wanted) and len(made[0].wanted) == len(made)


def foretold(one, other, **times):
    """Say what each layout takes, (one, other), and decide."""
    for each in (one, other):
        each.wanted = ()
    for layout, pair in zip((PLAIN, SKEWED), (times["plain"], times["skewed"]), strict=True):
        for each, seconds in zip((one, other), pair, strict=True):
            each.times[layout] = (seconds, prepared(f"for {each.plan.notes['nest']}", layout))
    return one.decide()


def test_the_layout_that_takes_least_is_taken_by_all():
    one, other = turn("one", PLAIN, 1.0), turn("other", SKEWED, 1.0)
    alternate(one, other, 3, 2.0, 0.5)  # 1 s each, and half a second of moving of the first
    one.moving_s = other.moving_s = 0.5
    assert foretold(one, other, plain=(1.0, 1.6), skewed=(1.2, 1.0)) == SKEWED
    assert one.taken.plan.notes["turns"] == {"nests": ["one", "other"], "moving_s": 3.0, "together_s": 2.2}
    assert one.taken.turn.base is one and other.taken.turn.base is other and one.settled and not one.times
    assert one.decide() is None  # settled


@pytest.mark.parametrize("plain, skewed, taken", [(1.3, 1.45, None), (1.46, 1.42, SKEWED), (1.40, 1.42, PLAIN)])
def test_it_must_be_clearly_quicker_than_moving(plain, skewed, taken):
    one, other = turn("one", PLAIN, 1.0), turn("other", SKEWED, 1.0)
    alternate(one, other, 3, 2.0, 0.5)
    one.moving_s = other.moving_s = 0.5
    factor = 1.0 if taken else 1.2
    assert foretold(one, other, plain=(factor * plain,) * 2, skewed=(factor * skewed,) * 2) == taken
    assert (one.taken is None) == (taken is None) and one.settled


def test_a_layout_that_one_nest_cannot_have_is_not_taken():
    one, other = turn("one", PLAIN, 1.0), turn("other", SKEWED, 1.0)
    alternate(one, other, 3, 2.0, 0.5)
    one.moving_s = other.moving_s = 0.5
    one.times[SKEWED] = turns.NEVER
    assert foretold(one, other, plain=(9.0, 9.0), skewed=(turns.NEVER[0], 0.1)) is None


def test_time_steps_scale_what_a_call_takes():
    one = turn("one", PLAIN, 2.0)
    one.scale = 2.5
    assert one.predicted_s == 5.0


def test_a_nest_that_is_no_longer_disturbed_goes_back_to_its_own_plan():
    base, all_turns = turn("one", PLAIN), turns.Turns()
    base.taken = prepared("for all", SKEWED)
    stands_in = turns.Turn(base.taken, base)
    for _ in range(turns.ENOUGH_UNDISTURBED):
        stands_in.ran(all_turns, frozenset({1}), 0.1, 0.0)
    assert base.taken is not None  # the first of them came after another nest
    stands_in.ran(all_turns, frozenset({1}), 0.1, 0.0)
    assert base.taken is None and base.runs == 0


TIMED = problem(("t", "i", "j"), (1, 1, 1), in_time=True)


@pytest.mark.parametrize(
    "of, plan, layout",
    [
        (problem(), ("plain", (), (1, 2)), ("plain", (), (1, 2))),
        (problem(), ("skewed", (1, -1), (1, 2)), ("skewed", (1, -1), (1, 2))),
        (problem(signs=(1, -1)), ("skewed", (1, -1), (1, 2)), ("skewed", (1, 1), (1, 2))),  # a loop that runs down
        (problem(signs=(1, -1)), ("skewed", (), (1, 2)), ("skewed", (0, 0), (1, 2))),
        (TIMED, ("skewed", (0, 1, -1), (1, 2, 3)), ("skewed", (1, -1), (2, 3))),
        (problem(axes=(("j", "i"),)), PLAIN, None),  # in another order
        (problem(loops=[[1, 0], [1, 1]]), PLAIN, None),  # skewed loops
    ],
)
def test_the_layout_that_a_plan_wants(of, plan, layout):
    assert turns.layout_of(prepared(layout=plan, of=of)) == layout
    assert turns.layout_of(prepared(layout=plan, of=of, on_one_rank=True)) is None


@pytest.mark.parametrize(
    "of, layout, ranks, choices",
    [
        (problem(), PLAIN, 2, {"storage": "plain", "grid": (1, 2)}),
        (problem(), PLAIN, 1, {"storage": "plain"}),
        (problem(), SKEWED, 2, {"storage": "skewed", "grid": (2, 1), "row": (1, -1)}),
        (TIMED, SKEWED, 2, {"storage": "skewed", "grid": (1, 2, 1), "row": (0, 1, -1)}),
        (problem(signs=(1, -1)), SKEWED, 2, None),  # along one loop and back along the other
        (problem(signs=(1, -1)), PLAIN, 2, {"storage": "plain", "grid": (1, 2)}),
        (problem(("i",), (1,), (("i",),)), PLAIN, 2, None),  # other dimensions
        (problem(axes=(("j", "i"),)), PLAIN, 2, None),
    ],
)
def test_the_choices_of_a_plan_with_a_layout(of, layout, ranks, choices):
    assert turns.choices_for(layout, prepared(of=of, ranks=ranks)) == choices
    assert turns.choices_for(layout, prepared(of=of, ranks=ranks, on_one_rank=True)) is None
