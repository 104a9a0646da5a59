"""Saving fields: all ranks write under a name that nobody looks at, then rank 0 gives what is whole its name."""

import json
import os

import numpy as np

from tilewave import files
from tilewave.context.collective import collective
from tilewave.errors import ConfigError, shown
from tilewave.field import npy, vtk_image, zarr3
from tilewave.field.chunks import Chunks
from tilewave.field.npy import named_path
from tilewave.field.values import problem_of

#: What may be said of a file, by its ending; ".npy" for any other name.
OPTIONS = {zarr3.ENDING: ("dims", "attributes"), vtk_image.ENDING: ("spacing", "origin"), ".npy": ()}


def save(field, path, back, **options):
    """Write a field's values so many time steps before the current ones; collective, as `Field.save` says."""
    unnamed = []
    try:
        _save(field, path, back, options, unnamed)
    finally:
        for made in unnamed:
            files.remove(made)


@collective("tw.Field.save")
def _save(field, path, back, options, unnamed):
    field._whole("save")
    path, context = npy.path_of("save", path), field.context
    writer, text = _writer(path, field, back, options)
    if context.rank == 0:
        unnamed.append(writer.begin())
    yield f"field {field._number}, time buffer {-back}, path {path!r}{text}"
    made = os.fsdecode(context._core.broadcast(os.fsencode(unnamed[0]) if unnamed else b""))
    yield writer.write(made) or "written"
    yield problem_of(lambda: writer.finish(made) if context.rank == 0 else None) or "named"
    unnamed.clear()


def _writer(path, field, back, options):
    """Return what writes a file: its `begin` on rank 0 gives another name, under which `write` writes on all ranks,
    then `finish` on rank 0 gives it its name. And the options as text, which must be equal on all ranks.
    """
    ending = zarr3.ENDING if zarr3.split(path) else vtk_image.ENDING if path.endswith(vtk_image.ENDING) else ".npy"
    options = {name: given for name, given in options.items() if given is not None}
    for name in options:
        if name not in OPTIONS[ending]:
            where = next((kind for kind, names in OPTIONS.items() if name in names), "nothing")
            raise ConfigError(f"save: {path!r}: {name}= was given for a {ending} file; allowed: for {where}")
    if ending == zarr3.ENDING:
        options = labels(field, "save", **options)
        writer = ZarrWriter(path, field, back, **options)
    elif ending == vtk_image.ENDING:
        options = {name: _numbers(field, name, options.get(name)) for name in OPTIONS[ending]}
        writer = vtk_image.Writer(path, field, back, **options)
    else:
        if path.endswith(".vti"):
            raise ConfigError(f"save: {path!r} was given; allowed: a name that ends in .pvti, whose pieces are .vti")
        writer = npy.Writer(path, field, back)
    return writer, "".join(f", {name} {given}" for name, given in options.items() if given)


def labels(field, what, dims=None, attributes=None):
    """Names of dimensions, and attributes, checked; as keywords."""
    if dims is not None:
        good = isinstance(dims, list | tuple) and all(isinstance(name, str) and name for name in dims)
        if not good or len(dims) != field.ndim or len(set(dims)) != len(dims):
            raise ConfigError(f"{what}: dims={shown(dims)} was given; allowed: {field.ndim} different names")
    try:
        if attributes is not None and json.loads(json.dumps(attributes, allow_nan=False)) != attributes:
            raise ValueError("it comes back otherwise from JSON")
        if not isinstance(attributes, dict | None):
            raise ValueError("no dict")
    except (TypeError, ValueError, RecursionError) as problem:
        raise ConfigError(
            f"{what}: attributes={shown(attributes)} was given; allowed: a dict of texts, numbers, lists: {problem}"
        ) from None
    return {"dims": tuple(dims or zarr3.DIMENSIONS[: field.ndim]), "attributes": attributes}


def _numbers(field, name, given):
    """A number for each axis; None where nothing was given."""
    if given is None:
        return None
    try:
        numbers = np.broadcast_to(np.asarray(given, float), (field.ndim,)).tolist()
        if not np.all(np.isfinite(numbers)) or name == "spacing" and min(numbers) <= 0:
            raise ValueError
    except (TypeError, ValueError):
        sign = "positive numbers" if name == "spacing" else "numbers"
        raise ConfigError(
            f"save: {name}={shown(given)} was given; allowed: {sign}, one or {field.ndim} of them"
        ) from None
    return tuple(numbers)


class ZarrWriter:
    """Writes a field as an array in a group of Zarr: "u.zarr" is a group of one array u, and "run.zarr/u" an array in a
    group that may have others.
    """

    def __init__(self, path, field, back, dims, attributes):
        self._path, self._chunks = path, Chunks(field, back)
        self._store, self._name = zarr3.split(path)
        self._alone = self._store == os.path.normpath(path)
        self._node = zarr3.array_node(field.shape, field.dtype, dims, attributes)

    def begin(self):
        with named_path("save", self._path):
            target = self._target()
            for folder in self._groups():
                if _is_array(folder) or os.path.isfile(folder):
                    raise OSError(f"{folder!r} is no group, in which the array would be")
            if os.path.lexists(target) and not _may_go(target):
                raise OSError(f"{target!r} is there already, and no single Zarr array; allowed: another name")
            made = files.begin_folder(self._store)
            try:
                if self._alone:
                    files.write_new(
                        os.path.join(made, zarr3.NODE), zarr3.group_node({self._name: json.loads(self._node)})
                    )
                    os.mkdir(os.path.join(made, self._name))
                files.write_new(os.path.join(self._array(made), zarr3.NODE), self._node)
            except BaseException:
                files.remove(made)
                raise
            return made

    def write(self, made):
        problem, _ = self._chunks.write(self._array(made))
        return problem

    def finish(self, made):
        with named_path("save", self._path):
            files.sync_folder(self._array(made))
            groups = self._groups()
            for folder in groups:
                os.makedirs(folder, exist_ok=True)
            files.rename_folder(made, self._target())
            for folder in reversed(groups):
                try:
                    zarr3.consolidate(folder)
                except (zarr3.DamagedError, RecursionError) as problem:
                    raise ConfigError(
                        f"save: {self._path!r} is written, but its group {folder!r} cannot have its metadata: {problem}"
                    ) from None

    def _groups(self):
        """Folders of the groups that the array is in, but for one that is written with it; the outermost first."""
        names = [] if self._alone else self._name.split("/")
        return [os.path.join(self._store, *names[:depth]) for depth in range(len(names))]

    def _target(self):
        return self._store if self._alone else os.path.join(self._store, self._name)

    def _array(self, made):
        return os.path.join(made, self._name) if self._alone else made


def _is_array(folder):
    try:
        return zarr3.node_of(folder)["node_type"] == "array"
    except (zarr3.DamagedError, OSError):
        return False


def _may_go(folder):
    """Return whether there is an array, or a group of one, which another one may replace; or an empty folder."""
    try:
        return _is_array(folder) or (zarr3.node_of(folder) is not None and len(zarr3.arrays_in(folder)) <= 1)
    except (zarr3.DamagedError, OSError):
        return os.path.isdir(folder) and not os.listdir(folder)
