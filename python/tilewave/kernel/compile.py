"""Turns the body of a nest into machine code for one row of points.

The C signature of a row function, which is all that the engine knows of a kernel::

    int64 row(char* const* pointers, const int64* step, int64 count,
              const int64* index, const int64* direction, const void* env)

``pointers[p]`` is place ``p`` of ``nest.places`` at the row's first point (behind the places of arrays those of values
that are reduced at once, `reduced_values`); after the places comes the element [0, 0, ...] of each table, then where
each of ``kernel.bests`` goes. ``step[p]`` is the number of bytes from point to point where none was compiled in. Point
``q`` has the indices ``index + q * direction``. ``env`` has 8-byte slots: the scalars, then extents and byte strides of
each table (`Kernel.pack`). A point loads all that it reads before it stores; it stores each written place once, with
the old value where no statement assigned it. Points are computed in increasing order unless the caller vouched that
they are independent. The result is 0, or ``point * SITES + site`` (`emitter.SITES`) where the body raised: the points
before are stored, and ``kernel.sites[site - 1]`` says what was raised.

A kernel whose points are independent has a second function, of several rows in one call::

    int64 rows(char* const* pointers, const int64* step, int64 count, const int64* spans,
               const int64* next, const int64* index, const int64* direction, const int64* turn,
               const void* env)

Row number ``r`` is ``r * next[p]`` bytes and ``r * turn`` indices from row 0, of which ``pointers`` and ``index`` hold
point 0. There are three ``spans`` for each of the ``count`` rows: its number, first point and points. It does what the
row function does for each in turn; where one raises, the result has its place among the spans in the bits from 32 on.

The result is that of nested Python loops over NumPy arrays, bit for bit (the sign and payload of
a NaN aside). The types of all values are inferred by NumPy's rules, also where a value may have
one of several, as ``max(A[i, j], 0)`` has; LLVM computes exactly the operations that the body
names. NumPy's exponentials and their kin are computed by NumPy's inner loops, for strips of a row where its points
allow that (`strips`), else one element at a time. Both have the bits of the function of one NumPy scalar.

Four limits in addition to what is refused at compile time; each raises in the point where it is met, as
the body's exceptions do. A Python int (an index, a scalar, ``int(x)``) has 64 bits; with a
Python float in a comparison, or in a quotient of two ints, 53. A loop index that is used as a
number is below 2**30 in size. A Python float to a fractional power that Python would make complex.

A body that assigns its element on some paths only writes the old value back on the others.

The object code of a kernel is cached on disk (`kernel_cache`), by all that it is made from: the body's
syntax tree, the values that it captures, types, choices, the processor, and the sources and libraries that
make it. The LLVM module is not made where that is found: it takes ten times as long as the rest.
"""

import ast
import concurrent.futures
import contextlib
import ctypes
import dataclasses
import functools
import hashlib
import json
import os
import threading

import llvmlite.binding as llvm
import numpy as np

from tilewave import _core
from tilewave.dtypes import ALL
from tilewave.errors import ConfigError, is_integer
from tilewave.kernel import cache as kernel_cache
from tilewave.kernel import environment, kernel_code, processor
from tilewave.kernel.emit import loops
from tilewave.kernel.kernel_code import Choices, Vectors, build_row
from tilewave.kernel.scalars import Slot
from tilewave.kernel.tables.permuted import Layout
from tilewave.kernel.toolchain import toolchain
from tilewave.notices import log

_LOADING = threading.Lock()  # held while a kernel is loaded
#: What threads are compiling, or have compiled for kernels that nobody has loaded.
_started = set()

#: Choices that are true or false.
FLAGS = ("fastmath", "independent", "long_rows", "separate", "apart")
#: Places, tables and bests of a kernel.
MOST_POINTERS = _core.limits["places"]

#: The C type of a row function, for ctypes.
ROW = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
)
#: Of a function of several rows.
ROWS = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 2, ctypes.c_int64, *[ctypes.c_void_p] * 6)


