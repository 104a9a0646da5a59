"""Nests that read time steps before the current one, fields that keep them, and arrays that have time as a dimension
beside them.
"""

import numpy as np
import pytest
from local_ranks import results_of

import tilewave as tw
from tilewave.nest.bounds import loop_bounds
from tilewave.nests.call.problem import check_steps
from plain_loops import plain_loops

SHAPE = 10, 12


@tw.nest
def wave(u, t, i, j, *, c=0.2):
    u[t+1, i, j] = (
        2 * u[t, i, j]
        - u[t-1, i, j]
        + c * (u[t, i-1, j] + u[t, i+1, j] + u[t, i, j-1] + u[t, i, j+1] - 4 * u[t, i, j])
    )


@tw.nest
def several(u, v, w, t, i, j, *, c=0.2):
    v[t+1, i, j] = 0.5 * v[t, i-1, j] + u[t-1, i, j+1] - v[t-2, i, j] + t
    u[t+1, i, j] = u[t, i, j] - u[t-1, i+1, j-1] + 0.1 * u[t+1, i-1, j] + c * v[t, i, j]
    w[t+1, i, j] = 0.3 * (w[t+1, i, j-1] + u[t-1, i, j])
    if u[t-1, i, j] > 0.5:
        v[t+1, i, j] = v[t-1, i-1, j]


@tw.nest
def heat(u, t, i, j, *, c=0.2):
    u[t+1, i, j] = u[t, i, j] + c * (
        u[t, i-1, j] + u[t, i+1, j] + u[t, i, j-1] + u[t, i, j+1] - 4 * u[t, i, j]
    )


@tw.nest
def relax(u, t, i, j, *, c=0.2):
    u[t+1, i, j] = c * (u[t+1, i-1, j] + u[t+1, i, j-1] + u[t, i+1, j] + u[t, i, j+1])


@tw.nest
def alone(u, total, t, i, *, c=0.2):
    u[t+1, i] = c * u[t+1, i-1] + u[t-1, i] - u[t, i+1] + 0.1 * u[t-2, i]
    total[t+1] = total[t] + 0.1 * total[t+1] + u[t+1, i]


@tw.nest
def recorded(u, rate, total, t, i, j, *, c=0.2):
    u[t+1, i, j] = 2 * u[t, i, j] - u[t-1, i, j] + c * (u[t, i-1, j] - u[t, i+1, j])
    rate[t+1, i, j] = u[t+1, i, j] - u[t, i, j]
    total[t+1, i, j] = total[t, i, j] + rate[t+1, i, j]


@tw.nest
def traced(u, trace, t, i, j, *, at=5):
    u[t+1, i, j] = 0.5 * (u[t, i-1, j] + u[t, i+1, j]) + 0.1 * t
    if j == at:
        trace[t+1, i] = u[t+1, i, j]


def random(seed, shape=SHAPE):
    return np.random.default_rng([8, seed]).random(shape)


class Both:
    """Fields, and the plain arrays that they must equal, through runs one after another."""

    def __init__(self, context, names, history, shape=SHAPE):
        self.context = context
        self.plain = {name: random(k, shape) for k, name in enumerate(names)}
        self.before = {
            name: [random(100 * k + b, shape) for b in range(history.get(name, 0))] for k, name in enumerate(names, 1)
        }
        self.fields = {
            name: tw.field(
                shape,
                "f8",
                init=self.plain[name].copy(),
                history=[b.copy() for b in self.before[name]],
                context=context,
            )
            for name in names
        }

    def run(self, nest, steps, over=None, plan=None):
        fields = {name: self.fields[name] for name in nest.arrays}
        report = tw.run(nest, **fields, steps=steps, over=over, context=self.context, plan=plan)
        for name in nest.written:
            depth = max(0, -min(place.offsets[0] for place in nest.places if place.array == name))
            while len(self.before[name]) < depth and fields[name].ndim < len(nest.axes[name]):
                self.before[name].append(self.plain[name].copy())
        bounds = loop_bounds(nest.indices, check_steps(nest, fields, steps), over)
        plain_loops(
            nest,
            bounds,
            {name: self.plain[name] for name in nest.arrays},
            dict(nest.scalars),
            (),
            steps,
            {name: self.before[name] for name in nest.written},
        )
        self.compare(f"{nest.name}, {steps} steps, {report.plan}")
        return report

    def compare(self, what):
        for name, field in self.fields.items():
            assert field.history == len(self.before[name]), what
            for back, expected in enumerate([self.plain[name], *self.before[name]]):
                found = field.buffer(-back).gather()
                if self.context.rank == 0:
                    np.testing.assert_array_equal(found, expected, f"{name} {back} steps back: {what}")


