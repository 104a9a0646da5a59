"""The C++ blocks of documentation as functions, which a test calls: cpp_blocks.py OUT PAGE...

A block with `int main()` is a program of its own. The others of a page are one function of a `context` and a size `n`.
"""

import re
import sys
from pathlib import Path


def functions(page):
    """({name: C++ text} of programs, and of what takes a context) of a page; includes stand above."""
    text, stem, programs, parts = page.read_text(), re.sub(r"\W", "_", page.stem), {}, []
    for found in re.finditer(r"^```cpp\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        line = text[: found.start(1)].count("\n") + 1
        body = re.sub(r"^#include .*$", "", found[1], flags=re.MULTILINE)
        placed = f'#line {line} "{page}"\n{body}'
        if "int main()" in body:
            name = f"{stem}_{line}"
            programs[name] = placed.replace("int main()", f"void {name}()")
        else:
            parts.append(placed)
    head = f"void {stem}(tilewave::Context& context, std::int64_t n) {{\n"
    return programs, {stem: head + "".join(parts) + "}\n"} if parts else {}


def entries(names):
    """Elements of a map of functions."""
    return ", ".join(f'{{"{name}", {name}}}' for name in names)


def main(out, *pages):
    """Write functions and the lists `programs` and `statements` of them by name."""
    programs, statements = {}, {}
    for page in map(Path, pages):
        for every, found in zip((programs, statements), functions(page), strict=True):
            every |= found
    lists = [
        f"const std::map<std::string, {kind}> {name}{{{entries(found)}}};\n"
        for name, kind, found in (
            ("programs", "void (*)()", programs),
            ("statements", "void (*)(tilewave::Context&, std::int64_t)", statements),
        )
    ]
    Path(out).write_text("\n".join([*programs.values(), *statements.values(), '#line 1 "lists"', *lists]))


if __name__ == "__main__":
    main(*sys.argv[1:])
