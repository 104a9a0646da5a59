"""Going on from checkpoints."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
from typing import TYPE_CHECKING, Any

from tilewave.checkpoints import folders, plain
from tilewave.checkpoints import manifest as manifests
from tilewave.checkpoints.checkpoint import _folder, begin_clock, even_blocks
from tilewave.checkpoints.folders import MANIFEST
from tilewave.context.collective import collective, ready
from tilewave.dtypes import ALL
from tilewave.errors import ConfigError
from tilewave.field import zarr3
from tilewave.field.create import make
from tilewave.field.exchange import halo_of
from tilewave.field.values import problem_of
from tilewave.linalg.layout import layout_of
from tilewave.linalg.matrix import Matrix, Move
from tilewave.notices import warn

if TYPE_CHECKING:
    from tilewave.annotations import Collective, FilePath
    from tilewave.context.context import Context


@collective("tw.resume", whole=True)
def resume(path: FilePath, *, context: Context | None = None) -> Collective[dict[str, Any] | None]:
    """Read the newest whole checkpoint; collective.

    Parameters
    ----------
    path : str or path
        As in `checkpoint`, written on any number of ranks.
    context : Context, optional

    Returns
    -------
    dict or None
        "step", and all that `checkpoint` was given, by name: new fields with their earlier time steps, matrices, and
        plain data. None where there is no checkpoint.

    Raises
    ------
    ConfigError
        On every rank: when there are checkpoints, and all are damaged.

    Warns
    -----
    RuntimeWarning
        On rank 0: when the newest is damaged, which its checksums say, and an older one is taken.

    Notes
    -----
    Collective: a few rounds of small messages; each rank reads the chunks that its blocks need, and checks them.
    """
    path = _folder("resume", path)
    names = problem = None
    if context.rank == 0:
        try:
            names = [folder for _, folder in folders.found(path)]
        except OSError as error:
            problem = ConfigError(f"resume: {path!r}: {error.strerror}")
    yield problem or f"path {path!r}"
    names = json.loads(context._core.broadcast(json.dumps(names).encode()))
    damage = []
    for folder in names:
        manifest = _manifest(context, folder, damage)
        if manifest is None:
            continue
        try:
            made = yield from _read(context, folder, manifest)
        except ConfigError as problem:
            damage.append(str(problem))
            folders.mark_damaged(folder)
            continue
        begin_clock(context, path)
        if damage and context.rank == 0:
            warn(f"resume: {'; '.join(damage)}. The checkpoint of step {manifest['step']} before it was taken")
        return {"step": manifest["step"], **made}
    if damage:
        yield ConfigError(f"resume: no checkpoint in {path!r} can be read: {'; '.join(damage)}")
    return None


def _manifest(context, folder, damage):
    """Return the manifest of a checkpoint, on every rank; None where rank 0 finds it damaged. Collective."""
    text = b""
    if context.rank == 0:
        try:
            manifest = folders.manifest_of(folder)
            folders.check_sizes(folder, manifest)
            text = json.dumps(manifest).encode()
        except (zarr3.DamagedError, OSError, MemoryError) as problem:  # the other ranks wait for this one's answer
            text = f"{folder!r} is damaged: {problem}".encode(errors="backslashreplace")
    text = context._core.broadcast(text).decode()
    if text.startswith("{"):
        return manifests.read(text)
    damage.append(text)
    folders.mark_damaged(folder)
    return None


def _read(context, folder, manifest):
    """All values of a checkpoint by name; collective. Damage is a ConfigError of all ranks."""
    made, plain_data = {}, {}
    for name, item in manifest["items"].items():
        if item["kind"] == "plain":
            made[name] = None  # for their order
            plain_data[name] = item
            continue
        field = yield from ready(f"field {name}", functools.partial(_empty, context, item, folder))
        if item["history"]:
            context._moves(field._storage.keep_history, item["history"])
        yield problem_of(functools.partial(_fill, field, name, item, folder, manifest)) or f"values of {name}"
        made[name] = (yield from _as_matrix(field, item, folder)) if item["kind"] == "matrix" else field

    def decode():
        with _damage(folder):
            data = folders.read_file(folder, manifests.VALUES, manifest)
            for name, item in plain_data.items():
                made[name] = plain.decoded(data[item["begin"] : item["begin"] + item["bytes"]])
            folders.read_file(folder, f"{manifests.FIELDS}/{zarr3.NODE}", manifest)

    yield problem_of(decode) or "values"
    for name, item in manifest["items"].items():
        if item["kind"] == "field":
            made[name]._count()
    return made


def _empty(context, item, folder):
    """A field as it was made."""
    shape = item["shape"]
    with _damage(folder):
        around = halo_of(item["halo"], item["periodic"] or None, None, shape) if item["halo"] else None
        field = make(context, shape, manifests.dtype_of(item), around)
        field._cuts = item["blocks"]
        return field


def _fill(field, name, item, folder, manifest):
    """Set this rank's part of all time steps; local."""
    with _damage(folder):
        for back in range(1 + item["history"]):
            array = manifests.array_name(name, back)
            node = zarr3.checked_node(folders.read_file(folder, f"{array}/{zarr3.NODE}", manifest))

            def checked(chunk, data, array=array):
                folders.checked(f"{array}/{chunk}", data, manifest)

            stored = zarr3.Stored(os.path.join(folder, array), node, ALL, checked)
            if (stored.shape, stored.dtype) != (field.shape, field.dtype):
                raise zarr3.DamagedError(
                    f"{array} has shape {stored.shape}, {stored.dtype}, and {MANIFEST} {field.shape}, {field.dtype}"
                )
            field._view(back)[...] = stored[field.owned]


def _as_matrix(field, item, folder):
    """A matrix with the values of a field, in its layout or that of as many ranks as there are now; collective."""
    context = field.context

    @_damage(folder)
    def room():
        name, block, grid = item["layout"]
        weights = item.get("weights", ())
        weights = weights if len(weights) == context.size else None
        if name == "cyclic":
            grid = grid if math.prod(grid) == context.size else None
            layout = layout_of("resume", field.shape, context.size, name, block, grid, weights)
        else:
            axis = 0 if name == "rows" else 1
            even = max(1, -(-field.shape[axis] // grid[axis]))  # one block a rank, as it will be on this many
            block = None if block[axis] == even else block
            layout = layout_of("resume", field.shape, context.size, name, block, None, weights)
        matrix = Matrix(context, field.shape, field.dtype, layout)
        return matrix, Move(context, even_blocks(field), matrix._blocks, field.dtype)

    matrix, move = yield from ready("room for a matrix", room)
    move(field._view(0), matrix.local)
    return matrix


@contextlib.contextmanager
def _damage(folder):
    """Turns what is wrong with a checkpoint's files into an error that all ranks raise; lack of memory stays."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConfigError(f"{folder!r} is damaged: {getattr(error, 'strerror', None) or error}") from None
