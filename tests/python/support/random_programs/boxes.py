"""Where the loops of a nest run by themselves."""

import math

from random_programs.model import Affine


def is_table(name, program):
    """Whether an array narrows no loop: some subscript is computed, and none is an inner index."""
    array, computed = program.arrays[name], False
    if array.role == "written":
        return False
    for nest in program.nests:
        for access, _ in nest.accesses():
            if access.array == name:
                for subscript in access.at[array.times == "steps" :]:
                    if isinstance(subscript, Affine):
                        if subscript.index and subscript.index in "qr":
                            return False
                    else:
                        computed = True
    return computed


def box_of(nest, program, setting):
    """The largest box in which every access is inside its array: (first, end) by index."""
    lows, highs = {name: [] for name in nest.indices}, {name: [] for name in nest.indices}
    for access, _ in nest.accesses():
        array = program.arrays[access.array]
        if is_table(access.array, program):
            continue
        at = access.at[array.times == "steps" :]
        for subscript, extent in zip(at, setting.shapes[access.array], strict=True):
            if not isinstance(subscript, Affine) or subscript.index not in lows:
                continue
            loops = setting.loops.get(nest.name)
            periodic = subscript.index in (loops.periodic if loops else setting.loops_periodic)
            offset = 0 if periodic else subscript.offset
            lows[subscript.index].append(math.ceil(-offset / subscript.factor))
            highs[subscript.index].append((extent - 1 - offset) // subscript.factor + 1)
    if nest.timed:
        lows["t"], highs["t"] = [0], [setting.steps]
    return {name: (max(lows[name], default=0), min(highs[name], default=0)) for name in nest.indices}
