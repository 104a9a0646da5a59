"""A function's source text, with errors that point into the real file.

Python keeps a function's code, but not the text that it came from: that is read from its file, which may have been
edited since. So the text is compiled again and compared with the code of the function."""

import __future__

import ast
import contextlib
import copy
import functools
import inspect
import linecache
import os
import sys
import time
import types

from tilewave.errors import ConfigError, shown
from tilewave.nest.language import without_members
from tilewave.nest.parse import compiled, parse
from tilewave.nest.walks import is_stored, nodes_in

NO_SOURCE = (
    "its source text is not available (exec, standard input and older prompts keep none); "
    "put it in a file or a notebook cell, or give the text to tilewave.nest_from"
)
CHANGED = (
    "its source file was changed since the function was loaded: no text in it has the function's code; start the "
    "program again, or load the module again"
)

_FUTURE = sum({getattr(__future__, name).compiler_flag for name in __future__.all_feature_names})
_LOADED_S = time.time()
#: Texts by file name: those of functions in memory, as far as is known.
_read_texts = {}


class Source:
    """The text and syntax tree of one function.

    Parameters
    ----------
    function : function
        A plain function written with ``def``.
    what : str
        What takes it, for messages.

    Raises
    ------
    ConfigError
        When it is something else, when Python keeps no source text for it, or when the text is no longer that of the
        function.
    """

    def __init__(self, function, what="@nest"):
        if not isinstance(function, types.FunctionType):
            raise ConfigError(
                f"{what} takes a plain function, given {shown(function)}; allowed: a loop body written with def"
            )
        if function.__name__ == "<lambda>":
            raise ConfigError(
                f"{what} takes a function written with def, given a lambda "
                f"({function.__code__.co_filename}:{function.__code__.co_firstlineno})"
            )
        if hasattr(function, "__wrapped__"):
            raise ConfigError(
                f"{_kind(what)} {function.__name__!r}: {what} must be the innermost decorator, "
                "given a function that another decorator has wrapped"
            )
        self.file = function.__code__.co_filename
        self._lines, self.tree = _read(function, _kind(what))
        if not isinstance(self.tree, ast.FunctionDef):
            raise ConfigError(
                f"{_kind(what)} {function.__name__!r} ({self.file}): {what} takes a function written with "
                f"def, given {type(self.tree).__name__}"
            )
        if what != "@tw.loops":
            self.tree = without_members(self.tree)
        #: All nodes of the body.
        self.nodes = nodes_in(*self.tree.body)
        #: What `subscript.read_access` has read of nodes.
        self.accesses = {}

    @functools.cached_property
    def local_names(self):
        """The names that the body assigns."""
        return {node.id for node in self.nodes if is_stored(node)} - self.inner_names

    @functools.cached_property
    def inner_names(self):
        """The names of the loops inside the body: the targets of its generators."""
        loops = [node for node in self.nodes if isinstance(node, ast.comprehension)]
        return {node.target.id for node in loops if isinstance(node.target, ast.Name)}

    def with_tree(self, tree):
        """The same text with another syntax tree, whose nodes have the lines and columns of this one's."""
        other = copy.copy(self)
        for name in ("local_names", "inner_names"):
            other.__dict__.pop(name, None)
        other.tree, other.accesses = tree, {}
        other.nodes = nodes_in(*tree.body)
        return other

    def line(self, node):
        """Line of a node in its file, from 1."""
        return node.lineno

    def column(self, node):
        """Column of a node in its line, in characters, from 1."""
        line = self._lines[node.lineno - 1].encode()
        return len(line[: node.col_offset].decode(errors="replace")) + 1

    def text_of(self, node):
        """The source text of a node."""
        lines = [line.encode() for line in self._lines[node.lineno - 1 : node.end_lineno]]
        if len(lines) < node.end_lineno - node.lineno + 1:
            return ast.unparse(node)
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        return b"\n".join(lines).decode(errors="replace")

    def error(self, node, message, allowed=None):
        """A ConfigError that names file, line, column and text of a node."""
        shown = self.text_of(node).splitlines()
        text = shown[0] + (" ..." if len(shown) > 1 else "")
        where = f"{self.file}:{self.line(node)}:{self.column(node)}"
        tail = f"; allowed: {allowed}" if allowed else ""
        return ConfigError(f"{where}: `{text}`: {message}{tail}")


