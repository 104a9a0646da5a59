"""Conjugate gradients with a cycle as the preconditioner: each iteration is one run of one chain."""

import cmath
import math

from tilewave.multigrid import bodies
from tilewave.multigrid.levels import make_field
from tilewave.nests.call import reduce_functions
from tilewave.nests.doors.chain import chain

#: Iterations whose norms are within this factor: they make no progress.
STANDING, SAME = 8, 1.02


class ConjugateGradients:
    """Iterations on the equations of a solver's finest grid; its f becomes the residual, its u the preconditioned one.

    An iteration updates x, the residual f and the directions, makes u of f by a cycle, and sums what the next step
    needs: Chronopoulos' and Gear's form (1989), with the directions of flexible conjugate gradients (Notay 2000), as a
    cycle may be symmetric but for its transfers. Where the matrix is complex, products are not conjugated, and would be
    0 of a right side like exp(ix). So the first step is the real part of u: what it leaves, about i times a real value
    under the matrix, has products that are not 0.

    Parameters
    ----------
    cycle : Cycle
    complex_matrix : bool
    """

    def __init__(self, cycle, complex_matrix):
        grid, context, dims = cycle.levels[0], cycle.context, cycle.dims
        dtype = grid.u.dtype
        self.zero, self._hermitian = dtype.type(0).item(), dtype.kind == "c" and not complex_matrix
        self.x, self._p, self._s, self._w = (make_field(grid.shape, dtype, grid.blocks, context) for _ in range(4))
        fields = {"x": self.x, "f": grid.f, "p": self._p, "s": self._s, "u": grid.u, "w": self._w}
        self._begin = cycle.bound("begin", bodies.begin(dims, "f", "psw"), **fields, given=grid.r)
        self._hand_back = cycle.bound("hand back", bodies.hand_back(dims), u=grid.u, x=self.x)
        advance = cycle.bound(
            "advance",
            bodies.advance(dims),
            **fields,
            alpha=self.zero,
            beta=self.zero,
            reduce={"norm": reduce_functions.norm("f")},
        )
        apply = cycle.bound(
            "apply",
            bodies.apply(dims, grid.cells.links, self._hermitian),
            w=self._w,
            u=grid.u,
            f=grid.f,
            s=self._s,
            **cycle.operator(0),
            reduce={name: reduce_functions.sum(name) for name in ("uf", "uw", "us")},
        )
        real = [cycle.bound("real", bodies.real_part(dims), u=grid.u), *cycle.wrap(0), apply] if complex_matrix else []
        self._real_step = chain(real, context=context) if real else None
        self.chain = chain([advance, *cycle.nests_of_cycle(), *cycle.wrap(0), apply], context=context)

    def run(self, start, end, most):
        """Iterate from the finest grid's u and residual r until the norm is at most `end`.

        Parameters
        ----------
        start : float
            The norm of r.
        most : int
            Iterations, at most.

        Returns
        -------
        (list of float, float)
            The norms from `start` on, and seconds.
        """
        self._begin.run()
        norms, time_s, beta = [start], 0.0, self.zero
        _, before, image, _, seconds = self._iterate(beta, beta)
        if self._real_step is not None and most:
            time_s += seconds + self._real_step.run().measured.time_s
            norm, before, image, _, seconds = self._iterate(self.zero + 1, beta)
            norms.append(norm)
        time_s += seconds
        while norms[-1] > end and len(norms) <= most and _usable(before) and _usable(image):
            alpha = before / image
            norm, now, product, mixed, seconds = self._iterate(alpha, beta)
            norms.append(norm)
            time_s += seconds
            if not _usable(now) or _stands(norms):
                break  # the residual is 0, or directions are lost in rounding
            beta = -alpha * mixed / before
            image, before = self._product(product, beta * mixed, beta, image), now
        return norms, time_s

    def hand_back(self):
        """The finest grid's u becomes x."""
        self._hand_back.run()

    def _iterate(self, alpha, beta):
        """The norm, the sums and seconds."""
        report = self.chain.run(scalars={"alpha": alpha, "beta": beta})
        found = report.results
        sums = (found[name].item() for name in ("uf", "uw", "us"))
        return float(found["norm"]), *sums, report.measured.time_s

    def _product(self, uw, mixed, beta, image):
        """Return the product of the next direction u + beta p and A times it; `image` is that of p, `mixed` beta times
        u A p."""
        if self._hermitian:
            return uw + 2 * mixed.real + abs(beta) ** 2 * image
        return uw + 2 * mixed + beta * beta * image


def _stands(norms):
    """Return whether the norms of a number of iterations were all about the same."""
    last = norms[-STANDING:]
    return len(last) == STANDING and max(last) <= SAME * min(last)


def _usable(value):
    finite = cmath.isfinite(value) if isinstance(value, complex) else math.isfinite(value)
    return finite and value != 0
