"""Writes docs/api/python.md and docs/api/cpp.md from docstrings and public headers; --check: are they up to date?

Python: the names of tilewave/__init__.py, followed through imports to where they are defined, in whatever folder.
C++: `///` and `///<` comments of include/tilewave/**/*.hpp. The standard library is all that this needs.
"""

import ast
import copy
import inspect
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "tilewave"
SECTIONS = ("Parameters", "Attributes", "Returns", "Raises")  # of a docstring: lists of names
LONGEST = 112  # signature in a heading
NOTE = "<!-- written by tools/api.py: do not edit -->\n\n"


def order(name):
    """The key that names are sorted by: letters first, then case."""
    return name.lower(), name


def module_file(name):
    """The file of a module of the package; None: there is none (a name of another kind, or compiled)."""
    path = PACKAGE.joinpath(*name.split(".")[1:])
    return next((p for p in (path / "__init__.py", path.with_suffix(".py")) if p.exists()), None)


def statements(tree):
    """Those of a module, and what it imports for type checkers alone, which is loaded later."""
    for node in tree.body:
        checked = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        yield from node.body if checked else [node]


def find(module, name):
    """(module, node) where a public name is defined: its class, function or assignment, a whole module, or None."""
    file = module_file(module)
    if file is None:
        return module, None
    for node in statements(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name and not is_overload(node):
            return module, node
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            return module, node
        if isinstance(node, ast.ImportFrom):
            package = module if file.name == "__init__.py" else module.rpartition(".")[0]
            base = package.rsplit(".", node.level - 1)[0] if node.level else ""
            source = ".".join(filter(None, (base, node.module)))
            for alias in node.names:
                if (alias.asname or alias.name) == name and source.split(".")[0] == "tilewave" and source != module:
                    return find(source, alias.name)
    inner = module_file(f"{module}.{name}")
    return (f"{module}.{name}", ast.parse(inner.read_text())) if inner else (module, None)


def is_overload(node):
    """Whether a definition only says to type checkers which arguments give which result."""
    return any(ast.unparse(decorator) == "overload" for decorator in node.decorator_list)


def without_types(arguments):
    """Arguments of a function as text; their types are in its docstring."""
    arguments = copy.deepcopy(arguments)
    for each in ast.walk(arguments):
        if isinstance(each, ast.arg):
            each.annotation = None
    return ast.unparse(arguments)


def own_text(node):
    """A docstring, with the choices of a plan where `Plan` leaves a place for them."""
    text = ast.get_docstring(node)
    return text and text.replace("CHOICES\n", choices() + "\n") if isinstance(node, ast.ClassDef) else text


def choices():
    """The choices of a plan as attributes of a docstring, from the header that declares them."""
    text = (ROOT / "include" / "tilewave" / "engine" / "plan_choices.hpp").read_text()
    found = re.findall(r"X\(([\w:]+), (\w+), [^\n]*?, \\\n((?:\s*\"[^\n]*\n)+)", text)
    return "\n".join(
        f"{name} : {kind.removeprefix('std::')}\n" + wrapped("".join(re.findall(r'"([^"]*)"', doc)), "    ")
        for kind, name, doc in found
    )


def public_names(module):
    """Names in `__all__`; without it, names without `_` that the module defines, or a package's __init__ imports."""
    file = module_file(module)
    body = ast.parse(file.read_text()).body
    for node in body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return sorted(ast.literal_eval(node.value), key=order)
    names = [node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    if file.name == "__init__.py":
        names += [a.asname or a.name for node in body if isinstance(node, ast.ImportFrom) for a in node.names]
    return sorted({name for name in names if not name.startswith("_")}, key=order)


def docstring(node):
    """The docstring as Markdown: headings in bold, parameters as a list."""
    out, section = [], None
    lines = (inspect.cleandoc(own_text(node) or "")).splitlines()
    for at, line in enumerate(lines):
        if at + 1 < len(lines) and re.fullmatch(r"-{3,}", lines[at + 1]):
            section = line
            out += [f"**{line}**", ""]
        elif not re.fullmatch(r"-{3,}", line):
            out.append(
                f"- `{line}`" + ("\\" if at + 1 < len(lines) and lines[at + 1].startswith(" ") else "")
                if section in SECTIONS and line and not line.startswith(" ")
                else line
            )
    return "\n".join(out).replace("``", "`") + "\n"


def signature(name, node):
    """`name(arguments)` of a function, or of what makes an object of a class."""
    if isinstance(node, ast.ClassDef):
        node = next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)
    if not isinstance(node, ast.FunctionDef):
        return name
    arguments = re.sub(r"^(self|cls)(, )?|, (\*, )?_\w+=[^,]+", "", without_types(node.args))
    return f"{name}({arguments})"


def python_entry(shown, module, node, level):
    """Lines of one name: a heading, its docstring, its public methods."""
    head = "#" * level
    if node is None:
        return [f"{head} `{shown}`", "", f"Compiled (`{module}`): see [cpp.md](cpp.md).", ""]
    if isinstance(node, ast.Module):
        lines = [f"{head} Module `{shown}`", "", docstring(node)]
        for name in public_names(module):
            lines += python_entry(f"{shown}.{name}", *find(module, name), level + 1)
        return lines
    if isinstance(node, ast.Assign):
        return [f"{head} `{shown}`", ""]
    short = shown.removeprefix("tilewave.")
    lines = [
        f"{head} `{short}`",
        "",
        f"```python\n{wrapped(signature(short, node), hanging=4)}\n```",
        "",
        docstring(node),
    ]
    for method in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(method, ast.FunctionDef) and not method.name.startswith("_") and ast.get_docstring(method):
            is_property = any(ast.unparse(d).endswith("property") for d in method.decorator_list)
            name = method.name if is_property else signature(method.name, method)
            block = [f"```python\n{wrapped(name, hanging=4)}\n```", ""] if len(name) > LONGEST else []
            lines += [f"{head}# `{method.name if block else name}`", "", *block, docstring(method)]
    return lines


def python_page():
    """The whole of python.md."""
    lines = ["# Python: `import tilewave as tw`", ""]
    top = ast.parse((PACKAGE / "__init__.py").read_text())
    lazy = next((n for n in top.body if isinstance(n, ast.FunctionDef) and n.name == "__getattr__"), None)
    imported = {
        a.asname or a.name
        for n in statements(top)
        if isinstance(n, ast.ImportFrom) and n.level == 0 and (n.module or "").split(".")[0] == "tilewave"
        for a in n.names
    }
    names = {*public_names("tilewave"), *(n for n in imported if not n.startswith("_"))}
    for name in sorted(names, key=order):
        module, node = find("tilewave", name)
        if module == "tilewave" and node is None and lazy is not None:
            lines += [f"## `{name}`", "", docstring(lazy)]
        else:
            lines += python_entry(f"tilewave.{name}", module, node, 2)
    return NOTE + re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


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
    return re.split(r"(?<=\)) : |\s*\{(?!\})", " ".join(filter(None, text)))[0].strip(), at


def wrapped(text, indent="", hanging=0):
    """Text in lines of at most 118 columns, those after the first a bit further in."""
    inner = " " * max(len(text) - len(text.lstrip(" -")), hanging)
    return textwrap.fill(
        text,
        118,
        initial_indent=indent,
        subsequent_indent=indent + inner,
        break_long_words=False,
        break_on_hyphens=False,
    )


def cpp_header(path):
    """Lines of one header: what it is for, then each documented declaration."""
    lines = path.read_text().splitlines()
    intro = [line[2:].strip() for line in lines[: lines.index("#pragma once")] if line.startswith("//")]
    out = [f"## `{path.relative_to(ROOT / 'include')}`", "", wrapped(" ".join(intro)), ""]
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
                *([wrapped(f"  {parts[0]}")] if parts[0] else []),
                *(wrapped(f"  - {c}") for c in parts[1:]),
            ]
            comment = []
        else:
            code, mark, remark = line.partition("///<")
            if mark and code.strip():
                out.append(wrapped(f"  - `{code.strip()}` {remark.strip()}"))
            comment, at = [], at + 1
    return [*out, ""]


def cpp_page():
    """The whole of cpp.md."""
    lines = [
        '# C++: `#include "tilewave/tilewave.hpp"`',
        "",
        "Preconditions are marked `@pre`, with what is thrown.",
        "",
    ]
    for path in sorted((ROOT / "include" / "tilewave").rglob("*.hpp")):
        lines += cpp_header(path)
    return NOTE + "\n".join(lines).strip() + "\n"


def main():
    folder, stale = ROOT / "docs" / "api", []
    for name, page in (("python.md", python_page()), ("cpp.md", cpp_page())):
        path = folder / name
        if not path.exists() or path.read_text() != page:
            stale.append(str(path.relative_to(ROOT)))
            if "--check" not in sys.argv[1:]:
                folder.mkdir(parents=True, exist_ok=True)
                path.write_text(page)
    print(f"{'not up to date' if '--check' in sys.argv[1:] else 'written'}: {', '.join(stale) or 'nothing'}")
    return 1 if stale and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
