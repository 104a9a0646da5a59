"""Timelines: what every lane did when, as data, Chrome trace, picture."""

from __future__ import annotations

import functools
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewave import _core, files, units
from tilewave.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tilewave.annotations import Array, FilePath

OPS = ("compute", "post_recv", "post_send", "wait", "pack", "unpack", "signal", "await", "combine")
#: Kinds of steps: colour and operations.
KINDS = {
    "computing": ("#4c9f70", ("compute",)),
    "packing": ("#e0a030", ("pack", "unpack", "combine")),
    "waiting": ("#c8504b", ("wait", "await")),
    "posting": ("#7f7f7f", ("post_recv", "post_send", "signal")),
}
#: Lines below the bars: colour and how far below the middle.
PENDING = {"receive pending": ("#3060a0", 0.36), "send pending": ("#8060b0", 0.43)}
#: Parts of the core, and what they are called.
PART_NAMES = {
    "fill_s": "fill",
    "compute_s": "compute",
    "pack_s": "pack",
    "post_s": "post",
    "wait_s": "wait",
    "hand_over_s": "hand-over",
    "drain_s": "drain",
    "total_s": "total",
}
MESSAGE = "#202020"
FEW_MESSAGES = 250  # more of them would hide the bars
EVENT = np.dtype(
    [(name, "i4") for name in ("rank", "lane", "step", "op", "peer", "tag", "send", "slice")]
    + [("tile", "i4", _core.limits["dims"]), ("wave", "i8"), ("bytes", "i8"), ("begin_s", "f8"), ("end_s", "f8")]
)
REQUEST = np.dtype(
    [(name, "i4") for name in ("rank", "lane", "peer", "tag", "send", "pad")]
    + [("bytes", "i8"), ("posted_s", "f8"), ("completed_s", "f8")]
)


