"""``@nest``: a loop body in Python, read as a nest with uniform dependences."""

from __future__ import annotations

import ast
import copyreg
import hashlib
import importlib
import inspect
import itertools
import linecache
import math
import operator
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewave.errors import ConfigError, of_program
from tilewave.nest.box import bounding_lookups, iteration_box
from tilewave.nest.captured import Captured, Outside, describe, found_by, has_changed, hash_of
from tilewave.nest.colours import never_written
from tilewave.nest.dependences import dependences_of, places_of, time_index, views_of
from tilewave.nest.inner_loops import is_inner
from tilewave.nest.names import MISSING, Scope, is_constant
from tilewave.nest.parse import parse
from tilewave.nest.reference import run_body
from tilewave.nest.reserved import RESERVED
from tilewave.nest.source import Source
from tilewave.nest.step_rows import check_time, step_rows
from tilewave.nest.subscript import names_outside, place_of, read_parameters
from tilewave.nest.syntax import BodyChecker
from tilewave.nest.whole_function import refuse_loops

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tilewave.annotations import Array
    from tilewave.nest.dependences import Dependence, Place
    from tilewave.nest.views import View

#: Default of a scalar that has none.
REQUIRED = inspect.Parameter.empty


def nest(function: Callable[..., Any]) -> Nest:
    """Declare a loop body: the plain Python loops around it are the meaning.

    Names that are subscripted are arrays, names used in subscripts are loop indices, nested in the order of the
    parameter list; keyword-only parameters are scalars. Subscripts are ``index + integer constant``; an array of lower
    rank has some of the indices. What three loops k, i, j write at ``D[i, j]`` may be read at ``D[i, k]``, ``D[k, j]``
    and ``D[k, k]``, too: k is the pivot of shortest paths, or of elimination. An array that is only read may be
    subscripted in several orders (``V[i] * V[j]``, ``S[i, j] + S[j, i]``, ``S[i, i]``), or be a table, looked up by
    integers that are computed (``S[a[i], b[j-1]]``). Numbers defined outside the body (at module level or in an
    enclosing function) are constants: the values that they have when the nest is run. Another value is cheap, but for
    exponents and what else decides the code.

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
        Naming file, line and column of what is not supported, and what is allowed. Where a program of several ranks
        ends with it, it is shown once.

    Examples
    --------
    >>> @nest
    ... def relax(A, i, j, *, c=0.5):
    ...     A[i, j] = c * (A[i-1, j] + A[i, j-1])
    """
    with of_program():
        return Nest(function)


def nest_from(text: str, names: Mapping[str, Any] | None = None) -> Nest:
    """Make a nest from the text of its body: where there is no file, as in programs that write bodies themselves.

    Parameters
    ----------
    text : str
        Python source with one ``def`` or several, of which the last is the body; it is run like a file. Indented text
        is dedented.
    names : dict, optional
        The global names of the text, in addition to ``np`` and ``math``; a copy is taken.

    Returns
    -------
    Nest

    Raises
    ------
    ConfigError
        As `nest`; for a text that is no Python, or has no function. What running the text raises comes as it is.

    Examples
    --------
    >>> relax = nest_from("def relax(A, i, j): A[i, j] = c * (A[i-1, j] + A[i, j-1])", {"c": 0.5})
    """
    with of_program():
        return _nest_from(text, names)


