"""Runs that go to the core at once, as an equal one was prepared before: what bound nests and chains share."""

import numpy as np

from tilewave.context.lru_cache import LruCache
from tilewave.field.field import Field
from tilewave.field.views import is_stale_view

#: Runs whose arguments are remembered with all that they need.
MOST_CALLS = 32


class PreparedCalls:
    """Base of classes with three local methods: `_prepare_call(*given)` makes a call, an object with `is_current()`, or
    None where all ranks must prepare something; `_call_key(*given)` is equal for equal calls, None for one that is not
    remembered; `_kept()` is what calls keep of the past of fields: they are made for that."""

    def _look_after(self, arrays):
        """Refuse calls at once where one of these arrays has been closed, or is no longer where it was."""
        self._calls, self._kept_then = LruCache(MOST_CALLS), self._kept()
        arrays = list({id(array): array for array in arrays}.values())
        self._fields = [array for array in arrays if isinstance(array, Field)]
        self._views = [array for array in arrays if isinstance(array, np.ndarray) and array.base is not None]

    def _prepared_call(self, *given):
        """The call with these arguments, which has the context's lock; None where the ranks must look at something
        first. That is the same on every rank, or a rank that finds more to do begins with the same agreement."""
        if self.context._dry_run is not None or self.context._verify:
            return None
        try:
            if (kept := self._kept()) != self._kept_then:
                self._calls.clear()
                self._kept_then = kept
            key = self._call_key(*given)
            call = None if key is None else self._calls.get(key)
            if call is None:
                call = self._prepare_call(*given)
                if call is None:
                    return None
                if key is not None:
                    self._calls[key] = call
            for field in self._fields:
                if field.closed:
                    return None
            for array in self._views:
                if is_stale_view(array):
                    return None
            return call if call.is_current() and self.context._lock.acquire(False) else None
        except Exception:  # of what was given: all ranks will find it, and say so
            return None