class Kernel:
    """A compiled body.

    Attributes
    ----------
    address : int
        The row function, a C function pointer; valid as long as the kernel lives.
    rows_address : int
        The function of several rows where points are independent or rows may be staggered, else 0.
    places : tuple of Place
        What the pointers stand for; equals ``nest.places``.
    steps : tuple of int or None
        Elements from point to point that are compiled in, one a place.
    independent : bool
        Whether the caller vouched that no point of a row depends on another.
    sites : tuple of (str, str, int)
        Exception name, message and source line of each place where the body may raise.
    slots : tuple of Slot
        Name and type of each scalar.
    vectors : bool
        Whether several points can be computed at once where they are independent: the body calls
        no function for one point and has no place that may raise.
    simd_rows_from : int
        Points of a row from which rows that depend within themselves are the lanes of vectors; 0: never.
    copies_tables : bool
        Whether `pack` copies elements of tables, so that it must be called again where they may have changed.
    digest : str
        Of all that the object code depends on.
    bests : tuple of Best
        Of which places the row function finds the largest or smallest value, an element of the place's dtype: it is
        joined to what is where the pointers after the tables' say.
    stored : bool
        Whether its object code was found on disk.
    """

    def __init__(self, recipe):
        nest, choices = recipe.nest, recipe.choices
        self.nest = nest
        self.places = nest.places
        key = recipe.key()
        self.digest = hashlib.sha256(key.encode()).hexdigest()
        self._recipe, self._engine, self._coming = recipe, None, None
        self._object_code, facts, self.stored = recipe.found(key)
        self.sites = tuple((name, message, nest.line + line) for name, message, line in facts["sites"])
        self.vectors = facts["vectors"]
        self.simd_rows_from = facts["simd_rows_from"]
        layouts = dict(zip(nest.tables, choices.layouts, strict=False)) if facts["permuted"] else {}
        self._byte_tables = environment.ByteTables(nest, recipe.slots, recipe.dtypes, layouts)
        self.copies_tables = bool(self._byte_tables.layouts)
        self.slots = recipe.slots
        self.fastmath, self.steps, self.independent = (choices.fastmath, choices.steps, choices.independent)
        self.bests = choices.bests
        self._several = facts["several"]
        log("DEBUG", "kernel of %s: %s", nest.name, "found on disk" if self.stored else "compiled")

    @functools.cached_property
    def address(self):
        return self._loaded().get_function_address(kernel_code.ROW)

    @functools.cached_property
    def rows_address(self):
        return self._loaded().get_function_address(kernel_code.ROWS) if self._several else 0

    def start(self):
        """Begin to compile in a thread: for kernels that will run, while something else is prepared."""
        with _LOADING, contextlib.suppress(RuntimeError):  # no thread can start: it is compiled when it is wanted
            if self._engine is None and self._coming is None and not self.stored:
                self._coming = _compilers().submit(self._object_code)
                _started.add(self._coming)

    def _loaded(self):
        """LLVM's engine with the code, which is compiled when it is first wanted: a kernel that nobody runs is not.

        What is being compiled is waited for, too: who loads a kernel runs it, or measures it, on the same CPUs.
        """
        coming, make = self._coming, self._object_code
        if self._engine is None:
            code = coming.result() if coming else make()
            with _LOADING:
                if self._engine is None:
                    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), processor.target_machine())
                    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
                    engine.finalize_object()
                    self._engine = engine
                    self._object_code = self._coming = None
                started = [*_started]
                _started.clear()
            concurrent.futures.wait(started)
        return self._engine

    def pack(self, scalars=None, tables=None):
        """Return what the row function is given as ``env``: pass the address, keep the array alive.

        Parameters
        ----------
        scalars : dict, optional
            Defaults of the nest stand for what is missing.
        tables : dict, optional
            The NumPy array of each table of the nest.

        Returns
        -------
        numpy.ndarray
            Of int64: an element for each scalar, then the extents and byte strides of each table, and what the
            kernel permutes of them as they are now; at least one.

        Raises
        ------
        ConfigError
            For a value of another type than the kernel was compiled for, or a wrong rank.
        """
        return environment.pack(
            self.nest, self.slots, self._recipe.dtypes, scalars or {}, tables or {}, self._byte_tables
        )

    def assembly(self):
        """The machine code as text, to look at."""
        machine = processor.target_machine()
        return machine.emit_assembly(processor.optimised(str(self._recipe.build().module), machine))


def compile_kernel(nest, dtype_of, scalars=None, **choices):
    """A kernel of a nest's body for the given types; it is compiled when its code is first wanted.

    Parameters
    ----------
    nest, dtype_of, scalars, **choices
        As of `_recipe`.

    Returns
    -------
    Kernel

    Raises
    ------
    ConfigError
        Naming file, line and column of an operation that has no exact translation for these types.
    """
    return Kernel(_recipe(nest, dtype_of, scalars, **choices))


def makes_vectors(nest, dtype_of, scalars=None, **choices):
    """The `vectors` of a kernel that need not be made: as `compile_kernel`; found on disk where it was asked before."""
    recipe = _recipe(nest, dtype_of, scalars, **choices)

    def answer():
        return b"yes" if recipe.build().vectors else b"no"

    return kernel_cache.object_code(f"vectors?\n{recipe.key()}", answer) == b"yes"


