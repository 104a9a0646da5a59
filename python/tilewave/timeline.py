"""Timelines: what every lane did when, as data, Chrome trace, picture."""
import base64
import functools
import html
import io
from pathlib import Path

import numpy as np

from tilewave import _core
from tilewave.errors import ConfigError

OPS = ("compute", "post_recv", "post_send", "wait", "pack", "unpack", "signal", "await", "combine")
COLOURS = {"computing": "#4c9f70", "packing": "#e0a030", "waiting": "#c8504b", "posting": "#7f7f7f"}
PARTS = {"compute": "computing", "pack": "packing", "unpack": "packing", "combine": "packing", "wait": "waiting", "await": "waiting",
         "post_recv": "posting", "post_send": "posting", "signal": "posting"}
#: Parts of the core, and what they are called.
PART_NAMES = {"fill_s": "fill", "compute_s": "compute", "pack_s": "pack", "post_s": "post", "wait_s": "wait", "hand_over_s": "hand-over",
              "drain_s": "drain", "total_s": "total"}
EVENT = np.dtype([("rank", "i4"), ("lane", "i4"), ("step", "i4"), ("op", "i4"), ("peer", "i4"),
                  ("tag", "i4"), ("send", "i4"), ("slice", "i4"), ("tile", "i4", 4),
                  ("time_step", "i8"), ("bytes", "i8"), ("begin_s", "f8"), ("end_s", "f8")])
REQUEST = np.dtype([("rank", "i4"), ("lane", "i4"), ("peer", "i4"), ("tag", "i4"), ("send", "i4"),
                    ("pad", "i4"), ("bytes", "i8"), ("posted_s", "f8"), ("completed_s", "f8")])


