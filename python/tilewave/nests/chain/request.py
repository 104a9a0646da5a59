"""What one run of a chain is asked for: how often, until when, with which scalars."""

import dataclasses
import math
import numbers
from typing import Any

import numpy as np

from tilewave import _core
from tilewave.context.collective import plain, where
from tilewave.errors import ConfigError, shown
from tilewave.patterns.function_text import code_text

#: What a run is called among the ranks.
NAME = "tw.Chain.run"


@dataclasses.dataclass
class Request:
    """What one call asks for, checked on this rank.

    Attributes
    ----------
    names : tuple of str
        Of the nests.
    times : int
        Repetitions; with `until` the most.
    every : int
        `until` is looked at after every so many repetitions.
    until : Until or None
    points : Points or None
        Values that are added and recorded after each repetition.
    scalars : list of dict
        For each nest, in place of the bound ones.
    text : str
        The same on all ranks.
    agreed : _core.BoundCall or None
        None: the ranks have agreed on it, and nothing more will be made for it.
    unit : str
        "time steps", or empty.
    looks : tuple of int
        Of one nest: the time steps of a run between two looks of `until`, and of the last run if that has fewer.
    in_blocks, in_schedule : bool
        Whether nothing but `until` is to be done between time steps of one nest in blocks, of nests in one schedule.
    films : int
        The last nests of a time step that are films.
    body : OneSchedule, InBlocks or Separate
    """

    names: tuple
    times: int
    every: int = 1
    until: Any = None
    points: Any = None
    scalars: list = ()
    text: str = ""
    agreed: Any = None
    unit: str = ""
    looks: tuple = ()
    in_blocks: bool = False
    in_schedule: bool = False
    films: int = 0
    body: Any = None
    _environments: list | None = None

    def is_current(self):
        """Return whether the numbers from outside the bodies are those that it was made for."""
        return self.body.is_current()

    def environments(self):
        """Return the addresses of what the kernels of a schedule are given; the request holds what is there."""
        if self._environments is None or self.body.copies_tables:
            self._environments = self.body.environments(self.scalars)
        return [address for _, address in self._environments]


def chain_request(chain, times, until, every, scalars):
    """Check the arguments of a chain's run; local.

    Returns
    -------
    Request
    """
    if times is None and until is not None:
        raise ConfigError("until= was given without times=; allowed: times=, the most repetitions, an integer >= 0")
    until = None if until is None else Until([member.reduce for member in chain._members], until)
    times, every = count_of("times", 1 if times is None else times, 0), count_of("every", every, 1)
    each, points = _of_nests(chain._members, scalars), chain._points_for(times)
    values = ", ".join(f"{name}={value!r}" for name, value in sorted(scalars.items()))
    bodies = ",".join(member.nest.signature()[:12] for member in chain._members)  # with the numbers from outside them
    text = plain(
        f"{chain._called()} {bodies}, times {times}, every {every}, until {until.text if until else 'none'}, "
        f"scalars {values or 'none'}{'' if points is None else points}"
    )
    return Request(chain._names, times, every, until, points, each, text, _core.BoundCall(NAME, text))


class Until:
    """When a run ends before its last repetition.

    Parameters
    ----------
    reductions : list of dict or None
        By nest.
    until : dict or function

    Attributes
    ----------
    ended : bool
        Whether it has ended the run.
    """

    def __init__(self, reductions, until):
        self._function = until if callable(until) else None
        self._limits, self.ended = None, False
        if self._function is not None:
            self.text = code_text(until)  # its answers are compared: what it carries may differ
            return
        names = {name: r for each in reductions for name, r in (each or {}).items()}
        if not isinstance(until, dict) or not until:
            raise ConfigError(
                f"until: given {shown(until)}; "
                "allowed: a dict from names of reductions to the largest values at which the "
                "run ends, or a function of a dict of the reductions' values"
            )
        for name, limit in until.items():
            if name not in names:
                raise ConfigError(
                    f"until: no nest has a reduction {name!r}; allowed: {', '.join(names) or 'none'}, from reduce="
                )
            if names[name].kind.startswith("arg"):
                raise ConfigError(f"until: {name!r} is a place, {names[name].kind}; allowed: max, min and sum")
            if isinstance(limit, bool) or not isinstance(limit, numbers.Real | np.number) or math.isnan(limit):
                raise ConfigError(f"until: {name!r}: given {shown(limit)}; allowed: a number")
        self._limits = dict(until)
        self.text = ", ".join(f"{name} <= {float(limit)!r}" for name, limit in sorted(until.items()))

    def met(self, values, context):
        """Return whether the run ends, the same on every rank. Collective for a function: ranks agree on its answer."""
        if self._limits is not None:
            some = [(values[name], limit) for name, limit in self._limits.items()]
            self.ended = all(value is not None and value <= limit for value, limit in some)
            return self.ended
        error = None
        try:
            self.ended = bool(self._function(values))
        except BaseException as problem:
            error = problem
        context.agree(error, f"until says {self.ended}")
        return self.ended

    def planned(self, decisions, times):
        """Return how many repetitions of at most so many a dry run counts."""
        done = times if decisions.rounds is None else min(decisions.rounds, times)
        decisions.made[where()] = f"`until`: {done} repetitions are counted of at most {times}"
        self.ended = done < times
        return done


#: Repetitions of one run: the core counts them in 64 bits.
MOST_TIMES = 1 << 62


def count_of(name, value, least):
    """Return a number of repetitions, checked."""
    right = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not right or not least <= value <= MOST_TIMES:
        raise ConfigError(f"{name}: given {shown(value)}; allowed: an integer >= {least}, up to 2**62")
    return int(value)


def _of_nests(members, scalars):
    """Of each nest those that it has; checked."""
    known = {name for member in members for name in member.nest.scalars}
    for name in scalars:
        if name not in known:
            raise ConfigError(
                f"no nest of the chain has a scalar {name!r}; allowed: {', '.join(sorted(known)) or 'none'}"
            )
    found = []
    for member in members:
        given = {name: value for name, value in scalars.items() if name in member.nest.scalars}
        if given:
            member.nest.bind_scalars({**member.scalars, **given})
        found.append(given)
    return found
