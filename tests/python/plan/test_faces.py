"""The costs of a process grid's faces, by direction: `plan.predicted.faces` and `plan.explain()`."""

import numpy as np
import pytest
import tilewave as tw
from local_ranks import results_of

from tilewave import _core


@tw.nest
def heat(u, t, i, j):
    u[t+1, i, j] = 0.25 * (u[t, i-1, j] + u[t, i+1, j] + u[t, i, j-1] + u[t, i, j+1])


@tw.nest
def sweep(A, i, j, k):
    A[i, j, k] = 0.3 * A[i-1, j, k] + 0.3 * A[i, j-1, k] + 0.3 * A[i, j, k-1]


def planned(nest, ranks, shape, steps=None, dtype="f4", plan=None, periodic=()):
    def body(context):
        name = next(iter(nest.arrays))
        field = tw.field(shape, dtype, context=context)
        return tw.plan(nest, **{name: field}, steps=steps, periodic=periodic, context=context, plan=plan)

    results = results_of(ranks, 1, body)
    return results[0]


@pytest.mark.parametrize("grid", [(1, 3, 1), (1, 1, 3), (1, 3, 2), (1, 3, 3)])
def test_faces_of_a_star_are_its_sides(grid):
    """Bytes, messages and contiguous runs as the grid and the star have them."""
    rows, columns, steps = 61, 92, 7
    ranks = grid[1] * grid[2]
    choices = {"generator": "stencil", "grid": grid, "temporal_block": 1, "row": (0, 0, 1)}
    plan = planned(heat, ranks, (rows, columns), steps, plan=choices)
    faces = {face.direction: face for face in plan.predicted.faces}
    wanted = set()
    for axis in (1, 2):
        if grid[axis] == 1:
            continue
        for step in (-1, 1):
            at = (grid[axis] - 1) // 2 + step
            if 0 <= at < grid[axis]:
                wanted.add(tuple(step * (k == axis) for k in range(3)))
    assert set(faces) == wanted
    for direction, face in faces.items():
        across = columns if direction[1] else rows  # points of the whole face, over all ranks of the grid's other axis
        share = grid[2] if direction[1] else grid[1]
        assert (across // share - 2) * 4 * steps <= face.bytes <= (across // share + 3) * 4 * (steps + 2), (grid, face)
        assert face.copy_s >= 0 and face.transfer_s > 0 and face.messages >= steps
        assert face.run_bytes > 4 * 10 if direction[1] else face.run_bytes == 4, face


def test_periodic_neighbours_are_one_step_away():
    """The first rank of a periodic axis sends backwards to the last."""
    plan = planned(heat, 4, (40, 40), 3, plan={"grid": (1, 4, 1)}, periodic=("i",))
    assert {face.direction for face in plan.predicted.faces} == {(0, 1, 0), (0, -1, 0)}


def test_a_sweep_sends_forward_only():
    plan = planned(sweep, 3, (30, 40, 50), dtype="f8", plan={"grid": (1, 3, 1)})
    forward = [face for face in plan.predicted.faces if face.direction == (0, 1, 0)]
    assert forward and forward[0].bytes >= 29 * 49 * 8
    text = plan.explain()
    assert "Faces of the process grid 1x3x1" in text and "to (0, +1, 0)" in text


def test_grids_are_compared():
    """explain() names each process grid that was played, the best first; a saved plan has no faces."""
    plan = planned(heat, 4, (400, 400), 20)
    played = {tuple(record["choices"]["grid"]) for record in plan.ranked}
    assert len(played) > 1
    text = plan.explain().split("Process grids")[1].split("\n\n")[0]
    assert all("x".join(map(str, grid)) in text for grid in played)
    assert text.count(": taken") == 1


def test_one_rank_has_no_faces(tmp_path):
    plan = planned(heat, 1, (40, 40), 3)
    assert plan.predicted.faces == []
    assert "Faces of the process grid" not in plan.explain()
    plan.save(tmp_path / "plan.json")
    assert tw.Plan.load(tmp_path / "plan.json").predicted.faces == []


def test_strided_runs_cost_what_the_machine_says():
    """Packing runs of 4 bytes is as dear as the machine's curve says for them."""
    p = _core.SweepProblem(
        (10, 64, 96), ((0, 1, 1), (10, 63, 95)), [(4, False, (64, 96), (1, 2), 2, False)],
        [(0, (1, 0, 0), True, False), *((0, (0, a, b), False, False) for a, b in ((1, 0), (-1, 0), (0, 1), (0, -1)))],
        [], [False] * 3, False,
    )  # fmt: skip
    machine = _core.Machine()
    machine.copy_byte_s = _core.Curve([4.0, 1e6], [2e-9, 2e-9])
    wish = _core.PlanRequest()
    wish.threads, wish.grid, wish.generator, wish.temporal_block = 1, (1, 1, 2), "stencil", 1
    plan = _core.choose_plan(p, 2, wish, machine, _core.KernelRate(1e-9, 2e-8, 3e-7)).ranked[0].plan
    faces = _core.face_costs(p, plan, machine)
    assert len(faces) == 1 and faces[0].packed
    assert faces[0].copy_s == pytest.approx(2 * faces[0].bytes * 2e-9)
    assert np.isfinite(faces[0].transfer_s)


@pytest.mark.parametrize("storage, row, run_bytes", [("plain", (), 8), ("skewed", (1, 0), 64)])
def test_a_face_is_contiguous_where_storage_goes_along_it(storage, row, run_bytes):
    """Faces of 8 points along the first axis, 1 along the second."""
    p = _core.SweepProblem((32, 24), ((0, 1), (32, 24)), [(8, False)], [(0, (0, -1))])
    plan = _core.Plan()
    plan.grid, plan.tile, plan.factors, plan.mapping_dim = (1, 2), (8, 12), (1, 1), 0
    plan.storage, plan.row = storage, row
    (face,) = _core.face_costs(p, plan, _core.Machine())
    assert (face.messages, face.bytes, face.run_bytes, face.packed) == (4, 4 * 64, run_bytes, run_bytes == 8)
