"""Schedules as plain data, of lists and numbers: what files hold and what is compared.

The tables declare what a file has, for writing and for reading. Whether numbers name something and boxes fit is looked
at by the core (src/schedule/whole.hpp), once, when a schedule is read.
"""

import numpy as np

from tilewave import _core
from tilewave.entries import INT, LONG, Damaged, flag, integer, number, of_list, of_object, one_of, or_null, text
from tilewave.timeline.timeline import OPS

MOST_DIMS = _core.limits["dims"]

_INDEX = of_list(LONG, most=MOST_DIMS, make=tuple)
_BOX = of_list([_INDEX, _INDEX], make=tuple)


def _matrix(value, where):
    """Rows of a square matrix, or none."""
    rows = of_list(_INDEX, most=MOST_DIMS)(value, where)
    if any(len(row) != len(rows) for row in rows):
        raise Damaged(where, value, "as many rows as columns")
    return rows


def _dtype(value, where):
    try:
        found = np.dtype(text(value, where))
    except Exception:  # NumPy has many kinds of errors for these
        found = None
    if found is None or found.hasobject or not found.itemsize or found.str != value:
        raise Damaged(where, value, "a NumPy dtype of plain numbers, as its attribute str has it")
    return found


#: Fields of the core's classes, in the order in which files hold them, each with its kind.
TILE = {"coord": _INDEX, "wave": LONG, "slice": INT, "box": _BOX, "work": INT}
MESSAGE = {
    "peer": INT,
    "tag": INT,
    "send": flag,
    "synchronous": flag,
    "array": INT,
    "buffer": INT,
    "region": _BOX,
    "bytes": LONG,
    "tile": INT,
    "pieces": INT,
    "aggregate": INT,
    "at": LONG,
}
VIEW = {"memory": INT, "rows": of_list(_INDEX, most=MOST_DIMS), "shift": _INDEX, "buffers": LONG}
ARRAY = {
    "item_bytes": LONG,
    "storage": _BOX,
    "owned": _BOX,
    "stride": _INDEX,
    "separate": flag,
    "whole": flag,
    "time_buffers": INT,
    "planes": INT,
    "reach": _INDEX,
    "lacks": integer(0, (1 << 32) - 1),
    "period": _INDEX,
}
NEST = {
    "space": _BOX,
    "bounds": of_list(of_list([_INDEX, LONG], make=tuple)),
    "kernel": INT,
    "order": _matrix,
    "loops": _matrix,
    "rows_depend": flag,
    "layers_together": flag,
    "window": of_list([INT, INT, INT]),
    "period": _INDEX,
    "own": _BOX,
    "step": LONG,
    "last": flag,
}
ACCESS = {"array": INT, "offset": _INDEX, "writes": flag, "keeps": flag}
REGION = {"array": INT, "box": _BOX}
RESULT = {"array": INT, "region": _BOX, "source": INT, "ranks": of_list(INT), "number": LONG}
STEP = {"op": one_of(OPS), "item": INT, "count": INT}


def of_schedule(core):
    """Plain data of one rank's schedule."""
    return {
        "rank": core.rank,
        "ranks": core.ranks,
        "works": [_of_work(work) for work in core.works],
        "arrays": [_of(array, ARRAY) | {"view": _of(array.view, VIEW)} for array in core.arrays],
        "tiles": [_row_of(tile, TILE) for tile in core.tiles],
        "messages": [_row_of(message, MESSAGE) for message in core.messages],
        "buffers": list(core.buffers),
        "lanes": [[[step.op, step.item, step.count] for step in lane] for lane in core.lanes],
        "results": [_row_of(result, RESULT) for result in core.results],
        "repeated": [list(steps) for steps in core.repeated],
        "advance": _plain(core.advance),
    }


def _of_work(work):
    if (task := work.task) is not None:
        regions = {name: [_row_of(r, REGION) for r in getattr(task, name)] for name in ("reads", "writes")}
        return {"number": work.number, "operation": task.operation, "amount": task.amount, **regions}
    places = [_row_of(place, ACCESS) for place in work.nest.places]
    return {"number": work.number, **_of(work.nest, NEST), "places": places}


def _of(core, names):
    return {name: _plain(getattr(core, name)) for name in names}


def _row_of(core, names):
    return list(_of(core, names).values())


def _plain(value):
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value


def _row(fields, make):
    """The kind of a list with a value for each field, as `make` makes it of them."""
    read = of_list(list(fields.values()))
    return lambda value, where: make(*read(value, where))


def _filled(kind, fields):
    def make(*values):
        core = kind()
        for name, value in zip(fields, values, strict=True):
            setattr(core, name, value)
        return core

    return make


