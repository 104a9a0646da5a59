"""Signals while compiled loops run: Python's handlers run now and then, and what one raises ends the loops."""

import ctypes

import llvmlite.binding as llvm
from llvmlite import ir

from tilewave.kernel.types.values import I32, I64, POINTER

#: Turns of loops between two looks: some milliseconds.
TURNS = 2**20
#: Of a range so short no turns are counted, so that loops around it may become vectors.
SHORT = 16
_FUNCTIONS = {
    "PyGILState_Ensure": ir.FunctionType(I32, []),
    "PyErr_CheckSignals": ir.FunctionType(I32, []),
    "PyErr_Fetch": ir.FunctionType(ir.VoidType(), [POINTER] * 3),
    "PyGILState_Release": ir.FunctionType(ir.VoidType(), [I32]),
}
#: Words that what a handler raises takes.
ROOM = 3


class Signals:
    """Looks for signals in a function that is being made.

    Parameters
    ----------
    e : Emitter
    room : llvmlite.ir.Value
        The address of `ROOM` words, which are 0.
    """

    def __init__(self, e, room):
        self.e, self.build = e, e.builder
        with self.build.goto_entry_block():
            self.left = self.build.alloca(I64)
            self.build.store(I64(TURNS), self.left)
        self.look = _look(self.build.module)
        self.room = room

    def count(self, turns):
        """Count turns that are made."""
        self.build.store(self.build.sub(self.build.load(self.left, typ=I64), turns), self.left)

    def check(self):
        """Raise what a handler has raised, where many turns have been made."""
        build = self.build
        with build.if_then(build.icmp_signed("<", build.load(self.left, typ=I64), I64(0)), likely=False):
            build.store(I64(TURNS), self.left)
            raised = build.call(self.look, [self.room])
            self.e.fail_if(build.icmp_signed("!=", raised, I32(0)), "KeyboardInterrupt", "")


def _look(module):
    """The function that runs handlers: not 0 where one has raised."""
    function = ir.Function(module, ir.FunctionType(I32, [POINTER]), "tilewave_signals")
    function.linkage = "internal"
    function.attributes.add("noinline")
    function.attributes.add("cold")
    build = ir.IRBuilder(function.append_basic_block())
    ensure, check, fetch, release = (ir.Function(module, kind, name) for name, kind in _FUNCTIONS.items())
    state = build.call(ensure, [])
    raised = build.call(check, [])
    with build.if_then(build.icmp_signed("!=", raised, I32(0))):
        build.call(fetch, [build.gep(function.args[0], [I64(k)], source_etype=I64) for k in range(ROOM)])
    build.call(release, [state])
    build.ret(raised)
    return function


def register():
    """Tell LLVM where Python's functions are."""
    for name in _FUNCTIONS:
        llvm.add_symbol(name, ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value)


def restore(room):
    """Raise what a handler has raised."""
    ctypes.pythonapi.PyErr_Restore(*(ctypes.c_void_p(int(part)) for part in room))