class Timeline:
    """One event a step, of all ranks on rank 0; empty elsewhere.

    Attributes
    ----------
    events : numpy structured array
        rank, lane, step, op (index into `OPS`), peer, tag, send, slice, tile, time_step, bytes,
        begin_s, end_s: seconds since the run began. -1 where a column does not apply.
    requests : numpy structured array
        rank, lane, peer, tag, send, bytes, posted_s, completed_s.
    """

    def __init__(self, core):
        self._core = core

    @functools.cached_property
    def events(self):  # copied when they are asked for: a long run has millions
        return np.frombuffer(self._core.event_bytes, EVENT)

    @functools.cached_property
    def requests(self):
        return np.frombuffer(self._core.request_bytes, REQUEST)

    def split(self):
        """Seconds of each lane by kind of step."""
        return self._core.split()

    def parts(self):
        """Where the time went: averages over all lanes, in seconds, which add up to ``total_s`` (rank 0).

        ``fill_s`` (before a lane's first tile), ``compute_s``, ``pack_s``, ``post_s``, ``wait_s``, ``hand_over_s``, ``drain_s``
        (after its end until the last lane's).
        """
        return _core.parts(self._core)

    def save(self, path):
        """Write the timeline; does nothing on ranks other than 0.

        Parameters
        ----------
        path : str or path
            ``.json``: Chrome trace, for ui.perfetto.dev or chrome://tracing, messages as arrows;
            ``.png``: one bar a lane; ``.html``: the picture with the time split.

        Raises
        ------
        ConfigError
            For another ending.
        """
        self._write(path, {".json": self._json, ".png": lambda: _png(self.draw()), ".html": self._html})

    def save_comparison(self, path, predicted):
        """Write a picture of what was predicted above what was measured, lane by lane; nothing on ranks other than 0.

        Parameters
        ----------
        path : str or path
            ``.png``; ``.html``: the picture with the parts of both.
        predicted : Timeline
            Of the same lanes.

        Raises
        ------
        ConfigError
            For another ending, or a prediction of other lanes.
        """
        def page():
            return _page("Predicted and measured", self.draw_comparison(predicted), ["", "predicted ms", "measured ms"], (
                [name] + [f"{getattr(p, part) * 1e3:.3f}" for p in (predicted.parts(), self.parts())] for part, name in PART_NAMES.items()))

        self._write(path, {".png": lambda: _png(self.draw_comparison(predicted)), ".html": page})

    def _write(self, path, writers):
        path = Path(path)
        if path.suffix not in writers:
            raise ConfigError(f"timeline: {path.name!r} was given; allowed endings: "
                              f"{', '.join(writers)}")
        if len(self.events):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(writers[path.suffix]())

    def _json(self):
        return self._core.chrome_json().encode()

    def _lanes(self):
        return sorted({(int(r), int(l)) for r, l in zip(self.events["rank"], self.events["lane"])})

    def _bars(self, axes, lane, middle, height, scale):
        """What a lane did, one colour for each part."""
        mine = self.events[(self.events["rank"] == lane[0]) & (self.events["lane"] == lane[1])]
        for op, part in PARTS.items():
            some = mine[mine["op"] == OPS.index(op)]
            spans = np.stack([some["begin_s"], some["end_s"] - some["begin_s"]], 1) * scale
            axes.broken_barh(spans, (middle - height / 2, height), color=COLOURS[part], linewidth=0)

    def draw_comparison(self, predicted):
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
        from matplotlib.figure import Figure
        from matplotlib.patches import Patch

        lanes = self._lanes()
        if predicted._lanes() != lanes:
            raise ConfigError(f"timeline: a prediction of {len(predicted._lanes())} lanes was given; allowed: of the {len(lanes)} measured")
        figure = Figure(figsize=(11, 1.6 + 0.8 * len(lanes)), layout="constrained")
        axes = figure.add_subplot()
        longest = max(float(t.events["end_s"].max()) for t in (self, predicted))
        scale, unit = _unit(longest)
        for row, lane in enumerate(lanes):
            predicted._bars(axes, lane, row - 0.2, 0.36, scale)
            self._bars(axes, lane, row + 0.2, 0.36, scale)
        axes.set_yticks([row + d for row in range(len(lanes)) for d in (-0.2, 0.2)],
                        [f"rank {r} lane {l} {what}" for r, l in lanes for what in ("predicted", "measured")], fontsize=8)
        axes.set_xlim(0, longest * scale)
        axes.set_ylim(-0.6, len(lanes) - 0.4)
        axes.invert_yaxis()
        axes.set_xlabel(f"time ({unit})")
        figure.legend(handles=[Patch(color=c, label=name) for name, c in COLOURS.items()], loc="outside upper center", ncols=4,
                      frameon=False, fontsize=9)
        return figure

    def draw(self):
        """A Matplotlib figure: one bar a lane (computing, packing, waiting, posting) and, above each rank's
        lanes, a thin line while a message of it is under way.
        """
        from matplotlib.figure import Figure
        from matplotlib.patches import Patch

        lanes = self._lanes()
        figure = Figure(figsize=(11, 1.6 + 0.55 * len(lanes)), layout="constrained")
        axes = figure.add_subplot()
        scale, unit = _unit(float(self.events["end_s"].max()))
        for row, (rank, lane) in enumerate(lanes):
            self._bars(axes, (rank, lane), row, 0.6, scale)
            pending = self.requests[(self.requests["rank"] == rank) & (self.requests["lane"] == lane)]
            for send, height, colour in ((0, 0.36, "#3060a0"), (1, 0.43, "#8060b0")):
                some = pending[pending["send"] == send]
                spans = np.stack([some["posted_s"], some["completed_s"] - some["posted_s"]], 1) * scale
                axes.broken_barh(spans, (row + height, 0.05), color=colour, linewidth=0)
        axes.set_yticks(range(len(lanes)), [f"rank {r} lane {l}" for r, l in lanes])
        axes.set_ylim(-0.6, len(lanes) - 0.35)
        axes.invert_yaxis()
        axes.set_xlabel(f"time ({unit})")
        figure.legend(
            handles=[*(Patch(color=c, label=name) for name, c in COLOURS.items()),
                     Patch(color="#3060a0", label="receive pending"),
                     Patch(color="#8060b0", label="send pending")],
            loc="outside upper center", ncols=6, frameon=False, fontsize=9)
        return figure

    def _html(self):
        return _page("Tilewave timeline", self.draw(), ["rank", "lane", "compute ms", "pack ms", "wait ms", "post ms", "total ms"], (
            [s.rank, s.lane] + [f"{value * 1e3:.3f}" for value in (s.compute_s, s.pack_s, s.wait_s, s.post_s, s.total_s)]
            for s in self.split()))

    def __repr__(self):
        return f"<tilewave.Timeline {len(self.events)} events, {len(self.requests)} messages>"


def _png(figure):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=120)
    return out.getvalue()


def _page(title, figure, head, rows):
    """A page of HTML: a picture, and a table below it."""
    picture = base64.b64encode(_png(figure)).decode()
    cells = "".join(f"<th>{html.escape(t)}</th>" for t in head)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return (f"<!doctype html><meta charset=utf-8><title>{html.escape(title)}</title>"
            f"<img alt='one bar a lane' src='data:image/png;base64,{picture}'>"
            f"<table border=1 cellpadding=4><tr>{cells}</tr>{body}</table>\n").encode()


def _unit(longest_s):
    for scale, unit in ((1, "s"), (1e3, "ms")):
        if longest_s * scale >= 1:
            return scale, unit
    return 1e6, "µs"
