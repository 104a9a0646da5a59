"""The page and the pictures of a paper, from its findings as data."""

import textwrap

#: How figures are drawn: theirs as points, predictions as lines, this machine's runs as hollow points.
STYLES = {
    "theirs": {"linestyle": "", "marker": "o", "markersize": 6},
    "predicted": {"linestyle": "-"},
    "here": {"linestyle": "", "marker": "s", "markersize": 5, "markerfacecolor": "none"},
    "predicted here": {"linestyle": "--", "linewidth": 1},
}
COLOURS = ("#3060a0", "#c8504b", "#2f7f5f", "#e0a030", "#7f4fa0", "#666666")


def table(title, unit, rows, note=""):
    """A table: rows of (case, theirs, predicted, measured here), each a number, a text or None."""
    return {"title": title, "unit": unit, "note": note, "rows": [list(one) for one in rows]}


def figure(name, title, x, y, lines, log=""):
    """A figure of lines (label, kind, xs, ys), a kind as in STYLES; lines of one label before a comma have one colour.
    Where xs are texts they are places on the x axis. log: "", "x", "y" or "xy".
    """
    drawn = [{"label": label, "kind": kind, "x": list(xs), "y": list(ys)} for label, kind, xs, ys in lines]
    return {"name": name, "title": title, "x": x, "y": y, "log": log, "lines": drawn}


def number(value):
    """A figure in three digits; a text as it is; nothing for none."""
    if value is None or isinstance(value, str):
        return value or ""
    return f"{value:.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"


def text(found):
    """The page."""
    name, made = found["paper"], found["machine"]
    lines = [f"<!-- written by `tilewave bench papers` from {name}.json: do not edit -->", "", f"# {name}", ""]
    here = (
        f"Measured here, the least of several turns: {made['processor']}, {made['cpus']} CPUs, commit {made['commit']}."
    )
    if found["load"] > made["cpus"] + 0.5:
        here += f" Other programs had part of the CPUs (load {found['load']:.1f}): times here are too long."
    lines += _wrapped(f"{found['title']} {found['setting']} {here} `tilewave bench papers --paper {name}` renews it.")
    for one in found["tables"]:
        lines += ["", f"## {one['title']}", ""]
        if one["note"]:
            lines += [*_wrapped(one["note"]), ""]
        unit = f", {one['unit']}" if one["unit"] else ""
        lines += [f"| case | theirs{unit} | predicted{unit} | predicted / theirs | measured here{unit} |"]
        lines += ["| --- | --- | --- | --- | --- |"]
        for case, theirs, predicted, measured in one["rows"]:
            numbers = all(isinstance(value, int | float) for value in (theirs, predicted))
            ratio = f"{predicted / theirs:.2f}" if numbers and theirs else ""
            lines.append(f"| {case} | {number(theirs)} | {number(predicted)} | {ratio} | {number(measured)} |")
    for one in found["figures"]:
        lines += ["", f"## Figure: {one['title']}", ""]
        lines += [f"```{{image}} {name}-{one['name']}.png", f":alt: {one['title']}", "```"]
    for title, items in (("What differs and why", found["why"]), ("What is not regenerated", found["left_out"])):
        lines += ["", f"## {title}", "", *(line for item in items for line in _wrapped(item, "- "))]
    return "\n".join(lines) + "\n"


def _wrapped(words, bullet=""):
    return textwrap.wrap(
        words,
        120,
        initial_indent=bullet,
        subsequent_indent=" " * len(bullet),
        break_long_words=False,
        break_on_hyphens=False,
    )


def draw(found, folder):
    """A PNG file of each figure."""
    from matplotlib.figure import Figure

    for one in (one for one in found["figures"] if one["lines"]):
        made = Figure(figsize=(9, 4.6), layout="constrained")
        axis, colours = made.subplots(), {}
        for line in one["lines"]:
            colour = colours.setdefault(line["label"].partition(",")[0], COLOURS[len(colours) % len(COLOURS)])
            label = f"{line['label']}, {line['kind']}"
            axis.plot(line["x"], line["y"], color=colour, label=label, **STYLES[line["kind"]])
        axis.set(title=f"{found['paper']}: {one['title']}", xlabel=one["x"], ylabel=one["y"])
        if "x" in one["log"]:
            axis.set_xscale("log", base=2)
        if "y" in one["log"]:
            axis.set_yscale("log")
        else:
            axis.set_ylim(bottom=0)
        if any(isinstance(x, str) for line in one["lines"] for x in line["x"]):
            axis.tick_params(axis="x", rotation=60, labelsize=8)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
        made.savefig(folder / f"{found['paper']}-{one['name']}.png", dpi=100)
