"""A function's source text, with errors that point into the real file.

Python keeps a function's code, but not the text that it came from: that is read from its file, which may have been
edited since. So the text is compiled again and compared with the code of the function. Texts that were read once are
kept, that of the main script from the import of Tilewave on, so that a program that is edited while it runs goes on
as it was started."""

import __future__

import ast
import contextlib
import copy
import dis
import functools
import importlib.machinery
import inspect
import os
import sys
import time
import tokenize
import types

from tilewave.errors import ConfigError, shown
from tilewave.nest.parse import compiled, parse

NO_SOURCE = (
    "its source text is not available (exec and standard input keep none); "
    "put it in a file or a notebook cell, or give the text to tilewave.nest_from"
)
CHANGED = (
    "its source file was changed since the function was loaded: no text in it has the function's code; start the "
    "program again, "
    "or load the module again"
)

_FUTURE = sum({getattr(__future__, name).compiler_flag for name in __future__.all_feature_names})

#: Lines of the interactive prompt's history that are looked at.
MOST_TYPED_LINES = 200

#: What a program leaves in this module: no part of kernels' keys (loaded_code.py).
__state__ = ("_kept", "_IMPORTED", "_main")

#: Texts by file name: what the functions in memory were made from, as far as is known.
_kept = {}


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
        if any(isinstance(node, ast.AnnAssign) for node in ast.walk(self.tree)):
            self.tree = _without_annotations(self.tree)

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


def _without_annotations(tree):
    """A copy whose annotated assignments have nothing for the annotation: Python does not look at those of local
    names.
    """
    tree = copy.deepcopy(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign):
            node.annotation = ast.copy_location(ast.Constant(None), node.annotation)
    return tree


class _Parsed:
    """A text with its functions: syntax nodes, and the code that Python makes of them."""

    def __init__(self, text, file, flags):
        tree = parse(text)
        self.lines = text.split("\n")
        self.nodes = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                self.nodes[node.name, first] = node
        self.codes = list(_codes(compiled(tree, file, flags)))

    def find(self, code, equal):
        """The node of the function whose code is that of the function in memory: of several the one nearest to its
        line.
        """
        found = [
            each
            for each in self.codes
            if each.co_name == code.co_name
            and (each.co_name, each.co_firstlineno) in self.nodes
            and equal(each, self.nodes[each.co_name, each.co_firstlineno])
        ]
        best = min(found, key=lambda each: abs(each.co_firstlineno - code.co_firstlineno), default=None)
        return best and self.nodes[best.co_name, best.co_firstlineno]


@functools.lru_cache(maxsize=16)
def _parsed(text, file, flags):
    """None where the text is no Python, as it is with magics of a notebook."""
    try:
        return _Parsed(text, file, flags)
    except (SyntaxError, ValueError):
        return None


def _codes(code):
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield each
            yield from _codes(each)


def _kind(what):
    return "nest" if what == "@nest" else "function"


def _read(function, kind):
    """(lines of a text, syntax node) of a function."""
    code = function.__code__
    flags = code.co_flags & _FUTURE
    texts = list(dict.fromkeys(_texts(function)))
    parsed = [(text, found) for text in texts if (found := _parsed(text, code.co_filename, flags))]
    for equal in (lambda each, node: _same(each, code), lambda each, node: _same_but_for_asserts(each, code, node)):
        for text, found in parsed:
            node = found.find(code, equal)
            if node is not None:
                if code.co_filename[:1] != "<":  # <string> and <stdin> are many texts
                    _kept[code.co_filename] = text
                return found.lines, node
    if code.co_filename in ("<string>", "<stdin>") or not texts:
        raise ConfigError(f"{kind} {function.__name__!r} ({code.co_filename}): {NO_SOURCE}")
    if not _rewritten_on_import(function, texts) and _changed_since_start(code.co_filename):
        raise ConfigError(f"{kind} {function.__name__!r} ({code.co_filename}:{code.co_firstlineno}): {CHANGED}")
    for _, found in parsed:  # a tool has changed the code: the text is as it was
        node = found.nodes.get((code.co_name, code.co_firstlineno))
        if node is not None:
            return found.lines, node
    return _block(function, kind)


def _texts(function):
    """The texts that a function may be from, the likeliest first."""
    file = function.__code__.co_filename
    if file in _kept:
        yield _kept[file]
    with contextlib.suppress(OSError, TypeError, IndexError):
        yield "".join(inspect.findsource(function)[0])
    if file == "<string>":  # python -c, whose options have the text
        yield from sys.orig_argv[1:]
    if file == "<stdin>":
        yield from _typed()


