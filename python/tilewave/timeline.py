"""Timelines: what every lane did when, as data, Chrome trace, picture."""
import base64
import html
import io
from pathlib import Path

import numpy as np

from tilewave.errors import ConfigError

OPS = ("compute", "post_recv", "post_send", "wait", "pack", "unpack", "signal", "await")
COLOURS = {"computing": "#4c9f70", "packing": "#e0a030", "waiting": "#c8504b"}
PARTS = {"compute": "computing", "pack": "packing", "unpack": "packing", "wait": "waiting",
         "await": "waiting"}
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
        self.events = np.frombuffer(core.event_bytes, EVENT)
        self.requests = np.frombuffer(core.request_bytes, REQUEST)

    def split(self):
        """Seconds of each lane by kind of step."""
        return self._core.split()

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
        path = Path(path)
        writers = {".json": self._json, ".png": self._png, ".html": self._html}
        if path.suffix not in writers:
            raise ConfigError(f"timeline: {path.name!r} was given; allowed endings: "
                              f"{', '.join(writers)}")
        if len(self.events):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(writers[path.suffix]())

    def _json(self):
        return self._core.chrome_json().encode()

    def _png(self):
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        figure = self.draw()
        FigureCanvasAgg(figure)
        out = io.BytesIO()
        figure.savefig(out, format="png", dpi=120)
        return out.getvalue()

    def draw(self):
        """A Matplotlib figure: one bar a lane (computing, packing, waiting) and, above each rank's
        lanes, a thin line while a message of it is under way.
        """
        from matplotlib.figure import Figure
        from matplotlib.patches import Patch

        lanes = sorted({(int(r), int(l)) for r, l in zip(self.events["rank"], self.events["lane"])})
        figure = Figure(figsize=(11, 1.6 + 0.55 * len(lanes)), layout="constrained")
        axes = figure.add_subplot()
        scale, unit = _unit(float(self.events["end_s"].max()))
        for row, (rank, lane) in enumerate(lanes):
            mine = self.events[(self.events["rank"] == rank) & (self.events["lane"] == lane)]
            for op, part in PARTS.items():
                some = mine[mine["op"] == OPS.index(op)]
                spans = np.stack([some["begin_s"], some["end_s"] - some["begin_s"]], 1) * scale
                axes.broken_barh(spans, (row - 0.3, 0.6), color=COLOURS[part], linewidth=0)
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
            loc="outside upper center", ncols=5, frameon=False, fontsize=9)
        return figure

    def _html(self):
        picture = base64.b64encode(self._png()).decode()
        rows = "".join(
            f"<tr><td>{s.rank}</td><td>{s.lane}</td>" + "".join(
                f"<td>{value * 1e3:.3f}</td>"
                for value in (s.compute_s, s.pack_s, s.wait_s, s.post_s, s.total_s)) + "</tr>"
            for s in self.split())
        head = "".join(f"<th>{html.escape(t)}</th>" for t in (
            "rank", "lane", "compute ms", "pack ms", "wait ms", "post ms", "total ms"))
        return (f"<!doctype html><meta charset=utf-8><title>Tilewave timeline</title>"
                f"<img alt='one bar a lane' src='data:image/png;base64,{picture}'>"
                f"<table border=1 cellpadding=4><tr>{head}</tr>{rows}</table>\n").encode()

    def __repr__(self):
        return f"<tilewave.Timeline {len(self.events)} events, {len(self.requests)} messages>"


def _unit(longest_s):
    for scale, unit in ((1, "s"), (1e3, "ms")):
        if longest_s * scale >= 1:
            return scale, unit
    return 1e6, "µs"
