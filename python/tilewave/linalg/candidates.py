"""The plans that a product may have, and the fastest of them by prediction."""

import dataclasses
import itertools

from tilewave import _core
from tilewave.errors import ConfigError
from tilewave.linalg.blas import copy_rate, product_rate
from tilewave.linalg.operands import Operand, wanted_blocks

ALGORITHMS = ("broadcast", "wavefront", "summa")
TREES = ("ring", "least_rounds")
#: Widths of panels that are compared: below, a BLAS loses speed; above, the first panel delays all.
PANELS = (64, 128, 256, 512)
LOOKAHEADS = (1, 2, 3)
#: Flops of a task at most: after each a lane looks at the messages. Small ones run slower, as each packs its operands
#: anew; large ones leave messages alone for milliseconds.
TASKS = (5e7, 4e8)
#: Seconds by which a plan that redistributes, or has more lanes than threads, must be predicted faster: predictions are
#: no better than 5 %.
CLEARLY = 0.95


@dataclasses.dataclass(frozen=True)
class Request:
    """A product that is asked for: operands, and choices; None where they are free."""

    a: Operand
    b: Operand
    c: Operand
    dtype: object
    adds: bool
    threads: int
    algorithm: str
    tree: str | None
    lookahead: int | None
    panel: int | None
    pending: bool | None
    memory: int | None
    task_flops: float | None = None
    text: str = ""

    @property
    def extents(self):
        """Rows, columns and depth of the product."""
        return self.c.blocks.rows.extent, self.c.blocks.columns.extent, self.a.blocks.columns.extent

    @property
    def flops(self):
        m, n, k = self.extents
        return (2.0 if self.dtype.kind == "f" else 8.0) * m * n * k


@dataclasses.dataclass(frozen=True)
class Case:
    """A product with one set of choices."""

    request: Request
    plan: object
    operands: tuple  # A, B, C of the problem: mirrored where C is by columns
    mirrored: bool
    moved: tuple  # of the user's A, B, C
    problem: object
    choices: object
    ranks: int

    def schedule(self, rank):
        return _core.linalg.matmul(self.problem, self.choices, rank, self.ranks)

    @property
    def stored_operands(self):
        """Of the user's A, B, C."""
        if not self.mirrored:
            return self.operands
        left, right, c = (operand.transposed() for operand in self.operands)
        return right, left, c

    @property
    def conjugates(self):
        return self.operands[0].conjugate, self.operands[1].conjugate

    @property
    def b_by_rows(self):
        return _core.linalg.moving_b_by_rows(self.problem, self.choices)

    def whole(self):
        """Rows and columns of C that a rank computes with one panel, of the rank that has most."""
        owned = [self.operands[2].blocks.owned(rank) for rank in range(self.ranks)]
        rows, columns = (max(high[k] - low[k] for low, high in owned) for k in (0, 1))
        # Panels of the common dimension meet all of C, panels of B's columns as many of C.
        return rows, columns if self.b_by_rows else min(columns, self.plan.panel)

    def places(self, arrays):
        """Where the problem's A, B and C lie, of the memory of the user's."""
        a, b, c = arrays
        if self.mirrored:
            a, b = b, a
        return [operand.place(array) for operand, array in zip(self.operands, (a, b, c), strict=True)]

    def copies_bytes(self):
        """By rank: bytes of redistributed operands."""
        item = self.request.dtype.itemsize
        total = [0] * self.ranks
        for operand, moved in zip(self.stored_operands, self.moved, strict=True):
            for rank in range(self.ranks if moved else 0):
                low, high = operand.stored.owned(rank)
                total[rank] += item * (high[0] - low[0]) * (high[1] - low[1])
        return total


