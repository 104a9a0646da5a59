"""This file has what a checkpoint has cost."""

from __future__ import annotations

from dataclasses import dataclass

from tilewave import units


@dataclass(frozen=True)
class CheckpointReport:
    """A checkpoint that was written, and its cost; the same on every rank.

    Attributes
    ----------
    path : str
        Its folder.
    step : int
    bytes : int
        Of all its files.
    time_s : float
        What the call took.
    share : float or None
        That time, as a share of the time since the end of the last checkpoint or of `tilewave.resume`, or since the
        first call with this path; None of a first call.
    share_of_run : float
        The time of all checkpoints, as a share of the time since `tilewave.resume`, or since the first call.
    next_s : float or None
        Seconds of work until the next one, as `every` says, or as "auto" finds; None without `every`.
    """

    path: str
    step: int
    bytes: int
    time_s: float
    share: float | None
    share_of_run: float
    next_s: float | None

    def __str__(self) -> str:
        share = "" if self.share is None else f", {100 * self.share:.1f} % of the time since the last"
        run = "" if self.share is None else f", all {100 * self.share_of_run:.1f} % of the run"
        after = "" if self.next_s is None else f"; the next after {units.seconds(self.next_s)}"
        cost = f"{units.size(self.bytes)} in {units.seconds(self.time_s)}"
        return f"checkpoint of step {self.step}: {cost}{share}{run}{after}"
