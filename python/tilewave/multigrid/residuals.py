"""Minimal residuals for a negative sigma, with a cycle of |sigma| as the preconditioner: one chain an iteration."""

import math

from tilewave.multigrid import bodies
from tilewave.multigrid.levels import make_field
from tilewave.nests.call import reduce_functions
from tilewave.nests.doors.chain import chain

#: Scalars of `bodies.step` that change nothing: the residual stays the next vector.
NOTHING = {"az": 0.0, "ap": 0.0, "aq": 0.0, "far": 0.0, "keep": 1.0, "add": 0.0, "cw": 0.0, "cf": 1.0, "cb": 0.0}


class MinimalResiduals:
    """Preconditioned MINRES (Paige and Saunders 1975) on the equations of a solver's finest grid.

    The cycle is symmetric and positive, the operator symmetric. An iteration updates x and the residual r, makes the
    next Lanczos vector f, its preconditioned one u by a cycle, and w = A u, with the products that the next step needs.

    Parameters
    ----------
    cycle : Cycle
    """

    def __init__(self, cycle):
        grid, context, dims = cycle.levels[0], cycle.context, cycle.dims
        self.x, *others = (make_field(grid.shape, grid.u.dtype, grid.blocks, context) for _ in range(7))
        fields = dict(zip("pqzbwr", others, strict=True)) | {"x": self.x, "f": grid.f, "u": grid.u}
        self._begin = cycle.bound("begin", bodies.begin(dims, "fr", "pqzbw"), **fields, given=grid.r)
        self._hand_back = cycle.bound("hand back", bodies.hand_back(dims), u=grid.u, x=self.x)
        norm = {"norm": reduce_functions.norm("r")}
        step = cycle.bound("step", bodies.step(dims), **fields, **NOTHING, reduce=norm)
        apply = cycle.bound(
            "apply",
            bodies.apply(dims, grid.cells.links, grid.u.dtype.kind == "c"),
            **{name: fields[name] for name in "wuf"},
            s=fields["b"],
            **cycle.operator(0, outer=True),
            reduce={name: reduce_functions.sum(name) for name in ("uf", "uw")},
        )
        self.chain = chain([step, *cycle.nests_of_cycle(), *cycle.wrap(0), apply], context=context)

    def run(self, start, end, most):
        """Iterate from the finest grid's u and residual r, as `ConjugateGradients.run`; norms are those of r."""
        self._begin.run()
        norms, step = [start], {}
        _, length, curvature, time_s = self._iterate({})
        # How long the last vector was; the last two rotations; what is left to reduce.
        before, (c, c_before), (s, s_before), left = math.inf, (1.0, 1.0), (0.0, 0.0), length
        while norms[-1] > end and len(norms) <= most and 0 < length < math.inf:
            lanczos = {"cw": 1 / length, "cf": -curvature / length, "cb": -length / before}
            norm, following, ahead, seconds = self._iterate({**step, **lanczos})
            norms += [norm] if step else []
            time_s += seconds
            corner = c * curvature - c_before * s * length
            size = math.hypot(corner, following)
            if not 0 < size < math.inf:
                break
            ap, aq = -(s * curvature + c_before * c * length) / size, -s_before * length / size
            (c, c_before), (s, s_before) = (corner / size, c), (following / size, s)
            step = {"az": 1 / (length * size), "ap": ap, "aq": aq, "far": c * left, "keep": s * s}
            left *= -s
            step["add"] = c * left / following if following else 0.0
            before, length, curvature = length, following, ahead
        if length == 0 and step and norms[-1] > end:  # there is no further vector: the last step is exact
            norm, _, _, seconds = self._iterate(step)
            norms.append(norm)
            time_s += seconds
        return norms, time_s

    def hand_back(self):
        """The finest grid's u becomes x."""
        self._hand_back.run()

    def _iterate(self, scalars):
        """The norm of r, length and curvature of the next Lanczos vector, and seconds."""
        report = self.chain.run(scalars={**NOTHING, **scalars})
        found = {name: value.item() for name, value in report.results.items()}
        square, image = found["uf"].real, found["uw"].real
        return found["norm"], math.sqrt(max(square, 0.0)), image / square if square > 0 else 0.0, report.measured.time_s
