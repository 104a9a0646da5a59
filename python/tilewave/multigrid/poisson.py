"""Multigrid for -div(k grad u) + sigma u = f on boxes, as one chain of nests."""

import math
import numbers
from dataclasses import dataclass

import numpy as np

from tilewave.errors import ConfigError, shown
from tilewave.field.create import field
from tilewave.field.field import Field
from tilewave.multigrid import nests_1d, nests_2d, nests_3d
from tilewave.multigrid.coefficients import (
    BESIDE_BOUNDARY,
    coarser_faces,
    constant_faces,
    dense_matrix,
    sweeps_for,
    variable_faces,
)
from tilewave.multigrid.sharing import blocks_of, grid_of
from tilewave.run import reduction
from tilewave.run.bind import bind
from tilewave.run.chain import chain
from tilewave.runtime.context import default_context

NESTS = {1: nests_1d, 2: nests_2d, 3: nests_3d}
CYCLES = ("V", "F", "W")
SMOOTHERS = ("gauss-seidel", "red-black", "jacobi")

#: Cells of the coarsest grid, at most: its sweeps are found from a dense matrix on each rank.
MOST_COARSEST = 1024
#: The error that is left on the coarsest grid, at most, and sweeps for that, at most.
COARSEST_FACTOR, MOST_SWEEPS = 0.02, 200
#: Of a weighted Jacobi sweep, by dimensions: what reduces errors that a coarser grid has not most.
JACOBI_WEIGHT = {1: 2 / 3, 2: 4 / 5, 3: 6 / 7}


@dataclass
class Level:
    """One grid: its cells by axis, what couples them, and its fields, with one element around the cells."""

    shape: tuple
    faces: dict
    u: Field
    f: Field
    r: Field


