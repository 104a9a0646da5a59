"""The checker accepts random general sweeps, and names every mutant of theirs that changes results."""

import itertools
import random

import numpy as np
import pytest
from general_runs import run_case
from general_sweeps import general_case

import tilewave as tw
from tilewave import _core
from tilewave.plan.plan import request_of
from tilewave.nest.bounds import Loops
from tilewave.nests.call.problem import make_problem

LEAST_ACCEPTED = 0.6


def check_all(seeds):
    refused = 0
    for seed in seeds:
        case = general_case(seed)
        refused += case.refused
        violation = _core.check(case.schedules())
        assert violation is None, f"{violation}; {case}"
    assert len(seeds) >= LEAST_ACCEPTED * (len(seeds) + refused), f"{refused} refused for {len(seeds)} that were not"


@pytest.mark.parametrize("first", range(0, 6000, 500))
def test_random_general_sweeps_check(first):
    check_all(range(first, first + 500))


def test_a_message_may_have_padding_of_skewed_boxes_that_nobody_has():
    case = general_case(18293)
    assert _core.check(case.schedules()) is None


@pytest.mark.long
def test_many_random_general_sweeps_check():
    check_all(range(10_000, 200_000))


@tw.nest
def near_and_far(B, C, t, i, j, k):
    B[t+1, i, j, k] = 0.5 * B[t+1, i-2, j-1, k] + 0.25 * B[t, i, j-1, k+2] + C[t, i-1, j+1, k]
    C[t+1, i, j, k] = C[t+1, i, j-1, k-2] + C[t, i+1, j+1, k] + C[t, i, j+1, k]


@pytest.mark.parametrize("schedule", ["blocking", "overlapping"])
@pytest.mark.parametrize("lanes", [1, 2, 3])
def test_only_tiles_that_read_a_message_wait_for_it(schedule, lanes):
    """Of a face the readers are a tile of the same step and one of the next: what lies between them comes before what
    is sent.
    """
    arrays = {name: np.zeros((10, 7, 7)) for name in "BC"}
    problem = make_problem(near_and_far, arrays, Loops(steps=4)).core
    for tile in ((1, 2, 2, 1), (1, 2, 1, 1), (1, 1, 1, 2), (1, 3, 2, 1)):
        for factors in {(1, 1, 1, lanes), (1, lanes, 1, 1)}:
            for mapping in (0, 1, 3):
                if factors[mapping] > 1:
                    continue
                choices = {
                    "schedule": schedule, "synchronous": True, "grid": (1, 1, 3, 1), "tile": tile,
                    "factors": factors, "mapping_dim": mapping,
                }
                plan = _core.make_plan(problem, 3, request_of(choices, lanes), _core.Machine())
                violation = _core.check([_core.sweep(problem, plan, rank, 3) for rank in range(3)])
                assert violation is None, f"{violation}; {choices}"


def check_deep_halos(seeds):
    for seed in seeds:
        case = general_case(seed, deep_halo=True)
        violation = _core.check(case.schedules())
        assert violation is None, f"{violation}; {case}"


@pytest.mark.parametrize("first", range(0, 60, 6))
def test_sweeps_with_deep_halos_check(first):
    check_deep_halos(range(first, first + 6))


@pytest.mark.long
@pytest.mark.parametrize("first", range(10_000, 12_000, 250))
def test_many_sweeps_with_deep_halos_check(first):
    check_deep_halos(range(first, first + 250))


def places(schedules, op, *, send=None):
    """(rank, lane, index) of all steps of an op."""
    return [
        (r, l, i)
        for r, s in enumerate(schedules)
        for l, lane in enumerate(s.lanes)
        for i, step in enumerate(lane)
        if step.op == op and (send is None or s.messages[step.item].send == send)
    ]


def without(schedule, drop):
    schedule.lanes = [[s for s in lane if not drop(s)] for lane in schedule.lanes]


def edit(schedule, lane, change):
    lanes = schedule.lanes
    change(lanes[lane])
    schedule.lanes = lanes


def drop_message(rng, made):
    """Both ends of a message, with all their steps."""
    r, l, i = rng.choice(places(made, "post_send"))
    out = made[r].lanes[l][i].item
    m = made[r].messages[out]
    into = {
        k
        for k, x in enumerate(made[m.peer].messages)
        if not x.send and (x.peer, x.tag, x.array, x.region) == (r, m.tag, m.array, m.region)
    }
    about = ("post_send", "post_recv", "wait", "pack", "unpack")
    without(made[r], lambda s: s.op in about and s.item == out)
    without(made[m.peer], lambda s: s.op in about and s.item in into)
    return True


def drop_step(op):
    def drop(rng, made):
        r, l, i = rng.choice(places(made, op))
        edit(made[r], l, lambda lane: lane.pop(i))
        return True

    return drop


def swap_steps(rng, made):
    r, l = rng.choice([(r, l) for r, s in enumerate(made) for l, lane in enumerate(s.lanes) if len(lane) > 1])

    def swap(lane):
        i = rng.randrange(len(lane) - 1)
        lane[i], lane[i+1] = lane[i+1], lane[i]

    edit(made[r], l, swap)
    return True


