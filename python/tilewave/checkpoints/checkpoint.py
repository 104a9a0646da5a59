"""Writing checkpoints."""

from __future__ import annotations

import functools
import json
import os
import time
import weakref
from typing import TYPE_CHECKING, Any

from tilewave import _core, files
from tilewave.checkpoints import folders, interval, manifest, plain
from tilewave.checkpoints.report import CheckpointReport
from tilewave.context.collective import collective, ready
from tilewave.errors import ConfigError, is_integer, shown
from tilewave.field import npy, zarr3
from tilewave.field.chunks import Chunks, checksum_of, write_new
from tilewave.field.create import make
from tilewave.field.field import Field
from tilewave.field.npy import named_path
from tilewave.field.time_buffer import TimeBuffer
from tilewave.field.values import problem_of
from tilewave.launch import restarts
from tilewave.linalg.matrix import Matrix, Move

if TYPE_CHECKING:
    from tilewave.annotations import Collective, FilePath
    from tilewave.context.context import Context

#: The clock of each path, by context.
_clocks: weakref.WeakKeyDictionary[Context, dict[str, interval.Clock]] = weakref.WeakKeyDictionary()


@collective("tw.checkpoint", whole=True)
def checkpoint(
    path: FilePath, step: int, *, every: float | str | None = None, context: Context | None = None, **values: Any
) -> Collective[CheckpointReport | None]:
    """Write all that a program needs to go on later, on any number of ranks; collective.

    Parameters
    ----------
    path : str or path
        A folder for the checkpoints of one program, on a disk that all ranks share. It is made where there is none. In
        it is a folder for each checkpoint, with ``fields.zarr``, a group that other programs read, too.
    step : int
        How far the program is: at least 0.
    every : str or float, optional
        Write only if so much time has passed since the last checkpoint or `resume`, or since the first call with this
        path: "10 min", "30 s", "2 h", or seconds. "auto": at the first call, and then so often that the run ends
        first, by Young's and Daly's formula, from what the last checkpoints took and the mean time between failures of
        the run, which the variable TILEWAVE_MTBF says; 24 h. Default: always.
    context : Context, optional
    **values
        What is saved, by name: fields with all their earlier time steps, matrices (`tilewave.linalg`; no factors), and
        data that is the same on every rank: None, bool, int, float, complex, str, bytes, lists, tuples and dicts of
        these, NumPy arrays and numbers, `numpy.random.Generator`.

    Returns
    -------
    CheckpointReport or None
        What it took; None where `every` has left it out.

    Raises
    ------
    ConfigError
        On every rank: for a value of another kind, or that differs between ranks; when any rank could not write its
        part (a full disk, a missing right). Older checkpoints then stay.
    MemoryError
        On every rank: where one lacks memory.

    Notes
    -----
    Collective. Each rank writes whole chunks of up to 8 MB, from as much memory. A matrix, and arrays of NumPy, are
    copied. A call that `every` leaves out costs two rounds of small messages. A process that is killed at any time
    leaves the older checkpoints; the newest two are kept, so the disk needs room for three.
    """
    began = time.monotonic()
    path = _folder("checkpoint", path)
    if not is_integer(step, 0):
        raise ConfigError(f"checkpoint: step={shown(step)} was given; allowed: an integer >= 0")
    automatic = every == interval.AUTO
    least_s = None if every is None else interval.between_failures_s() if automatic else interval.every_s(every)
    items = {name: _described(name, value) for name, value in values.items()}
    for name, value in values.items():
        if isinstance(value, Field | Matrix) and value.context is not context:
            raise ConfigError(f"checkpoint: {name} is on another context; allowed: all on one")
    marks = [getattr(value, "_number", "") for value in values.values()]
    often = f"auto: {least_s}" if automatic else least_s
    yield f"path {path!r}, step {step}, every {often}, {json.dumps(items)}, numbers {marks}"
    clock = _clocks.setdefault(context, {}).setdefault(path, interval.Clock(began))
    last = clock.last_s
    clock.last_s = began if last is None else last
    if least_s is not None:
        wait_s = clock.best_s(least_s) if automatic else least_s
        due = automatic and not clock.costs_s or last is not None and began - last >= wait_s
        if not context._core.allreduce_min([int(due or context.rank > 0)])[0]:  # rank 0's clock
            return None
    blobs = yield from _same_data(context, {n: v for n, v in values.items() if items[n]["kind"] == "plain"})
    unfinished = []
    try:
        folder, total = yield from _written(context, path, int(step), items, values, blobs, unfinished)
    finally:
        for made in unfinished:
            files.remove(made)
    ended = clock.last_s = time.monotonic()
    clock.costs_s.append(ended - began)
    share = None if last is None else (ended - began) / max(ended - last, 1e-9)
    next_s = clock.best_s(least_s) if automatic else least_s
    numbers = json.dumps([folder, total, ended - began, share, clock.share_of_run(ended), next_s])
    folder, total, *times = json.loads(context._core.broadcast(numbers.encode()))
    return CheckpointReport(folder, int(step), total, *times)


def _folder(what, path):
    text = npy.path_of(what, path)
    if os.path.lexists(text) and not os.path.isdir(text):
        raise ConfigError(f"{what}: {text!r} is no folder; allowed: a folder for checkpoints")
    return os.path.abspath(text)