def _array(value, where):
    found = of_object({**ARRAY, "view": of_object(VIEW)})(value, where)
    array = _filled(_core.Array, ARRAY)(*(found[name] for name in ARRAY))
    array.view = _core.View(*(found["view"][name] for name in VIEW))
    return array


_REGIONS = of_list(_row(REGION, _core.Region))
_TASK = of_object({"number": LONG, "operation": INT, "amount": number, "reads": _REGIONS, "writes": _REGIONS})
_NEST = of_object({"number": LONG, **NEST, "places": of_list(_row(ACCESS, _core.Access))})


def _work(value, where):
    if isinstance(value, dict) and "operation" in value:
        found = _TASK(value, where)
        task = _core.TaskWork(found["operation"], found["reads"], found["writes"], found["amount"])
        return _core.Work(found["number"], task)
    found = _NEST(value, where)
    nest = _core.NestWork(found["space"], found["places"])
    for name in NEST:
        setattr(nest, name, found[name])
    return _core.Work(found["number"], nest)


_SCHEDULE = {
    "rank": INT,
    "ranks": INT,
    "works": of_list(_work),
    "arrays": of_list(_array),
    "tiles": of_list(_row(TILE, _filled(_core.Tile, TILE))),
    "messages": of_list(_row(MESSAGE, _filled(_core.Message, MESSAGE))),
    "buffers": of_list(LONG),
    "lanes": of_list(of_list(_row(STEP, _core.Step))),
    "results": of_list(_row(RESULT, _core.Result)),
    "repeated": of_list(of_list([INT, INT], make=tuple)),
    "advance": _INDEX,
}


def _schedule(value, where):
    """The core's schedule of one rank; whole."""
    core, found = _core.Schedule(), of_object(_SCHEDULE)(value, where)
    for name in _SCHEDULE:
        setattr(core, name, found[name])
    if (wrong := _core.damage(core)) is not None:
        entry, why = wrong
        raise ValueError(f"{where}.{entry}: {why}")
    return core


#: The entries of a file but its version.
FILE = of_object(
    {
        "note": text,
        "rank": or_null(INT),
        "arrays": of_list(of_list([text, or_null(of_list(LONG, most=MOST_DIMS, make=tuple)), or_null(_dtype)])),
        "functions": of_list(text),
        "combine": of_object({}, more=text),
        "schedules": of_list(_schedule, least=1),
    }
)


def of_file(data):
    """The entries of `FILE`, which fit each other: of a schedule that can be looked at, checked and predicted.

    Raises
    ------
    ValueError
        Names the first entry that does not.
    """
    found = FILE(data, "")
    cores, arrays = found["schedules"], found["arrays"]
    ranks = [core.rank for core in cores]
    whole = found["rank"] is None
    if ranks != ([*range(cores[0].ranks)] if whole else [found["rank"]]):
        raise Damaged(
            "rank", found["rank"], f"null with the parts of all ranks, or the one part's; it has those of {ranks}"
        )
    names = [name for name, _, _ in arrays]
    if len(set(names)) < len(names):
        raise Damaged("arrays", names, "a name for each")
    for position, core in enumerate(cores):
        _fits(core, f"schedules[{position}]", arrays, len(found["functions"]))
    types = {name: dtype for name, _, dtype in arrays}
    for name, op in found["combine"].items():
        if types.get(name) is None or not _core.combines(op, types[name].name):
            raise Damaged(f"combine.{name}", op, "sum, prod, min, max of an array that has a dtype for them")
    return found


def _fits(core, where, arrays, functions):
    """Check that what the file says of all ranks is so for the part of one."""
    if len(core.arrays) != len(arrays):
        raise ValueError(f"{where}.arrays: it has {len(core.arrays)}; allowed: the {len(arrays)} of the entry arrays")
    for number_, (array, (name, shape, dtype)) in enumerate(zip(core.arrays, arrays, strict=True)):
        entry, (lo, hi) = f"{where}.arrays[{number_}]", array.storage
        if dtype is not None and dtype.itemsize != array.item_bytes:
            raise Damaged(f"{entry}.item_bytes", array.item_bytes, f"{dtype.itemsize}, as array {name!r} is {dtype}")
        inside = (
            shape is None
            or len(shape) == len(lo)
            and all(0 <= l <= n and h <= n for l, h, n in zip(lo, hi, shape, strict=True))
        )
        if not inside:
            raise Damaged(f"{entry}.storage", [lo, hi], f"within array {name!r} of shape {shape}")
    for number_, work in enumerate(core.works):
        if work.task is not None and work.task.operation >= functions:
            allowed = f"one of the {functions} functions"
            raise Damaged(f"{where}.works[{number_}].operation", work.task.operation, allowed)
