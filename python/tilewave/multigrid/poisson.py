"""Multigrid for -div(k grad u) + sigma u = f on boxes, as one chain of nests."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tilewave.context.collective import collective, holds_context, where
from tilewave.errors import ConfigError
from tilewave.field.create import field, make
from tilewave.multigrid import bodies, given
from tilewave.multigrid.coefficients import diagonal
from tilewave.multigrid.conjugate import ConjugateGradients
from tilewave.multigrid.cycle import CYCLES, SMOOTHERS, Cycle
from tilewave.multigrid.galerkin import chosen, following
from tilewave.multigrid.history import History
from tilewave.multigrid.levels import all_grids, finest, make_level
from tilewave.multigrid.material import MOST_SUM, Material
from tilewave.multigrid.residuals import MinimalResiduals
from tilewave.multigrid.sharing import blocks_of, grid_of
from tilewave.nests.call import reduce_functions
from tilewave.nests.doors.chain import chain
from tilewave.nests.doors.run import run
from tilewave.notices import warn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tilewave.annotations import Array, Collective, Shape
    from tilewave.context.context import Context
    from tilewave.field.field import Field

#: Methods, with the cycles or iterations that they take at most where the call does not say.
MOST = {"cycles": 100, "cg": 500, "fmg": 100, "minres": 500}
#: Those whose preconditioner is a cycle, which has to be symmetric.
KRYLOV = ("cg", "minres")
#: The part of the norm of f at which they end; full multigrid, after its pass.
TOL = {"cycles": 1e-8, "cg": 1e-8, "fmg": 1.0, "minres": 1e-8}
#: Conjugate gradients that ended begin anew where they have reduced the residual to this part of it, at most.
WORTHWHILE = 0.5
#: Before and after a coarser grid, each: more are no better than more cycles.
MOST_SWEEPS = 100
#: Doubles that every rank has for each place along an axis: lengths of cells and faces on all grids.
LINES = 8
#: Of the 2-norm of f, if it is not 0: squares of residuals that are 1e-15 of it are doubles, too.
LEAST_NORM, MOST_NORM = 1e-130, 1e150


@holds_context
class Poisson:
    """Solver of -div(k grad u) + sigma u = f on a box of cells; collective.

    Second-order finite volumes: values belong to the centres of cells, boundaries to the outer faces. Coarser grids
    have half as many cells along the axes that are coupled most, with a single one at the end where the number is odd,
    down to 1 or 2 cells along each axis; these are solved directly.

    Parameters
    ----------
    shape : tuple of int
        Cells along each of 1 to 3 axes.
    spacing : float or tuple of float, optional
        Length of a cell, along each axis. Default: 1 / cells, a box of length 1.
    boundary : str or sequence, optional
        ``"dirichlet"`` (u = 0 on the face; the default), ``"neumann"`` (no flux) or ``"periodic"``, for all, for each
        axis, or as a pair for the two sides of an axis; an axis is periodic on both sides.
    k : float, array or callable, optional
        Coefficient: a number above 0, an array of `shape` that is equal on all ranks, or a function of arrays of
        cell indices. Between cells it is the harmonic mean. Where it is 0 there is no material: nothing flows through
        the faces of such cells, their `f` and `x0` are ignored, and their solution is 0.
    sigma : float, complex, array or callable, optional
        As `k`, also 0. Where it is complex, so are `f` and the solution, and its real part is at least 0. Where it is
        real and below 0 somewhere (Helmholtz), a cycle is one of ``abs(sigma)``, the preconditioner of ``"minres"``.
    cycle : {"V", "F", "W"}, optional
    smoother : {"gauss-seidel", "red-black", "jacobi"}, optional
        Gauss-Seidel sweeps go forth before a coarser grid and back after it, in the order of the loops: the ranks work
        as a pipeline.
    pre, post : int, optional
        Sweeps before and after a coarser grid.
    coarse : {"auto", "average", "galerkin"}, optional
        How coarse grids follow `k`: by averages of conductances, or as Galerkin operators whose interpolation follows
        what couples the cells. Default: the second where `k` jumps by 30 or more from one cell to the next, unless
        `grid` cuts other axes than the first one and sweeps are not Jacobi's.
    grid : tuple of int, optional
        Ranks along each axis. Default: by prediction, perhaps one rank for all.
    context : Context, optional

    Attributes
    ----------
    levels : list of tuple
        Shapes of the grids, the finest first.
    coarse : str
        What the coarse grids are, ``"average"`` or ``"galerkin"``.
    history : History or None
        Of the last solution.

    Raises
    ------
    ConfigError
        On every rank: for what is not allowed, on any rank; where ranks differ.

    Notes
    -----
    Collective. A cycle is one `tilewave.chain`. Memory: 4 fields of 8 bytes a cell, 16 if complex, and in 3-D a seventh
    of that for coarser grids; 4 more where `k` or `sigma` varies in 3-D, 6 more where coarse grids are ``"galerkin"``,
    4 more for conjugate gradients, 7 for minimal residuals.
    """

    context: Context
    shape: tuple[int, ...]
    coarse: str
    dtype: np.dtype[Any]
    history: History | None

    @collective("tw.multigrid.Poisson", whole=True)
    def __init__(
        self,
        shape: Shape,
        spacing: float | Sequence[float] | None = None,
        boundary: str | Sequence[Any] = "dirichlet",
        k: float | Array | Callable[..., Any] = 1.0,
        sigma: complex | Array | Callable[..., Any] = 0.0,
        *,
        cycle: str = "V",
        smoother: str = "gauss-seidel",
        pre: int = 2,
        post: int = 2,
        coarse: str = "auto",
        grid: Sequence[int] | None = None,
        context: Context | None = None,
    ) -> Collective[None]:
        equation = shape, spacing, boundary, k, sigma
        method = cycle, smoother, pre, post, coarse, grid
        checked, text = _checked(equation, method, context)
        yield text  # noqa: PLE0100 - `collective` runs it to its end
        self.context = context
        self.shape, boundary, k, sigma, cycle, smoother, pre, post, self.coarse, grid, grids, self._material = checked
        kind = sigma.dtype.kind if isinstance(sigma, np.ndarray) else "c" if isinstance(sigma, complex) else "f"
        self.dtype = np.dtype("c16" if kind == "c" else "f8")
        free = _free(boundary) and not np.any(sigma * (k > 0))
        self._singular = self._material is None and free
        self._real_matrix, self._indefinite = not np.any(np.imag(sigma)), bool(np.any(np.real(sigma) < 0))
        blocks = blocks_of([cells.shape for cells in grids], self.context.size, grid)
        each = zip(grids, blocks, strict=True)
        self._levels = [make_level(cells, self.dtype, block, self.context) for cells, block in each]
        outer = self._outer(sigma) if self._indefinite else {}
        equal = isinstance(k, np.ndarray) or self._indefinite
        singular = self._singular or self._material is not None
        self._cycle = Cycle(self._levels, cycle, (smoother, pre, post), equal, singular, free, grid, outer)
        self.history, self._chains = None, {}

    @property
    def levels(self) -> list[tuple[int, ...]]:
        """Shapes of the grids, the finest first."""
        return [grid.shape for grid in self._levels]

    @collective("tw.multigrid.Poisson.solve", whole=True)
    def solve(
        self,
        f: Field | Array,
        tol: float | None = None,
        x0: Field | Array | None = None,
        max_cycles: int | None = None,
        method: str | None = None,
    ) -> Collective[Field]:
        """Solve for one right-hand side; collective.

        Parameters
        ----------
        f : Field or array
            Of the solver's shape, float64, or complex128 where sigma is complex; an array is equal on all ranks.
        tol : float, optional
            The norm of the residual at which cycles end, as a part of that of `f`. Default: 1e-8; full multigrid
            ends after its pass.
        x0 : Field or array, optional
            Where to start. Default: 0. Not for full multigrid, which starts on the coarsest grid.
        max_cycles : int, optional
            Cycles or iterations, at most. Default: 100 cycles, 500 iterations; a warning says where these are not
            enough.
        method : {"cycles", "cg", "fmg", "minres"}, optional
            Default: ``"cycles"``; ``"cg"`` where coarse grids are ``"galerkin"`` and cycles are symmetric; where sigma
            is below 0 somewhere ``"minres"``, which nothing else solves:
            minimal residuals with a cycle of ``abs(sigma)`` as the preconditioner, which needs what ``"cg"`` needs.
            Iterations grow with the number of eigenvalues of -div(k grad u) around ``-sigma``.
            ``"fmg"``, full multigrid: the coarsest grid is solved; each finer grid starts from the interpolated
            solution and makes one cycle. This pass costs about one cycle and a half in 2-D, less in 3-D, and leaves an
            error of about the size of the discretisation's. Where `tol` is given, cycles follow.
            ``"cg"``: conjugate gradients with a cycle as the preconditioner, for a `k` that varies strongly. That needs
            ``pre == post`` and a V or W cycle.

        Returns
        -------
        Field
            The solution, of the solver's shape. `history` says how it came about, and whether it converged.

        Raises
        ------
        ConfigError
            On every rank: for shapes and types that do not fit; for values that are not finite, and `f` whose squares
            are no doubles; without fixed values and sigma, for `f` whose mean is not 0.

        Notes
        -----
        Collective. Without fixed values and sigma, of all solutions the one whose mean is 0; where cells without
        material enclose regions, the same of each region by itself.
        """
        most = max_cycles
        (f, x0, tol, max_cycles, method), text = self._checked_call(f, x0, tol, max_cycles, method)
        yield text
        return self.context._ranks.run(
            lambda: self._solved(f, x0, tol, max_cycles, most, method),
            lambda calls: self._planned(calls.decisions, f, tol, max_cycles, method),
        )

    def _solved(self, f, x0, tol, max_cycles, most, method):
        if self.history is None:
            dims, (u, into) = len(self.shape), (self._levels[0].u, self._levels[0].f)
            taken = bodies.take(dims, bool(self._mask)), {"f": into, "given": f, **self._mask}
            self._cycle.start_compiling(
                [taken, (bodies.hand_over(dims), {"x": f, "u": u, "shift": self.dtype.type(0).item()})]
            )
        self._take(self._levels[0].f, f)
        size = self._size_of_right_side()
        u = self._levels[0].u
        u.fill(0.0)
        if x0 is not None:
            self._take(u, x0)
        start, end = self._residual_norm(), tol * size
        norms, time_s = [start], 0.0
        if not math.isfinite(start):
            raise ConfigError(
                "multigrid: x0 has values that are not finite, or so large that squares of its residual are no "
                "doubles; allowed: finite numbers of the solution's size"
            )
        if method == "fmg" and start > 0 and max_cycles:
            report = self._full_multigrid().run()
            norms.append(float(report.results["norm"]))
            time_s = report.measured.time_s
        if norms[-1] > end and max_cycles >= len(norms):
            more = self._iterate if method in KRYLOV else self._run_cycles
            found, seconds = more(f, norms[-1], end, max_cycles - len(norms) + 1)
            norms, time_s = norms + found, time_s + seconds
            u = self._krylov().x if method in KRYLOV else u
        self.history = History(norms, bool(norms[-1] <= end), time_s, math.prod(self.shape), self.coarse)
        worse = not norms[-1] <= norms[0]
        if not self.history.converged and (most is None or worse) and self.context.rank == 0:
            warn(_not_enough(self.history, method, tol, size))
        return self._handed_over(u)

    @collective("tw.multigrid.Poisson.precondition", whole=True)
    def precondition(self, r: Field | Array) -> Collective[Field]:
        """One cycle from 0 for the right side `r`: an approximate solution; collective.

        Parameters
        ----------
        r : Field or array
            As `f` of `solve`.

        Returns
        -------
        Field

        Raises
        ------
        ConfigError
            As `solve`.

        Notes
        -----
        Collective. Linear in `r`. With ``pre == post`` and a V or W cycle symmetric where `k` varies; else nearly so,
        as restriction is not quite the transpose of a linear correction: flexible conjugate gradients and GMRES allow
        for that.
        """
        r = given.of_shape("r", r, self.shape, self.dtype)
        yield ""
        self._take(self._levels[0].f, r)
        self.context._ranks.run(self._size_of_right_side, lambda calls: None)
        self._levels[0].u.fill(0.0)
        self._chain("precondition", self._cycle.nests_of_cycle).run()
        return self._handed_over(self._levels[0].u)

    def aspreconditioner(self) -> Any:
        """`precondition` as a SciPy ``LinearOperator`` on flat arrays, for ``scipy.sparse.linalg``; needs SciPy.

        Returns
        -------
        scipy.sparse.linalg.LinearOperator
            To be applied to the same array on every rank, which gives the whole result on every rank; collective.
        """
        from scipy.sparse.linalg import LinearOperator

        size = math.prod(self.shape)

        def apply(r):
            return self.precondition(np.reshape(r, self.shape))[...].reshape(-1)

        return LinearOperator((size, size), apply, dtype=self.dtype)

    @collective("tw.multigrid.Poisson.plan", whole=True)
    def plan(self) -> Collective[str]:
        """How a cycle runs, nest by nest, as text; collective."""
        yield ""
        return f"coarse grids: {self.coarse}\n{self._cycles().explain()}"

    def _cycles(self):
        return self._chain("cycles", lambda: [*self._cycle.nests_of_cycle(), *self._cycle.norm()])

    def _full_multigrid(self):
        return self._chain("fmg", lambda: [*self._cycle.nests_of_full(), *self._cycle.norm()])

    def _chain(self, name, nests):
        """The chain of what a function gives, made once."""
        if name not in self._chains:
            self._chains[name] = chain(nests(), context=self.context)
        return self._chains[name]

    def _run_cycles(self, _f, _start, end, most):
        """Cycles from the finest grid's u: the norm after each, and seconds."""
        report = self._cycles().run(times=most, until={"norm": end})
        return [float(values["norm"]) for values in report.history], report.measured.time_s

    def _outer(self, sigma):
        """Return what the finest grid's operator has in place of that of abs(sigma)."""
        grid = self._levels[0]
        if not grid.cells.varies:
            return {"sigma": sigma}
        values = diagonal(grid.cells.faces, grid.cells.sigma)
        values -= 2 * np.pad(np.maximum(-np.broadcast_to(sigma, self.shape).real, 0.0), 1)
        return {"d": field(values, blocks=grid.blocks, context=self.context)}

    def _krylov(self):
        if "krylov" not in self._chains:
            made = MinimalResiduals(self._cycle) if self._indefinite else None
            self._chains["krylov"] = made or ConjugateGradients(self._cycle, not self._real_matrix)
        return self._chains["krylov"]

    def _iterate(self, f, start, end, most):
        """Conjugate gradients or minimal residuals from the finest grid's u: the norm after each, and seconds.

        The residual that they keep is compared with that of their solution, from which they begin anew where it is
        larger, or where they came to nothing.
        """
        solver, norms, time_s, before = self._krylov(), [start], 0.0, start
        while True:
            found, seconds = solver.run(norms[-1], end, most - len(norms) + 1)
            self._take(self._levels[0].f, f)
            solver.hand_back()
            norms += found[1:]
            norms[-1] = self._residual_norm()
            time_s += seconds
            in_vain = found[-1] <= end and not norms[-1] <= WORTHWHILE * before
            if norms[-1] <= end or len(norms) > most or len(found) == 1 or in_vain:
                return norms[1:], time_s
            before = norms[-1]

    # What is given, and what is handed over.

    def _checked_call(self, f, x0, tol, max_cycles, method):
        f = given.of_shape("f", f, self.shape, self.dtype)
        x0 = x0 if x0 is None else given.of_shape("x0", x0, self.shape, self.dtype)
        cycle = self._cycle
        symmetric = cycle.pre == cycle.post and cycle.kind != "F"
        usual = "minres" if self._indefinite else "cg" if self.coarse == "galerkin" and symmetric else "cycles"
        method = given.one_of("method", usual if method is None else method, tuple(MOST))
        if (method == "minres") != self._indefinite:
            raise ConfigError(
                f"multigrid: method {method!r} was given for sigma that is {'' if self._indefinite else 'not '}below 0 "
                f"somewhere; allowed: {'minres, the others diverge there' if self._indefinite else 'cycles, cg, fmg'}"
            )
        tol = TOL[method] if tol is None else given.number("tol", tol, 0.0)
        max_cycles = MOST[method] if max_cycles is None else given.count("max_cycles", max_cycles)
        if method in KRYLOV and not symmetric:
            raise ConfigError(
                f"multigrid: method {method!r} was given for {cycle.kind} cycles with pre={cycle.pre}, "
                f"post={cycle.post}; allowed: cycles that are symmetric, V and W with as many sweeps before as after a "
                "coarser grid"
            )
        if method == "fmg" and x0 is not None:
            raise ConfigError(
                "multigrid: x0 was given for method 'fmg', which starts on the coarsest grid; "
                "allowed: no x0, or method 'cycles' or 'cg'"
            )
        return (f, x0, tol, max_cycles, method), f"x0 {x0 is not None}, tol {tol}, at most {max_cycles}, {method}"

    def _take(self, into, values):
        run(bodies.take(len(self.shape), bool(self._mask)), f=into, given=values, **self._mask, **self._cycle.on)

    def _size_of_right_side(self):
        """Its 2-norm, which must be a number that allows to solve."""
        into, cells = self._levels[0].f, math.prod(self.shape)
        size = float(reduce_functions.norm(into))
        if not LEAST_NORM <= size <= MOST_NORM and (most := float(reduce_functions.norm(into, math.inf))) != 0:
            if not math.isfinite(most):
                raise ConfigError("multigrid: f has values that are not finite; allowed: finite numbers")
            raise ConfigError(
                f"multigrid: f has values up to {most:.3g}, whose squares are no doubles; allowed: a norm from "
                f"{LEAST_NORM:g} to {MOST_NORM:g}: scale f, and the solution scales with it"
            )
        if self._singular and abs(total := reduce_functions.sum(into).item()) > MOST_SUM * size * math.sqrt(cells):
            raise ConfigError(
                f"multigrid: the mean of f is {total / cells:.3g}, and the boundary fixes no values; "
                "allowed: a mean of 0, sigma > 0, or a boundary that is dirichlet somewhere"
            )
        if self._material is not None:
            self._material.require_mean_0(into[...][tuple(slice(1, -1) for _ in self.shape)])
        return size

    def _planned(self, decisions, f, tol, most, method):
        """A solution in a dry run: cycles, as many as their usual convergence takes."""
        self._take(self._levels[0].f, f)
        usual = math.ceil(math.log10(1 / tol)) if 0 < tol < 1 else 1
        count = min(decisions.rounds if decisions.rounds is not None else usual, most)
        decisions.made[where()] = (
            f"`solve`: {count} {'iterations' if method in KRYLOV else 'cycles'} are counted of at most {most}, each to "
            "make the residual 10 times smaller"
        )
        time_s = self._full_multigrid().run().measured.time_s if method == "fmg" else 0.0
        if method in KRYLOV:
            time_s += self._krylov().chain.run(count).measured.time_s
        elif method == "cycles" or tol > 0:
            time_s += self._cycles().run(times=count).measured.time_s
        self.history = History([math.nan], True, time_s, math.prod(self.shape), self.coarse)
        return self._handed_over(self._levels[0].u)

    @property
    def _mask(self):
        return self._levels[0].material

    def _residual_norm(self):
        for nest in self._cycle.norm():
            report = nest.run()
        return float(report.results["norm"])

    def _handed_over(self, u):
        """The cells of u as a new field; of mean 0 where neither the boundary nor sigma fixes values."""
        x = field(self.shape, self.dtype, context=self.context)
        cells = {"x": x, "u": u, **self._cycle.on}
        run(bodies.hand_over(len(self.shape)), **cells, shift=self.dtype.type(0).item())
        if self._singular:
            mean = reduce_functions.sum(x).item() / math.prod(self.shape)
            run(bodies.hand_over(len(self.shape)), **cells, shift=mean)
        if self._material is not None and len(self._material.counts) > 1:
            whole = x[...]
            x = field(whole - self._material.means(whole)[self._material.regions], context=self.context)
        return x


