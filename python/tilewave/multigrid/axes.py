"""One axis of a grid: how long its cells are, and how values go to and from a grid with half as many."""

import functools

import numpy as np

#: An axis is halved where its cells are coupled at least so much as those of the axis that is coupled most: else errors
#: along it are as smooth as a coarser grid needs only after many sweeps.
LEAST_COUPLING = 0.5


class Axis:
    """Cells along one axis.

    Parameters
    ----------
    lengths : numpy.ndarray
    boundary : (str, str)
        Of the two sides.
    """

    def __init__(self, lengths, boundary):
        self.lengths, self.boundary = lengths, boundary

    @property
    def cells(self):
        """How many there are."""
        return len(self.lengths)

    @property
    def periodic(self):
        """Return whether the cell above the last one is the first."""
        return self.boundary[0] == "periodic"

    @property
    def uniform(self):
        """Return whether all cells have one length."""
        return bool((self.lengths == self.lengths[0]).all())

    @functools.cached_property
    def centres(self):
        """Return the centres of the cells."""
        return np.cumsum(self.lengths) - self.lengths / 2

    @functools.cached_property
    def distances(self):
        """Across the face below each cell and the one above all: between centres, or from a centre to the boundary."""
        h = self.lengths
        low, high = (h[0] + h[-1], h[0] + h[-1]) if self.periodic else (h[0], h[-1])
        return np.concatenate([[low], h[:-1] + h[1:], [high]]) / 2

    def halved(self):
        """Cells that are two of these; of an odd number the last one is one."""
        padded = np.append(self.lengths, [0.0] * (self.cells % 2))
        return Axis(padded[::2] + padded[1::2], self.boundary)

    def transfer(self, coarse):
        """How this axis is coarsened: "pairs", "odd" where the last coarse cell is one, "same" where it stays."""
        return "same" if coarse is self else "odd" if self.cells % 2 else "pairs"

    def weights(self, coarse):
        """(low, high): of a coarse cell's neighbour below in its lower cell, of that above in its upper one.

        Values between centres are linear. Elements around the cells are 0: so at a Dirichlet boundary. Indices count
        from 1.
        """
        low, high = np.zeros(coarse.cells + 2), np.zeros(coarse.cells + 2)
        distances, centres = coarse.distances, coarse.centres
        lower, upper = self.centres[::2], self.centres[1::2]
        low[1:-1] = (centres - lower) / distances[:-1]
        high[1 : 1 + len(upper)] = (upper - centres[: len(upper)]) / distances[1 : 1 + len(upper)]
        low[1] *= coarse.boundary[0] != "neumann"
        high[coarse.cells] *= coarse.boundary[1] != "neumann"
        return low, high

    def complete(self, coarse):
        """1 for each coarse cell that has an upper cell, 0 for others; indices count from 1."""
        found = np.zeros(coarse.cells + 2)
        found[1 : 1 + self.cells // 2] = 1.0
        return found


def coarser(axes, couplings):
    """The axes of the next grid: those along which cells are coupled most are halved.

    Parameters
    ----------
    axes : list of Axis
    couplings : list of float
        The mean conductance along each.
    """
    may = [d for d, axis in enumerate(axes) if axis.cells > 1]
    strongest = max(may, key=couplings.__getitem__)  # also where rounding, or jumps of k, leave no sign of a coupling
    least = LEAST_COUPLING * couplings[strongest]
    return [
        axis.halved() if d == strongest or d in may and couplings[d] >= least else axis for d, axis in enumerate(axes)
    ]
