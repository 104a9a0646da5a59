"""Nests with another loop index in place of one of a body."""

import ast
import threading

from tilewave.nest.nest import Nest

#: What is remembered of one nest, at most.
MOST_MADE = 64

_making = threading.RLock()  # ranks may be threads of one process

#: The scalar with the number of time steps, where time runs backwards; no name of Python's.
STEPS = "time steps"

#: The local that points of strides assign, so that no other point counts where values are reduced; no name of Python's.
INSIDE = "inside the strides"


class ChangedNest(Nest):
    """A nest with another syntax tree, whose nodes keep their places in the file.

    Parameters
    ----------
    nest : Nest
    tree : ast.FunctionDef
    backwards : bool, optional
        Whether the tree has ``steps - t`` in place of time. Default: as the nest.
    rewrites : tuple of ast.NodeTransformer
        What was done to indices in the tree, and is to be done to expressions of them.
    rows : dict, optional
        In place of the nest's.
    """

    def __init__(self, nest, tree, backwards=None, rewrites=(), rows=None):
        self.backwards = nest.backwards if backwards is None else backwards
        self.rewrites = (*nest.rewrites, *rewrites)
        self._read(nest.function, nest.source.with_tree(ast.fix_missing_locations(tree)))
        self.rows = nest.rows if rows is None else rows
        self.within = {**nest.within}
        self.scalars |= {STEPS: 0} if STEPS in self.parameters.scalars else {}


def remembered(nest, key, make):
    """Return what was made of a nest before, or is made now: once, where ranks are threads of one process."""
    with _making:
        if key not in nest.made:
            made = make()
            while len(nest.made) >= MOST_MADE:
                del nest.made[next(iter(nest.made))]
            nest.made[key] = made
        return nest.made[key]


def has_time(nest, view, array):
    """Return whether time runs backwards along the first dimension of an array."""
    return nest.backwards and view.axes[0] == nest.time and array.ndim == len(view.axes)
