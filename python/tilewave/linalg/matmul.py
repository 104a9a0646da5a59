"""Products of distributed matrices."""

from __future__ import annotations

import dataclasses
import functools
import json
import weakref
from typing import TYPE_CHECKING

from tilewave import _core
from tilewave.errors import ConfigError, KernelError
from tilewave.linalg.blas import blas
from tilewave.linalg.matrix import Move
from tilewave.linalg.operands import local_of, place_of
from tilewave.linalg.plan import MatmulPlan, MatmulReport
from tilewave.linalg.prediction import Play
from tilewave.linalg.request import request_of
from tilewave.machine import known, measure
from tilewave.runtime.collective import collective
from tilewave.runtime.ready import ready
from tilewave.timeline.parts import Parts
from tilewave.timeline.timeline import Timeline

if TYPE_CHECKING:
    from tilewave.annotations import Collective, Number
    from tilewave.linalg.layout import Layout
    from tilewave.linalg.matrix import Matrix
    from tilewave.runtime.context import Context

_plans = weakref.WeakKeyDictionary()  # by context: what was planned there, the same on all its ranks
#: Plans that a context keeps.
MOST_PLANS = 64


@collective("tw.linalg.matmul")
def matmul(
    a: Matrix,
    b: Matrix,
    c: Matrix | None = None,
    *,
    alpha: Number = 1.0,
    beta: Number = 0.0,
    trans_a: str = "N",
    trans_b: str = "N",
    algorithm: str = "auto",
    lookahead: int | None = None,
    panel: int | None = None,
    tree: str | None = None,
    pending: bool | None = None,
    memory: int | None = None,
    layout: str | Layout | None = None,
    plan: MatmulPlan | None = None,
    context: Context | None = None,
) -> Collective[Matrix]:
    """C = alpha op(A) op(B) + beta C, with the communication hidden; collective.

    Parameters
    ----------
    a, b : Matrix
        Of one dtype, in any layouts.
    c : Matrix, optional
        Changed in place. Default: a new one.
    alpha, beta : number
        With beta 0 what C holds is not read.
    trans_a, trans_b : str or int
        op: "N" or 0, as it is; "T" or 1, transposed; "C" or 2, transposed and conjugate.
    algorithm : str
        "broadcast": panels go to all that need them, by rings or trees; "wavefront": blocks of B go from rank to rank,
        part i of C meets block j in wave i + j (wolfmann2010); "summa": panels of the common dimension, on any grid;
        "auto": what is predicted fastest.
    lookahead : int, optional
        Panels that travel while another one is used. Default: predicted.
    panel : int, optional
        Common elements of a panel at most; of blocks of B with no more columns than that, columns. Default: predicted.
    tree : str, optional
        Of broadcasts: "ring" or "least_rounds". Default: predicted.
    pending : bool, optional
        Of "wavefront": a pending block for every other rank, a lane each. Default: predicted.
    memory : int, optional
        Bytes that each rank may use beyond the three matrices. Default: as much as the fastest plan needs.
    layout : str or Layout, optional
        Of a new C. Default: that of A's rows and B's columns, where they have a grid in common.
    plan : MatmulPlan, optional
        From `plan_matmul`: its choices, beside which no other may be given.
    context : Context, optional
        Default: the one of `a`.

    Returns
    -------
    Matrix
        C; its ``report`` says how it went.

    Raises
    ------
    ConfigError
        On every rank: for shapes or dtypes that do not fit, a memory that no plan keeps within, choices that the
        layouts do not allow, arguments that differ between ranks.

    Notes
    -----
    Collective. NaN and infinity spread as in BLAS. Rates of the BLAS are measured at first use of a shape.
    """
    request, c = request_of(context, a, b, c, locals())
    library = blas()
    yield request.text
    chosen = yield from _chosen(context, request, library)
    scalars = complex(alpha), complex(beta)

    def make():
        case, parts, moves = request.core.case("matmul", chosen._core()), [], []
        for number, (stored, matrix, moved) in enumerate(zip(case.stored, (a, b, c), case.moved, strict=True)):
            parts.append(local_of(stored, context.rank, a.dtype) if moved else matrix.local)
            comes = moved and (number < 2 or beta != 0)
            moves.append(Move(context, matrix._blocks, stored, a.dtype) if comes else None)
        back = Move(context, case.stored[2], c._blocks, a.dtype) if case.moved[2] else None
        given = context._core, case.schedule(context.rank), library, a.dtype.name
        run = _core.linalg.ProductRun(*given, *scalars, *case.conjugates, case.b_by_rows)
        return case, parts, moves, back, run

    case, parts, moves, back, run = yield from ready(chosen.algorithm, make)
    for move, matrix, part in zip(moves, (a, b, c), parts, strict=True):
        if move is not None:
            move(matrix.local, part)
    in_order = [parts[1], parts[0], parts[2]] if case.mirrored else parts
    places = [place_of(part, turned) for part, turned in zip(in_order, case.turned, strict=True)]
    try:
        done = run.run(places, a.dtype.itemsize)
    except (ConfigError, KernelError, MemoryError) as problem:
        raise context._shared(problem) from None
    context._finished(done)
    if back is not None:
        back(parts[2], c.local)
    on_zero, rates = context.rank == 0, functools.partial(case.rates, library, a.dtype.name)
    c.report = MatmulReport(
        chosen,
        done.time_s,
        request.flops / max(done.time_s, 1e-9),
        Parts.of(done.parts) if on_zero else None,
        Timeline(done.timeline),
        Play(case.schedule, context.size, context._core.machine(), rates, context.threads) if on_zero else None,
    )
    return c


