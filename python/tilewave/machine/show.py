"""A machine for people: tables and pictures."""

import math

from tilewave import files
from tilewave.plan.sentence import weights_of
from tilewave.units import BYTES, RATES, TIMES, cells, count, rate, seconds, size


def _rates(byte_s):
    """A column of seconds a byte, as bytes a second."""
    return cells((1 / value if value > 0 else math.inf for value in byte_s), RATES)


def _columns(*columns):
    return list(zip(*columns, strict=True))


def _part(value):
    return f"{100 * value:.0f} %"


def _sizes(values):
    return ", ".join(map(size, values)) or "-"


LINK_ROWS = (
    ("latency", "latency_s", seconds),
    ("post of a send", "send_s", seconds),
    ("post of a receive", "receive_s", seconds),
    ("stream", "byte_s", rate),
    ("ahead of the rate", "burst_bytes", size),
    ("without being asked", "eager_bytes", size),
    ("CPU a byte", "busy_byte_s", seconds),
    ("hidden, polled", "hidden_polled", _part),
    ("hidden, not polled", "hidden_unpolled", _part),
)


def tables(m):
    """(title, heads, rows of text): all that `str` and the command line show."""
    spread = {name: f"± {50 * value:.0f} %" for name, value in m.spread.items()}
    names = {
        "step_s": "step of a schedule",
        "hand_over_s": "hand-over between lanes",
        "poll_s": "poll that finds nothing",
    }
    times = cells((getattr(m, name) for name in names), TIMES)
    rows = [(label, time, spread.get(name, "")) for (name, label), time in zip(names.items(), times, strict=True)]
    if m.speeds:
        rows.append(("CPUs' speeds by rank", weights_of(m.speeds), spread.get("speeds", "")))
    yield _title(m), ("a rank", "", "spread"), rows
    kinds = [(name, link) for name, link in (("same_host", m.same_host), ("other_host", m.other_host)) if link]
    if kinds:
        heads = ("a message to", *(text for name, _ in kinds for text in (name.replace("_", " "), "spread")))
        rows = [_row(kinds, spread, *what) for what in LINK_ROWS]
        rows.append(("protocol changes at", *(text for _, link in kinds for text in (_sizes(link.breaks_bytes), ""))))
        yield "", heads, rows
    for name, link in kinds:
        yield from _of_link(name.replace("_", " "), link)
    if m.network is not None:
        yield "", ("network", ""), [(m.network.topology, str(m.network).partition(": ")[2])]
    if m.memory:
        lanes = sorted({1, len(m.memory), *(2**k for k in range(20) if 2**k <= len(m.memory))})
        rates = (_rates(m.memory[n - 1].flat().at(x) for x in m.memory[0].x) for n in lanes)
        heads = ("a lane's bytes", *(count(n, "busy lane") for n in lanes))
        yield "", heads, _columns(cells(m.memory[0].x, BYTES), *rates)
    if m.copy_byte_s.x:
        rows = _columns(cells(m.copy_byte_s.x, BYTES), _rates(m.copy_byte_s.y))
        yield "", ("bytes next to each other", "packing"), rows
    if m.kernels:
        times = (cells((k[key] for k in m.kernels.values()), TIMES) for key in ("point_s", "row_s", "tile_s"))
        tiles = ["x".join(map(str, k.get("tile", ()))) for k in m.kernels.values()]
        yield "", ("kernel", "a point", "a row", "a tile", "tiles"), _columns(m.kernels, *times, tiles)


def _of_link(name, link):
    c = link.transfer_s
    rates = _rates(y / x for x, y in zip(c.x, c.y, strict=True))
    yield "", (f"{name}: bytes", "one way", "rate"), _columns(cells(c.x, BYTES), cells(c.y, TIMES), rates)
    if link.overlap:
        rows = [
            (_progress(o), _part(o["hidden"]), f"{100 * (o['slowdown'] - 1):.1f} %", seconds(o["busy_byte_s"]))
            for o in link.overlap
        ]
        title = f"{name}: {size(link.overlap[0]['bytes'])} while ranks compute"
        yield "", (title, "hidden", "computing slower", "CPU a byte"), rows


def _title(m):
    c = m.conditions
    hosts = list(dict.fromkeys(c.get("hosts", [])))
    where = ", ".join(hosts[:4]) + (", …" if len(hosts) > 4 else "")
    return (
        f"{c.get('ranks')} ranks × {c.get('threads')} threads on {len(hosts)} hosts ({where}); "
        f"{', '.join(c.get('cpu_models', []))}; {c.get('mpi') or 'no MPI'}; {c.get('date', '')}"
        + (f"; measured while others had the CPUs for {_part(c['busy'])} of the time" if "busy" in c else "")
    )


def _row(kinds, spread, title, field, show):
    return (
        title,
        *(text for name, link in kinds for text in (show(getattr(link, field)), spread.get(f"{name}.{field}", ""))),
    )


def _progress(row):
    if row["progress"] == "polls":
        return f"polled every {seconds(row['poll_period_s'])}"
    return {"none": "not polled", "helper": "helper thread"}.get(row["progress"], row["progress"])


def text(m):
    """The tables as plain text."""

    def padded(row, widths):
        cells = (c.rjust(w) if i else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
        return "  ".join(cells).rstrip()

    out = []
    for title, heads, rows in tables(m):
        cells = [heads, *rows]
        widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
        out += [title] * bool(title)
        out += [padded(row, widths) for row in cells]
        out.append("")
    return "\n".join(out).rstrip()


def show(m):
    """The tables on the terminal."""
    import sys

    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else 130)
    for title, heads, rows in tables(m):
        table = Table(title=title or None, title_justify="left")
        for i, head in enumerate(heads):
            table.add_column(head, justify="right" if i else "left")
        for row in rows:
            table.add_row(*row)
        console.print(table)


def picture(m, path):
    """The curves as a picture: transfers, memory, packing."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 4.5), layout="constrained")
    transfer, memory, packing = figure.subplots(1, 3)
    for name, link in (("same host", m.same_host), ("other host", m.other_host)):
        if link:
            (drawn,) = transfer.plot(link.transfer_s.x, link.transfer_s.y, ".-", label=name)
            if link.synchronous_s:
                transfer.plot(
                    link.synchronous_s.x,
                    link.synchronous_s.y,
                    "x:",
                    color=drawn.get_color(),
                    label=f"{name}, synchronous",
                )
            for at in link.breaks_bytes:
                transfer.axvline(at, color=drawn.get_color(), alpha=0.3)
    transfer.set(title="One message, one way", xlabel="bytes", ylabel="seconds", xscale="log", yscale="log")
    for n in sorted({1, len(m.memory)} if m.memory else ()):
        curve = m.memory[n - 1]
        memory.plot(curve.x, [1e-9 / y for y in curve.y], ".-", label=count(n, "busy lane"))
    memory.set(
        title="Memory, a lane",
        xlabel="bytes of its working set",
        ylabel="GB/s read and written",
        xscale="log",
        ylim=(0, None),
    )
    if m.copy_byte_s.x:
        packing.plot(m.copy_byte_s.x, [1e-9 / y for y in m.copy_byte_s.y], ".-")
    packing.set(title="Packing", xlabel="bytes next to each other", ylabel="GB/s", xscale="log", ylim=(0, None))
    for axes in (transfer, memory):
        if axes.get_legend_handles_labels()[0]:
            axes.legend()
    files.save("the picture of a machine", path, files.drawn(figure, path))
