"""A function's source text, with errors that point into the real file."""

import ast
import inspect
import types

from ..errors import ConfigError

NO_SOURCE = (
    "its source text is not available (python -c, standard input and the plain interactive "
    "prompt keep none); put it in a file or a notebook cell"
)


class Source:
    """The text and syntax tree of one function.

    Parameters
    ----------
    function : function
        A plain function written with ``def``.

    Raises
    ------
    ConfigError
        When it is something else, or when Python keeps no source text for it.
    """

    def __init__(self, function):
        if not isinstance(function, types.FunctionType):
            raise ConfigError(
                f"@nest takes a plain function, given {function!r}; "
                "allowed: a loop body written with def"
            )
        if function.__name__ == "<lambda>":
            raise ConfigError(
                f"@nest takes a function written with def, given a lambda "
                f"({function.__code__.co_filename}:{function.__code__.co_firstlineno})"
            )
        if hasattr(function, "__wrapped__"):
            raise ConfigError(
                f"nest {function.__name__!r}: @nest must be the innermost decorator, "
                "given a function that another decorator has wrapped"
            )
        self.file = function.__code__.co_filename
        try:
            lines, first = inspect.getsourcelines(function)
        except (OSError, TypeError):
            raise ConfigError(f"nest {function.__name__!r} ({self.file}): {NO_SOURCE}") from None
        text = "".join(lines)
        # An indented function is parsed inside a block of its own: columns stay those of the file.
        indented = text[:1].isspace()
        self._text = ("if True:\n" if indented else "") + text
        self._lines = self._text.splitlines()
        self._shift = first - 1 - int(indented)
        self.tree = self._parse(function, indented)

    def _parse(self, function, indented):
        try:
            statement = ast.parse(self._text).body[0]
        except SyntaxError:
            raise ConfigError(f"nest {function.__name__!r} ({self.file}): {NO_SOURCE}") from None
        if indented:
            statement = statement.body[0]
        if not isinstance(statement, ast.FunctionDef):
            raise ConfigError(
                f"nest {function.__name__!r} ({self.file}): @nest takes a function written with "
                f"def, given {type(statement).__name__}"
            )
        return statement

    def line(self, node):
        """Line of a node in its file, from 1."""
        return node.lineno + self._shift

    def column(self, node):
        """Column of a node in its line, in characters, from 1."""
        line = self._lines[node.lineno - 1].encode()
        return len(line[: node.col_offset].decode(errors="replace")) + 1

    def text_of(self, node):
        """The source text of a node."""
        return ast.get_source_segment(self._text, node) or ast.unparse(node)

    def error(self, node, message, allowed=None):
        """A ConfigError that names file, line, column and text of a node."""
        shown = self.text_of(node).splitlines()
        text = shown[0] + (" ..." if len(shown) > 1 else "")
        where = f"{self.file}:{self.line(node)}:{self.column(node)}"
        tail = f"; allowed: {allowed}" if allowed else ""
        return ConfigError(f"{where}: `{text}`: {message}{tail}")