def _described(name, value):
    """Return what a value is, as the manifest has it."""
    if isinstance(value, Field) or type(value) is Matrix:
        if not manifest.is_name_of_array(name):
            raise ConfigError(
                f"checkpoint: {shown(name)}: given a {type(value).__name__}; allowed: a name as of variables"
            )
        item = {"kind": "matrix", "shape": value.shape, "dtype": value.dtype.name}
        item |= {"history": 0, "halo": None, "periodic": (), "blocks": None, "layout": None}
        if isinstance(value, Matrix):
            more = {"weights": value.layout.weights} if value.layout.weights else {}
            return item | more | {"layout": (value.layout.name, value.layout.block, value.layout.grid)}
        storage = value._whole(f"checkpoint: {name}")
        more = {"history": value.history, "halo": value.halo, "blocks": value._cuts}
        return item | more | {"kind": "field", "periodic": value.periodic if storage.has_halo else ()}
    if isinstance(value, Matrix | TimeBuffer):
        instead = "the matrix that it was made of" if isinstance(value, Matrix) else "the field, with its time buffers"
        raise ConfigError(f"checkpoint: {name}: given {type(value).__name__}; allowed: {instead}")
    plain.check(name, value)
    return {"kind": "plain"}


def _same_data(context, values):
    """Plain data as bytes, which must be the same on every rank; collective."""
    blobs = yield from ready("values", lambda: {name: plain.encoded(name, value) for name, value in values.items()})
    sums = [int(checksum_of(blob), 16) >> 2 for blob in blobs.values()]
    if context.size > 1 and sums:
        least = context._core.allreduce_min([*sums, *(-sum_ for sum_ in sums)])
        wrong = [name for name, low, high in zip(blobs, least, least[len(sums) :]) if low != -high]
        if wrong:
            yield ConfigError(
                f"checkpoint: {', '.join(wrong)}: other values on some rank; allowed: the same on every rank, as the "
                "program may go on with another number of them. For each rank's own data make a field"
            )
    return blobs


def _written(context, path, step, items, values, blobs, unfinished):
    """The folder of a whole checkpoint, and its bytes, on rank 0; collective. `unfinished`: what has to go if not."""
    sums = {}
    if context.rank == 0:
        problem = problem_of(lambda: sums.update(_begin(path, items, values, blobs, unfinished)))
    else:
        problem = None
    yield problem or "begun"
    made = os.fsdecode(context._core.broadcast(os.fsencode(unfinished[0]) if unfinished else b""))
    problem = None
    for name, value in values.items():
        if items[name]["kind"] == "matrix":
            field = yield from _as_field(value)
        elif items[name]["kind"] == "field":
            field = value
        else:
            continue
        for back in range(1 + items[name]["history"]):
            chunks = yield from ready("room for a chunk", functools.partial(Chunks, field, back))
            folder = manifest.array_name(name, back)
            wrong, written = chunks.write(os.path.join(made, folder))
            problem = problem or wrong
            sums |= {f"{folder}/{chunk}": of_it for chunk, of_it in written.items()}
    yield problem or "written"
    of_all = _core.measure.gather(context._core, json.dumps(sums).encode())
    folder, total = "", 0
    if context.rank == 0:
        for part in of_all[1:]:
            sums |= json.loads(part)
        total = sum(size for size, _ in sums.values())

    def finish():
        nonlocal folder
        with named_path("checkpoint", path):
            folder = folders.finish(path, made, step, items, sums)
        restarts.note_checkpoint(folder, step)

    yield problem_of(finish if context.rank == 0 else int) or "named"
    unfinished.clear()
    return folder, total


def _begin(path, items, values, blobs, unfinished):
    """Make the folder with all but chunks and manifest; of each file its bytes and checksum."""
    with named_path("checkpoint", path):
        made = folders.begin(path)
        unfinished.append(made)
        os.mkdir(os.path.join(made, manifest.FIELDS))
        small, nodes, begin = {}, {}, 0
        for name, item in items.items():
            if item["kind"] == "plain":
                item |= {"begin": begin, "bytes": len(blobs[name])}
                begin += len(blobs[name])
                continue
            for back in range(1 + item["history"]):
                folder = manifest.array_name(name, back)
                os.mkdir(os.path.join(made, folder))
                node = zarr3.array_node(values[name].shape, values[name].dtype)
                small[f"{folder}/{zarr3.NODE}"] = nodes[os.path.basename(folder)] = node
        small[f"{manifest.FIELDS}/{zarr3.NODE}"] = zarr3.group_node({n: json.loads(text) for n, text in nodes.items()})
        small[manifest.VALUES] = b"".join(blobs.values())
        return {name: write_new(os.path.join(made, name), data) for name, data in small.items()}


def _as_field(matrix):
    """A copy of a matrix as a field; collective."""

    def room():
        field = make(matrix.context, matrix.shape, matrix.dtype)
        return field, Move(matrix.context, matrix._blocks, even_blocks(field), matrix.dtype)

    field, move = yield from ready("room for a matrix", room)
    move(matrix.local, field._view(0))
    return field


def even_blocks(field):
    """The blocks of a field that no run has moved, as those of a matrix."""
    layout = field._storage.layout
    rows, columns = (_core.linalg.Axis(n, parts, 0) for n, parts in zip(layout.shape, layout.grid, strict=True))
    return _core.linalg.BlockCyclic(rows, columns, False)


def begin_clock(context, path):
    """`every` counts from now on."""
    now = time.monotonic()
    _clocks.setdefault(context, {})[path] = interval.Clock(now, now)
