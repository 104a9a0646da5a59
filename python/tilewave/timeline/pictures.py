"""One picture of several runs: what was predicted above what was measured, a line for each message."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewave import files, units
from tilewave.errors import ConfigError, shown
from tilewave.timeline.timeline import Timeline, _figure, _unit, legend, name_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tilewave.annotations import FilePath

#: As in wolfmann2010: light where a lane computes, dark where it is inside MPI; signals and awaits count as waiting.
SHADES = {
    "computing": ("#b9dcc3", ("compute",)),
    "packing": ("#e6b95c", ("pack", "unpack", "combine")),
    "inside MPI": ("#33475b", ("wait", "await", "post_recv", "post_send", "signal")),
}
MESSAGE = "#b03030"
#: So many lines are drawn in full; more become fainter, so that the bars stay visible.
CLEAR_LINES = 60


def save_timelines(path: FilePath, runs: Mapping[str, Any]) -> None:
    """Write one picture of several runs side by side, on one scale of time: what was predicted above what was measured,
    a bar for each lane, a line for each message from its send to its receive. Does nothing on ranks other than 0.

    Parameters
    ----------
    path : str or path
        ``.png``.
    runs : dict
        From the name of a run to its report, of whatever was run, or to a `Timeline`.

    Raises
    ------
    ConfigError
        For another ending, or what is no run.
    """
    if not isinstance(path, str | os.PathLike):
        raise ConfigError(f"save_timelines: path: given {shown(path)}; allowed: a path that ends with .png")
    path = Path(path)
    if path.suffix != ".png":
        raise ConfigError(f"save_timelines: {path.name!r} was given; allowed endings: .png")
    figure = draw_timelines(runs)
    if figure is not None:
        files.save("save_timelines", path, files.drawn(figure), folder=True)


def draw_timelines(runs):
    """The picture of `save_timelines` as a Matplotlib figure; None on ranks other than 0.

    Parameters
    ----------
    runs : dict

    Returns
    -------
    matplotlib.figure.Figure or None

    Raises
    ------
    ConfigError
        For what is no run.
    """
    from matplotlib.lines import Line2D

    if not isinstance(runs, dict) or not runs:
        raise ConfigError(f"save_timelines: runs: given {runs!r:.60}; allowed: a dict of reports or timelines by name")
    found = {str(name): _both(name, run) for name, run in runs.items()}
    if not any(len(measured.events) for _, measured in found.values()):
        return None
    rows = [("predicted", 0), ("measured", 1)] if any(both[0] is not None for both in found.values()) else [("", 1)]
    lanes = max(len(timeline._lanes()) for both in found.values() for timeline in both if timeline is not None)
    longest = max(_end(timeline) for both in found.values() for timeline in both if timeline is not None)
    scale, unit = _unit(longest)
    size = (max(6.0, 5.0 * len(found)), 1.2 + len(rows) * (0.8 + 0.35 * lanes))
    figure = _figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(rows), len(found), sharex=True, squeeze=False)
    for column, (name, both) in enumerate(found.items()):
        for row, (what, which) in enumerate(rows):
            axes, timeline = grid[row, column], both[which]
            if timeline is None:
                axes.set_axis_off()
                continue
            _draw(axes, timeline, scale)
            axes.set_title(
                f"{name}: {what} {units.number(_end(timeline) * scale)} {unit}".replace(":  ", ": "), fontsize=10
            )
        grid[-1, column].set_xlabel(f"time ({unit})")
    grid[0, 0].set_xlim(0, longest * scale)
    legend(figure, SHADES, Line2D([], [], color=MESSAGE, linewidth=0.9, label="message"))
    return figure


def _both(name, run):
    """Return what was predicted, or None, and what was measured."""
    if isinstance(run, Timeline):
        return None, run
    measured = getattr(run, "timeline", None)
    if not isinstance(measured, Timeline):
        raise ConfigError(f"save_timelines: {name}: given {type(run).__name__}; allowed: a report or a Timeline")
    prediction = getattr(run, "prediction", None) or getattr(run, "predicted", None)
    return (getattr(prediction, "timeline", None) if len(measured.events) else None), measured


def _end(timeline):
    return float(timeline.events["end_s"].max(initial=0))


def _draw(axes, timeline, scale):
    from matplotlib.collections import LineCollection

    lanes = timeline._lanes()
    for row, lane in enumerate(lanes):
        timeline._bars(axes, lane, row, 0.6, scale, SHADES)
    paths = timeline._paths()
    if len(paths):
        lines = np.stack([paths[:, [1, 0]] * [scale, 1], paths[:, [3, 2]] * [scale, 1]], axis=1)
        faint = max(0.15, min(1.0, CLEAR_LINES / len(paths)))
        axes.add_collection(LineCollection(lines, colors=MESSAGE, linewidths=0.8, alpha=faint))
    several = len({lane for _, lane in lanes}) > 1
    name_rows(axes, range(len(lanes)), [f"rank {r}" + f" lane {l}" * several for r, l in lanes], 8)
