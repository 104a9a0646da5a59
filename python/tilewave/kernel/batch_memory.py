"""Memory of the buffers of a batch: elements of all lanes next to each other."""

import functools

from llvmlite import ir

from tilewave.kernel.emit.loops import c_function
from tilewave.kernel.types.values import I8, I64, POINTER
from tilewave.nest.batch import before

#: Buffers begin at cache lines.
LINE_BYTES = 64


class Room:
    """Where the elements of a `Buffer` are: for each as many as there are lanes, one after the other."""

    def __init__(self, buffer, dtype, axes, starts, extents, planes):
        self.buffer, self.dtype, self.axes = buffer, dtype, axes
        self.starts, self.extents, self.planes = starts, extents, planes
        self.data = None


def rooms_of(build, nest, dtypes, box):
    """A `Room` for each buffer of a `BatchNest`, for inner loops of this box."""
    rooms = []
    for buffer in nest.buffers:
        name = buffer.array if buffer.stored or not buffer.written else before(buffer.array)
        axes = [k for k, index in enumerate(nest.inner) if index in buffer.places[0].axes]
        starts, extents, planes = [], [], 0
        for k in axes:
            offsets = [place.along[nest.inner[k]] for place in buffer.places]
            starts.append(build.add(box[k][0], I64(min(offsets))))
            extents.append(build.sub(build.add(box[k][1], I64(max(offsets))), starts[-1]))
            if buffer.kind == "ring" and k == 0 and len(nest.inner) > 1:
                planes = 1 + max(offsets) - min(offsets)
        rooms.append(Room(buffer, dtypes[name], axes, starts, extents, planes))
    return rooms


def allocated(e, rooms, lanes):
    """The memory of all rooms, which are told where they are in it; to be freed."""
    build, total, begins = e.builder, I64(LINE_BYTES), []
    for room in rooms:
        if room.buffer.kind == "direct":
            continue
        extents = [I64(room.planes), *room.extents[1:]] if room.planes else room.extents
        size = functools.reduce(build.mul, extents, I64(lanes * room.dtype.itemsize))
        begins.append((room, total))
        lines = build.udiv(build.add(size, I64(LINE_BYTES - 1)), I64(LINE_BYTES))
        total = build.add(total, build.mul(lines, I64(LINE_BYTES)))
    memory = build.call(e.outside(c_function("malloc"), ir.FunctionType(POINTER, [I64])), [total])
    e.fail_if(build.icmp_unsigned("==", build.ptrtoint(memory, I64), I64(0)), "MemoryError", "the buffers of a batch")
    line = build.sub(I64(0), build.and_(build.ptrtoint(memory, I64), I64(LINE_BYTES - 1)))
    for room, begin in begins:
        room.data = build.gep(memory, [build.add(begin, line)], source_etype=I8)
    return memory
