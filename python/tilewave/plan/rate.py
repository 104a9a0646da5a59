"""The rate of a body: measured on tiles as a plan cuts them, the same numbers on every rank."""

import dataclasses
import hashlib
import math

from tilewave import _core

#: Seconds that the samples of one body may take, about; and those of one that has few points.
BUDGET_S, LEAST_BUDGET_S = _core.tuning["rate_budget_s"], 0.03
_UNIT_S = 1e-15  # of the numbers that ranks exchange; of the part, too
_NONE = 2**63 - 1
#: How the note of a rate begins that is a number for any body.
NOT_MEASURED = "not measured"
_EACH = 5  # numbers of a rank: the rate's, and what it makes of a tile with long rows, a point


@dataclasses.dataclass(frozen=True)
class Rate:
    """Seconds of a kernel on one lane while all compute: of a point, the overhead of a row, the overhead of a tile.

    Attributes
    ----------
    point_s, row_s, tile_s : float
    note : str
        Where they are from.
    one_lane_factor : float
        The part of these times where one lane of each rank computes; 0: not measured.
    lanes : int
        Of a rank, that the rest was measured with.
    """

    point_s: float
    row_s: float
    tile_s: float
    note: str
    one_lane_factor: float = 0.0
    lanes: int = 1

    def core(self):
        """The core's."""
        return _core.KernelRate(
            self.point_s, self.row_s, self.tile_s, one_lane_factor=self.one_lane_factor, lanes=self.lanes
        )

    def number(self):
        """Equal where the rates are, as a positive integer."""
        text = repr((self.point_s, self.row_s, self.tile_s, self.one_lane_factor, self.lanes))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "little") + 1


class Rates:
    """What was measured of one body on arrays of one kind.

    Attributes
    ----------
    measured : list of (the core's plan, Rate)
        Each with the plan on whose tiles; the same on every rank after `agree`.
    of_all_tiles : bool
        Whether each holds for any tiles.
    """

    def __init__(self, measured=(), of_all_tiles=False):
        self.measured, self.of_all_tiles = list(measured), of_all_tiles

    def forget(self):
        """Know nothing any more."""
        self.measured, self.of_all_tiles = [], False

    def core(self):
        """The core's, for choosing plans."""
        return [_core.MeasuredRate(plan, rate.core(), self.of_all_tiles) for plan, rate in self.measured]

    def rate(self, core):
        """A `Rate` of the core's one, with what is said of those that were measured."""
        return dataclasses.replace(
            self.measured[-1][1],
            point_s=core.point_s,
            row_s=core.row_s,
            tile_s=core.tile_s,
            one_lane_factor=core.one_lane_factor,
        )

    def number(self):
        """Equal where the rates are, as a positive integer; 0 for none."""
        if not self.measured:
            return 0
        text = repr([(str(plan), rate.number()) for plan, rate in self.measured])
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "little") + 1


def agree(context, all_rates):
    """Forget what some rank has measured otherwise, or not at all; collective.

    Parameters
    ----------
    context : Context
    all_rates : list of Rates, or None
        None: this rank has failed, and only takes part.

    Returns
    -------
    bool
        Whether no rank has failed, and all gave as many.
    """
    count = len(all_rates) if all_rates is not None else -1
    low, high = context._core.allreduce_min([count, -count])
    if low < 0 or low != -high:
        return False
    numbers = [rates.number() for rates in all_rates]
    found = context._core.allreduce_min([*numbers, *(-number for number in numbers)])
    for k, rates in enumerate(all_rates):
        if found[k] != -found[count + k]:
            rates.forget()
    return True


def measure(context, count, sample, lanes):
    """The rates of bodies or tiles that are measured at the same time on all ranks; collective.

    Parameters
    ----------
    context : Context
    count : int
        Of rates.
    sample : callable
        Gives for each rate (rows, points, seconds) of tiles with long rows, short rows and few points, of this rank,
        and perhaps of long rows on only one lane; an empty list where the body raised; None where this rank has
        nothing to measure.
    lanes : list of int
        Of a rank, that are measured at once.

    Returns
    -------
    list of Rate, or None
        Each of the rank that takes longest: the others wait for it. Where the body raised on some rank, the machine's
        number for any body. None where some rank was interrupted: the next agreement says so.
    """
    values = [_NONE] * (_EACH * count)
    context._core.barrier()  # ranks on one host share its memory: they measure at the same time
    try:
        samples = sample()
    except Exception:  # what is wrong with the arguments was said before; here it only costs the measurement
        samples = [[]] * count
    for k, each in enumerate(samples):
        if each is not None:
            values[_EACH * k : _EACH * (k + 1)] = _numbers(each)
    found = context._core.slowest(values, _EACH, _NONE)
    if not context._core.allreduce_min([int(not context._interrupted())])[0]:
        return None
    return [_rate(context, *one, lanes[k]) for k, one in enumerate(found)]


def _rate(context, ranks, failed, numbers, lanes):
    """The rate of the slowest rank's numbers."""
    if failed or not ranks:
        why = (
            "no rank has a point to compute" if not ranks else "the body raised on the values that it was measured with"
        )
        return Rate(context._core.machine().point_s, 0.0, 0.0, f"{NOT_MEASURED}: {why}; a number for any body")
    point, row, tile, one_lane_factor, _ = (number * _UNIT_S for number in numbers)
    return Rate(point, row, tile, f"measured on {ranks} rank(s) at once", one_lane_factor, lanes)


def _numbers(samples):
    """This rank's numbers in units that add up alike everywhere; -1: the body raised; none without tiles."""
    if not samples:
        return [-1] * _EACH
    if any(points == 0 for _, points, _ in samples):
        return [_NONE] * _EACH
    rate = _core.fit_rate(samples)
    numbers = [rate.point_s, rate.row_s, rate.tile_s, rate.one_lane_factor, samples[0][2] / samples[0][1]]
    return [round(x / _UNIT_S) for x in numbers] if all(map(math.isfinite, numbers)) else [-1] * _EACH
