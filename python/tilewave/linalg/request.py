"""What a call of `matmul` asks for, checked."""

import dataclasses
import numbers

from tilewave import _core
from tilewave.errors import ConfigError
from tilewave.linalg.checks import MOST_AHEAD, require_integer, require_matrix, require_one_of, transpose_of
from tilewave.linalg.layout import Layout, layout_of
from tilewave.linalg.matrix import Matrix, require_no_factor
from tilewave.linalg.plan import ALGORITHMS, TREES, MatmulPlan


@dataclasses.dataclass(frozen=True)
class Request:
    """A product that is asked for: the core's, its flops, what its plan depends on, and what must be equal on all
    ranks.
    """

    core: object
    flops: float
    planned: str
    text: str


def request_of(context, a, b, c, given):
    """What is asked for, checked; and C, a new one where none is given."""
    for name, matrix in (("a", a), ("b", b)) + ((("c", c),) if c is not None else ()):
        require_matrix("matmul", name, matrix, context)
        if matrix.dtype != a.dtype:
            raise ConfigError(f"matmul: {name} has dtype {matrix.dtype}, a has {a.dtype}; allowed: one dtype")
    for name in ("alpha", "beta"):
        value = given[name]
        if isinstance(value, bool) or not isinstance(value, numbers.Number):
            raise ConfigError(f"matmul: {name}: given {value!r}; allowed: a number")
        if isinstance(value, numbers.Complex) and complex(value).imag != 0 and a.dtype.kind != "c":
            raise ConfigError(f"matmul: {name}: given {value!r} for {a.dtype}; allowed: a real number")
    left, right = (transpose_of("matmul", f"trans_{name}", given[f"trans_{name}"]) for name in ("a", "b"))
    of_a, of_b = _meant(a, left), _meant(b, right)
    (m, depth), (inner, n) = _extents(of_a), _extents(of_b)
    if depth != inner:
        raise ConfigError(
            f"matmul: op(A) of {m} x {depth} and op(B) of {inner} x {n} were given; allowed: A.columns equal to B.rows"
        )
    if c is None:
        if given["beta"] != 0:
            raise ConfigError(f"matmul: beta={given['beta']!r} was given without c; allowed: beta=0, or c=")
        if given["layout"] is None:
            layout = _natural(of_a, of_b, (m, n), context.size)
        else:
            layout = layout_of("matmul", (m, n), context.size, given["layout"], None, None)
        c = Matrix(context, (m, n), a.dtype, layout)
    elif given["layout"] is not None:
        raise ConfigError("matmul: c and layout were given; allowed: one of them")
    if c.shape != (m, n):
        raise ConfigError(f"matmul: c of shape {c.shape} was given for a product of {m} x {n}; allowed: equal shapes")
    require_no_factor("matmul", "c", c)
    if c is a or c is b:
        raise ConfigError("matmul: c is one of the operands; allowed: another matrix")
    choices = _choices(given)
    ranks, threads = context.size, context.threads
    given_blocks = a._blocks, left, b._blocks, right, c._blocks
    core = _core.linalg.ProductRequest(*given_blocks, a.dtype.name, given["beta"] != 0, ranks, threads, **choices)
    planned = f"A {a._text()}; B {b._text()}; C {c._text()}; trans_a={left}, trans_b={right}"
    planned += "".join(f", {name}={value}" for name, value in choices.items() if value is not None)
    text = f"matrices {a._number}, {b._number}, {c._number}: {planned}, "
    text += f"alpha={complex(given['alpha'])}, beta={complex(given['beta'])}"
    planned += f", adds {given['beta'] != 0}"
    return Request(core, (2.0 if a.dtype.kind == "f" else 8.0) * m * n * depth, planned, text), c


def _meant(matrix, transpose):
    """The blocks of op(A)."""
    return matrix._blocks if transpose == "N" else matrix._blocks.transposed()


def _extents(blocks):
    return blocks.rows.extent, blocks.columns.extent


def _choices(given):
    """Of the arguments those that say how; checked."""
    plan = given["plan"]
    if plan is not None:
        given = given | _of_plan(plan, given)
    if given["algorithm"] not in ("auto", *ALGORITHMS):
        raise ConfigError(f"matmul: algorithm: given {given['algorithm']!r}; allowed: auto, {', '.join(ALGORITHMS)}")
    require_one_of("matmul", "tree", given["tree"], TREES)
    if (
        given["pending"] not in (None, True, False)
        or isinstance(given["pending"], int)
        and not isinstance(given["pending"], bool)
    ):
        raise ConfigError(f"matmul: pending: given {given['pending']!r}; allowed: True, False")
    if given["pending"] and given["algorithm"] not in ("auto", "wavefront"):
        raise ConfigError(f"matmul: pending was given with algorithm {given['algorithm']!r}; allowed: 'wavefront'")
    require_integer("matmul", "lookahead", given["lookahead"], 0, MOST_AHEAD)
    for name, least in (("panel", 1), ("memory", 0)):
        require_integer("matmul", name, given[name], least)
    numbers = {name: None if given[name] is None else int(given[name]) for name in ("lookahead", "panel", "memory")}
    return numbers | {
        "algorithm": None if given["algorithm"] == "auto" else given["algorithm"],
        "least_rounds": None if given["tree"] is None else given["tree"] == "least_rounds",
        "pending": None if given["pending"] is None else bool(given["pending"]),
        "task_flops": None if plan is None else float(plan.task_flops),
        "wide_blocks": None if plan is None else bool(plan.wide_blocks),
    }


def _of_plan(plan, given):
    """The choices of a plan, beside which none may be given; raises ConfigError."""
    if not isinstance(plan, MatmulPlan):
        raise ConfigError(f"matmul: plan: given {type(plan).__name__}; allowed: what plan_matmul gave, None")
    names = ("algorithm", "lookahead", "panel", "tree", "pending")
    beside = [name for name in names if given[name] not in (None, "auto")]
    if beside:
        raise ConfigError(f"matmul: plan was given beside {', '.join(beside)}; allowed: one of them")
    if not isinstance(plan.task_flops, numbers.Real) or not plan.task_flops > 0:
        raise ConfigError(f"matmul: plan: given one with task_flops {plan.task_flops!r}; allowed: a number > 0")
    return {name: getattr(plan, name) for name in names}


def _natural(a, b, shape, ranks):
    """The layout of a new C: A's rows and B's columns on A's or B's grid."""
    grid = (a.rows.parts, a.columns.parts)
    if ranks > 1 and min(grid) > 1 and not a.ranks_by_column:
        same = (b.rows.parts, b.columns.parts) == grid and not b.ranks_by_column
        column = (b if same else a).columns
        return Layout("cyclic", (a.rows.block or 1, column.block or 1), grid)
    if a.rows.parts == 1 and b.rows.parts == 1 and b.columns.parts > 1:
        return Layout("columns", (max(1, shape[0]), b.columns.block), (1, b.columns.parts))
    if a.rows.parts > 1 and a.columns.parts == 1:
        return Layout("rows", (a.rows.block, max(1, shape[1])), (a.rows.parts, 1))
    return layout_of("matmul", shape, ranks, "rows", None, None)