def _recipe(nest, dtype_of, scalars=None, *, captured=None, shapes=None, in_place=False, bests=(), **choices):
    """Return what a kernel of a nest's body is made from.

    Parameters
    ----------
    nest : Nest
    dtype_of : dict
        From array name to dtype: one of `tilewave.dtypes.ALL`.
    scalars : dict, optional
        Values of the scalars. Only their types are compiled in, and for a Python int the range
        that it is in (`body.scalars.RANGES`).
    captured : dict, optional
        Values of `Nest.captured`, all or none: then they are no constants of the kernel, but given to `Kernel.pack`
        with the scalars, others of the same kinds where the kernel is used again.
    shapes : dict, optional
        From the name of a table to a shape. Small tables of shapes like these are looked up by permutations.
    in_place : bool
        The rows of a call compute the same elements one after another, such as the steps of a pivot.
    bests : sequence of Best, optional
        Of which written places a row's largest or smallest value is wanted. The kernel's `bests` has those that it
        returns, all or none.
    **choices
        Of `Choices`:

        - ``fastmath`` (bool): Allow reordering, fused operations and the C library's functions in place of NumPy's;
          results are then no longer those of plain loops to the last bit.
        - ``steps`` (sequence of (int or None), optional): For each of ``nest.places`` the elements from one point of
          a row to the next, to compile in; None: given at run time, in bytes. Default: all None.
        - ``independent`` (bool): The caller vouches that in no row a point touches memory that another point of it
          writes.
        - ``long_rows`` (bool): Rows have hundreds of points, so that those left over after whole vectors do not
          count.
        - ``same_row`` (sequence of (None or (int, int)), optional): For each of ``nest.places`` another one before it
          in the list, of the same array and with steps that are compiled in, and the elements from that place to this
          one, where the caller vouches for them.
        - ``staggered`` (Staggered, optional): The caller's word that rows that depend within themselves may be
          computed together, and how.
        - ``off`` (int): The fast paths that are switched off, `_core.paths_off`.
        - ``separate`` (bool): The caller vouches that no written array shares memory with another one.
        - ``apart`` (bool): As `independent`, of the points of a row alone: rows come one by one in the order of the
          loops.

    Returns
    -------
    _Recipe
    """
    dtypes = _checked_dtypes(nest, dtype_of)
    slots = _slots(nest, scalars, captured)
    names = {value.name for value in nest.values}
    given = {"fastmath": False, "independent": False, "steps": None, **choices}
    given |= {name: bool(given[name]) for name in FLAGS if name in given}
    given["steps"] = steps = _checked_steps(nest, given["steps"])
    given["same_row"] = tuple(given.get("same_row", ()))
    if (given["independent"] or given.get("staggered")) and not _core.without(given.get("off", 0), "bests"):
        given["bests"] = _found_bests(nest, dtypes, steps, bests)
    found = {best.place for best in given.get("bests", ()) if best.alone}
    if any(place.array in names and k not in found for k, place in enumerate(nest.places)):
        given["staggered"] = None  # rows of stored values come one by one
    in_place_bytes = processor.in_place_bytes() if in_place else 0
    choices = Choices(**given, layouts=layouts_of(nest, shapes or {}), in_place=in_place_bytes)
    signature = nest.code_signature() if captured else nest.signature()
    return _Recipe(nest, signature, nest.constants(), dtypes, slots, choices)


def find_types(nest, dtype_of, scalars=None, captured=None):
    """Put into the expressions of the nest's values the types that they may have, where these have no dtype.

    Parameters
    ----------
    nest : ReducedNest
    dtype_of, scalars, captured
        As for `compile_kernel`.

    Returns
    -------
    Row
        The row function that told them.

    Raises
    ------
    ConfigError
        As `compile_kernel`.
    """
    slots, choices = _slots(nest, scalars, captured), Choices(False, _checked_steps(nest, None), False)
    recipe = _Recipe(nest, "", nest.constants(), _checked_dtypes(nest, dtype_of), slots, choices)
    return build_row(recipe, Vectors(16, 16))


def layouts_of(nest, shapes):
    """How tables of some shapes are looked up, hashable: a kernel serves all shapes that have the same."""
    return tuple(Layout.of(shapes[table]) if table in shapes else None for table in nest.tables)


def kernel_key(nest, dtype_of, scalars=None, fastmath=False, captured=None):
    """A hashable value that is equal exactly where a compiled kernel can be used again."""
    dtypes = _checked_dtypes(nest, dtype_of)
    names = tuple(dtypes[name].name for name in nest.arrays)
    signature = nest.code_signature() if captured else nest.signature()
    return signature, names, _slots(nest, scalars, captured), bool(fastmath)