@dataclass
class History:
    """How a solution came about.

    Attributes
    ----------
    norms : list of float
        Of the residual (2-norm over all cells): before the first cycle, then after each.
    converged : bool
    time_s : float
        Of the cycles.
    """

    norms: list
    converged: bool
    time_s: float

    @property
    def cycles(self):
        """How many ran."""
        return len(self.norms) - 1

    @property
    def factor(self):
        """By what a cycle reduced the residual, on average; NaN without cycles."""
        if self.cycles < 1 or not self.norms[0]:
            return math.nan
        return (self.norms[-1] / self.norms[0]) ** (1 / self.cycles)

    def save(self, path):
        """Write a picture of the norms, by the ending of `path` (.png, .svg, .pdf)."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.subplots()
        axes.semilogy(range(len(self.norms)), self.norms, "o-")
        axes.set(xlabel="cycles", ylabel="norm of the residual", title=f"{self.factor:.3f} a cycle")
        axes.grid(True, which="both", alpha=0.3)
        figure.savefig(path)

    def __str__(self):
        end = "converged" if self.converged else "not converged"
        return f"{self.cycles} cycles, {end}, norm {self.norms[-1]:.3g}, {self.factor:.3f} a cycle, {self.time_s:.3g} s"


class Poisson:
    """Solver of -div(k grad u) + sigma u = f on a box of cells; collective.

    Second-order finite volumes: values belong to the centres of cells, boundaries to the outer faces. Grids are
    coarsened by two along every axis while all extents are even.

    Parameters
    ----------
    shape : tuple of int
        Cells along each of 1 to 3 axes.
    spacing : float or tuple of float, optional
        Length of a cell, along each axis. Default: 1 / cells, a box of length 1.
    boundary : str or sequence, optional
        ``"dirichlet"`` (u = 0 on the face; the default) or ``"neumann"`` (no flux), for all, for each axis, or as a
        pair for the two sides of an axis.
    k : float, array or callable, optional
        Coefficient, above 0: a number, an array of `shape` that is equal on all ranks, or a function of arrays of
        cell indices. Between cells it is the harmonic mean.
    sigma : float, optional
        At least 0.
    cycle : {"V", "F", "W"}, optional
    smoother : {"gauss-seidel", "red-black", "jacobi"}, optional
        Gauss-Seidel sweeps go forth before a coarser grid and back after it, in the order of the loops: the ranks work
        as a pipeline.
    pre, post : int, optional
        Sweeps before and after a coarser grid.
    grid : tuple of int, optional
        Ranks along each axis. Default: by prediction, perhaps one rank for all.
    context : Context, optional

    Attributes
    ----------
    levels : list of tuple
        Shapes of the grids, the finest first.
    history : History or None
        Of the last solution.

    Raises
    ------
    ConfigError
        On every rank: for what is not allowed; for a shape that cannot be coarsened far enough.

    Notes
    -----
    Collective. A cycle is one `tilewave.chain`. Memory: 4 fields of 8 bytes a cell, twice the eighth part of that for
    coarser grids in 3-D, and one more field for each axis where `k` varies.
    """

    def __init__(
        self,
        shape,
        spacing=None,
        boundary="dirichlet",
        k=1.0,
        sigma=0.0,
        cycle="V",
        smoother="gauss-seidel",
        pre=2,
        post=2,
        grid=None,
        context=None,
    ):
        self.context = default_context() if context is None else context
        self.shape = _shape(shape)
        dims = len(self.shape)
        self._nests = NESTS[dims]
        spacings = _spacings(spacing, self.shape)
        self._boundary = _boundaries(boundary, dims)
        self._sigma = _number("sigma", sigma, 0.0)
        self._cycle, self._smoother = _one_of("cycle", cycle, CYCLES), _one_of("smoother", smoother, SMOOTHERS)
        self._pre, self._post = _count("pre", pre), _count("post", post)
        if self._pre + self._post == 0:
            raise ConfigError("multigrid: pre and post are both 0; allowed: at least one sweep")
        self._varies = not isinstance(k, numbers.Real)
        self.history, self._bound, self._chain = None, {}, None
        shapes = _coarsened(self.shape)
        self._on = {"context": self.context}
        if grid is not None:
            self._on["grid"] = grid_of(grid, dims, self.context.size)
        blocks = blocks_of(shapes, self.context.size, self._on.get("grid"))
        faces = self._finest_faces(k, spacings)
        self.grids = []
        for level, cells in enumerate(shapes):
            if level:
                faces = self._coarser(faces, cells)
            self.grids.append(self._level(cells, faces, blocks[level]))
        matrix = dense_matrix(shapes[-1], faces, self._sigma)
        self._sweeps = sweeps_for(matrix, COARSEST_FACTOR, MOST_SWEEPS)
        self._singular = self._sigma == 0 and all("dirichlet" not in sides for sides in self._boundary)

    @property
    def levels(self):
        """Shapes of the grids, the finest first."""
        return [grid.shape for grid in self.grids]

    def solve(self, f, tol=1e-8, x0=None, max_cycles=100):
        """Solve for one right-hand side; collective.

        Parameters
        ----------
        f : Field or array
            Of the solver's shape, float64; an array is equal on all ranks.
        tol : float, optional
            The norm of the residual at which cycles end, as a part of that of `f`.
        x0 : Field or array, optional
            Where to start. Default: 0.
        max_cycles : int, optional

        Returns
        -------
        Field
            The solution, of the solver's shape. `history` says how it came about, and whether it converged.

        Raises
        ------
        ConfigError
            On every rank: for shapes and types that do not fit; for values that are not finite; without fixed values
            and sigma, for `f` whose mean is not 0.

        Notes
        -----
        Collective. Without fixed values and sigma, of all solutions the one whose mean is 0.
        """
        tol, max_cycles = _number("tol", tol, 0.0), _count("max_cycles", max_cycles)
        finest = self.grids[0]
        self._take(finest.f, f, "f")
        size, total = self._size_of(finest.f)
        if not math.isfinite(size):
            raise ConfigError("multigrid: f has values that are not finite; allowed: finite numbers")
        if self._singular and abs(total) > 1e-10 * size * math.sqrt(math.prod(self.shape)):
            raise ConfigError(
                f"multigrid: the mean of f is {total / math.prod(self.shape):.3g}, and the boundary fixes no values; "
                "allowed: a mean of 0, sigma > 0, or a boundary that is dirichlet somewhere"
            )
        finest.u.fill(0.0)
        if x0 is not None:
            self._take(finest.u, x0, "x0")
        self._bind("residual", 0).run()
        start = self._norm.run().results["norm"]
        history, converged, time_s = [float(start)], start <= tol * size, 0.0
        if not converged and max_cycles:
            report = self._cycles().run(times=max_cycles, until={"norm": tol * size})
            history += [float(values["norm"]) for values in report.history]
            converged, time_s = history[-1] <= tol * size, report.measured.time_s
        self.history = History(history, bool(converged), time_s)
        x = field(self.shape, "f8", context=self.context)
        shift = self._size_of(finest.u)[1] / math.prod(self.shape) if self._singular else 0.0
        bind(self._nests.hand_over, x=x, u=finest.u, shift=shift, **self._on).run()
        return x

    def plan(self):
        """How a cycle runs, nest by nest, as text; collective."""
        return self._cycles().explain()

    # The grids.

    def _finest_faces(self, k, spacings):
        if not self._varies:
            k = _number("k", k, 0.0, above=True)
            return [k * constant_faces(n, h, b) for n, h, b in zip(self.shape, spacings, self._boundary, strict=True)]
        values = np.asarray(k(*np.indices(self.shape)) if callable(k) else k)
        if values.shape != self.shape or values.dtype.kind not in "fiu":
            raise ConfigError(f"multigrid: k: given {shown(values)}; allowed: real numbers of shape {self.shape}")
        if not (np.isfinite(values).all() and (values > 0).all()):
            raise ConfigError(f"multigrid: k has the value {values.min():.3g}; allowed: finite numbers above 0")
        return [
            variable_faces(values.astype(float), h, b, axis)
            for axis, (h, b) in enumerate(zip(spacings, self._boundary, strict=True))
        ]

    def _coarser(self, faces, cells):
        if self._varies:
            return [coarser_faces(along, axis) for axis, along in enumerate(faces)]
        # An axis is a grid of its own: faces do not vary across it.
        return [np.concatenate([along[:1], along[1::2]])[: n + 2] / 4 for along, n in zip(faces, cells, strict=True)]

    def _level(self, cells, faces, blocks):
        extents = [n + 2 for n in cells]
        names = ("kx", "ky", "kz") if self._varies else ("ax", "ay", "az")
        held = {
            name: field(along, blocks=blocks, context=self.context) if self._varies else along
            for name, along in zip(names, faces, strict=False)
        }
        return Level(cells, held, *(field(extents, "f8", blocks=blocks, context=self.context) for _ in range(3)))

    # The nests of a cycle.

    def _bind(self, what, level, **keywords):
        key = what, level, tuple(sorted(keywords.items()))
        if key in self._bound:
            return self._bound[key]
        grid, kind = self.grids[level], "variable" if self._varies else "constant"
        given = {**grid.faces, "sigma": self._sigma, **self._on}
        indices = "ijk"[: len(self.shape)]
        if keywords.pop("back", False):
            given["reverse"] = tuple(indices)
        if what in ("relax", "relax_colour"):
            arrays = {"u": grid.u, "f": grid.f}
        elif what == "residual":
            arrays = {"r": grid.r, "u": grid.u, "f": grid.f}
        else:
            arrays = {"u": grid.u, "r": grid.r}
        made = bind(getattr(self._nests, f"{what}_{kind}"), **arrays, **given, **keywords)
        self._bound[key] = made
        return made

    def _smooth(self, level, count, back):
        """So many sweeps: those after a coarser grid in the order that mirrors those before."""
        if self._smoother == "gauss-seidel":
            return [self._bind("relax", level, back=back)] * count
        if self._smoother == "red-black":
            return [self._bind("relax_colour", level, colour=c) for c in ((1, 0) if back else (0, 1))] * count
        weight = JACOBI_WEIGHT[len(self.shape)]
        return [self._bind("residual", level), self._bind("jacobi", level, weight=weight)] * count

    def _visit(self, level, cycle):
        """The nests of a cycle from one grid down and back."""
        if level == len(self.grids) - 1:
            return [self._bind("relax", level, back=back) for back in (False, True)] * (self._sweeps // 2)
        nests = self._smooth(level, self._pre, False) + [self._bind("residual", level), self._restrict(level)]
        below = level + 1
        nests += self._visit(below, cycle)
        if cycle != "V" and below < len(self.grids) - 1:
            nests += self._visit(below, "V" if cycle == "F" else "W")
        return nests + [self._correct(level), *self._smooth(level, self._post, True)]

    def _restrict(self, level):
        key = "restrict", level
        if key not in self._bound:
            fine, coarse = self.grids[level : level + 2]
            self._bound[key] = bind(self._nests.restrict, f=coarse.f, u=coarse.u, r=fine.r, **self._on)
        return self._bound[key]

    def _correct(self, level):
        key = "correct", level
        if key not in self._bound:
            fine, coarse = self.grids[level : level + 2]
            weights = {}
            for axis, n, (low, high) in zip("xyz", coarse.shape, self._boundary, strict=False):
                weights["l" + axis], weights["h" + axis] = np.zeros(n + 2), np.zeros(n + 2)
                weights["l" + axis][1], weights["h" + axis][n] = BESIDE_BOUNDARY[low], BESIDE_BOUNDARY[high]
            self._bound[key] = bind(self._nests.correct, u=fine.u, e=coarse.u, **self._on, **weights)
        return self._bound[key]

    @property
    def _norm(self):
        key = "norm", 0
        if key not in self._bound:
            grid, kind = self.grids[0], "variable" if self._varies else "constant"
            self._bound[key] = bind(
                getattr(self._nests, f"residual_{kind}"),
                r=grid.r,
                u=grid.u,
                f=grid.f,
                **grid.faces,
                sigma=self._sigma,
                reduce={"norm": reduction.norm("r")},
                **self._on,
            )
        return self._bound[key]

    def _cycles(self):
        if self._chain is None:
            self._chain = chain([*self._visit(0, self._cycle), self._norm], context=self.context)
        return self._chain

    # What is given.

    def _take(self, into, given, name):
        if not isinstance(given, Field):
            given = np.asarray(given)
            if given.dtype.kind not in "fiu":
                raise ConfigError(f"multigrid: {name}: given {shown(given)}; allowed: real numbers")
            given = np.ascontiguousarray(given, np.float64)
        if tuple(given.shape) != self.shape or given.dtype != np.float64:
            raise ConfigError(
                f"multigrid: {name}: given {shown(given)}; allowed: a field or array of shape {self.shape}, float64"
            )
        bind(self._nests.take, f=into, given=given, **self._on).run()

    def _size_of(self, of):
        """The 2-norm and the sum of a field."""
        return float(reduction.norm(of)), float(reduction.sum(of))


def _shape(shape):
    given = (shape,) if isinstance(shape, numbers.Integral) else tuple(shape)
    if not 1 <= len(given) <= 3 or any(not isinstance(n, numbers.Integral) or n < 1 for n in given):
        raise ConfigError(f"multigrid: shape: given {shown(shape)}; allowed: 1 to 3 integers >= 1")
    return tuple(int(n) for n in given)


def _coarsened(shape):
    shapes = [shape]
    while all(n % 2 == 0 and n >= 4 for n in shapes[-1]):
        shapes.append(tuple(n // 2 for n in shapes[-1]))
    if math.prod(shapes[-1]) > MOST_COARSEST:
        raise ConfigError(
            f"multigrid: shape {shape} can be coarsened to {shapes[-1]} only, more than {MOST_COARSEST} cells; "
            "allowed: extents with more factors of 2"
        )
    return shapes


def _spacings(spacing, shape):
    given = [1.0 / n for n in shape] if spacing is None else spacing
    given = [given] * len(shape) if isinstance(given, numbers.Real) else list(given)
    if len(given) != len(shape):
        raise ConfigError(f"multigrid: spacing: given {shown(spacing)}; allowed: a number, or one for each axis")
    return [_number("spacing", h, 0.0, above=True) for h in given]


def _boundaries(boundary, dims):
    given = [boundary] * dims if isinstance(boundary, str) else list(boundary)
    sides = [(b, b) if isinstance(b, str) else tuple(b) for b in given]
    if len(sides) != dims or any(len(pair) != 2 or set(pair) - set(BESIDE_BOUNDARY) for pair in sides):
        raise ConfigError(
            f"multigrid: boundary: given {shown(boundary)}; allowed: {', '.join(BESIDE_BOUNDARY)}, one for all, one "
            "for each axis, or pairs for the sides of an axis"
        )
    return sides


def _number(name, value, least, above=False):
    allowed = f"a finite number {'>' if above else '>='} {least:g}"
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise ConfigError(f"multigrid: {name}: given {shown(value)}; allowed: {allowed}")
    if value < least or above and value == least:
        raise ConfigError(f"multigrid: {name}: given {shown(value)}; allowed: {allowed}")
    return float(value)


def _count(name, value):
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 0:
        raise ConfigError(f"multigrid: {name}: given {shown(value)}; allowed: an integer >= 0")
    return int(value)


def _one_of(name, value, allowed):
    if value not in allowed:
        raise ConfigError(f"multigrid: {name}: given {shown(value)}; allowed: {', '.join(allowed)}")
    return value
