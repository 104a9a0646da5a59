"""What a run of a matrix schedule is predicted to take, played when it is asked for."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from tilewave import _core
from tilewave.errors import ConfigError
from tilewave.timeline.parts import Parts, Played, Predicted

if TYPE_CHECKING:
    from typing import Any

    from tilewave.annotations import FilePath


class Play:
    """A prediction to be played; called it gives a `Predicted`.

    Parameters
    ----------
    schedule_of : function
        Of a rank: its schedule.
    ranks : int
    machine : Machine
        Of the core.
    rates_of : function
        Of the schedules of all ranks: the rates of their operations.
    threads : int
        Of each rank; more lanes take turns.
    """

    def __init__(self, schedule_of, ranks, machine, rates_of, threads=0):
        self._given = schedule_of, ranks, machine, rates_of, threads

    @functools.cached_property
    def _found(self):
        schedule_of, ranks, machine, rates_of, threads = self._given
        parts = [schedule_of(rank) for rank in range(ranks)]
        found = _core.predict_works(parts, machine, [_core.KernelRate()], rates_of(parts), threads)
        return Predicted(found.time_s, Parts.of(found.parts), Played(found.timeline))

    def __call__(self):
        return self._found


class Foretold:
    """What reports of runs of matrix schedules have in common: `_play` and `timeline`."""

    @property
    def prediction(self) -> Predicted | None:
        """Predicted or None: ``time_s``, ``parts`` and the ``timeline`` that was to be expected, redistributions left
        out. Played when it is first asked for; on rank 0, None elsewhere.
        """
        return self._play() if self._play is not None else None

    def save_timeline(self, path: FilePath) -> None:
        """Write what was predicted above what was measured, lane by lane; nothing on ranks other than 0.

        Parameters
        ----------
        path : str or path
            ``.png``; ``.html``: the picture with the parts of both.

        Raises
        ------
        ConfigError
            For another ending, or where nothing was predicted.
        """
        if len(self.timeline.events) == 0:
            return
        if self._play is None:
            raise ConfigError("timeline: a report that was pickled has no prediction; allowed: timeline.save")
        self.timeline.save_comparison(path, self.prediction.timeline)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_play": None}  # schedules and rates stay where they are
