"""Schedules as plain data, of lists and numbers: what files hold and what is compared."""

from tilewave import _core

#: Fields of the core's classes, in the order in which files hold them.
TILE = ("coord", "time", "slice", "box", "work")
MESSAGE = (
    "peer",
    "tag",
    "send",
    "synchronous",
    "array",
    "buffer",
    "region",
    "bytes",
    "tile",
    "pieces",
    "aggregate",
    "at",
)
ARRAY = ("item_bytes", "storage", "owned", "stride", "separate", "whole", "time_buffers", "planes", "reach", "lacks")
#: Fields that files of former versions lack, with what they then are.
LATER = {"period": []}
VIEW = ("memory", "rows", "shift", "buffers")
NEST = ("space", "bounds", "kernel", "order", "loops", "rows_depend", "layers_together", "window")
ACCESS = ("array", "offset", "writes", "keeps")
RESULT = ("array", "region", "source", "ranks", "number")


def of_schedule(core):
    """Plain data of one rank's schedule."""
    return {
        "rank": core.rank,
        "ranks": core.ranks,
        "works": [_of_work(work) for work in core.works],
        "arrays": [_of(array, (*ARRAY, *LATER)) | {"view": _of(array.view, VIEW)} for array in core.arrays],
        "tiles": [list(_of(tile, TILE).values()) for tile in core.tiles],
        "messages": [list(_of(message, MESSAGE).values()) for message in core.messages],
        "buffers": list(core.buffers),
        "lanes": [[[step.op, step.item, step.count] for step in lane] for lane in core.lanes],
        "results": [list(_of(result, RESULT).values()) for result in core.results],
        "repeated": [list(steps) for steps in core.repeated],
        "advance": _plain(core.advance),
    }


def to_schedule(data):
    """The core's schedule of plain data; raises TypeError, ValueError, KeyError or a ConfigError for what is none."""
    core = _core.Schedule()
    core.rank, core.ranks = data["rank"], data["ranks"]
    core.works = [_to_work(work) for work in data["works"]]
    core.arrays = [_to_array(array) for array in data["arrays"]]
    core.tiles = [_filled(_core.Tile(), TILE, tile) for tile in data["tiles"]]
    core.messages = [_filled(_core.Message(), MESSAGE, message) for message in data["messages"]]
    core.buffers = data["buffers"]
    core.lanes = [[_core.Step(*step) for step in lane] for lane in data["lanes"]]
    core.results = [_core.Result(*map(_core_value, result)) for result in data["results"]]
    core.repeated = [tuple(steps) for steps in data["repeated"]]
    core.advance = _core_value(data.get("advance", []))
    return core


def _of_work(work):
    if (task := work.task) is not None:
        regions = {name: [[r.array, _plain(r.box)] for r in getattr(task, name)] for name in ("reads", "writes")}
        return {"number": work.number, "operation": task.operation, "amount": task.amount, **regions}
    nest = work.nest
    return {
        "number": work.number,
        **_of(nest, (*NEST, *LATER)),
        "places": [list(_of(p, ACCESS).values()) for p in nest.places],
    }


def _to_work(data):
    if "operation" in data:
        reads, writes = ([_core.Region(a, _core_value(box)) for a, box in data[name]] for name in ("reads", "writes"))
        return _core.Work(data["number"], _core.TaskWork(data["operation"], reads, writes, data["amount"]))
    places = [_core.Access(*map(_core_value, place)) for place in data["places"]]
    nest = _core.NestWork(_core_value(data["space"]), places)
    return _core.Work(data["number"], _filled(nest, *_values(data, NEST)))


def _to_array(data):
    array = _filled(_core.Array(), *_values(data, ARRAY))
    array.view = _core.View(*(_core_value(data["view"][name]) for name in VIEW))
    return array


def _values(data, names):
    return (*names, *LATER), [data[name] for name in names] + [data.get(name, old) for name, old in LATER.items()]


def _of(core, names):
    return {name: _plain(getattr(core, name)) for name in names}


def _filled(core, names, values):
    for name, value in zip(names, values, strict=True):
        setattr(core, name, _core_value(value))
    return core


def _plain(value):
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value


def _core_value(value):
    """Lists of numbers as the core's indices, and lists of these as its boxes and rows."""
    return tuple(map(_core_value, value)) if isinstance(value, list) else value