def _checked_steps(nest, steps):
    """For each place the elements from point to point; None: known at run time only."""
    count = len(nest.places)
    steps = (None,) * count if steps is None else tuple(steps)
    if len(steps) != count or not all(step is None or is_integer(step) for step in steps):
        raise ConfigError(
            f"steps of nest {nest.name!r}: given {steps}; allowed: {count} entries, one a "
            "place of nest.places, each an int (elements) or None"
        )
    return tuple(None if step is None else int(step) for step in steps)


def _found_bests(nest, dtypes, steps, bests):
    """The wanted bests that a row function finds: where each point has another element."""
    found = [best for best in bests if steps[best.place] in (1, -1)]
    return tuple(found) if len(found) <= MOST_POINTERS - len(nest.places) - len(nest.tables) else ()


def _slots(nest, scalars, captured=None):
    values = {**nest.bind_scalars(scalars or {}), **(captured or {})}
    return tuple(Slot.of(name, value) for name, value in values.items())


def _checked_dtypes(nest, dtype_of):
    checked = {}
    for name in nest.arrays:
        if name not in dtype_of:
            raise ConfigError(f"nest {nest.name!r} needs the dtype of its array {name!r}")
        dtype = np.dtype(dtype_of[name])
        if dtype not in ALL or not dtype.isnative:
            raise ConfigError(
                f"array {name!r} of nest {nest.name!r} has dtype {dtype}; "
                f"allowed: {', '.join(each.name for each in ALL)}"
            )
        checked[name] = dtype
    return checked | {value.name: value.dtype for value in nest.values if value.dtype is not None}


@dataclasses.dataclass(frozen=True)
class _Recipe:
    """All that a kernel is made from."""

    nest: object
    signature: str
    constants: dict
    dtypes: dict
    slots: tuple
    choices: Choices

    def build(self):
        permutation = None if _core.without(self.choices.off, "permuted") else processor.permutation()
        sizes = processor.vector_bytes(), processor.lane_bytes(), processor.ahead_bytes()
        return build_row(self, Vectors(*sizes, permutation))

    def key(self):
        """All that the object code and what is known of it depend on, as text."""
        first, *rest = [node.lineno for node in ast.walk(self.nest.source.tree) if hasattr(node, "lineno")]
        types = [f"{name} {self.dtypes[name].name}" for name in self.nest.arrays]
        return (
            f"{toolchain()}{self.signature}\n{[line - first for line in rest]} {self.nest.lines()[1:]}\n{types}\n"
            f"{[(slot.name, str(slot.type), slot.low, slot.high) for slot in self.slots]}\n{self.choices}\n"
            f"{processor.vector_bytes(), processor.lane_bytes(), processor.ahead_bytes(), processor.permutation()}\n"
        )

    def found(self, key):
        """(maker of the object code, what is known of the kernel, whether the code is stored); the functions that it
        calls are known to LLVM.
        """
        stored = kernel_cache.find(key)
        if stored is not None:
            code, facts = _parted(stored)
            if loops.register(facts["calls"], facts["uniform"]):
                return lambda: code, facts, True
        row = self.build()
        facts = self._facts(row)
        if stored is not None:  # NumPy has other loops on the same processor, as its environment may ask for
            return lambda: _compiled(row, self.nest), facts, False

        def made():
            return json.dumps(facts).encode() + b"\0" + _compiled(row, self.nest)

        return lambda: _parted(kernel_cache.object_code(key, made))[0], facts, False

    def _facts(self, row):
        return {
            "sites": [(name, message, line - self.nest.line) for name, message, line in row.sites],
            "vectors": row.vectors,
            "several": row.several,
            "simd_rows_from": row.simd_rows_from,
            "permuted": row.permuted,
            "uniform": row.uniform,
            "calls": [name for name in row.module.globals if loops.is_outside(name)],
        }


def _compiled(row, nest):
    """The object code of a module."""
    try:
        return processor.object_code(str(row.module))
    except RuntimeError as error:
        raise ConfigError(
            f"{nest.source.file}:{nest.line}: nest {nest.name!r} does not compile: LLVM refuses what was made of it, "
            f"{str(error).splitlines()[0]}, which is an error in Tilewave; allowed: TILEWAVE_WITHOUT=wide_rows,strips,"
            "simd_rows,row_check,permuted in the environment, which leaves most of the code out"
        ) from None


@functools.cache
def _compilers():
    """Threads that compile, on all CPUs: the one that starts them may be pinned to one."""
    cpus = _core.allowed_cpus()

    def spread():
        with contextlib.suppress(OSError, AttributeError):  # where the system has no such call, or refuses it
            os.sched_setaffinity(0, cpus)

    return concurrent.futures.ThreadPoolExecutor(max(len(cpus), 1), "tilewave-compile", spread)


def _parted(data):
    facts, _, code = data.partition(b"\0")
    return code, json.loads(facts)
