"""``@nest``: a loop body in Python, read as a nest with uniform dependences."""

import ast
import hashlib
import inspect
import itertools
import operator
from dataclasses import dataclass

import numpy as np

from .body.names import Scope, is_constant
from .body.source import Source
from .body.subscript import read_offsets, read_parameters
from .body.syntax import BodyChecker
from .errors import ConfigError

#: Default of a scalar that has none.
REQUIRED = inspect.Parameter.empty


def nest(function):
    """Declare a loop body: the plain Python loops around it are the meaning.

    Names that are subscripted are arrays, names used in subscripts are loop indices, nested in
    the order of the parameter list; keyword-only parameters are scalars. Numbers defined outside
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
        In the order of the parameter list.
    written : str
        The array that the body assigns.
    indices : tuple of str
        Outermost first.
    scalars : dict
        From name to default; ``REQUIRED`` where there is none.
    accesses : tuple
        Each read of the body as ``(array, offsets)``, without repeats, in source order.
    """

    def __init__(self, function):
        self._source = Source(function)
        self.function = function
        self.name = self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.__qualname__ = function.__qualname__
        self._scope = Scope(function)
        self._parameters = read_parameters(self._source)
        body = self._check(strict=False)
        self._outer_nodes = list(body.outside.values())
        self._known = None
        self._reads = body.accesses
        self.arrays = self._parameters.arrays
        self.indices = self._parameters.indices
        self.written = body.stores[0].value.id
        order = sorted(body.accesses.items(), key=lambda item: (item[1].lineno, item[1].col_offset))
        self.accesses = tuple(access for access, _ in order)
        defaults = inspect.signature(function).parameters
        self.scalars = {name: defaults[name].default for name in self._parameters.scalars}
        self._carried = [access for access in self.accesses
                         if access[0] == self.written and any(access[1])]
        columns = list(zip(*(offsets for _, offsets in self.accesses), (0,) * self.rank))
        self._reach = [(-min(steps), max(steps)) for steps in columns]

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

    def line_of(self, access):
        """Line of the first read of an access ``(array, offsets)`` in its file."""
        return self._source.line(self._reads[access])

    def where(self, access):
        """``file:line:column`` of the first read of an access."""
        node = self._reads[access]
        return f"{self._source.file}:{self._source.line(node)}:{self._source.column(node)}"

    def text_of(self, access):
        """The source text of the first read of an access."""
        return self._source.text_of(self._reads[access])

    def offsets_of(self, node):
        """Offsets of a subscript in the body's syntax tree."""
        return read_offsets(self._source, node, self.indices)

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

    @property
    def flow_dependences(self):
        """Distance vectors of the reads of the written array, without repeats and zeros."""
        vectors = (tuple(-step for step in offsets) for _, offsets in self._carried)
        return tuple(dict.fromkeys(vectors))

    def check_box_sweep(self):
        """Check that a sweep over boxes can honour every dependence.

        Raises
        ------
        ConfigError
            For a dependence that has a negative component.
        """
        for access in self._carried:
            vector = tuple(-step for step in access[1])
            if min(vector) >= 0:
                continue
            later = next(part for part in vector if part) < 0
            why = "it reads a point that comes later in the loops" if later else \
                "it has a negative component"
            raise self._source.error(
                self._reads[access],
                f"dependence {vector} of array {self.written!r} cannot be honoured by a sweep "
                f"over boxes: {why}",
                f"reads of {self.written!r} at offsets <= 0 in every index "
                f"({self._example()})",
            )

    def _example(self):
        texts = (
            ", ".join(f"{name}-1" if name == moved else name for name in self.indices)
            for moved in self.indices
        )
        return ", ".join(f"{self.written}[{text}]" for text in texts)

    def iteration_box(self, shape, over=None):
        """The largest box of points for which every access is inside the arrays.

        Parameters
        ----------
        shape : sequence of int
            Shape of the arrays, the same for all.
        over : dict, optional
            Half-open bounds by index name, ``{"i": (1, n)}``, that narrow the box.

        Returns
        -------
        tuple of (int, int)
            Half-open bounds, one pair an index.

        Raises
        ------
        ConfigError
            For a wrong rank, an unknown index, or bounds outside the allowed range.
        """
        if len(shape) != self.rank:
            raise ConfigError(
                f"nest {self.name!r} has {self.rank} loop indices ({', '.join(self.indices)}), "
                f"given arrays of shape {tuple(shape)}; allowed: arrays of rank {self.rank}"
            )
        box = {}
        for name, extent, (low, ahead) in zip(self.indices, shape, self._reach, strict=True):
            box[name] = (low, max(low, int(extent) - ahead))
        if over is not None and not isinstance(over, dict):
            raise ConfigError(f"over: given {type(over).__name__}; allowed: a dict from index names "
                              "to pairs of ints, {\"i\": (1, n)}")
        for name, bounds in (over or {}).items():
            if name not in box:
                raise ConfigError(
                    f"over: nest {self.name!r} has no index {name!r}; "
                    f"allowed: {', '.join(self.indices)}"
                )
            box[name] = _narrowed(name, box[name], bounds)
        return tuple(box.values())

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
        reads = ", ".join(self.text_of(access) for access in self.accesses) or "nothing"
        scalars = f", scalars {', '.join(self.scalars)}" if self.scalars else ""
        return (
            f"<nest {self.name} ({self._source.file}:{self.line}): "
            f"loops {', '.join(self.indices)}; writes {self.written}; reads {reads}; "
            f"dependences {', '.join(map(str, self.flow_dependences)) or 'none'}{scalars}>"
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


def _narrowed(name, allowed, bounds):
    low, high = allowed
    whole = isinstance(bounds, tuple | list) and len(bounds) == 2 and \
        all(isinstance(bound, int | np.integer) for bound in bounds)
    if not whole:
        raise ConfigError(
            f"over: bounds {bounds!r} of index {name!r} are not supported; "
            "allowed: a pair of ints (first, end), half-open"
        )
    first, end = (int(bound) for bound in bounds)
    if not low <= first <= end <= high:
        raise ConfigError(
            f"over: bounds ({first}, {end}) of index {name!r} reach outside the points where "
            f"every access is inside its array; allowed: within ({low}, {high})"
        )
    return first, end
