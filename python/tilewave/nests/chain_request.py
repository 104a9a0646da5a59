"""What one run of a chain is asked for: how often, until when, with which scalars."""

import math
import numbers

import numpy as np

from tilewave import _core
from tilewave.context.collective import plain
from tilewave.errors import ConfigError, shown
from tilewave.patterns.function_text import code_text

#: What a run is called among the ranks.
NAME = "tw.Chain.run"


class Request:
    """The arguments of one run, checked on this rank.

    Attributes
    ----------
    times : int
    every : int
    until : Until or None
    scalars : list of dict
        Of each nest, in place of the bound ones.
    text : str
        What must be equal on all ranks.
    """

    def __init__(self, chain, times, until, every, scalars):
        if times is None and until is not None:
            raise ConfigError("until= was given without times=; allowed: times=, the most repetitions, an integer >= 0")
        self.until = None if until is None else Until(chain.nests, until)
        self.times = _count("times", 1 if times is None else times, 0)
        self.every = _count("every", every, 1)
        self._given = scalars
        self.scalars = _of_nests(chain.nests, scalars)
        values = ", ".join(f"{name}={value!r}" for name, value in sorted(scalars.items()))
        bodies = ",".join(bound.nest.signature()[:12] for bound in chain.nests)  # with the numbers from outside them
        self.text = plain(
            f"{chain._called()} {bodies}, times {self.times}, every {self.every}, "
            f"until {self.until.text if self.until else 'none'}, scalars {values or 'none'}"
        )
        self.agreed = _core.BoundCall(NAME, self.text)
        self.body, self._bounds, self._environments = None, chain.nests, None

    def of(self, bound):
        """The scalars of one nest."""
        return self.scalars[self._bounds.index(bound)]

    def is_current(self):
        """Whether the numbers from outside the bodies are those that it was made for."""
        return self.body.is_current()

    def environments(self):
        """Addresses of what the kernels of a schedule are given; the request holds what is there."""
        if self._environments is None:
            pairs = zip(self.body.variants, self.scalars, strict=True)
            self._environments = [variant.environment(scalars) for variant, scalars in pairs]
        return [address for _, address in self._environments]


class Until:
    """When a run ends before its last repetition."""

    def __init__(self, bounds, until):
        self._function = until if callable(until) else None
        self._limits = None
        if self._function is not None:
            self.text = code_text(until)  # its answers are compared: what it carries may differ
            return
        names = {name: r for bound in bounds for name, r in (bound._reduce or {}).items()}
        if not isinstance(until, dict) or not until:
            raise ConfigError(
                f"until: given {shown(until)}; "
                "allowed: a dict from names of reductions to the largest values at which the "
                "run ends, or a function of a dict of the reductions' values"
            )
        for name, limit in until.items():
            if name not in names:
                raise ConfigError(
                    f"until: no nest of the chain has a reduction {name!r}; allowed: {', '.join(names) or 'none'}, "
                    "from reduce= of tilewave.bind"
                )
            if names[name].kind.startswith("arg"):
                raise ConfigError(f"until: {name!r} is a place, {names[name].kind}; allowed: max, min and sum")
            if isinstance(limit, bool) or not isinstance(limit, numbers.Real | np.number) or math.isnan(limit):
                raise ConfigError(f"until: {name!r}: given {shown(limit)}; allowed: a number")
        self._limits = dict(until)
        self.text = ", ".join(f"{name} <= {float(limit)!r}" for name, limit in sorted(until.items()))

    def met(self, values, context):
        """Whether the run ends, the same on every rank. Collective for a function: ranks agree on its answer."""
        if self._limits is not None:
            return all(values[name] is not None and values[name] <= limit for name, limit in self._limits.items())
        error, ends = None, False
        try:
            ends = bool(self._function(values))
        except BaseException as problem:
            error = problem
        context.agree(error, f"until says {ends}")
        return ends


#: Repetitions of one run: the core counts them in 64 bits.
MOST_TIMES = 1 << 62


def _count(name, value, least):
    right = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not right or not least <= value <= MOST_TIMES:
        raise ConfigError(f"{name}: given {shown(value)}; allowed: an integer >= {least}, up to 2**62")
    return int(value)


def _of_nests(bounds, scalars):
    """Of each nest those that it has; checked."""
    known = {name for bound in bounds for name in bound.nest.scalars}
    for name in scalars:
        if name not in known:
            raise ConfigError(
                f"no nest of the chain has a scalar {name!r}; allowed: {', '.join(sorted(known)) or 'none'}"
            )
    found = []
    for bound in bounds:
        given = {name: value for name, value in scalars.items() if name in bound.nest.scalars}
        if given:
            bound.nest.bind_scalars({**bound._scalars, **given})
        found.append(given)
    return found