class Timeline:
    """One event a step, of all ranks on rank 0; empty elsewhere.

    Attributes
    ----------
    events : numpy structured array
        rank, lane, step, op (index into `OPS`), peer, tag, send, slice, tile, wave, bytes,
        begin_s, end_s: seconds since the run began. -1 where a column does not apply.
    requests : numpy structured array
        rank, lane, peer, tag, send, bytes, posted_s, completed_s.
    """

    def __init__(self, core: Any, name: str = "") -> None:
        self._core, self._name = core, name

    def __getstate__(self) -> dict[str, Any]:
        return {"_core": self._core, "_name": self._name}

    @functools.cached_property
    def events(self) -> Array:  # copied when they are asked for: a long run has millions
        return np.frombuffer(self._core.event_bytes, EVENT)

    @functools.cached_property
    def requests(self) -> Array:
        return np.frombuffer(self._core.request_bytes, REQUEST)

    @functools.cached_property
    def messages(self) -> Array:
        """numpy.ndarray: rows of `requests`, (count, 2): of each message its send and its receive."""
        return np.frombuffer(self._core.message_bytes(), np.int64).reshape(-1, 2)

    @property
    def title(self) -> str:
        """Return what ran, how long, and on what: pictures and pages have it."""
        return f"{self._name + ': ' if self._name else ''}{self._took()} on {self._where()}"

    def _took(self):
        return units.seconds(float(self.events["end_s"].max(initial=0)))

    def _where(self):
        lanes = self._lanes()
        ranks = len({rank for rank, _ in lanes})
        each = len(lanes) // max(ranks, 1)
        with_lanes = f" with {each} lanes{' each' * (ranks > 1)}" if each > 1 else ""
        return f"{units.count(ranks, 'rank')}{with_lanes}"

    def split(self) -> list[Any]:
        """Seconds of each lane by kind of step."""
        return self._core.split()

    def parts(self) -> _core.Parts:
        """Where the time went: averages over all lanes, in seconds, which add up to ``total_s`` (rank 0).

        ``fill_s`` (before a lane's first tile), ``compute_s``, ``pack_s``, ``post_s``, ``wait_s``, ``hand_over_s``,
        ``drain_s`` (after its end until the last lane's).
        """
        return _core.parts(self._core)

    def save(self, path: FilePath) -> None:
        """Write the timeline; does nothing on ranks other than 0.

        Parameters
        ----------
        path : str or path
            ``.json``: Chrome trace, for ui.perfetto.dev or chrome://tracing, messages as arrows; ``.png``: one bar a
            lane; ``.html``: a page that zooms and names what the pointer is on, without network, and the time split.

        Raises
        ------
        ConfigError
            For another ending.
        """
        self._write(
            path,
            {
                ".json": lambda: self._core.chrome_json().encode(),
                ".png": lambda: files.drawn(self.draw()),
                ".html": self._html,
            },
        )

    def save_comparison(self, path: FilePath, predicted: Timeline) -> None:
        """Write a picture of what was predicted above what was measured, lane by lane; nothing on ranks other than 0.

        Parameters
        ----------
        path : str or path
            ``.png``; ``.html``: a page that zooms, with the parts of both.
        predicted : Timeline
            Of the same lanes.

        Raises
        ------
        ConfigError
            For another ending, or a prediction of other lanes.
        """

        def page():
            self._same_lanes(predicted)
            bars = [
                (f"rank {r} lane {l} {what}", t._of((r, l)))
                for r, l in self._lanes()
                for what, t in (("predicted", predicted), ("measured", self))
            ]
            both = [[getattr(parts, name) for name in PART_NAMES] for parts in (predicted.parts(), self.parts())]
            unit, cells = units.column([*both[0], *both[1]], units.TIMES)
            numbers = html_table(
                zip(PART_NAMES.values(), cells[: len(PART_NAMES)], cells[len(PART_NAMES) :], strict=True),
                ["", f"predicted {unit}", f"measured {unit}"],
            )
            return _page(self._title_of_both(predicted), bars, np.empty((0, 4)), numbers).encode()

        self._write(path, {".png": lambda: files.drawn(self.draw_comparison(predicted)), ".html": page})

    def _write(self, path, writers):
        path = Path(path)
        if path.suffix not in writers:
            raise ConfigError(f"timeline: {path.name!r} was given; allowed endings: {', '.join(writers)}")
        if len(self.events):
            files.save("timeline", path, writers[path.suffix](), folder=True)

    def _lanes(self):
        return sorted({(int(r), int(l)) for r, l in zip(self.events["rank"], self.events["lane"])})

    def _of(self, lane):
        return self.events[(self.events["rank"] == lane[0]) & (self.events["lane"] == lane[1])]

    def _same_lanes(self, predicted):
        if predicted._lanes() != self._lanes():
            raise ConfigError(
                f"timeline: a prediction of {len(predicted._lanes())} lanes was given; allowed: of the "
                f"{len(self._lanes())} measured"
            )

    def _title_of_both(self, predicted):
        """Return the title of a comparison."""
        took = f"predicted (upper bars) {predicted._took()}, measured {self._took()}"
        return f"{self._name + ': ' if self._name else ''}{took} on {self._where()}"

    def _paths(self):
        """Return for each message, (count, 4): the number of its sender's lane, when it was sent, the number of its
        receiver's, when it was there.
        """
        rows = {lane: row for row, lane in enumerate(self._lanes())}
        ends = self.requests[self.messages]
        found = [
            [rows.get((int(r), int(l)), 0) for r, l in zip(side["rank"], side["lane"])]
            for side in (ends[:, 0], ends[:, 1])
        ]
        sent = ends["posted_s"][:, 0]
        return np.stack([found[0], sent, found[1], np.maximum(ends["completed_s"][:, 1], sent)], axis=1).astype("f8")

    def _bars(self, axes, lane, middle, height, scale, kinds=KINDS):
        """Draw what a lane did, one colour for each kind of steps."""
        events = self._of(lane)
        for colour, names in kinds.values():
            some = events[np.isin(events["op"], [OPS.index(name) for name in names])]
            _spans(axes, some["begin_s"], some["end_s"], middle - height / 2, height, colour, scale)

    def draw_comparison(self, predicted: Timeline) -> Figure:
        """A Matplotlib figure: for each lane, the bar that was predicted above the one that was measured.

        Parameters
        ----------
        predicted : Timeline
            Of the same lanes.

        Raises
        ------
        ConfigError
            For a prediction of other lanes.
        """
        self._same_lanes(predicted)
        lanes = self._lanes()
        figure = _figure(figsize=(11, 1.6 + 0.8 * len(lanes)), layout="constrained")
        axes = figure.add_subplot()
        longest = max(float(t.events["end_s"].max()) for t in (self, predicted))
        scale, unit = _unit(longest)
        for row, lane in enumerate(lanes):
            predicted._bars(axes, lane, row - 0.2, 0.36, scale)
            self._bars(axes, lane, row + 0.2, 0.36, scale)
        rows = [row + d for row in range(len(lanes)) for d in (-0.2, 0.2)]
        name_rows(axes, rows, [f"rank {r} lane {l} {what}" for r, l in lanes for what in ("predicted", "measured")], 8)
        axes.set_xlim(0, longest * scale)
        axes.set_xlabel(f"time ({unit})")
        axes.set_title(self._title_of_both(predicted), fontsize=11)
        legend(figure, KINDS)
        return figure

    def draw(self) -> Figure:
        """A Matplotlib figure, which a notebook shows: one bar a lane (computing, packing, waiting, posting); below
        each bar a thin line while a message of its lane is pending; where messages are few, a line for each from its
        send to its receive.

        Returns
        -------
        matplotlib.figure.Figure
            To save: ``figure.savefig("timeline.png")``. Empty on ranks other than 0.
        """
        from matplotlib.lines import Line2D

        lanes = self._lanes()
        figure = _figure(figsize=(11, 1.6 + 0.55 * len(lanes)), layout="constrained")
        axes = figure.add_subplot()
        scale, unit = _unit(float(self.events["end_s"].max(initial=0)))
        paths = self._paths() if len(self.messages) <= FEW_MESSAGES else ()
        for row, (rank, lane) in enumerate(lanes):
            self._bars(axes, (rank, lane), row, 0.6, scale)
            pending = self.requests[(self.requests["rank"] == rank) & (self.requests["lane"] == lane)]
            for send, (colour, height) in enumerate(PENDING.values()):
                some = pending[pending["send"] == send]
                _spans(axes, some["posted_s"], some["completed_s"], row + height, 0.05, colour, scale)
        line = {"color": MESSAGE, "linewidth": 0.9, "marker": "o", "markersize": 2}
        for sender, sent, receiver, there in paths:
            axes.plot([sent * scale, there * scale], [sender, receiver], **line)
        name_rows(axes, range(len(lanes)), [f"rank {r} lane {l}" for r, l in lanes])
        axes.set_xlabel(f"time ({unit})")
        axes.set_title(self.title, fontsize=11)
        legend(figure, KINDS | PENDING, *([Line2D([], [], label="message", **line)] if len(paths) else []))
        return figure

    def _html(self):
        run_s, lanes = self.parts().total_s, self.split()
        times = [
            [s.compute_s, s.pack_s, s.wait_s, s.post_s, max(run_s - s.total_s, 0.0), max(run_s, s.total_s)]
            for s in lanes
        ]
        unit, cells = units.column(itertools.chain(*times), units.TIMES)
        kinds = ("compute", "pack", "wait", "post", "idle", "run")
        numbers = html_table(
            ([s.rank, s.lane, *cells[k * len(kinds) : (k + 1) * len(kinds)]] for k, s in enumerate(lanes)),
            ["rank", "lane", *(f"{kind} {unit}" for kind in kinds)],
        )
        return _page(
            self.title,
            [(f"rank {r} lane {l}", self._of((r, l))) for r, l in self._lanes()],
            self._paths(),
            numbers,
        ).encode()

    def _repr_html_(self):
        from html import escape

        if len(self.events) == 0:
            return escape(repr(self))
        # A frame separates the page's names and styles.
        height = 260 + 30 * len(self._lanes()) + 28 * len(self.split())
        text = escape(self._html().decode())
        return f"<iframe srcdoc=\"{text}\" style='width:100%;height:{height}px;border:0'></iframe>"

    def __repr__(self) -> str:
        return f"<tilewave.Timeline {len(self.events)} events, {len(self.requests)} messages>"


