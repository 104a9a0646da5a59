"""The four papers: every table and figure predicted on the machine of its paper, and measured on this one.

``tilewave bench papers [--paper NAME] [-o FOLDER] [--json FILE] [--quick]``; NAME: athanasaki2002, dawson2000,
prieto1999, wolfmann2010. FOLDER gets of each paper its findings (NAME.json), its page (NAME.md) and a picture of each
figure (NAME-FIGURE.png). Theirs are the figures that the papers print; predicted: the same program simulated with the
machine's file that comes with Tilewave; here: a smaller program of the same kind, on one or two ranks of this machine.
--quick predicts only.
"""

import os
from pathlib import Path

from bench.runner import as_json, benchmark, machine, row
from docs.papers import athanasaki2002, dawson2000, page, prieto1999, wolfmann2010

PAPERS = {paper.__name__.rpartition(".")[2]: paper for paper in (athanasaki2002, dawson2000, prieto1999, wolfmann2010)}


@benchmark(
    "papers",
    __doc__,
    options={
        "--paper": {"action": "append", "choices": list(PAPERS), "help": "only this one; may be repeated"},
        "-o --output": {"type": Path, "default": Path("papers"), "help": "folder to write (default papers)"},
    },
)
def papers(options):
    options.output.mkdir(parents=True, exist_ok=True)
    for name in options.paper or PAPERS:
        paper, before = PAPERS[name], os.getloadavg()[0]
        here = {} if options.quick else paper.measure()
        tables, figures = paper.regenerate(here)
        found = {
            "paper": name,
            "title": paper.TITLE,
            "machine": machine(),
            "load": max(before, os.getloadavg()[0]),
            "setting": paper.SETTING,
            "tables": tables,
            "figures": figures,
            "why": paper.WHY,
            "left_out": paper.LEFT_OUT,
        }
        (options.output / f"{name}.json").write_text(as_json(found) + "\n")
        (options.output / f"{name}.md").write_text(page.text(found))
        draw(found, options.output)
        for table in tables:
            yield from _rows(name, table)
    print(f"pages, findings and pictures: {options.output}")


def draw(found, folder):
    """The pictures of a paper, from its findings."""
    page.draw(found, folder)
    if hasattr(paper := PAPERS[found["paper"]], "draw"):
        paper.draw(folder)


def _rows(name, table):
    """The rows of a table that are numbers, as benchmarks have them; a ratio is theirs / predicted."""
    for case, *figures in table["rows"]:
        for who, value in zip(("in the paper", "predicted", "measured here"), figures, strict=True):
            if isinstance(value, int | float):
                both = who == "predicted" and figures[0]
                against = {"ratio_to_contender": figures[0] / value} if both and value else {}
                yield row(f"{name}, {table['title']}: {case}", who, [value], table["unit"], **against)
