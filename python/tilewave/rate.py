"""The rate of a body: measured on tiles as a plan cuts them, the same numbers on every rank."""
import dataclasses
import hashlib
import math

from tilewave import _core

#: Seconds that the samples of one body may take, about; and those of one that has few points.
BUDGET_S, LEAST_BUDGET_S = 0.1, 0.03
_UNIT_S = 1e-15  # of the numbers that ranks exchange; of the part, too
_NONE = 2**63 - 1
_EACH = 5  # numbers of a rank: the rate's, and what it makes of a tile with long rows, a point


@dataclasses.dataclass(frozen=True)
class Rate:
    """Seconds that a kernel takes on one lane while all compute: a point, a row beside its points, a tile beside its rows.

    Attributes
    ----------
    point_s, row_s, tile_s : float
    note : str
        Where they are from.
    alone : float
        The part of these times where one lane of each rank computes; 0: not measured.
    lanes : int
        Of a rank, that the rest was measured with.
    """

    point_s: float
    row_s: float
    tile_s: float
    note: str
    alone: float = 0.0
    lanes: int = 1

    def core(self):
        """The core's."""
        return _core.KernelRate(self.point_s, self.row_s, self.tile_s, alone=self.alone, lanes=self.lanes)

    def number(self):
        """Equal where the rates are, as a positive integer."""
        text = repr((self.point_s, self.row_s, self.tile_s, self.alone, self.lanes))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "little") + 1


def measured_rate(context, key, sample, lanes=1):
    """The rate for what `key` stands for; collective.

    Parameters
    ----------
    context : Context
    key : hashable
        What was measured before is taken again, where all ranks have the same. None: this rank has failed, and only
        takes part.
    sample : callable
        Gives (rows, points, seconds) of tiles with long rows, short rows and few points, of this rank, and perhaps of long rows
        on one lane alone; an empty list where the body raised. None: this rank has nothing to measure.
    lanes : int
        Of a rank, that are measured at once.

    Returns
    -------
    Rate
        Of the rank that takes longest: the others wait for it. Where the body raised on some rank, the machine's number for any body.
    """
    known = context._rates.get(key)
    number = known.number() if known else 0
    low, high = context._core.allreduce_min([number, -number])
    if number > 0 and low == -high:
        return known
    values = [_NONE] * (_EACH * context.size)
    context._core.barrier()  # ranks on one host share its memory: they measure at the same time
    if sample is not None and key is not None:
        values[_EACH * context.rank:_EACH * (context.rank + 1)] = _numbers(sample)
    values = context._core.allreduce_min(values)
    found = [values[i:i + _EACH] for i in range(0, len(values), _EACH) if values[i] != _NONE]
    if not found or any(x < 0 for numbers in found for x in numbers):
        why = "no rank has a point to compute" if not found else "the body raised on the values that it was measured with"
        rate = Rate(context._core.machine().point_s, 0.0, 0.0, f"not measured: {why}; a number for any body")
    else:
        point, row, tile, alone, _ = (number * _UNIT_S for number in max(found, key=lambda numbers: numbers[-1]))
        rate = Rate(point, row, tile, f"measured on {len(found)} rank(s) at once", alone, lanes)
    if key is not None:
        context._rates[key] = rate
    return rate


def _numbers(sample):
    """This rank's numbers in units that add up alike everywhere; -1: the body raised; none without tiles."""
    try:
        samples = sample()
    except Exception:  # what is wrong with the arguments was said before; here it only costs the measurement
        samples = []
    if not samples:
        return [-1] * _EACH
    if any(points == 0 for _, points, _ in samples):
        return [_NONE] * _EACH
    rate = _core.fit_rate(samples)
    numbers = [rate.point_s, rate.row_s, rate.tile_s, rate.alone, samples[0][2] / samples[0][1]]
    return [round(x / _UNIT_S) for x in numbers] if all(map(math.isfinite, numbers)) else [-1] * _EACH