def _spans(axes, begin_s, end_s, low, height, colour, scale):
    """Bars from some times to others, from `low` up."""
    axes.broken_barh(np.stack([begin_s, end_s - begin_s], 1) * scale, (low, height), color=colour, linewidth=0)


def name_rows(axes, rows, labels, fontsize=None):
    """Name lanes, the first one on top."""
    axes.set_yticks(rows, labels, fontsize=fontsize)
    axes.set_ylim(-0.6, max(rows, default=0) + 0.65)
    axes.invert_yaxis()


def legend(figure, kinds, *more):
    """Say above a figure what the colours of kinds mean, and other marks."""
    from matplotlib.patches import Patch

    handles = [*(Patch(color=colour, label=name) for name, (colour, _) in kinds.items()), *more]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False, fontsize=9)


def _figure(**options):
    """A figure that notebooks show, though pyplot knows nothing of it."""
    from matplotlib.figure import Figure

    class Picture(Figure):
        def _repr_png_(self):
            return files.drawn(self)

    return Picture(**options)


def html_table(rows, head=()):
    """Rows of text as a table of HTML; without a head the first cell of each row is its name, and all are on the left,
    whatever a notebook does with others.
    """
    from html import escape  # in notebooks and pages alone

    cells = "".join(f"<th>{escape(str(text))}</th>" for text in head)
    first = "td" if head else "th style='text-align:left;white-space:nowrap'"
    others = "td" if head else "td style='text-align:left'"
    body = "".join(
        "<tr>"
        + "".join(
            f"<{kind}>{escape(str(cell))}</{kind[:2]}>" for cell, kind in zip(row, (first, *[others] * (len(row) - 1)))
        )
        + "</tr>"
        for row in map(list, rows)
    )
    return f"<table>{f'<tr>{cells}</tr>' if head else ''}{body}</table>"


def _page(title, bars, paths, table):
    from tilewave.timeline.page import page

    parts = [(name, colour, {OPS.index(op) for op in ops}) for name, (colour, ops) in KINDS.items()]
    return page(title, bars, paths, parts, OPS, table)


def _unit(longest_s):
    """Return what seconds are multiplied with for an axis, and its unit."""
    name, size = units.unit_of([longest_s], units.TIMES)
    return 1 / size, name
