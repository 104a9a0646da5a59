"""Cells with material, where k is above 0, and their connected regions whose values nothing fixes."""

import numpy as np

from tilewave.errors import ConfigError
from tilewave.multigrid.given import LEAST_SIGMA

#: Without fixed values and sigma, the sum of f over the cells in terms of its 2-norm and the root of their number.
MOST_SUM = 1e-10


class Material:
    """The cells with material; regions of them that neither a boundary nor sigma fixes have a number each.

    Parameters
    ----------
    k : numpy.ndarray
    boundary : list of (str, str)
    sigma : numpy.ndarray
    lost : float
        A sigma below it, on average over a region, is lost in rounding.

    Raises
    ------
    ConfigError
        Where nothing but such a sigma fixes a region.
    """

    def __init__(self, k, boundary, sigma, lost):
        self.cells = k > 0
        numbers = _connected(self.cells, boundary)
        fixed = np.zeros(k.shape, bool)
        for axis, sides in enumerate(boundary):
            for end, side in zip((0, -1), sides, strict=True):
                np.moveaxis(fixed, axis, 0)[end] |= side == "dirichlet"
        of = numbers[self.cells]
        counts = np.bincount(of, minlength=k.size)
        weights = np.bincount(of, np.abs(sigma[self.cells]), k.size)
        free = (np.bincount(of, fixed[self.cells], k.size) == 0) & (counts > 0)
        wrong = free & (weights > 0) & (weights < LEAST_SIGMA * lost * counts)
        if wrong.any():
            raise ConfigError(
                f"multigrid: sigma is lost next to k / spacing**2 in {self._named(numbers == wrong.argmax())}, where "
                f"the boundary fixes no values; allowed: a mean of at least {LEAST_SIGMA:g} of that, or 0"
            )
        free &= weights == 0
        #: By cell: 0, or the number of its region if nothing fixes this.
        self.regions = np.where(self.cells, (np.cumsum(free) * free)[numbers], 0)
        self.counts = np.bincount(self.regions.ravel())

    def means(self, values):
        """Return the mean of each region, 0 for all other cells."""
        at = self.regions.ravel()
        sums = np.bincount(at, values.real.ravel())
        if values.dtype.kind == "c":
            sums = sums + 1j * np.bincount(at, values.imag.ravel())
        sums[0] = 0.0
        return sums / np.maximum(self.counts, 1)

    def require_mean_0(self, f):
        """Refuse a right side that no flux from outside could balance."""
        means, norms = self.means(f), np.sqrt(np.bincount(self.regions.ravel(), np.abs(f.ravel()) ** 2))
        wrong = np.abs(means) * np.sqrt(self.counts) > MOST_SUM * norms
        if wrong.any():
            at = wrong.argmax()
            raise ConfigError(
                f"multigrid: the mean of f is {means[at]:.3g} in {self._named(self.regions == at)}, where neither the "
                "boundary nor sigma fixes values; allowed: a mean of 0 in each such region, sigma > 0, or a boundary "
                "there that is dirichlet"
            )

    def _named(self, region):
        where = tuple(int(i[0]) for i in np.nonzero(region))
        return f"the {np.count_nonzero(region)} cells around {where} that cells without material enclose"


def _connected(cells, boundary):
    """Return for each cell the least index of a cell that its faces lead to."""
    found = np.arange(cells.size).reshape(cells.shape)
    pairs = []
    for axis, sides in enumerate(boundary):
        other, beyond = np.roll(found, 1, axis), np.roll(cells, 1, axis) & cells
        if sides[0] != "periodic":
            np.moveaxis(beyond, axis, 0)[0] = False
        pairs.append((found[beyond], other[beyond]))
    (one, other), number = map(np.concatenate, zip(*pairs, strict=True)), found.ravel().copy()
    while (differ := number[one] != number[other]).any():
        one, other = one[differ], other[differ]
        a, b = number[one], number[other]
        # The larger number of two that meet becomes the smaller one, and so do all that lead to it.
        np.minimum.at(number, np.maximum(a, b), np.minimum(a, b))
        while (number[number] != number).any():
            number = number[number]
    return number.reshape(cells.shape)