def _require_room(shape, context):
    """Refuse what this rank has no memory for before any is filled: its part of a field, and the lines of all axes."""
    make(context, shape, np.dtype("f8"))
    np.empty((LINES, sum(shape)))


def _free(boundary):
    """Return whether no side fixes values."""
    return all(side != "dirichlet" for sides in boundary for side in sides)


def _not_enough(history, method, tol, size):
    """The warning of a solution that is none within the tolerance."""
    advice = "more max_cycles" if method in KRYLOV else "method='cg' where k varies strongly, or more max_cycles"
    done = f"{history.cycles} {'iterations' if method in KRYLOV else 'cycles'}"
    return (
        f"multigrid: after {done} the norm of the residual is {history.norms[-1] / size if size else math.inf:.3g} "
        f"of that of f, and tol={tol:g} was asked for; try {advice}, or a larger tol"
    )


def _checked(equation, method, context):
    """The arguments of a solver and its grids, and their text."""
    (shape, spacing, boundary, k, sigma), (cycle, smoother, pre, post, coarse, grid) = equation, method
    shape = given.read_shape(shape)
    _require_room(shape, context)
    spacings, boundary = given.read_spacing(spacing, shape), given.read_boundary(boundary, len(shape))
    k, sigma = given.read_coefficient(k, shape), given.read_sigma(sigma, shape)
    material = None
    if isinstance(k, np.ndarray) and not k.all():
        lost = k.max() / min(spacings) ** 2
        material = Material(k, boundary, np.broadcast_to(sigma, shape), lost)
    given.check_range(k, spacings, sigma, _free(boundary) and material is None)
    cycle, smoother = given.one_of("cycle", cycle, CYCLES), given.one_of("smoother", smoother, SMOOTHERS)
    pre, post = given.count("pre", pre, MOST_SWEEPS), given.count("post", post, MOST_SWEEPS)
    if pre + post == 0:
        raise ConfigError("multigrid: pre and post are both 0; allowed: at least one sweep")
    grid = grid_of(grid, len(shape), context.size)
    preconditioner = np.abs(sigma) if np.any(np.real(sigma) < 0) else sigma
    cut = grid is not None and smoother != "jacobi" and max(grid[1:], default=1) > 1
    coarse = chosen(coarse, k, grid if cut else None)
    if follows := coarse == "galerkin":
        k = np.broadcast_to(k, shape)
    cells = finest(shape, spacings, boundary, k, preconditioner)
    grids = all_grids(cells, following(cells, spacings, k) if follows else None)
    text = f"{shape} {spacings} {boundary} {given.text_of(k)} {given.text_of(sigma)} {cycle} {smoother} "
    text += f"{pre} {post} {coarse} {grid}"
    return (shape, boundary, k, sigma, cycle, smoother, pre, post, coarse, grid, grids, material), text