def _nest_from(text, names):
    if not isinstance(text, str) or not isinstance(names, dict | None):
        raise ConfigError(
            f"nest_from: given {type(text).__name__} and {type(names).__name__}; "
            "allowed: Python source as a str, and a dict from names to what they stand for"
        )
    text = textwrap.dedent(text)
    file = f"<nest {hashlib.sha256(text.encode()).hexdigest()[:16]}>"
    try:
        code = compile(text, file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise ConfigError(f"nest_from: the text is no Python: {error}") from None
    functions = [statement.name for statement in parse(text).body if isinstance(statement, ast.FunctionDef)]
    if not functions:
        raise ConfigError("nest_from: the text has no def; allowed: the body of a nest, def name(A, i, j): ...")
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    names = {"np": np, "math": math, "__name__": "__tilewave__", **(names or {})}
    exec(code, names)
    made = names[functions[-1]]
    return made if isinstance(made, Nest) else Nest(made)


def _named(module, name):
    """Return what a module has under a name; None where it has nothing."""
    try:
        return operator.attrgetter(name)(importlib.import_module(module))
    except (AttributeError, ImportError):
        return None


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
        From each array that is no table to the loop indices of its subscripts; those in several orders are not in it.
    views : tuple of View
        Each array that is no table, under each order of its subscripts; those of a pivot aside.
    indices : tuple of str
        Outermost first.
    scalars : dict
        From name to default; ``REQUIRED`` where there is none.
    places : tuple of Place
        The elements that a point touches: written ones first, then those only read, each group in source order.
    dependences : tuple of Dependence
        Between points that touch one element; print them to see kind, accesses and line.
    numbers : set of str
        The loop indices that the body computes with.
    pivot : str or None
        The first of three loop indices k, i, j where step k reads row k or column k of what it writes at [i, j].
    time : str or None
        The first loop index, if the body uses it as time steps are used: every array that is
        written or has it is subscripted first with it, at -6 to +1, and written at +1 only.
    """

    __name__: str
    __qualname__: str
    source: Any
    scope: Any
    parameters: Any
    certain: frozenset[Any]
    values: tuple[Any, ...]
    updates: dict[str, Any]
    written_tables: tuple[str, ...]
    reads_history: bool
    inner: list[ast.Call]
    extents: tuple[tuple[str, int], ...]
    bounding: tuple[tuple[Any, ...], ...]
    backwards: bool
    rewrites: tuple[ast.NodeTransformer, ...]
    made: dict[Any, Any]
    rows: dict[str, ast.expr]
    within: dict[Any, tuple[str, ...]]

    name: str
    function: Callable[..., Any]
    arrays: tuple[str, ...]
    written: tuple[str, ...]
    tables: tuple[str, ...]
    axes: dict[str, tuple[str, ...]]
    views: tuple[View, ...]
    indices: tuple[str, ...]
    scalars: dict[str, Any]
    places: tuple[Place, ...]
    dependences: tuple[Dependence, ...]
    numbers: set[str]
    pivot: str | None
    time: str | None

    def __init__(self, function: Callable[..., Any]) -> None:
        self.backwards, self.rewrites = False, ()
        source = Source(function)
        rows, tree = step_rows(source)
        self._read(function, source.with_tree(tree) if rows else source)
        self.rows = rows
        check_time(source, rows, any(time_index(self.places, self.indices, back) for back in (False, True)))

    def _read(self, function, source):
        #: The source text with file, lines and columns.
        self.source = source
        self.function = function
        self.name = self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.__qualname__ = function.__qualname__
        #: What names from outside the body stand for.
        self.scope = Scope(function)
        #: The parameters by their roles.
        refuse_loops(self.source)
        self.parameters = read_parameters(self.source)
        self._refuse_reserved_names()
        body = self._check(strict=False)
        self._known, self._first_check = None, (body, found_by(body))
        self._nodes = {**body.reads, **body.stores}
        self.arrays = self.parameters.arrays
        self.indices = self.parameters.indices
        self.tables = self.parameters.tables
        self.pivot = self.parameters.pivot
        self.places = places_of(body)
        self.written = tuple(
            name for name in self.arrays if any(place.array == name for place in self.places if place.written)
        )
        # Rows and columns of a pivot are no arrays of their own.
        point = self.indices[1:]
        plain = [p for p in self.places if not (self.pivot and p.array in self.written and p.axes != point)]
        self.views = views_of(plain, self.arrays)
        self.axes = {
            name: orders[0]
            for name, orders in self.parameters.orders.items()
            if len(orders) == 1 or name in self.written
        }
        self.dependences = dependences_of(self.source, body, self.places, self.parameters)
        # Loops inside the body, the extents that it computes with, and what bounds the loops around it.
        self.inner = [node for node in self.source.nodes if is_inner(node)]
        self.extents, self.bounding = tuple(body.extents), bounding_lookups(self.source, self.parameters)
        self._unwritten_keys = None
        # Locals and places that every path which does not raise assigns.
        self.certain = body.certain
        # What of it is reduced and stored nowhere: those of a `ReducedNest`.
        self.values = ()
        # Tables that a kernel writes: those of an `OrderFreeNest` or a `BatchNest`.
        self.written_tables = ()
        # Updates whose order does not matter, of an `OrderFreeNest`.
        self.updates = {}
        self.time = time_index(self.places, self.indices)
        # The first subscripts of arrays that it writes a row of for several time steps, which its tree has no more.
        self.rows = {}
        # The indices whose strides alone keep points from writing a place, by its key.
        self.within = {}
        # What rewrites have made of it, by `tilewave.nest.changed.remembered`.
        self.made = {}
        # Whether it reads time steps before the current one, as u[t-1] is.
        self.reads_history = self.time is not None and any(
            place.offsets[0] < 0
            for place in self.places
            if place.array in self.written and self.axes[place.array][0] == self.time
        )
        self.numbers = names_outside(self.source.tree.body, self.tables) & {*self.indices}
        self.numbers |= {index for place in self.places for index in place.whole}
        defaults = inspect.signature(function).parameters
        self.scalars = {name: defaults[name].default for name in self.parameters.scalars if name in defaults}

    def __reduce__(self) -> Any:
        """Pickle by name where its module has it; else with its function, whose text the process that reads it must
        know."""
        if type(self) is not Nest:  # copies of derived nests
            return copyreg.__newobj__, (type(self),), self.__dict__
        if self.__module__ != "__main__" and _named(self.__module__, self.__qualname__) is self:
            return _named, (self.__module__, self.__qualname__)
        return Nest, (self.function,)

    def _refuse_reserved_names(self):
        """Arrays and scalars are keywords of `run`: none may have the name of one of its parameters."""
        given = self.source.tree.args
        for argument in (*given.args, *given.kwonlyargs):
            name = argument.arg
            if name in RESERVED and name not in self.parameters.indices:
                kind = "array" if name in self.parameters.arrays else "scalar"
                raise self.source.error(
                    argument,
                    f"{kind} {name!r} of nest {self.name!r} has a name that is taken: {name}= is an argument of "
                    "tilewave.run",
                    f"another name ({name}_, say); taken are {', '.join(RESERVED)}",
                )

    def _check(self, strict):
        return BodyChecker(self.source, self.scope, self.parameters, strict).check()

    @property
    def rank(self) -> int:
        """Number of loop indices."""
        return len(self.indices)

    @property
    def _unwritten(self) -> frozenset[Any]:
        """The keys of places that conditions on the indices keep all points from writing, as in one colour of two."""
        if self._unwritten_keys is None:
            self._unwritten_keys = never_written(self)
        return self._unwritten_keys

    @property
    def line(self) -> int:
        """Line of the ``def`` in its file."""
        return self.source.line(self.source.tree)

    def where(self, place: Place) -> str:
        """``file:line:column`` of the first assignment or read of a place."""
        node = self._nodes[place.key]
        return f"{self.source.file}:{self.source.line(node)}:{self.source.column(node)}"

    def text_of(self, place: Place) -> str:
        """The source text of the first assignment or read of a place."""
        return self.source.text_of(self._nodes[place.key])

    def place_of(self, node: ast.Subscript) -> Place:
        """``Place.key`` of a subscript in the body's syntax tree."""
        return place_of(self.source, node)

    def table_rank(self, table: str) -> int:
        """Number of subscripts of a table."""
        return self.parameters.ranks[table]

    def constants(self) -> dict[str, Any]:
        """Snapshot of the outside numbers that the body uses, by their text; of a function f that it calls, ``f:text``.

        Raises
        ------
        ConfigError
            When a name is not defined, or is no number or supported function.
        """
        return dict(self._outside().constants)

    def signature(self) -> str:
        """Hash of the body and of the constants it captures, the same on every rank.

        Returns
        -------
        str
            64 hexadecimal digits.
        """
        return self._outside().signature

    def captured(self) -> dict[str, Any]:
        """Return what kernels of the nest may be given of the constants when they run, as `Captured`."""
        return self._outside().captured

    def code_signature(self) -> str:
        """Hash of the body and of those constants only whose values are compiled in where `captured` is given."""
        return self._outside().code_signature

    def _outside(self):
        """Return what the body uses from outside; looked at again when a name has come to mean another object."""
        known = self._known
        if known is None or has_changed(known.watched):
            body, watched = self._first_check
            if has_changed(watched) or any(found is MISSING for _, _, found in watched):
                body = self._check(strict=True)
                watched = found_by(body)
            nodes = itertools.chain.from_iterable(ast.walk(each.source.tree) for each in body.called.values())
            lines = [node.lineno for node in nodes if hasattr(node, "lineno")]
            # Others are those of functions.
            of_body = {text: value for text, value in body.constants.items() if ":" not in text}
            captured = Captured(self.source.tree.body, of_body)
            texts = {text: describe(value) for text, value in body.constants.items()}
            free = {
                text: what if text in captured.compiled or text not in of_body else type(of_body[text]).__name__
                for text, what in texts.items()
            }
            dumps = [*map(ast.dump, (self.source.tree.args, *self.source.tree.body))]
            known = self._known = Outside(
                watched,
                body.constants,
                hash_of(body, [*dumps, *sorted(map("{}={}".format, texts, texts.values()))]),
                captured,
                hash_of(body, [*dumps, *sorted(map("{}={}".format, free, free.values()))]),
                [line - self.line for line in lines],
            )
        return known

    def lines(self) -> list[str]:
        """Line of the ``def``, then from it those of all parts of the functions that the body calls: what messages
        depend on.
        """
        return self.line, *self._outside().lines

    def bind_scalars(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Values of all scalars in the order of the parameter list, defaults filled in.

        Raises
        ------
        ConfigError
            For an unknown name, a missing value, or a value that is not a number.
        """
        for name in values:
            if name not in self.scalars:
                allowed = ", ".join(self.scalars) or "none, the nest has no scalars"
                raise ConfigError(f"nest {self.name!r} has no scalar {name!r}; allowed: {allowed}")
        bound = {}
        for name, default in self.scalars.items():
            value = values.get(name, default)
            if value is REQUIRED:
                raise ConfigError(f"nest {self.name!r} needs a value for its scalar {name!r}")
            if not is_constant(value):
                raise ConfigError(
                    f"scalar {name!r} of nest {self.name!r}: given {type(value).__name__} {value!r}; allowed: int, "
                    "float, complex, bool and NumPy scalars of bool, ints, float32, float64, complex64, complex128"
                )
            bound[name] = value
        return bound

    def iteration_box(self, shapes: Mapping[str, Sequence[int]] | Sequence[int]) -> tuple[tuple[int, int], ...]:
        """The largest box of points for which every access is inside its array.

        Parameters
        ----------
        shapes : dict or tuple of int
            Shape of each array by name; those of tables are not looked at. A tuple: of all arrays.

        Returns
        -------
        tuple of (int, int)
            Half-open bounds, one pair an index.

        Raises
        ------
        ConfigError
            For a wrong rank, and an index that no array bounds.
        """
        if not isinstance(shapes, dict):
            bounding = (array for array, *_ in self.bounding)
            shapes = dict.fromkeys((*(view.array for view in self.views), *bounding), shapes)
        return iteration_box(self, shapes)

    def reference(
        self, box: Sequence[tuple[int, int]], arrays: Mapping[str, Array], scalars: Mapping[str, Any] | None = None
    ) -> None:
        """Run the body as plain nested Python loops, in place: slow, and the definition.

        Parameters
        ----------
        box : sequence of (int, int)
            Half-open bounds, one pair an index.
        arrays : dict
            NumPy arrays by name.
        scalars : dict, optional
        """
        with np.errstate(all="ignore"):
            run_body(self, itertools.product(*(range(low, high) for low, high in box)), arrays, scalars)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        raise TypeError(
            f"{self.name} is a loop nest, not a function: run it with "
            f"tilewave.run({self.name}, ...); {self.name}.function(...) computes one point"
        )

    def __repr__(self) -> str:
        def texts(places):
            return ", ".join(map(self.text_of, places)) or "nothing"

        scalars = f", scalars {', '.join(self.scalars)}" if self.scalars else ""
        vectors = dict.fromkeys(str(each).split(":")[0] for each in self.dependences)
        tables = f"; tables {', '.join(self.tables)}" if self.tables else ""
        return (
            f"<nest {self.name} ({self.source.file}:{self.line}): loops {', '.join(self.indices)}; "
            f"writes {texts(place for place in self.places if place.written)}; "
            f"reads {texts(place for place in self.places if not place.written)}{tables}; "
            f"dependences {', '.join(vectors) or 'none'}{scalars}>"
        )