def post_early(rng, made):
    """A receive from after a compute step to before it."""
    later = [(r, l, i) for r, l, i in places(made, "post_recv") if any(s.op == "compute" for s in made[r].lanes[l][:i])]
    r, l, i = rng.choice(later)

    def move(lane):
        before = max(k for k in range(i) if lane[k].op == "compute")
        lane.insert(before, lane.pop(i))

    edit(made[r], l, move)
    return True


def shift_region(rng, made):
    """The region of a message, or of a part of one, on both sides, one further along some dimension."""
    r, l, i = rng.choice(places(made, "post_send"))
    out = made[r].lanes[l][i].item
    if parts := made[r].messages[out].pieces:
        out += 1 + rng.randrange(parts)
    m = made[r].messages[out]
    (low, high), k, by = m.region, rng.randrange(len(m.region[0])), rng.choice((-1, 1))
    moved = tuple(tuple(x + by * (d == k) for d, x in enumerate(end)) for end in (low, high))
    for rank, ids in (
        (r, {out}),
        (
            m.peer,
            {
                q
                for q, x in enumerate(made[m.peer].messages)
                if not x.send and (x.peer, x.tag, x.array, x.region) == (r, m.tag, m.array, m.region)
            },
        ),
    ):
        messages = made[rank].messages
        for q in ids:
            messages[q].region = moved
        made[rank].messages = messages
    return False


MUTATIONS = {
    "message": drop_message, "await": drop_step("await"), "unpack": drop_step("unpack"), "pack": drop_step("pack"),
    "wait": drop_step("wait"), "signal": drop_step("signal"), "compute": drop_step("compute"), "swap": swap_steps,
    "early": post_early, "region": shift_region,
}


def written_once(case):
    """Whether no element is written twice: else the checker knows the order of steps, not the values."""
    written = [a for a, _, writes, _ in case.accesses if writes]
    return len(set(written)) == len(written) and all(
        len(case.arrays[a][3]) + (case.arrays[a][4] > 0) == len(case.shape) for a in written
    )


def mutants(kind, seeds, deep_halo=False, weights=True):
    """(case, schedules, whether lanes are all that changed, violation) of the cases that have such steps."""
    for seed in seeds:
        case = general_case(seed, item_bytes=(8,), deep_halo=deep_halo, weights=weights)
        if not written_once(case):
            continue
        made = case.schedules()
        try:
            runs = MUTATIONS[kind](random.Random(seed), made)
        except IndexError:  # no such step
            continue
        yield case, made, runs, _core.check(made)


@pytest.mark.parametrize("kind", MUTATIONS)
def test_a_mutant_that_passes_gives_the_same_results(kind):
    accept_mutants(kind, range(1000), 6, enough=100)


@pytest.mark.long
@pytest.mark.parametrize("kind", MUTATIONS)
def test_many_mutants_that_pass_give_the_same_results(kind):
    accept_mutants(kind, range(10_000, 12_000), 200)


# What a tile itself writes over is read before; the last time buffer is there at the end, copied where nobody
# computes it.
@pytest.mark.parametrize(
    "kind, found, why",
    [
        ("unpack", 12489, "reads"),
        ("compute", 11359, "at the end"),
        ("swap", 10039, "at the end"),
        ("swap", 11154, "reads"),
        ("swap", 11351, "no longer stored"),
        ("unpack", 13873, "before anything is there"),
    ],
)
def test_mutants_that_long_runs_have_found_are_named(kind, found, why):
    ((_, _, _, violation),) = mutants(kind, [found], weights=False)
    assert violation is not None and why in str(violation)


def test_runs_that_long_runs_have_found_are_right():
    """A rank of one point sends both time buffers of it, which do not follow each other in memory."""
    case = general_case(10527, item_bytes=(8,))
    assert case.ranks == 6 and not run_case(case)


@pytest.mark.parametrize("kind", ["message", "unpack", "compute", "swap"])
def test_a_mutant_with_deep_halos_that_passes_gives_the_same_results(kind):
    accept_mutants(kind, range(40), 3, deep_halo=True)


@pytest.mark.long
@pytest.mark.parametrize("kind", MUTATIONS)
def test_many_mutants_with_deep_halos_that_pass_give_the_same_results(kind):
    accept_mutants(kind, range(10_000, 10_200), 40, deep_halo=True)


def accept_mutants(kind, seeds, most_runs, deep_halo=False, enough=None):
    found = named = ran = 0
    for case, made, runs, violation in itertools.islice(mutants(kind, seeds, deep_halo), enough):
        found += 1
        named += violation is not None
        if violation is None and runs and ran < most_runs:
            ran += 1
            wrong = run_case(case, lanes=[s.lanes for s in made])
            assert not wrong, f"the checker passed a mutant ({kind}) that is wrong: {wrong}; {case}"
    print(f"{kind}: {found} mutants, {named} named, {ran} of the others run")
    assert found >= 20 and named >= LEAST_NAMED[kind] * found, f"{named} of {found} mutants ({kind}) are named"


# The rest are harmless: steps that may be swapped, awaits of what another await implies, rim of
# points that the bounds leave out.
LEAST_NAMED = {
    "message": 0.7, "await": 0.2, "unpack": 0.7, "pack": 1, "wait": 1, "signal": 0.05, "compute": 0.9, "swap": 0.3,
    "early": 0, "region": 0.7,
}
