"""Python's parser, for one thread at a time: CPython 3.11 counts the depth of all threads' trees together."""

import ast
import threading

one_at_a_time = threading.Lock()


def parse(text, mode="exec"):
    """The syntax tree of a text, as `ast.parse` gives it: two threads at once could get a SystemError
    ("AST constructor recursion depth mismatch").
    """
    with one_at_a_time:
        return ast.parse(text, mode=mode)


def compiled(tree, file, flags):
    """The code of a syntax tree; the same care."""
    with one_at_a_time:
        return compile(tree, file, "exec", flags, dont_inherit=True)
