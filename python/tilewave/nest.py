"""``@nest``: a loop body in Python, read as a nest with uniform dependences."""

import ast
import hashlib
import inspect
import itertools
import operator
import weakref
from dataclasses import dataclass

import numpy as np

from .body.box import iteration_box
from .body.dependences import dependences_of, places_of, time_index
from .body.names import Scope, is_constant
from .body.source import Source
from .body.subscript import names_outside, read_access, read_parameters
from .body.syntax import BodyChecker
from .errors import ConfigError

#: Default of a scalar that has none.
REQUIRED = inspect.Parameter.empty


def nest(function):
    """Declare a loop body: the plain Python loops around it are the meaning.

    Names that are subscripted are arrays, names used in subscripts are loop indices, nested in
    the order of the parameter list; keyword-only parameters are scalars. Subscripts are ``index +
    integer constant``; an array of lower rank has some of the indices. An array that is only read
    may be a table instead, looked up by integers that are computed (``S[a[i], b[j-1]]``). Numbers defined outside
    the body (at module level or in an enclosing function) are constants: the values that they
    have when the nest is compiled.

    Parameters
    ----------
    function : function
        The body, written with ``def``.

    Returns
    -------
    Nest

    Raises
    ------
    ConfigError
        Naming file, line and column of what is not supported, and what is allowed.

    Examples
    --------
    >>> @nest
    ... def relax(A, i, j, *, c=0.5):
    ...     A[i, j] = c * (A[i-1, j] + A[i, j-1])
    """
    return Nest(function)


