"""Products of distributed matrices."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any, NamedTuple

from tilewave import _core
from tilewave.choices import takes
from tilewave.context.collective import collective
from tilewave.errors import ConfigError
from tilewave.linalg.blas import blas
from tilewave.linalg.checks import require_matrix, transpose_of
from tilewave.linalg.choices import ProductChoices
from tilewave.linalg.layout import Layout, layout_of
from tilewave.linalg.matrix import Matrix, require_no_factor
from tilewave.linalg.plan import MatmulPlan, MatmulReport, options_of, ranked

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tilewave.annotations import Collective, Number
    from tilewave.context.context import Context


@collective("tw.linalg.matmul")
@takes(ProductChoices)
def matmul(
    a: Matrix,
    b: Matrix,
    c: Matrix | None = None,
    *,
    alpha: Number = 1.0,
    beta: Number = 0.0,
    plan: MatmulPlan | None = None,
    context: Context | None = None,
    **choices: Unpack[ProductChoices],
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
    weights : sequence of int, optional
        For each rank an integer: the product is computed with parts of C in proportion, for which A or B and C are
        redistributed; empty: as C lies. Default: those of the machine's speeds, where that is predicted faster.
    memory : int, optional
        Bytes that each rank may use beyond the three matrices. Default: as much as the fastest plan needs.
    layout : str or Layout, optional
        Of a new C. Default: that of A's rows and B's columns, where they have a grid in common.
    plan : MatmulPlan, optional
        From `plan_matmul`: its choices; then no other may be given.
    context : Context, optional
        Default: the one of `a`.

    Returns
    -------
    Matrix
        C; its ``report`` says how it went.

    Raises
    ------
    ConfigError
        On every rank: for shapes or dtypes that do not fit, a limit of memory below what every plan needs, choices
        that the layouts do not allow, arguments that differ between ranks.

    Notes
    -----
    Collective. NaN and infinity spread as in BLAS. Rates of the BLAS are measured at first use of a shape.
    """
    operands = {name: choices.pop(name) for name in ("trans_a", "trans_b", "layout")}
    options = options_of("matmul", MatmulPlan, choices if plan is None else _of_plan(plan, choices))
    call, c = _asked(context, (a, b, c), options, alpha, beta, **operands)
    yield call.text
    plans = yield from ranked(context, call.core)
    done = context._together(call.core.run, plans)
    plan = MatmulPlan._of(plans, context)
    time_s, *how = MatmulReport._how(context, "matmul", plan, done)
    c.report = MatmulReport(plan, time_s, call.core.flops / max(time_s, 1e-9), *how)
    return c


@collective("tw.linalg.plan_matmul")
@takes(ProductChoices)
def plan_matmul(
    a: Matrix,
    b: Matrix,
    c: Matrix | None = None,
    *,
    beta: Number = 0.0,
    context: Context | None = None,
    **choices: Unpack[ProductChoices],
) -> Collective[MatmulPlan]:
    """How `matmul` would compute a product; nothing is computed. Collective.

    Parameters
    ----------
    a, b, c, beta, trans_a, trans_b, algorithm, lookahead, panel, tree, pending, weights, memory, layout, context
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
    operands = {name: choices.pop(name) for name in ("trans_a", "trans_b", "layout")}
    call, _ = _asked(context, (a, b, c), options_of("matmul", MatmulPlan, choices), 1.0, beta, **operands)
    yield call.text
    return MatmulPlan._of((yield from ranked(context, call.core)), context)


class _Call(NamedTuple):
    """The core's call, and what must be equal on all ranks."""

    core: Any
    text: str


def _asked(context, matrices, options, alpha, beta, trans_a, trans_b, layout):
    """The product that is asked for, checked; and C, a new one where none is given. Local."""
    a, b, c = matrices
    for name, matrix in zip("abc", matrices, strict=True):
        if name != "c" or c is not None:
            require_matrix("matmul", name, matrix, context)
    for name, value in (("alpha", alpha), ("beta", beta)):
        if isinstance(value, bool) or not isinstance(value, numbers.Number):
            raise ConfigError(f"matmul: {name}: given {value!r}; allowed: a number")
        setattr(options, name, complex(value))
    op_a, op_b = transpose_of("matmul", "trans_a", trans_a), transpose_of("matmul", "trans_b", trans_b)
    options.op_a, options.op_b = op_a, op_b
    if c is None:
        if beta != 0:
            raise ConfigError(f"matmul: beta={beta!r} was given without c; allowed: beta=0, or c=")
        of_a, of_b = (m._blocks if op == "N" else m._blocks.transposed() for m, op in ((a, op_a), (b, op_b)))
        shape = of_a.rows.extent, of_b.columns.extent
        if layout is None:
            layout = _natural(of_a, of_b, shape, context.size, a.layout.weights, b.layout.weights)
        else:
            layout = layout_of("matmul", shape, context.size, layout, None, None)
        c = Matrix(context, shape, a.dtype, layout)
    elif layout is not None:
        raise ConfigError("matmul: c and layout were given; allowed: one of them")
    require_no_factor("matmul", "c", c)
    core = _core.linalg.Multiplication("matmul", a._storage, b._storage, c._storage, options, blas())
    numbered = f"matrices {a._number}, {b._number}, {c._number}"
    return _Call(core, f"{numbered}: A {a._text()}; B {b._text()}; C {c._text()}; {core.text}"), c


def _of_plan(plan, given):
    """The choices of a plan, besides which none may be given; raises ConfigError."""
    if not isinstance(plan, MatmulPlan):
        raise ConfigError(f"matmul: plan: given {type(plan).__name__}; allowed: what plan_matmul gave, None")
    if more := [name for name, value in given.items() if value not in (None, "auto") and name != "memory"]:
        raise ConfigError(f"matmul: plan was given with {', '.join(more)}; allowed: one of them")
    return plan._choices() | {"weights": plan.weights, "memory": given["memory"]}


def _natural(a, b, shape, ranks, of_a, of_b):
    """The layout of a new C: A's rows and B's columns on A's or B's grid, by the weights of either."""
    grid = (a.rows.parts, a.columns.parts)
    if ranks > 1 and min(grid) > 1 and not a.ranks_by_column:
        same = (b.rows.parts, b.columns.parts) == grid and not b.ranks_by_column
        column = (b if same else a).columns
        return Layout("cyclic", (a.rows.block or 1, column.block or 1), grid, of_a)
    if a.rows.parts == 1 and b.rows.parts == 1 and b.columns.parts > 1:
        return Layout("columns", (max(1, shape[0]), b.columns.block), (1, b.columns.parts), of_b)
    if a.rows.parts > 1 and a.columns.parts == 1:
        return Layout("rows", (a.rows.block, max(1, shape[1])), (a.rows.parts, 1), of_a)
    weights = next((each for each in (of_a, of_b) if len(each) == ranks), None)
    return layout_of("matmul", shape, ranks, "rows", None, None, weights)
