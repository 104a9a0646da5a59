"""``tilewave simulate`` for several numbers of ranks: predicted times and efficiencies, as a table and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tilewave import files, units
from tilewave.cli.plan_script import without
from tilewave.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tilewave.cli.plan_script import PlannedScript

KINDS = ("strong", "weak")
ENDINGS = (".png", ".svg", ".pdf")


def rank_counts(given: str) -> list[int]:
    """The numbers of ranks of a text such as "64" or "64,256,1024".

    Parameters
    ----------
    given : str

    Raises
    ------
    ConfigError
        For other than integers of 1 and more, each once, with commas between.
    """
    parts = given.split(",")
    counts = [int(part) if part.strip().isdecimal() else 0 for part in parts]
    if min(counts) < 1 or len(set(counts)) < len(counts):
        raise ConfigError(f"ranks {given} were given; allowed: 1 and more, or several with commas, as in 64,256,1024")
    return sorted(counts)


def check(kind: str, file: Path | None, counts: Sequence[int]) -> None:
    """Refuse options that are wrong before anything is simulated.

    Raises
    ------
    ConfigError
        For another kind, another ending of the picture, a picture of one number of ranks.
    """
    if kind not in KINDS:
        raise ConfigError(f"--scaling: given {kind!r}; allowed: {', '.join(KINDS)}")
    if file is not None and (file.suffix not in ENDINGS or not file.absolute().parent.is_dir()):
        raise ConfigError(f"-o {file}: allowed: a file in a folder that is there, which ends with {', '.join(ENDINGS)}")
    if file is not None and len(counts) < 2:
        raise ConfigError(f"-o {file}: of one number of ranks there is no picture; allowed: several, as in -n 64,256")


def efficiencies(found: Sequence[PlannedScript], kind: str) -> list[float]:
    """Return the efficiency of each number of ranks against the least: of the same work (strong), or of as much work a
    rank (weak)."""
    first = found[0].launch.ranks * found[0].calls.time_s if kind == "strong" else found[0].calls.time_s
    return [first / (one.calls.time_s * (one.launch.ranks if kind == "strong" else 1)) for one in found]


def text(found: Sequence[PlannedScript], kind: str) -> str:
    """The table of predictions, and what they leave out."""
    unit, times = units.column([one.calls.time_s for one in found], units.TIMES)
    rows = [("ranks", "lanes each", f"time, {unit}", "efficiency", "memory a rank")]
    for one, time, part in zip(found, times, efficiencies(found, kind), strict=True):
        sizes = units.size(one.memory_bytes)
        rows.append((str(one.launch.ranks), str(one.calls.threads), time, f"{100 * part:.1f} %", sizes))
    widths = [max(len(row[k]) for row in rows) for k in range(5)]
    lines = [f"Predicted {kind} scaling; nothing was run.", ""]
    lines += ["  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]
    same = "the same work on all" if kind == "strong" else "a script that gives each rank as much work, by tw.size"
    lines += [
        "",
        f"Times are of the calls{without(found[0])}. Efficiency is against {found[0].launch.ranks} ranks, of {same}.",
    ]
    samples = {f"{what}: {sample}": None for one in found for what, sample in one.calls.samples.items()}
    lines += [f"Simulated of {sample}." for sample in samples if not sample.endswith(": all ranks")]
    lines += [f"{one.launch.ranks} ranks: the script ended early: {one.ended}." for one in found if one.ended]
    return "\n".join(lines)


def draw(found: Sequence[PlannedScript], kind: str, name: str, file: Path) -> None:
    """Write the picture: predicted times above, efficiencies below, over the ranks."""
    from matplotlib.figure import Figure

    ranks = [one.launch.ranks for one in found]
    unit, size = units.unit_of([one.calls.time_s for one in found], units.TIMES)
    times = [one.calls.time_s / size for one in found]
    figure = Figure(figsize=(7, 6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    ideal = [times[0] * (ranks[0] / n if kind == "strong" else 1) for n in ranks]
    above.loglog(ranks, ideal, "--", color="#888888", label="ideal")
    above.loglog(ranks, times, "o-", color="#3060a0", label="predicted")
    above.set(title=f"{name}: predicted {kind} scaling", ylabel=f"predicted time, {unit}")
    above.legend()
    below.axhline(100, linestyle="--", color="#888888")
    below.semilogx(ranks, [100 * part for part in efficiencies(found, kind)], "o-", color="#3060a0")
    below.set(xlabel="ranks", ylabel="predicted efficiency, %")
    below.set_ylim(bottom=0)
    below.set_xticks(ranks, map(str, ranks))
    below.minorticks_off()
    for axis in (above, below):
        axis.grid(alpha=0.3)
    files.save("simulate", file, files.drawn(figure, file, dpi=100))
