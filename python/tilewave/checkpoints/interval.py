"""How often a program saves: what it has spent on checkpoints, and the interval at which its time is least."""

from __future__ import annotations

import dataclasses
import math
import os
import re

from tilewave.errors import ConfigError, shown
from tilewave.launch.variables import LIVED

AUTO = "auto"
VARIABLE = "TILEWAVE_MTBF"  # environment variable: mean time between failures of the whole run
BETWEEN_FAILURES = "24 h"
LAST = 3  # checkpoints whose mean cost is that of the next
_UNITS = {"s": 1, "min": 60, "h": 3600}


@dataclasses.dataclass
class Clock:
    """When a program has saved to a path, on this process' clock.

    Attributes
    ----------
    since_s : float
        The first call, or `resume`.
    last_s : float or None
        The end of the last checkpoint, or of `resume`; else the first call with `every`.
    costs_s : list of float
        What each checkpoint since has taken.
    """

    since_s: float
    last_s: float | None = None
    costs_s: list[float] = dataclasses.field(default_factory=list)

    def best_s(self, between_failures_s: float) -> float:
        """Seconds of work until the next checkpoint: 0 until there is a first one, which is measured."""
        last = self.costs_s[-LAST:]
        return best_s(sum(last) / len(last), between_failures_s) if last else 0.0

    def share_of_run(self, now_s: float) -> float:
        """All checkpoints' time, of the time until now."""
        return sum(self.costs_s) / max(now_s - self.since_s, 1e-9)


def best_s(cost_s: float, between_failures_s: float) -> float:
    """Seconds of work between two checkpoints for which a program ends first, if failures come at random.

    A restart of R seconds makes the whole time exp(R / F) times as long, whatever the interval is.

    J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps, Future Generation Computer
    Systems 22 (2006), 303-312; its first term is that of J. W. Young, Communications of the ACM 17 (1974), 530-531.
    """
    x = cost_s / (2 * between_failures_s)
    if x >= 1:
        return between_failures_s
    return math.sqrt(2 * cost_s * between_failures_s) * (1 + math.sqrt(x) / 3 + x / 9) - cost_s


def between_failures_s() -> float:
    """Return the mean time between failures: as the environment has it, or as launches of the program have lived.

    Raises
    ------
    ConfigError
    """
    lived = os.environ.get(LIVED)
    given = os.environ.get(VARIABLE) or (f"{lived} s" if lived else BETWEEN_FAILURES)
    if not (seconds := _seconds(given)):
        raise ConfigError(f"checkpoint: {VARIABLE}={shown(given)}; allowed: a time above 0, as '30 min' or '24 h'")
    return seconds


def every_s(every: float | str) -> float:
    """The seconds of `every`, which is not "auto".

    Raises
    ------
    ConfigError
    """
    seconds = _seconds(every) if isinstance(every, str) else every
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds < math.inf:
        return float(seconds)
    raise ConfigError(
        f"checkpoint: every={shown(every)} was given; allowed: seconds, or as '30 s', '10 min', '2 h', or 'auto'"
    )


def _seconds(text):
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|min|h)\s*", text)
    return float(match[1]) * _UNITS[match[2]] if match else None