class Nest:
    """A loop body with its arrays, indices, scalars and dependences.

    Attributes
    ----------
    name : str
    function : function
        The body as written; call it for one point: ``nest.function(A, i, j, c=0.5)``.
    arrays : tuple of str
        In the order of the parameter list, tables among them.
    written : tuple of str
        The arrays that the body assigns.
    tables : tuple of str
        The arrays that are looked up by computed integers.
    axes : dict
        From each array that is no table to the loop indices of its subscripts.
    indices : tuple of str
        Outermost first.
    scalars : dict
        From name to default; ``REQUIRED`` where there is none.
    places : tuple of Place
        The elements that a point touches: written ones first, then those only read, each group in
        source order.
    dependences : tuple of Dependence
        Between points that touch one element; print them to see kind, accesses and line.
    numbers : set of str
        The loop indices that the body computes with.
    time : str or None
        The first loop index, if the body uses it as time steps are used: every array that is
        written or has it is subscripted first with it, at +0 or +1, and written at +1 only.
    """

    def __init__(self, function):
        self._source = Source(function)
        self.function = function
        self.kernels = weakref.WeakValueDictionary()  # of runs whose contexts live
        self.name = self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.__qualname__ = function.__qualname__
        self._scope = Scope(function)
        self._parameters = read_parameters(self._source)
        body = self._check(strict=False)
        self._outer_nodes = list(body.outside.values())
        self._known = None
        self._nodes = {**body.reads, **body.stores}
        self.arrays = self._parameters.arrays
        self.indices = self._parameters.indices
        self.tables = self._parameters.tables
        self.axes = self._parameters.axes
        self.places = places_of(body)
        self.written = tuple(name for name in self.arrays if any(
            place.array == name for place in self.places if place.written))
        self.dependences = dependences_of(self._source, body, self.places, self._parameters)
        self.time = time_index(self.places, self._parameters)
        self.numbers = names_outside(self._source.tree.body, self.tables) & {*self.indices}
        defaults = inspect.signature(function).parameters
        self.scalars = {name: defaults[name].default for name in self._parameters.scalars}

    def _check(self, strict):
        return BodyChecker(self._source, self._scope, self._parameters, strict).check()

    @property
    def source(self):
        """The source text with file, lines and columns."""
        return self._source

    @property
    def rank(self):
        """Number of loop indices."""
        return len(self.indices)

    @property
    def line(self):
        """Line of the ``def`` in its file."""
        return self._source.line(self._source.tree)

    def line_of(self, place):
        """Line of the first assignment of a place, or of its first read, in its file."""
        return self._source.line(self._nodes[place.key])

    def where(self, place):
        """``file:line:column`` of the first assignment or read of a place."""
        node = self._nodes[place.key]
        return f"{self._source.file}:{self._source.line(node)}:{self._source.column(node)}"

    def text_of(self, place):
        """The source text of the first assignment or read of a place."""
        return self._source.text_of(self._nodes[place.key])

    def place_of(self, node):
        """``(array, offsets)`` of a subscript in the body's syntax tree."""
        return node.value.id, read_access(self._source, node)[1]

    def table_rank(self, table):
        """Number of subscripts of a table."""
        return self._parameters.ranks[table]

    def constants(self):
        """Snapshot of the outside numbers that the body uses, by their text.

        Raises
        ------
        ConfigError
            When a name is not defined, or is no number or supported function.
        """
        return dict(self._outside().constants)

    def signature(self):
        """Hash of the body and of the constants it captures, the same on every rank.

        Returns
        -------
        str
            64 hexadecimal digits.
        """
        return self._outside().signature

    def _outside(self):
        """What the body uses from outside; looked at again when a name has come to mean another
        object."""
        scope = self._scope
        objects = [scope.resolve(node) for node in self._outer_nodes]
        known = self._known
        if known is None or any(map(operator.is_not, objects, known.objects)):
            constants = self._check(strict=True).constants
            known = self._known = _Outside(objects, constants, self._hash(scope, constants))
        return known

    def _hash(self, scope, constants):
        text = [ast.dump(self._source.tree.args), *map(ast.dump, self._source.tree.body)]
        text += [f"{key}={_describe(value)}" for key, value in sorted(constants.items())]
        for node in self._outer_nodes:
            function, exception = scope.function(node), scope.exception(node)
            text.append(f"{ast.unparse(node)}:{function[0] if function else exception}")
        return hashlib.sha256("\n".join(text).encode()).hexdigest()

    def bind_scalars(self, values):
        """Values of all scalars in the order of the parameter list, defaults filled in.

        Raises
        ------
        ConfigError
            For an unknown name, a missing value, or a value that is not a number.
        """
        for name in values:
            if name not in self.scalars:
                allowed = ", ".join(self.scalars) or "none, the nest has no scalars"
                raise ConfigError(
                    f"nest {self.name!r} has no scalar {name!r}; allowed: {allowed}"
                )
        bound = {}
        for name, default in self.scalars.items():
            value = values.get(name, default)
            if value is REQUIRED:
                raise ConfigError(f"nest {self.name!r} needs a value for its scalar {name!r}")
            if not is_constant(value):
                raise ConfigError(
                    f"scalar {name!r} of nest {self.name!r}: given {type(value).__name__} "
                    f"{value!r}; allowed: int, float, bool and NumPy scalars of bool, int32, "
                    "int64, float32, float64"
                )
            bound[name] = value
        return bound

    def iteration_box(self, shapes, over=None, *, time=None, steps=None):
        """The largest box of points for which every access is inside its array.

        Parameters
        ----------
        shapes : dict or tuple of int
            Shape of each array by name; those of tables are not looked at. A tuple: of all arrays.
        over : dict, optional
            Half-open bounds by index name, ``{"i": (1, n)}``, that narrow the box.
        time : str, optional
            ``nest.time``, to run the first index as time: the arrays whose subscripts begin with it
            have no such axis in their shapes.
        steps : int, optional
            Number of time steps, given with ``time``.

        Returns
        -------
        tuple of (int, int)
            Half-open bounds, one pair an index; those of time are (0, steps).

        Raises
        ------
        ConfigError
            For a wrong rank, an index that no array bounds, an unknown index, or bounds outside the
            allowed range.
        """
        if not isinstance(shapes, dict):
            shapes = dict.fromkeys(self.axes, shapes)
        if time is not None and time != self.time:
            raise ConfigError(f"nest {self.name!r} given time={time!r}; "
                              f"allowed: {self.time!r} (nest.time)")
        return iteration_box(self, shapes, over, time, steps)

    def reference(self, box, arrays, scalars=None):
        """Run the body as plain nested Python loops, in place: slow, and the definition.

        Parameters
        ----------
        box : sequence of (int, int)
            Half-open bounds, one pair an index.
        arrays : dict
            NumPy arrays by name.
        scalars : dict, optional
        """
        operands = [arrays[name] for name in self.arrays]
        scalars = dict(scalars or {})
        order = inspect.signature(self.function).parameters
        position = {name: k for k, name in enumerate(n for n in order if n not in self.scalars)}
        places = [position[name] for name in self.indices]
        arguments = [None] * len(position)
        for name, array in zip(self.arrays, operands, strict=True):
            arguments[position[name]] = array
        with np.errstate(all="ignore"):
            for point in itertools.product(*(range(low, high) for low, high in box)):
                for place, value in zip(places, point, strict=True):
                    arguments[place] = value
                self.function(*arguments, **scalars)

    def __call__(self, *arguments, **keywords):
        raise TypeError(
            f"{self.name} is a loop nest, not a function: run it with "
            f"tilewave.run({self.name}, ...); {self.name}.function(...) computes one point"
        )

    def __repr__(self):
        def texts(places):
            return ", ".join(map(self.text_of, places)) or "nothing"

        scalars = f", scalars {', '.join(self.scalars)}" if self.scalars else ""
        vectors = dict.fromkeys(str(each).split(":")[0] for each in self.dependences)
        tables = f"; tables {', '.join(self.tables)}" if self.tables else ""
        return (
            f"<nest {self.name} ({self._source.file}:{self.line}): "
            f"loops {', '.join(self.indices)}; "
            f"writes {texts(place for place in self.places if place.written)}; "
            f"reads {texts(place for place in self.places if not place.written)}{tables}; "
            f"dependences {', '.join(vectors) or 'none'}{scalars}>"
        )


@dataclass(frozen=True)
class _Outside:
    """The objects that a body's outside names stood for, and what follows from them."""

    objects: list
    constants: dict
    signature: str


def _describe(value):
    """Type and exact value of a constant."""
    return f"{type(value).__name__}:{value.hex() if isinstance(value, float) else value!r}"