def all_equal(ranks, threads, body):
    results_of(ranks, threads, body)


@pytest.mark.parametrize("ranks,threads", [(1, 1), (1, 2), (2, 1), (3, 2)])
def test_runs_continue_as_plain_loops(ranks, threads):
    def body(context):
        for steps in ((0, 3), (1, 1, 1, 4), (2, 0, 7), (70, 2)):
            for history in ({}, {"u": 1, "v": 2}, {"u": 3, "v": 4}):
                one, more = Both(context, "u", {"u": history.get("u", 0)}), Both(context, "uvw", history)
                for count in steps:
                    one.run(wave, count)
                    more.run(several, min(count, 9))

    all_equal(ranks, threads, body)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_any_plan_and_any_nest_between(ranks):
    """History moves with the field, is kept by nests that do not read it, and may differ outside the points."""

    def body(context):
        u = Both(context, "u", {"u": 2})
        grids = [(1, ranks, 1), (1, 1, ranks)]
        for k, (nest, steps, over) in enumerate(
            [
                (wave, 3, {"j": (2, 9)}),
                (heat, 1, None),
                (wave, 2, {"i": (3, 6), "j": ("i", 11)}),
                (relax, 2, None),
                (heat, 4, {"i": (2, 8)}),
                (wave, 5, {"j": (1, 5)}),
                (wave, 1, None),
            ]
        ):
            u.run(nest, steps, over, {"grid": grids[k%2], "schedule": ("blocking", "overlapping")[k//2%2]})

    all_equal(ranks, 1, body)


@tw.nest
def far(u, t, i):
    u[t+1, i] = 0.5 * u[t, i-1] + 0.25 * u[t-1, i+3] - 0.125 * u[t-2, i-4] + t


@tw.nest
def mirrored(u, t, i):
    u[t+1, i] = 0.5 * u[t, i+1] + 0.25 * u[t-1, i-3] - 0.125 * u[t-2, i+4] + t


@pytest.mark.parametrize("ranks", [2, 3])
def test_halos_of_several_steps_reach_as_far_as_the_past_is_read(ranks):
    """3 elements further on two steps before are 2 a step, 4 three steps before are 2, too."""

    def body(context):
        for nest in (far, mirrored):
            for together in (1, 2, 3, 5):
                u = Both(context, "u", {"u": 2}, (61,))
                u.run(nest, 11, plan={"generator": "stencil", "temporal_block": together, "grid": (1, ranks)})

    all_equal(ranks, 1, body)


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_same_call_after_another_nest_has_read_more_of_the_past(ranks):
    """The field then keeps more time steps than the call found when it was checked and planned."""

    def body(context):
        u = Both(context, "u", {})
        for nest in (heat, heat, wave, heat, wave, heat):
            u.run(nest, 2)

    all_equal(ranks, 1, body)


@pytest.mark.parametrize("ranks", [1, 3])
def test_bound_nests_and_chains_after_another_nest_has_read_more_of_the_past(ranks):
    def body(context):
        u = tw.field(SHAPE, init=lambda i, j: np.sin(i * j), context=context)
        v, w = u.copy(), u.copy()
        step, read = tw.bind(heat, u=u, steps=1), tw.bind(wave, u=u, steps=1)
        chain = tw.chain([tw.bind(heat, u=w, steps=1), tw.bind(wave, u=w, steps=1)])
        alone = tw.chain([tw.bind(heat, u=w, steps=1)])
        for chained in (True, False, True):
            for bound in (step, read):
                bound.run(c=0.3)
            (chain if chained else alone).run(c=0.3)
            if not chained:
                tw.run(wave, u=w, steps=1, c=0.3)
            tw.run(heat, u=v, steps=1, c=0.3)
            tw.run(wave, u=v, steps=1, c=0.3)
        return [each.gather() for each in (u, v, w)]

    u, v, w = results_of(ranks, 1, body)[0]
    assert np.array_equal(u, v) and np.array_equal(w, v)


def test_on_one_rank_of_several():
    def body(context):
        both = Both(context, "u", {"u": 2}, (9,))
        both.plain["total"], both.before["total"] = random(5, (7,)), []
        both.fields["total"] = tw.field((7,), "f8", init=both.plain["total"].copy(), context=context)
        for steps in (2, 1, 5):
            assert both.run(alone, steps).on_one_rank

    all_equal(2, 1, body)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_arrays_with_all_times_beside_those_with_a_few(ranks):
    steps = 6

    def body(context):
        both = Both(context, "u", {})
        for k, name in enumerate(("rate", "total")):
            both.plain[name] = random(20 + k, (steps + 2, *SHAPE))
            both.before[name] = []
            both.fields[name] = tw.field((steps + 2, *SHAPE), "f8", init=both.plain[name].copy(), context=context)
        both.run(recorded, steps)
        both.plain["trace"], both.before["trace"] = np.zeros((80, SHAPE[0])), []
        both.fields["trace"] = tw.field((80, SHAPE[0]), "f8", context=context)
        both.run(traced, 70)

    all_equal(ranks, 1, body)


def test_levels_of_a_field():
    u = tw.field((3, 4), "f4", init=2.0, history=[lambda i, j: i + j, np.full((3, 4), 5)])
    assert u.history == 2
    np.testing.assert_array_equal(u.buffer(-1).gather(), np.add.outer(range(3), range(4)))
    assert (u.buffer(-2).local == 5).all() and (u.buffer(0).local == 2).all()
    u.buffer(-2).local[...] = u.local
    assert (u.buffer(-2).gather() == 2).all()
    v = tw.field((3, 4), init=3.0, history=2)
    assert (v.buffer(-2).local == 3).all()
    for number in (1, -3, True, 0.5):
        with pytest.raises(tw.ConfigError, match="allowed: -2 to 0"):
            u.buffer(number)
    for history in (-1, 7, True, 1.5, "a", [0] * 7):
        with pytest.raises(tw.ConfigError, match="allowed: a number from 0 to 6, or a list"):
            tw.field((3,), history=history)
    with pytest.raises(tw.ConfigError, match="which has no values outside a run"):
        tw.field((3,), history=1, keep="window")


def test_a_view_of_a_level_is_refused_once_it_has_moved():
    u = tw.field(SHAPE, history=1)
    view = u.buffer(-1).local
    tw.run(wave, u=u, steps=1)
    with pytest.raises(tw.ConfigError, match="view of a field from before"):
        tw.run(tw.nest(copied), u=tw.field(SHAPE), f=view)


def copied(u, f, i, j):
    u[i, j] = f[i, j]


def test_what_is_refused():
    @tw.nest
    def forced(u, f, t, i):
        u[t+1, i] = u[t, i] + f[t-1, i]

    @tw.nest
    def beside(u, t, i):
        u[t+1, i] = u[t, i] + u[t-1, i+1]

    with pytest.raises(tw.ConfigError, match=r"'u' is a NumPy array.*allowed: u = tilewave.field"):
        tw.run(wave, u=np.zeros(SHAPE), steps=2)
    with pytest.raises(tw.ConfigError, match="begin with t = 0; allowed: offsets 0"):
        tw.run(forced, u=tw.field((9,)), f=np.zeros((5, 9)), steps=2)
    with pytest.raises(tw.ConfigError, match="allowed: of time steps before t, elements at the point itself"):
        tw.run(beside, u=tw.field((9,)), steps=2, over={"i": (1, "t+2")})
    kept = tw.field((9,), history=1)  # where nothing writes it, all time steps are the current one
    with pytest.raises(tw.ConfigError, match=r"earlier time step of 'f'.*before.local\[...\] = f.buffer\(-1\).local"):
        tw.run(forced, u=tw.field((9,)), f=kept, steps=2)
    with pytest.raises(tw.ConfigError, match="writes array 'f', which has time as a dimension; allowed"):
        tw.run(recorded_beside, u=tw.field((9,)), f=tw.field((4, 9)), steps=2)


@tw.nest
def grows(A, t, i):
    A[t+1, i] = A[t, i] + A[t-1, i]


@tw.nest
def before_it(B, A, t, i):
    B[t+1, i] = A[t-1, i]


@tw.nest
def sum_before(B, A, t, i, *, n=5):
    B[t+1, i] = sum(A[t-1, q] for q in range(n))


@tw.nest
def stays(C, t, i):
    C[t+1, i] = C[t, i]


@pytest.mark.parametrize("nest", [before_it, sum_before])
@pytest.mark.parametrize("door", ["run", "bind", "several", "bound several", "chain"])
def test_a_field_that_has_got_a_history_since_is_not_read_at_an_earlier_step(nest, door):
    A, B, C = tw.field(np.arange(5.0)), tw.field((5,)), tw.field((5,))
    one, two = {"A": A, "B": B, "steps": 1}, {"A": A, "B": B, "C": C, "steps": 1}
    run = {
        "run": lambda: lambda: tw.run(nest, **one),
        "bind": lambda: tw.bind(nest, **one).run,
        "several": lambda: lambda: tw.run((nest, stays), **two),
        "bound several": lambda: tw.bind((nest, stays), **two).run,
        "chain": lambda: tw.chain([tw.bind(nest, **one), tw.bind(stays, C=C, steps=1)]).run,
    }[door]()
    for _ in range(3):
        run()
    tw.run(grows, A=A, steps=1)
    with pytest.raises(tw.ConfigError, match="earlier time step of 'A'"):
        run()


@pytest.mark.parametrize("nest", [before_it, sum_before])
def test_a_chain_does_not_read_what_it_gives_a_history_at_an_earlier_step(nest):
    A, B = tw.field(np.arange(5.0)), tw.field((5,))
    bounds = [tw.bind(grows, A=A, steps=1), tw.bind(nest, A=A, B=B, steps=1)]
    with pytest.raises(tw.ConfigError, match="earlier time step of 'A'"):
        tw.chain(bounds)


@tw.nest
def recorded_beside(u, f, t, i):
    u[t+1, i] = u[t, i] + u[t-1, i+1]
    f[t+1, i] = u[t+1, i]


@tw.nest
def largest_before(u, t, i, j, *, n):
    u[t+1, i, j] = tw.max(u[t-1, i, q] for q in range(j, n))


@pytest.mark.parametrize("ranks", [1, 3])
def test_loops_in_bodies_over_elements_that_no_step_writes_see_their_earlier_values(ranks):
    now, before = random(1, (4, 9)), 2 + random(2, (4, 9))
    for steps in (1, 2, 3, 8):
        wanted = [before, now]
        for _ in range(steps):
            step = wanted[-1].copy()
            for j in range(4):
                step[:, j] = wanted[-2][:, j:].max(axis=1)
            wanted.append(step)

        def program(context, steps=steps):
            u = tw.field(now, history=[before], context=context)
            tw.run(largest_before, u=u, n=9, steps=steps, over={"j": (0, 4)})
            return u.gather(), u.buffer(-1).gather()

        (found, earlier), *_ = results_of(ranks, 1, program)
        np.testing.assert_array_equal(found, wanted[-1])
        np.testing.assert_array_equal(earlier, wanted[-2])