@collective("tw.linalg.plan_matmul")
def plan_matmul(
    a: Matrix,
    b: Matrix,
    c: Matrix | None = None,
    *,
    beta: Number = 0.0,
    trans_a: str = "N",
    trans_b: str = "N",
    algorithm: str = "auto",
    lookahead: int | None = None,
    panel: int | None = None,
    tree: str | None = None,
    pending: bool | None = None,
    memory: int | None = None,
    layout: str | Layout | None = None,
    context: Context | None = None,
) -> Collective[MatmulPlan]:
    """How `matmul` would compute a product; nothing is computed. Collective.

    Parameters
    ----------
    a, b, c, beta, trans_a, trans_b, algorithm, lookahead, panel, tree, pending, memory, layout, context
        As in `matmul`.

    Returns
    -------
    MatmulPlan
        The same on every rank; ``plan.memory_bytes`` is known before anything is allocated for it.

    Raises
    ------
    ConfigError
        On every rank, as `matmul`.
    """
    given = locals() | {"alpha": 1.0, "plan": None}
    request, _ = request_of(context, a, b, c, given)
    library = blas()
    yield request.text
    return (yield from _chosen(context, request, library))


def _chosen(context, request, library):
    """The plan, the same on every rank: rank 0 compares. A part of a collective call."""
    kept = _plans.setdefault(context, {})
    if context.size > 1:
        yield from measure.looked_up(context)
    machine = context._core.machine()
    number = context._machine_number
    key = (request.planned, number, context.threads)
    if key not in kept:
        error, text = None, ""
        try:
            plans = request.core.plans("matmul")
            if len(plans) > 1:
                request.core.measure("matmul", library, plans, context.rank)
            if context.rank == 0:
                played = [MatmulPlan._of(plan) for plan in request.core.played("matmul", library, plans, machine)]
                compared = [(p.predicted_s, p.memory_bytes, str(p._core())) for p in played] if len(played) > 1 else []
                text = json.dumps(
                    dataclasses.asdict(
                        dataclasses.replace(played[0], compared=compared, messages=known.messages(context))
                    )
                )
        except Exception as problem:
            error = problem
        yield error or "planned"
        found = json.loads(context._core.broadcast(text.encode()))
        found["moved"], found["compared"] = tuple(found["moved"]), tuple(map(tuple, found["compared"]))
        while len(kept) >= MOST_PLANS:
            kept.pop(next(iter(kept)))
        kept[key] = MatmulPlan(**found)
    return kept[key]