def _typed():
    """What was last typed at the interactive prompt: from each of the last lines that begin a statement to the end."""
    readline = sys.modules.get("readline")
    if readline is None:
        return
    last = readline.get_current_history_length()
    lines = [readline.get_history_item(k) or "" for k in range(max(1, last - MOST_TYPED_LINES), last + 1)]
    for start in range(len(lines) - 1, -1, -1):
        if lines[start][:1] not in ("", " ", "\t", "#"):
            yield "\n".join(lines[start:]) + "\n"


def _block(function, kind):
    """Only the lines of a function, where those around it are no Python."""
    try:
        lines, first = inspect.getsourcelines(function)
        text = "".join(lines)
        indented = text[:1].isspace()
        # An indented function is parsed inside a block of its own: columns stay those of the file.
        statement = parse("if True:\n" + text if indented else text).body[0]
    except (OSError, TypeError, IndexError, SyntaxError):
        raise ConfigError(f"{kind} {function.__name__!r} ({function.__code__.co_filename}): {NO_SOURCE}") from None
    node = statement.body[0] if indented else statement
    ast.increment_lineno(node, first - 1 - int(indented))
    return [""] * (first - 1) + text.split("\n"), node


def _same(one, other):
    """Whether two codes do the same, wherever they stand in their files."""
    return (
        one.co_code == other.co_code
        and one.co_names == other.co_names
        and one.co_varnames == other.co_varnames
        and one.co_freevars == other.co_freevars
        and one.co_cellvars == other.co_cellvars
        and (one.co_argcount, one.co_posonlyargcount, one.co_kwonlyargcount)
        == (other.co_argcount, other.co_posonlyargcount, other.co_kwonlyargcount)
        and len(one.co_consts) == len(other.co_consts)
        and all(map(_same_constant, one.co_consts, other.co_consts))
    )


def _same_constant(one, other):
    if isinstance(one, types.CodeType) and isinstance(other, types.CodeType):
        return one.co_name == other.co_name and _same(one, other)
    if isinstance(one, frozenset):
        return one == other
    return type(one) is type(other) and repr(one) == repr(other)  # 1 is not True, and 0.0 not -0.0


def _same_but_for_asserts(fresh, code, node):
    """Whether a code differs from the text's in its asserts only, which pytest writes anew; on the lines where it
    stands.
    """
    if fresh.co_firstlineno != code.co_firstlineno:
        return False
    lines = {
        line
        for each in ast.walk(node)
        if isinstance(each, ast.Assert)
        for line in range(each.lineno, each.end_lineno + 1)
    }
    return bool(lines) and _instructions(fresh, lines) == _instructions(code, lines)


def _instructions(code, without):
    """What a code does on other lines than these."""
    return [
        (each.opname, None if each.opcode in dis.hasjrel or each.opcode in dis.hasjabs else repr(each.argval))
        for each in dis.get_instructions(code)
        if each.positions.lineno not in without
        and each.opname
        not in ("NOP", "RESUME", "EXTENDED_ARG", "JUMP_FORWARD", "JUMP_BACKWARD", "COPY_FREE_VARS", "MAKE_CELL")
    ]


def _rewritten_on_import(function, texts):
    """Whether what imports the function's module makes this very code of one of the texts."""
    loader, code = function.__globals__.get("__loader__"), function.__code__
    if type(loader) is importlib.machinery.SourceFileLoader or not hasattr(loader, "source_to_code"):
        return False
    for text in texts:
        try:
            made = loader.source_to_code(text.encode(), code.co_filename)
        except Exception:  # a stranger's
            continue
        if any(each.co_firstlineno == code.co_firstlineno and _same(each, code) for each in _codes(made)):
            return True
    return False


def _changed_since_start(file):
    """Whether a file has been written since this process began; not where there is none."""
    try:
        return os.stat(file).st_ctime >= _start()
    except OSError:
        return False


@functools.cache
def _start():
    """When this process began, in seconds since 1970."""
    try:
        with open("/proc/self/stat") as status:
            ticks = int(status.read().rpartition(")")[2].split()[19])  # since the system's start; field 22
        if ticks:
            return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        pass
    return _IMPORTED


_IMPORTED = time.time()


def keep(file, text=None):
    """Keep a file's text as it is now: the nests of a long program may be made much later."""
    if text is not None:
        _kept[file] = text
        return
    try:
        with tokenize.open(file) as lines:
            _kept[file] = lines.read()
    except (OSError, SyntaxError, UnicodeDecodeError):
        pass


_main = getattr(sys.modules.get("__main__"), "__file__", None)
if isinstance(_main, str) and _main.endswith(".py"):
    keep(_main)