def case_of(request, plan, ranks):
    """The case of a plan, whose layouts fit; raises ConfigError where no layout does."""
    a, b, c = request.a, request.b, request.c
    mirrored = c.blocks.rows.parts == 1 and c.blocks.columns.parts > 1
    if mirrored:
        a, b, c = b.transposed(), a.transposed(), c.transposed()
    given = a, b, c
    if c.blocks.rows.parts > 1 and c.blocks.columns.parts > 1 and plan.algorithm == "wavefront":
        # Part i of C is rows of all columns: C by rows for the time of the product.
        rows = _core.linalg.Axis(c.blocks.rows.extent, ranks, max(1, -(-c.blocks.rows.extent // ranks)))
        columns = _core.linalg.Axis(c.blocks.columns.extent, 1, 0)
        c = c.in_blocks(_core.linalg.BlockCyclic(rows, columns, False))
    depth = a.blocks.columns, b.blocks.rows, b.blocks.columns
    by_rows = c.blocks.columns.parts == 1
    keeps_common = b.blocks.rows.parts == c.blocks.rows.parts and b.blocks.columns.parts == 1
    ranks_form = plan.algorithm == "wavefront" or plan.algorithm == "broadcast" and by_rows and not keeps_common
    ranks_form = ranks_form and c.blocks.ranks > 1
    wanted_a, wanted_b = wanted_blocks(c.blocks, depth, ranks_form)
    a, b = a.in_blocks(wanted_a), b.in_blocks(wanted_b)
    moved = tuple(new is not old for new, old in zip((a, b, c), given, strict=True))
    problem = _core.linalg.MatmulProblem(
        a.blocks, b.blocks, c.blocks, request.dtype.itemsize, request.adds, [a.turned, b.turned, c.turned]
    )
    choices = _core.linalg.MatmulChoices(
        wavefront=plan.algorithm == "wavefront",
        least_rounds=plan.tree == "least_rounds",
        lookahead=plan.lookahead,
        panel=plan.panel,
        pending=bool(plan.pending),
        lanes=request.threads,
    )
    choices.task_flops = plan.task_flops
    if why := _core.linalg.fits(problem, choices):
        raise ConfigError(f"matmul: algorithm {plan.algorithm!r}: the layouts have {why}")
    if mirrored:
        moved = moved[1], moved[0], moved[2]
    return Case(request, plan, (a, b, c), mirrored, moved, problem, choices, ranks)


def measure_rates(request, ranks, rank, make):
    """Measure what predictions will need: on all ranks at once, as products run; local."""
    copy_rate(request.dtype)
    seen = set()
    for choices in _combinations(request, ranks):
        # Panels ahead change no task.
        if (key := tuple(choices[name] for name in ("algorithm", "panel", "task_flops"))) in seen:
            continue
        seen.add(key)
        case = case_of(request, make(**choices, moved=(), memory_bytes=0, predicted_s=None), ranks)
        product_rate_of(case, [case.schedule(rank)])


def best_of(request, ranks, machine, make, described):
    """The plan that is predicted fastest within the memory allowed; local.

    Parameters
    ----------
    make : function
        Makes a plan of its fields.
    described : function
        Says a plan's choices in words.
    """
    plans = [make(**choices, moved=(), memory_bytes=0, predicted_s=None) for choices in _combinations(request, ranks)]
    found = []
    for plan in plans:
        case = case_of(request, plan, ranks)
        parts = [case.schedule(rank) for rank in range(ranks)]
        memory = max(
            copies + _core.linalg.moving_bytes(part) for copies, part in zip(case.copies_bytes(), parts, strict=True)
        )
        names = tuple(name for name, moved in zip("ABC", case.moved, strict=True) if moved)
        found.append((dataclasses.replace(plan, moved=names, memory_bytes=memory), case, parts))
    least = min(plan.memory_bytes for plan, _, _ in found)
    if request.memory is not None:
        found = [one for one in found if one[0].memory_bytes <= request.memory]
        if not found:
            raise ConfigError(
                f"matmul: memory: given {request.memory} bytes; allowed: at least {least}, what the smallest plan of "
                "these choices needs beyond the matrices"
            )
    if len(found) == 1:
        return found[0][0]
    played = []
    for plan, case, parts in found:
        time_s = _time_of(case, parts, machine)
        played.append(dataclasses.replace(plan, predicted_s=time_s))
    # Moving operands and lanes without a CPU of their own are hard to foretell: they must be clearly faster.
    played.sort(key=lambda plan: plan.predicted_s / (CLEARLY if plan.moved or plan.pending else 1.0))
    compared = tuple((plan.predicted_s, plan.memory_bytes, described(plan)) for plan in played)
    return dataclasses.replace(played[0], compared=compared)


def _combinations(request, ranks):
    """All choices that are free, each once."""
    rows, columns = request.c.blocks.rows.parts, request.c.blocks.columns.parts
    two_d = rows > 1 and columns > 1
    if request.algorithm != "auto":
        algorithms = [request.algorithm]
    elif request.pending:
        algorithms = ["wavefront"]
    else:
        algorithms = ["summa"] if two_d or ranks == 1 else ["broadcast", "wavefront"]
        # Panels of the common dimension, for which an operand moves; without moving "broadcast" takes them.
        algorithms += ["summa"] * (not two_d and ranks > 1 and not _has_common_panels(request))
    _, n, k = request.extents
    for algorithm in algorithms:
        longest = max(1, n if algorithm == "wavefront" else max(n, k))
        panels = [request.panel] if request.panel else [p for p in PANELS if p < longest] + [PANELS[-1]]
        panels = list(dict.fromkeys(panels)) if ranks > 1 else panels[-1:]
        if request.memory is not None and not request.panel:
            panels = [1, 8, 32, *panels]
        group = max(rows, columns)
        trees = [request.tree] if request.tree else TREES if group > 2 and algorithm != "wavefront" else TREES[:1]
        waits = (False, True) if algorithm == "wavefront" and request.threads == 1 and ranks > 1 else (False,)
        waits = waits if request.pending is None else (bool(request.pending) and algorithm == "wavefront",)
        tasks = [request.task_flops] if request.task_flops else TASKS if ranks > 1 else TASKS[:1]
        for panel, tree, pending, task_flops in itertools.product(panels, trees, waits, tasks):
            for lookahead in _lookaheads(request, ranks, pending):
                yield {
                    "algorithm": algorithm,
                    "tree": tree,
                    "lookahead": lookahead,
                    "panel": int(panel),
                    "pending": pending,
                    "task_flops": task_flops,
                }


def _has_common_panels(request):
    """Whether the ranks of a C by rows or columns share the common dimension of the operand that travels."""
    a, b, c = request.a.blocks, request.b.blocks, request.c.blocks
    if c.rows.parts == 1 and c.columns.parts > 1:
        return a.columns.parts == c.columns.parts and a.rows.parts == 1
    return b.rows.parts == c.rows.parts and b.columns.parts == 1


def _lookaheads(request, ranks, pending):
    if request.lookahead is not None:
        return [int(request.lookahead)]
    if ranks == 1 or pending:
        return LOOKAHEADS[:1]
    return (0, *LOOKAHEADS) if request.memory is not None else LOOKAHEADS


def _time_of(case, parts, machine):
    """Seconds of a case by prediction, redistributions included."""
    request = case.request
    total = _core.predict_works(parts, machine, [_core.KernelRate()], rates_of(case, parts)).time_s
    copies = [copy_rate(request.dtype)] * 3
    for operand, old, moved in zip(case.stored_operands, (request.a, request.b, request.c), case.moved, strict=True):
        if not moved:
            continue
        moves = [
            _core.linalg.move_schedule(old.stored, operand.stored, request.dtype.itemsize, rank, case.ranks)
            for rank in range(case.ranks)
        ]
        once = _core.predict_works(moves, machine, [_core.KernelRate()], copies).time_s
        total += once * (1 + request.adds if operand is case.stored_operands[2] else 1)
    return total


def rates_of(case, parts):
    """Rates of the operations: of products at the shape that most of them have."""
    copy, product = copy_rate(case.request.dtype), product_rate_of(case, parts)
    return [copy, copy, product, product, copy]


def product_rate_of(case, parts):
    """The rate of the largest product of schedules, as a piece of what a rank computes with one panel."""
    shape = _core.linalg.product_shape(parts)
    if not shape:
        return _core.OperationRate()
    rows, columns = case.whole()
    return product_rate(case.request.dtype, *shape, (rows, columns), case.b_by_rows, case.b_by_rows)
