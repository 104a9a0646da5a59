"""Markdown pages of the C++ API, one a public header, from `///` and `///<` comments of include/tilewave/**/*.hpp.

docs/conf.py calls it when the site is built. The standard library is all that this needs.
"""

import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include" / "tilewave"
MEANINGS = {"@pre": "*Requires:*", "@throws": "*Throws:*"}


def declaration(lines, at):
    """The declaration that begins at line `at`, without its body, and the line after it."""
    text, depth = [], 0
    while at < len(lines) and not lines[at].strip().startswith("///"):
        code = lines[at].partition("///<")[0].rstrip()
        text.append(code.strip())
        depth += code.count("(") - code.count(")")
        at += 1
        if depth <= 0 and re.search(r"[;{}]", code):
            break
    whole = " ".join(filter(None, text))
    # Its body, or the list of what a constructor sets, begins outside of all parentheses.
    for found in re.finditer(r"(?<=\)) : |\s*\{(?!\})", whole):
        if whole[: found.start()].count("(") == whole[: found.start()].count(")"):
            return whole[: found.start()].strip(), at
    return whole.strip(), at


def wrapped(text, indent=""):
    """Text in lines of at most 118 columns, those after the first a bit further in."""
    inner = " " * (len(text) - len(text.lstrip(" -")))
    indents = {"initial_indent": indent, "subsequent_indent": indent + inner}
    return textwrap.fill(text, 118, **indents, break_long_words=False, break_on_hyphens=False)


def cpp_header(path):
    """Lines of one header: what it is for, then each documented declaration."""
    lines = path.read_text().splitlines()
    intro = [line[2:].strip() for line in lines[: lines.index("#pragma once")] if line.startswith("//")]
    out = [f"# {path.relative_to(ROOT / 'include')}", "", wrapped(" ".join(intro)), ""]
    comment, at = [], 0
    while at < len(lines):
        line = lines[at].strip()
        if line.startswith("///<"):  # goes on from the line before
            out[-1] = wrapped(f"{' '.join(out[-1].split())} {line[4:].strip()}", "  ")
            at += 1
        elif line.startswith("///"):
            comment.append(line[3:].strip())
            at += 1
        elif comment and line:
            text, at = declaration(lines, at)
            parts = re.split(r"\s*\n", " ".join(f"\n{c}" if c.startswith("@") else c for c in comment))
            out += [
                wrapped(f"- `{text}`") + ("\\" if parts[0] else ""),
                *map(wrapped, [f"  {p}" for p in parts[:1] if p]),
            ]
            out += [wrapped(f"  - {MEANINGS[c.split()[0]]} {c.partition(' ')[2]}") for c in parts[1:]]
            comment = []
        else:
            code, mark, remark = line.partition("///<")
            if mark and code.strip():
                out.append(wrapped(f"  - `{code.strip()}` {remark.strip()}"))
            comment, at = [], at + 1
    return [*out, ""]


def pages():
    """{path below include/tilewave, without its ending: text of the page} of all public headers."""
    return {
        path.relative_to(INCLUDE).with_suffix("").as_posix(): "\n".join(cpp_header(path)).strip() + "\n"
        for path in sorted(INCLUDE.rglob("*.hpp"))
    }


def write(folder):
    """Write the pages into a folder, and take away those of headers that are gone."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {folder / f"{name.replace('/', '_')}.md": text for name, text in pages().items()}
    for path in set(folder.glob("*.md")) - set(found):
        path.unlink()
    for path, text in found.items():
        if not path.exists() or path.read_text() != text:  # Sphinx reads what is newer than its last build
            path.write_text(text)
