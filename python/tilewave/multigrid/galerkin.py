"""Coarse grids that follow k: operator-dependent interpolation P, and P^T A P as the coarse operator.

As black box multigrid (Dendy 1982), for cells: the lower one of each pair is a cell of the coarse grid, and the others
are interpolated from it and the next by what couples them. Coarse cells are coupled to all neighbours, corners too.

An operator is a dictionary: by offset o of a neighbour, the entry A(c, c + o) of each cell c. Entries that lead out of
the box are 0, so that arrays can be rolled.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from tilewave.errors import ConfigError
from tilewave.multigrid import given
from tilewave.multigrid.axes import coarser
from tilewave.multigrid.coefficients import dense_matrix, operator_of, shifted, variable_faces

#: In terms of the least k above 0, what cells without material have for interpolation alone: coarse cells there
#: stand for cells of narrow regions beside them.
NO_MATERIAL = 1e-6
#: Coarse grids follow k where it is so many times that of the next cell. Blocks of 3 cells in 48x48x48, ms of cycles
#: with averages and of conjugate gradients that follow k, jumps of 3, 10, 30 and 100: 62 and 57, 109 and 67, 357 and
#: 102, over 521 and 126; the coarse operators take about 150 more, once.
JUMP = 30.0
#: What the coarse grids of a solver may be; averages are cheaper, and as good where k does not jump.
COARSE = ("auto", "average", "galerkin")


def chosen(coarse, k, cut):
    """Return what the coarse grids are; `cut`: the process grid if it keeps sweeps from reaching across corners, or
    None."""
    given.one_of("coarse", coarse, COARSE)
    if coarse == "galerkin" and cut:
        raise ConfigError(
            f"multigrid: grid {cut} was given for coarse='galerkin', whose sweeps reach across corners; allowed: "
            "ranks along the first axis alone, smoother='jacobi', or coarse='average'"
        )
    if coarse == "auto":
        return "galerkin" if isinstance(k, np.ndarray) and not cut and _jumps(k) else "average"
    return coarse


def _jumps(k):
    """Return whether k jumps from one cell to the next, perhaps to 0."""
    pairs = ((k.take(range(n - 1), axis), k.take(range(1, n), axis)) for axis, n in enumerate(k.shape))
    return any(((a != b) & (np.maximum(a, b) >= JUMP * np.minimum(a, b))).any() for a, b in pairs)


@dataclass
class Following:
    """A coarse grid that follows k, or the finest one in its form, as `levels.Cells`.

    Attributes
    ----------
    axes : list of Axis
    operator : dict
        Of cells above, whose offsets are larger than (0, ...), and that itself; the other half is its transpose.
    weights : dict
        By (parity of a finer cell in its coarse one, step from this to the coarse cell), those of `bodies.follow`.
    """

    axes: list
    operator: dict
    weights: dict
    varies = True
    material = None

    @property
    def shape(self):
        """Cells by axis."""
        return tuple(axis.cells for axis in self.axes)

    @property
    def links(self):
        """Offsets of neighbours, of each pair the upper one."""
        return tuple(sorted(o for o in self.operator if any(o)))

    def arrays(self):
        """Return by offset what couples each cell and the one so far below it; the diagonal; with an element around."""
        found = {o: _padded(-shifted(self.operator[o], o, -1)) for o in self.links}
        diagonal = self.operator[(0,) * len(self.axes)]
        return found, _padded(np.where(diagonal == 0, np.abs(diagonal).max(initial=0) or 1.0, diagonal))

    def coupling(self, axis):
        """The mean over cells of what couples them along an axis, corners as well."""
        means = (-np.real(self.operator[o]).mean() for o in self.links if o[axis])
        return float(sum(means)) if self.shape[axis] > 1 else 0.0

    def coarser(self):
        """The next grid."""
        axes = coarser(self.axes, [self.coupling(d) for d in range(len(self.axes))])
        halved = tuple(a is not b for a, b in zip(self.axes, axes, strict=True))
        shape = tuple(axis.cells for axis in axes)
        matrix = self.operator | {tuple(-x for x in o): shifted(self.operator[o], o, -1) for o in self.links}
        weights = _interpolation({o: np.real(a) for o, a in matrix.items()}, halved, shape)
        odd = [d for d, a in enumerate(self.axes) if halved[d] and a.periodic and a.cells % 2]
        return Following(axes, _product(matrix, weights, halved, shape, odd), weights)

    def matrix(self):
        """The operator as a dense matrix."""
        return dense_matrix(self.operator)


def following(cells, spacings, k):
    """The finest grid in that form; without material, with a little of it."""
    k = np.where(k > 0, k, NO_MATERIAL * k[k > 0].min())
    faces = [
        variable_faces(k, h, axis.boundary, d) for d, (h, axis) in enumerate(zip(spacings, cells.axes, strict=True))
    ]
    sigma = cells.sigma[tuple(slice(1, -1) for _ in k.shape)]
    return Following(cells.axes, operator_of(faces, sigma, cells.axes), {})


def _padded(values):
    """With what is at the other end around the cells: 0 counts there unless an axis is periodic."""
    return np.pad(values, 1, mode="wrap")


def _part(values, parity, halved, shape):
    """The finer cells of a parity as an array of coarse cells; 0 beyond an odd number."""
    part = values[tuple(slice(p, None, 2) if h else slice(None) for p, h in zip(parity, halved, strict=True))]
    return np.pad(part, [(0, n - m) for n, m in zip(shape, part.shape, strict=True)])


def _add(a, b):
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _interpolation(matrix, halved, shape):
    """Return the weights by parity and step: a cell is the mean of the neighbours that are interpolated before it, by
    what couples it to them; along axes where it is a coarse cell, its neighbours' are added to these. What couples by
    the wrong sign is 0.
    """
    zero = (0,) * len(shape)
    links = {o: np.maximum(-a, 0.0) for o, a in matrix.items() if o != zero}
    more = np.maximum(sum(matrix.values()), 0.0)  # to the boundary, and sigma
    found = {zero: {zero: 1.0}}
    for parity in sorted(itertools.product(*((0, 1) if h else (0,) for h in halved)), key=sum)[1:]:
        towards = {}
        for o, a in links.items():
            if any(inside := tuple(x * p for x, p in zip(o, parity, strict=True))):
                towards[inside] = towards.get(inside, 0) + _part(a, parity, halved, shape)
        total = sum(towards.values()) + _part(more, parity, halved, shape)
        towards = {o: np.divide(a, total, out=np.zeros(shape), where=total > 0) for o, a in towards.items()}
        here = found[parity] = {}
        for o, a in towards.items():
            other, step = tuple(p * (x == 0) for p, x in zip(parity, o, strict=True)), tuple(int(x > 0) for x in o)
            for q, w in found[other].items():
                to = _add(q, step)
                here[to] = here.get(to, 0) + a * (w if q == zero == other else shifted(w, step))
    found[zero] = {zero: np.ones(shape)}
    return {(parity, q): w for parity, weights in found.items() for q, w in weights.items()}


def _product(matrix, weights, halved, shape, odd):
    """P^T A P, its upper half."""
    found = {}
    for parity in {parity: None for parity, _ in weights}:
        images = {}
        for o, a in matrix.items():
            at = _add(parity, o)
            other = tuple(x % 2 if h else 0 for x, h in zip(at, halved, strict=True))
            step = tuple(x // 2 if h else x for x, h in zip(at, halved, strict=True))
            part = _part(a, parity, halved, shape)
            for q, w in _seen(weights, other, o, odd).items():
                to = _add(q, step)
                images[to] = images.get(to, 0) + part * shifted(w, step)
        for q, w in _seen(weights, parity, (0,) * len(shape), ()).items():
            for to, image in images.items():
                o = tuple(x - y for x, y in zip(to, q, strict=True))
                o = tuple(x if n > 1 else 0 for x, n in zip(o, shape, strict=True))  # one cell is its own neighbour
                if o >= (0,) * len(shape):
                    found[o] = found.get(o, 0) + shifted(w * image, q, -1)
    return found


def _seen(weights, parity, o, odd):
    """The weights of cells of a parity by step, as their neighbours see them that are o below.

    Of an odd number of cells along a periodic axis the last coarse cell has one, and beyond it is the first or, from
    the first one down, the last one: both are coarse cells.
    """
    found = {q: w for (p, q), w in weights.items() if p == parity}
    for d in odd:
        if not (parity[d] and o[d]):
            continue
        before = (slice(None),) * d
        coarse = _seen(weights, tuple(p * (e != d) for e, p in enumerate(parity)), o, [e for e in odd if e != d])
        up = int(o[d] > 0)
        found = {q: w.copy() for q, w in found.items()}
        for q, w in found.items():
            source = coarse[tuple(x * (e != d) for e, x in enumerate(q))]
            w[(*before, -1)] = source[(*before, 0 if up else -1)] if q[d] == up else 0.0
    return found