@functools.lru_cache(maxsize=16)
def _parsed(text, file, flags):
    """(lines of a text, functions: name, first line and code without lines, and syntax node); None where the text is no
    Python.

    Annotated assignments have nothing for the annotation: Python does not look at those of local names.
    """
    try:
        tree = parse(text)
        codes = _codes(compiled(tree, file, flags))
    except (SyntaxError, ValueError):
        return None
    nodes = {}
    for node in _statements(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            nodes[node.name, min([node.lineno, *(each.lineno for each in node.decorator_list)])] = node
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.copy_location(ast.Constant(None), node.annotation)
    places = [(code.co_name, code.co_firstlineno) for code in codes]
    found = [
        (*place, _without_lines(code), nodes[place])
        for place, code in zip(places, codes, strict=True)
        if place in nodes
    ]
    return text.split("\n"), found


def _statements(node):
    """All statements within a node: much fewer than its nodes."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, name, ()):
            yield inner
            yield from _statements(inner)


def _codes(code):
    """The codes of all functions within one."""
    inside = [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return inside + [each for one in inside for each in _codes(one)]


def _without_lines(code):
    """A code that is equal to another one where both do the same, wherever they stand in their files."""
    constants = tuple(_without_lines(each) if isinstance(each, types.CodeType) else each for each in code.co_consts)
    return code.replace(co_firstlineno=1, co_linetable=b"", co_filename="", co_consts=constants)


def _kind(what):
    return "nest" if what == "@nest" else "function"


def _read(function, kind):
    """(lines of a text, syntax node) of a function."""
    code = function.__code__
    where, plain = f"{kind} {function.__name__!r} ({code.co_filename}", _without_lines(code)
    texts = [
        parsed for text in _texts(function) if (parsed := _parsed(text, code.co_filename, code.co_flags & _FUTURE))
    ]
    for lines, functions in texts:
        equal = [each for each in functions if each[0] == code.co_name and each[2] == plain]
        if equal:
            _read_texts[code.co_filename] = "\n".join(lines)
            return lines, min(equal, key=lambda each: abs(each[1] - code.co_firstlineno))[3]
    if code.co_filename in ("<string>", "<stdin>") or not texts:
        raise ConfigError(f"{where}): {NO_SOURCE}")
    lines, functions = texts[0]
    at_its_line = [each[3] for each in functions if each[:2] == (code.co_name, code.co_firstlineno)]
    if _changed(code.co_filename) or not at_its_line:
        raise ConfigError(f"{where}:{code.co_firstlineno}): {CHANGED}")
    return lines, at_its_line[0]  # a tool has changed the code, as pytest does with asserts: the text is as it was


def _texts(function):
    """The texts that a function may be from: as its file was when it was first read, and as it is now."""
    file = function.__code__.co_filename
    if _read_texts.get(file):
        yield _read_texts[file]
    if file == "<string>":  # python -c, whose options have the text
        yield from sys.orig_argv[1:]
        return
    with contextlib.suppress(OSError, TypeError):
        yield "".join(inspect.findsource(function)[0])


def _changed(file):
    """Return whether a file has been written since Tilewave was loaded; not where there is none."""
    try:
        return os.stat(file).st_ctime >= _LOADED_S
    except OSError:
        return False


def remember(file):
    """Read a file as it is now: the nests of a long program may be made much later."""
    _read_texts[file] = "".join(linecache.getlines(file))


def known_texts():
    """The texts of functions in memory by file name, as far as is known, for another process."""
    return dict(_read_texts)


def take_texts(texts):
    """Know texts that another process has known."""
    _read_texts.update({file: text for file, text in texts.items() if file not in _read_texts})


if main := getattr(sys.modules.get("__main__"), "__file__", None):
    remember(main)
