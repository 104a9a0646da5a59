"""The nests of a cycle: sweeps, residuals, and what goes to coarser grids and comes back."""

import numpy as np

from tilewave.field.create import field
from tilewave.multigrid import bodies
from tilewave.multigrid.sharing import ends_of
from tilewave.nests.call import reduce_functions
from tilewave.nests.doors.bind import bind
from tilewave.nests.plan.ahead import start_kernels

CYCLES = ("V", "F", "W")
SMOOTHERS = ("gauss-seidel", "red-black", "jacobi")

#: Of a weighted Jacobi sweep, by dimensions: what reduces errors that a coarser grid has not most.
JACOBI_WEIGHT = {1: 2 / 3, 2: 4 / 5, 3: 6 / 7}
#: Weights of a correction at a cell next to a boundary: a mirrored value, the same value, the one that is there.
BESIDE_BOUNDARY = {"dirichlet": -0.25, "neumann": 0.25, "periodic": 0.0}
#: Cells along an axis, at least, for its ends to lie with different ranks.
LEAST_BETWEEN_ENDS = 4
#: Eigenvalues of the coarsest grid below this part of the largest one are 0: those of constants.
LEAST_EIGENVALUE = 1e-10


class Cycle:
    """The bound nests of all grids; each is bound once.

    Parameters
    ----------
    levels : list of Level
    kind : str
        "V", "F" or "W".
    sweeps : (str, int, int)
        The smoother, sweeps before and after a coarser grid.
    jumps : bool
        Whether the coefficient may jump: then corrections are equal in all of a coarse cell, as a linear one does not
        follow the solution where it bends.
    singular : bool
        Whether the operator has no inverse: nothing fixes values, or cells have no material.
    free : bool
        Whether constants solve the equations without a right side.
    grid : tuple of int, or None
        The process grid; None: by prediction.
    outer : dict, optional
        What the operator that is solved for has in place of that of the finest grid's sweeps.
    """

    def __init__(self, levels, kind, sweeps, jumps, singular, free, grid=None, outer=None):
        self.levels, self.kind, (self.smoother, self.pre, self.post) = levels, kind, sweeps
        self.jumps, self.singular, self.free, self._bound, self._ends = jumps, singular, free, {}, {}
        self.context = context = levels[0].u.context
        self._bind, self._kernels = bind, []  # kernels that are compiled before they are bound
        self._outer = outer or {}
        # All nests share their fields, and parts of fields as coarse grids have them lie plainly.
        self.on = {"context": context, "plan": {"storage": "plain"} | ({} if grid is None else {"grid": grid})}
        self.dims = len(levels[0].shape)
        self.parts = (context.size,) * self.dims if grid is None else grid  # at most, along each axis

    def nests_of_cycle(self):
        """From the finest grid down and back."""
        return self._visit(0, self.kind)

    def nests_of_full(self):
        """Full multigrid: the equations of all grids, the coarsest solution, and on each finer grid its interpolation
        and a cycle, which leaves an error below that of the discretisation.
        """
        coarsest = len(self.levels) - 1
        nests = [nest for level in range(coarsest) for nest in self._restrict(level, "f")] + [self._solve(coarsest)]
        for level in reversed(range(coarsest)):
            nests += [*self.wrap(level + 1), self._correct(level, linear=True), *self._visit(level, self.kind)]
        return nests

    def start_compiling(self, more):
        """Begin to compile the kernels of a cycle, and those of `more`: (nest, its arrays by name); local.

        Kernels of coarser grids are mostly those of finer ones. Where the first is on disk, so are the others.
        """
        known, kinds, self._bound = self._bound, set(), {}

        def start(nest, *, context, plan, reduce=None, reverse=(), **arguments):
            if (kind := (nest, reverse, bool(reduce))) in kinds or any(kernel.stored for kernel in self._kernels[:1]):
                return
            kinds.add(kind)
            self._kernels += start_kernels(nest, context, reverse, plan, arguments, reduce)

        self._bind = start
        try:
            for nest, arrays in more:
                start(nest, **arrays, **self.on)
            _ = *self.norm(), *self.nests_of_cycle()
        finally:
            self._bind, self._bound = bind, known

    def norm(self):
        """Return what gives the norm of the finest grid's residual, under the name "norm"."""
        return self.residual(0, {"norm": reduce_functions.norm("r")})

    def residual(self, level, reduce=None):
        """The residual, of which `reduce` is wanted."""
        grid = self.levels[level]
        return [
            *self.wrap(level),
            self._of_level(level, "residual", r=grid.r, u=grid.u, f=grid.f, reduce=reduce),
        ]

    def wrap(self, level, of="u"):
        """Return nests that give u or another field, around the cells, what is at the other end of periodic axes."""
        axes = enumerate(self.levels[level].cells.axes)
        return [nest for d, axis in axes if axis.periodic for nest in self._wrap_along(level, d, axis.cells, of)]

    def _wrap_along(self, level, d, cells, of):
        grid, key = self.levels[level], ("wrap", level, d, of)
        u = getattr(grid, of)
        if grid.blocks is None or self.parts[d] == 1 or cells < LEAST_BETWEEN_ENDS:
            return [self.bound(key, bodies.wrap(self.dims, d, cells), u=u)]
        if key not in self._ends:
            extents = [bodies.ENDS if axis == d else n + 2 for axis, n in enumerate(grid.shape)]
            blocks = ends_of(grid.blocks, d, cells, bodies.ENDS)
            self._ends[key] = field(extents, grid.u.dtype, blocks=blocks, context=self.context)
        ends = self._ends[key]
        return [
            self.bound((*key, "give"), bodies.give_ends(self.dims, d, cells), e=ends, u=u),
            self.bound((*key, "take"), bodies.take_ends(self.dims, d, cells), u=u, e=ends),
        ]

    def bound(self, key, nest, **arguments):
        """A nest bound once for each key."""
        if key not in self._bound:
            self._bound[key] = self._bind(nest, **self.on, **arguments)
        return self._bound[key]

    def operator(self, level, outer=False):
        """The arrays and scalars of a level's nests; outer: of what is solved for."""
        grid = self.levels[level]
        operator = grid.arrays if grid.cells.varies else {**grid.arrays, "sigma": grid.cells.sigma}
        return {**operator, **self._outer} if outer else operator

    def _of_level(self, level, what, **arguments):
        scalars = tuple((name, value) for name, value in arguments.items() if name in ("colour", "weight", "reverse"))
        nest = bodies.of_level(what, self.dims, self.levels[level].cells.links)
        names = {*nest.arrays, *nest.scalars}
        outer = bool(arguments.get("reduce"))  # norms are of what is solved for
        operator = {name: value for name, value in self.operator(level, outer).items() if name in names}
        return self.bound(
            (what, level, scalars, outer),
            nest,
            **arguments,
            **operator,
        )

    def _sweep(self, level, back):
        """One sweep; those after a coarser grid are in the order that mirrors those before."""
        grid = self.levels[level]
        if self.smoother == "jacobi":
            smooth = self._of_level(level, "jacobi", u=grid.u, r=grid.r, weight=JACOBI_WEIGHT[self.dims])
            return [*self.residual(level), smooth]
        if self.smoother == "red-black":
            sweep = []
            colours = range(2 if grid.cells.links in (None, bodies.units(self.dims)) else 2**self.dims)
            for colour in reversed(colours) if back else colours:
                nest = self._of_level(level, "relax_colour", u=grid.u, f=grid.f, colour=colour)
                sweep += [*self.wrap(level), nest]
            return sweep
        order = tuple("ijk"[: self.dims]) if back else ()
        return [*self.wrap(level), self._of_level(level, "relax", u=grid.u, f=grid.f, reverse=order)]

    def _visit(self, level, kind):
        if level == len(self.levels) - 1:
            return [self._solve(level)]
        nests = self._sweep(level, False) * self.pre + self.residual(level) + self._restrict(level)
        below = level + 1
        nests += self._visit(below, kind)
        if kind != "V" and below < len(self.levels) - 1:
            nests += self._visit(below, "V" if kind == "F" else "W")
        return nests + self.wrap(below) + [self._correct(level)] + self._sweep(level, True) * self.post

    def _solve(self, level):
        grid = self.levels[level]
        key = "solve", level
        if key in self._bound:
            return self._bound[key]
        matrix = grid.cells.matrix()
        if self.free:  # rounding of finer grids may be more than what couples these cells
            matrix -= np.diag(matrix.sum(1))
        inverse = np.linalg.pinv(matrix, LEAST_EIGENVALUE) if self.singular else np.linalg.inv(matrix)
        w = bodies.inverse_as_stencil(grid.shape, inverse)
        return self.bound(key, bodies.solve(grid.shape), u=grid.u, f=grid.f, w=w)

    def _transfers(self, level):
        fine, coarse = (grid.cells.axes for grid in self.levels[level : level + 2])
        return tuple(a.transfer(b) for a, b in zip(fine, coarse, strict=True))

    def _regular(self, level):
        """Return whether each coarse cell is two equal ones along each axis."""
        axes = self.levels[level].cells.axes
        return set(self._transfers(level)) == {"pairs"} and all(axis.uniform for axis in axes)

    def _restrict(self, level, of="r"):
        fine, coarse = self.levels[level : level + 2]
        found, nest = [], bodies.restrict(self._transfers(level))
        if coarse.weights:
            found, nest = self.wrap(level, of), bodies.restrict_following(self._halved(level), tuple(coarse.weights))
        key, fields = ("restrict", level, of), {"f": coarse.f, "u": coarse.u, "r": getattr(fine, of)}
        return [*found, self.bound(key, nest, **fields, **self._weights(coarse))]

    def _halved(self, level):
        return tuple(transfer != "same" for transfer in self._transfers(level))

    @staticmethod
    def _weights(coarse):
        return {bodies.follow_name(*at): values for at, values in coarse.weights.items()}

    def _correct(self, level, linear=False):
        fine, coarse = self.levels[level : level + 2]
        equal = self.jumps and not linear
        key = "correct", level, equal
        masked = bool(fine.material)
        if coarse.weights:
            nest = bodies.follow(self._halved(level), tuple(coarse.weights), masked)
            return self.bound(key, nest, u=fine.u, e=coarse.u, **self._weights(coarse), **fine.material)
        if self._regular(level) and not equal and not masked:
            nest = bodies.correct_regularly(self.dims)
            return self.bound(key, nest, u=fine.u, e=coarse.u, **_regular_weights(coarse.cells.axes))
        transfers, weights = self._transfers(level), {}
        for names, a, b in zip(bodies.weight_names(transfers), fine.cells.axes, coarse.cells.axes, strict=True):
            if names:
                weights |= dict(zip(names, (*a.weights(b), a.complete(b)), strict=False))
        nest = bodies.correct(transfers, masked, equal)
        weights = {name: value for name, value in weights.items() if name in nest.arrays}
        return self.bound(key, nest, u=fine.u, e=coarse.u, **weights, **fine.material)


def _regular_weights(axes):
    """Return the weights of the coarse cell itself, in addition to 3/4, in its lower and upper cells."""
    weights = {}
    for name, axis in zip("xyz", axes, strict=False):
        low, high = np.zeros(axis.cells + 2), np.zeros(axis.cells + 2)
        low[1], high[axis.cells] = (BESIDE_BOUNDARY[side] for side in axis.boundary)
        weights |= {"l" + name: low, "h" + name: high}
    return weights
