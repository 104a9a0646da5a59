"""This file has what a checkpoint says of itself: the entries of its manifest, and whether they make sense together."""

import json
import math
import re

from tilewave import _core, entries
from tilewave.dtypes import ALL
from tilewave.entries import Damaged, integer, of_list, of_object, one_of, or_null
from tilewave.errors import ConfigError
from tilewave.field import zarr3
from tilewave.field.blocks import Blocks
from tilewave.field.npy import MOST_BYTES
from tilewave.linalg.initial import DTYPES
from tilewave.linalg.layout import LAYOUTS
from tilewave.nest.dependences import MOST_HISTORY

VALUES = "values.bin"
FIELDS = "fields.zarr"  # a group of fields and matrices
FORMAT = "tilewave checkpoint 1"

_TYPES = {dtype.name: dtype for dtype in ALL}
_MOST_DIMS = _core.limits["dims"]
_BYTES = integer(0, 1 << 62)
_SHAPE = of_list(integer(0, MOST_BYTES), 1, _MOST_DIMS, tuple)
_WIDTH = integer(0, (1 << 31) - 1)
_TWO = of_list([integer(1, 1 << 62)] * 2, make=tuple)
_FIELDS_OF_ARRAY = {
    "kind": one_of(("field", "matrix")),
    "shape": _SHAPE,
    "dtype": one_of(tuple(_TYPES)),
    "history": integer(0, MOST_HISTORY),
    "halo": or_null(of_list(of_list([_WIDTH, _WIDTH], make=tuple), 1, _MOST_DIMS)),
    "periodic": of_list(integer(0, _MOST_DIMS - 1)),
    "blocks": or_null(of_list(of_list([entries.LONG] * 5, make=tuple), 1, _MOST_DIMS, tuple)),
    "layout": or_null(of_list([one_of(LAYOUTS), _TWO, _TWO])),
}
_WEIGHTS = of_list(integer(1, _core.limits["weight"]), make=tuple)
_ARRAY = of_object(_FIELDS_OF_ARRAY | {"weights": _WEIGHTS}, needed=_FIELDS_OF_ARRAY)
_PLAIN = of_object({"kind": one_of(("plain",)), "begin": _BYTES, "bytes": _BYTES})


def _item(value, where):
    return (_PLAIN if isinstance(value, dict) and value.get("kind") == "plain" else _ARRAY)(value, where)


_READ = of_object(
    {
        "format": one_of((FORMAT,)),
        "step": integer(0, (1 << 63) - 1),
        "items": of_object({}, more=_item),
        "files": of_object({}, more=of_list([_BYTES, entries.text], make=tuple)),
    }
)


def dtype_of(item):
    """The dtype of a field or matrix."""
    return _TYPES[item["dtype"]]


def array_name(name, back):
    """Where a field's values so many time steps before the current ones are."""
    return f"{FIELDS}/{name}-{back}" if back else f"{FIELDS}/{name}"


def is_name_of_array(name):
    """Return whether an array may have this name, which a file of its own gets."""
    return name.isidentifier()


def read(text):
    """Return a manifest of its JSON, checked.

    Raises
    ------
    ValueError
        Names the entry that is wrong.
    """
    found = _READ(json.loads(text), "")
    nodes = {}
    for name, item in found["items"].items():
        where = f"items.{name}"
        if name == "step":
            raise Damaged(where, name, "other names, as resume gives the step by this one")
        if item["kind"] == "plain":
            _check_plain(item, where, found["files"])
        else:
            _check_array(name, item, where)
            for back in range(1 + item["history"]):
                nodes[array_name(name, back)] = math.prod(item["shape"]) * dtype_of(item).itemsize
    _check_files(found["files"], nodes)
    return found


def _check_plain(item, where, files):
    size, _ = files.get(VALUES, (0, ""))
    if item["begin"] + item["bytes"] > size:
        raise Damaged(f"{where}.bytes", item["bytes"], f"within the {size} bytes of {VALUES}")


def _check_array(name, item, where):
    ndim = len(item["shape"])
    if not is_name_of_array(name):
        raise Damaged(where, name, "names as of variables")
    for entry in ("halo", "blocks"):
        if item[entry] is not None and len(item[entry]) != ndim:
            raise Damaged(f"{where}.{entry}", item[entry], f"an entry for each of {ndim} axes")
    if item["halo"] is not None and (item["history"] or item["blocks"] is not None):
        raise Damaged(f"{where}.halo", item["halo"], "null with history or blocks")
    if any(axis >= ndim for axis in item["periodic"]) or item["periodic"] and item["halo"] is None:
        raise Damaged(f"{where}.periodic", item["periodic"], f"some of {ndim} axes, with a halo")
    if item["blocks"] is not None:
        try:
            Blocks(*zip(*item["blocks"], strict=True))._cuts(ndim)
        except ConfigError as error:
            raise ValueError(f"{where}.blocks: {error}") from None
    if item["kind"] == "field":
        if item["layout"] is not None:
            raise Damaged(f"{where}.layout", item["layout"], "null for a field")
    elif ndim != 2 or item["layout"] is None or item["history"] or dtype_of(item) not in DTYPES:
        raise Damaged(where, item, "two extents, a layout, no history, and a dtype of matrices")


def _check_files(files, arrays):
    """The files are those of the items, and have bytes for all elements of the arrays."""
    parts = {f"{name}/{zarr3.NODE}": 0 for name in arrays} | {VALUES: 0, f"{FIELDS}/{zarr3.NODE}": 0}
    left = dict(arrays)
    for name, (size, _) in files.items():
        folder, _, file = name.rpartition("/")
        if folder in left and re.fullmatch(r"c(\.\d{1,19}){1,6}", file, re.ASCII):
            left[folder] -= size
        elif parts.pop(name, None) is None:
            raise Damaged("files", name, "files of the items")
    for name in parts:
        raise Damaged("files", name, "files with it")
    for name, more in left.items():
        if more > 0:
            raise Damaged(f"files of {name}", arrays[name] - more, f"{arrays[name]} bytes and more, as of its elements")
