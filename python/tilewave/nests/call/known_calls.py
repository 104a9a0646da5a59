"""The same call again: it finds what an equal one before has checked and prepared."""

import weakref
from typing import NamedTuple

import numpy as np

from tilewave.context.lru_cache import LruCache
from tilewave.field.field import Field
from tilewave.field.views import is_stale_view

#: Runs of a bound nest or a chain that are known.
MOST_RUNS = 32


class CallKey(NamedTuple):
    """Equal for calls of `run` that have the same arrays, and all else equal.

    Attributes
    ----------
    nests : tuple of Nest
    arrays : tuple of int
        The identity of each array.
    facts : tuple
        What may change of nests, arrays and context, and what else the call says.
    """

    nests: tuple
    arrays: tuple[int, ...]
    facts: tuple

    def __hash__(self):
        return hash(self[:2])  # facts are long, and hold lists

    @classmethod
    def of(cls, nests, context, arguments, *facts):
        """None where a call may be known for no other: an array is none, or no longer what it was."""
        arrays = arrays_of(nests, arguments)
        if (state := _state_of(arrays)) is None:
            return None
        signatures = [nest.signature() for nest in nests]
        own = signatures, state, context._machine_number, context.threads
        return cls(nests, tuple(map(id, arrays)), (own, facts))


def arrays_of(nests, arguments):
    """The array of each name of each nest; None for those that are missing."""
    return [arguments.get(name) for nest in nests for name in nest.arrays]


def in_every_bit(values):
    """Equal for values by name of the same types, and with the same bits."""
    return [(name, value.__class__, repr(value)) for name, value in values.items()]


def _state_of(arrays):
    """What may change of arrays: one may have been given another shape since, or be read-only now; a field may keep
    more of its history. None where something is neither a field nor a NumPy array, or no longer what it was.
    """
    state = []
    for array in arrays:
        if array.__class__ is np.ndarray:
            if array.base is not None and is_stale_view(array):
                return None
            state.append(array.__array_interface__)
        elif array.__class__ is Field and not array.closed:
            state.append(array.history)
        else:
            return None
    return state


def find(context, key):
    """What an equal call needs; None where there was none whose arrays live."""
    call, arrays = (key and context._calls.get(key)) or (None, ())
    for array in arrays:
        if array() is None:
            return None
    return call


def forget_runs(context):
    """Have equal calls look for their plan again: another has been chosen for some of them."""
    for call, _ in context._calls.values():
        call.at_once = None


def keep(context, key, call, arrays):
    """Know a call, which must not have its arrays: they live as long as their owner wants."""
    known = context._calls
    for old in [old for old, (_, arrays) in known.items() if any(array() is None for array in arrays)]:
        known.discard(old)
    known[key] = call, [weakref.ref(array) for array in arrays]


class KnownRuns:
    """Base of what is bound to its arrays, whose runs go to the core at once where an equal one is known.

    It has three local methods: `_prepare_run(*given)` makes a run, an object with `is_current()`, or None where all
    ranks must prepare something; `_run_key(*given)` is equal for equal runs, None for one that is not remembered;
    `_kept()` is what runs keep of the past of fields: they are made for that."""

    def _look_after(self, arrays):
        """Refuse runs at once where one of these arrays has been closed, or is no longer where it was."""
        self._runs, self._kept_then = LruCache(MOST_RUNS), self._kept()
        arrays = list({id(array): array for array in arrays}.values())
        self._fields = [array for array in arrays if isinstance(array, Field)]
        self._views = [array for array in arrays if isinstance(array, np.ndarray) and array.base is not None]

    def _known_run(self, *given):
        """The run with these arguments, which has the context's lock; None where the ranks must look at something
        first. That is the same on every rank, or a rank that finds more to do begins with the same agreement."""
        if not self.context._ranks.quick:
            return None
        try:
            if (kept := self._kept()) != self._kept_then:
                self._runs.clear()
                self._kept_then = kept
            key = self._run_key(*given)
            run = None if key is None else self._runs.get(key)
            if run is None:
                run = self._prepare_run(*given)
                if run is None:
                    return None
                if key is not None:
                    self._runs[key] = run
            for field in self._fields:
                if field.closed:
                    return None
            for array in self._views:
                if is_stale_view(array):
                    return None
            return run if run.is_current() and self.context._lock.acquire(False) else None
        except Exception:  # of what was given: all ranks will find it, and say so
            return None
