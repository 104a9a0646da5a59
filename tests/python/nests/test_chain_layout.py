"""Layouts of fields that nests want, and the choices of a plan that give a layout; no run is made."""

from types import SimpleNamespace

import pytest

from tilewave.nests.plan_changes.chain_layout import choices_for, layout_of

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
        plan=plan, problem=of or problem(), on_one_rank=on_one_rank, context=SimpleNamespace(size=ranks)
    )


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
    assert layout_of(prepared(layout=plan, of=of)) == layout
    assert layout_of(prepared(layout=plan, of=of, on_one_rank=True)) is None


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
    assert choices_for(layout, prepared(of=of, ranks=ranks)) == choices
    assert choices_for(layout, prepared(of=of, ranks=ranks, on_one_rank=True)) is None
