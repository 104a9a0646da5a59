"""Machine code of loops as they stand: all that a `Region` does, in one function.

Its C signature is ``int64 loops(char* const* pointers, const void* env)``. ``pointers`` has element [0, 0, ...] of each
array, then the record of the names that the loops assign: for each the number of its type and its value
(`tilewave.kernel.emit.in_order`), and room for what a signal's handler raises. ``env`` has the given names, then
extents and byte strides of each array. The result is 0, or the number of the place that raised: what was stored before
it stays.
"""

import builtins
import ctypes
import json
import threading
from typing import NamedTuple

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

from tilewave.errors import KernelError
from tilewave.kernel import cache as kernel_cache
from tilewave.kernel import processor
from tilewave.kernel.emit import literal_powers, loops, signals
from tilewave.kernel.emit.emitter import Emitter
from tilewave.kernel.emit.in_order import RECORD, TYPES, UNSET, Elements, LoopsBody, Types
from tilewave.kernel.rows.vectors import SeparateArrays
from tilewave.kernel.scalars import positions, room_of
from tilewave.kernel.tables.tables import Tables
from tilewave.kernel.toolchain import toolchain
from tilewave.kernel.types.emitting import element
from tilewave.kernel.types.values import I64, INT64_MAX, INT64_MIN, POINTER, Value, bools_of, in_memory
from tilewave.nest.types import ARRAY0

NAME = "tilewave_loops"
#: Ranges of ints that code is compiled for.
RANGES = ((0, 2**30), (-(2**30), 2**30), (INT64_MIN, INT64_MAX))
_LOADING = threading.Lock()
signals.register()


class Known(NamedTuple):
    """Hold what the caller vouches for.

    ``inside``: all subscripts are within their extents, none of them negative. ``listed``: arrays whose elements are
    numbers of Python, as those of lists are."""

    inside: bool = False
    listed: frozenset = frozenset()


class LoopsKernel:
    """The code of a region for arrays and names of some types.

    Parameters
    ----------
    region : Region
    dtypes : dict
        Of each array.
    slots : tuple of Slot
        The names that are given.
    unit : frozenset of str
        Arrays whose last subscript goes from element to element of memory.
    separate : bool
        No written array shares memory with another one.
    foreign : dict
        From names whose values are no numbers to what these are.
    known : Known
    """

    def __init__(self, region, dtypes, slots, unit, separate, foreign, known):
        self.region, self.slots = region, slots
        self.names, self._dtypes, self._unit, self._separate = region.assigned["all"], dtypes, unit, separate
        self._foreign, self._known = foreign, known
        types = [(name, dtypes[name].name) for name in region.tables]
        given = [(slot.name, str(slot.type), slot.low, slot.high) for slot in slots]
        key = (
            f"loops\n{toolchain()}{region.signature()}\n{types}\n{given}\n{sorted(unit)} {separate} "
            f"{sorted(foreign.items())} {known.inside} {sorted(known.listed)}\n"
        )
        stored = kernel_cache.find(key)
        facts = _facts(stored) if stored is not None else None
        if facts is None or not loops.register(facts["calls"], ()):
            stored = self._made()
            facts = _facts(stored)
            kernel_cache.object_code(key, lambda: stored)
        self.sites = facts["sites"]
        with _LOADING:
            self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), processor.target_machine())
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(stored.partition(b"\0")[2]))
            self._engine.finalize_object()
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
        self._call = kind(self._engine.get_function_address(NAME))

    def run(self, arrays, values):
        """Run the loops.

        Parameters
        ----------
        arrays : dict
            The NumPy array of each table, of the dtypes that the code is for.
        values : dict
            The values of the slots.

        Returns
        -------
        dict
            The values of the names that the loops have assigned, or that were given.

        Raises
        ------
        Exception
            What the loops raise; arrays keep what was stored before.
        """
        tables = [arrays[name] for name in self.region.tables]
        env = np.zeros(room_of(self.slots), np.int64)
        for position, slot in positions(self.slots):
            slot.store(env, position, values[slot.name])
        numbers = [each for table in tables for each in (*table.shape, *table.strides)]
        env = np.concatenate([env, np.array(numbers, np.int64), np.zeros(1, np.int64)])
        record = np.zeros(RECORD * len(self.names) + signals.ROOM, np.int64)
        pointers = np.array([*(table.ctypes.data for table in tables), record.ctypes.data], np.uint64)
        site = self._call(pointers.ctypes.data, env.ctypes.data)
        if record[-signals.ROOM]:
            signals.restore(record[-signals.ROOM :])
        if site:
            raise self._error(*self.sites[site - 1])
        found = ((name, record[RECORD * k :]) for k, name in enumerate(self.names))
        return {name: _value(TYPES[words[0]], words[1:RECORD]) for name, words in found if TYPES[words[0]] != UNSET}

    def _error(self, exception, message, line):
        kind = getattr(builtins, exception, None)
        where = f"{message} ({self.region.source.file}:{line})" if message else f"{self.region.source.file}:{line}"
        if isinstance(kind, type) and issubclass(kind, Exception):
            return kind(where)
        return KernelError(f"{exception}: {where}")

    def _made(self):
        """The object code, behind what is known of it."""
        types = Types()
        while True:
            types.new = False
            module, sites = self._build(types)
            if not types.new:
                break
        calls = [name for name in module.globals if loops.is_outside(name)]
        code = processor.object_code(str(module))
        return json.dumps({"sites": sites, "calls": calls}).encode() + b"\0" + code

    def _build(self, types):
        module, region = ir.Module("tilewave"), self.region
        function = ir.Function(module, ir.FunctionType(I64, [POINTER, POINTER]), NAME)
        pointers, env = function.args
        build = ir.IRBuilder(function.append_basic_block("entry"))
        first = function.append_basic_block("first")
        e = Emitter(build, False, bools_of(self._dtypes))
        e.powers, e.line = literal_powers.exponents(0), region.line
        e.leave = lambda site: build.ret(I64(site))
        tables = Tables(e, region, in_memory(self._dtypes), None)
        tables.open(pointers, 0, env, room_of(self.slots))
        record = element(build, pointers, len(region.tables), POINTER)
        looking = signals.Signals(e, build.gep(record, [I64(RECORD * len(self.names))], source_etype=I64))
        names = {slot.name: Value([slot.load(build, env, k)]) for k, slot in positions(self.slots)}
        build.branch(first)
        build.position_at_end(first)
        separate = SeparateArrays(module, region.tables) if self._separate and region.tables else None
        marked = separate.mark if separate else lambda access, array: access
        elements = Elements(tables, marked, self._unit, self._known)
        constants = dict(region.outside().constants)
        body = LoopsBody(e, region, constants, {**names, **elements.extents()}, elements, types, self._foreign, looking)
        body.translate()
        if body.state is not None:
            body.keep(self.names, record)
            build.ret(I64(0))
        return module, e.sites


def _facts(stored):
    return json.loads(stored.partition(b"\0")[0])


def _value(kind, words):
    """The number of a type that a kernel has stored."""
    data = np.frombuffer(words.tobytes(), kind.dtype if kind.dtype.kind != "b" else np.uint8, count=1)
    found = data.astype(kind.dtype)[0]
    if kind.kind == ARRAY0:
        return np.array(found)
    return found.item() if kind.is_python else found
