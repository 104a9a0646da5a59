"""The folder of a program's checkpoints: a folder each, with a manifest that is written last. On rank 0, without
messages.
"""

import json
import os
import re

from tilewave import _core, entries, files
from tilewave.field import zarr3
from tilewave.field.chunks import checksum_of

MANIFEST = "manifest.json"
VALUES = "values.bin"
FIELDS = "fields.zarr"  # a group of fields and matrices
KEPT = 2  # checkpoints, the newest
FORMAT = "tilewave checkpoint 1"
_NAME = re.compile(r"(\d{8,})-step-\d+")

_EXTENTS = entries.of_list(entries.LONG, 1, _core.limits["dims"], tuple)
_PAIRS = entries.of_list(entries.of_list([entries.LONG] * 2, make=tuple), 1, 4)
_FIELDS_OF_ARRAY = {
    "kind": entries.one_of(("field", "matrix")),
    "shape": _EXTENTS,
    "dtype": entries.text,
    "history": entries.INT,
    "halo": entries.or_null(_PAIRS),
    "periodic": entries.of_list(entries.INT),
    "blocks": entries.or_null(entries.of_list(entries.of_list([entries.LONG] * 5, make=tuple), 1, 4, tuple)),
    "layout": entries.or_null(entries.of_list([entries.text, _EXTENTS, _EXTENTS])),
}
_ARRAY = entries.of_object(
    _FIELDS_OF_ARRAY | {"weights": entries.of_list(entries.LONG, make=tuple)}, needed=_FIELDS_OF_ARRAY
)
_PLAIN = entries.of_object({"kind": entries.one_of(("plain",)), "begin": entries.LONG, "bytes": entries.LONG})


def _item(value, where):
    return (_PLAIN if isinstance(value, dict) and value.get("kind") == "plain" else _ARRAY)(value, where)


_READ = entries.of_object(
    {
        "format": entries.one_of((FORMAT,)),
        "step": entries.LONG,
        "items": entries.of_object({}, more=_item),
        "files": entries.of_object({}, more=entries.of_list([entries.LONG, entries.text], make=tuple)),
    }
)

_found_damaged = set()  # folders that `resume` has found so in this process


def found(path):
    """(number, folder) of each checkpoint in a folder, damaged ones too, the newest first."""
    if not os.path.isdir(path):
        return []
    names = ((_NAME.fullmatch(entry.name), entry.path) for entry in os.scandir(path) if entry.is_dir())
    return sorted(((int(match[1]), folder) for match, folder in names if match), reverse=True)


def array_name(name, back):
    """Where a field's values so many time steps before the current ones are."""
    return f"{FIELDS}/{name}-{back}" if back else f"{FIELDS}/{name}"


def begin(path):
    """Make an unfinished folder in that of checkpoints, which is made, too; what killed programs left there goes.

    Raises
    ------
    OSError
    """
    os.makedirs(path, exist_ok=True)
    return files.begin_folder(os.path.join(path, MANIFEST), abandoned_s=0)


def finish(path, made, step, items, sums):
    """Write the manifest, give the folder its name, and remove older ones.

    Returns
    -------
    str
        The folder.

    Raises
    ------
    OSError
    """
    manifest = {"format": FORMAT, "step": step, "items": items, "files": sums}
    text = json.dumps(manifest)
    files.write_new(
        os.path.join(made, MANIFEST), f'{{"checksum": "{checksum_of(text.encode())}",\n"manifest": {text}}}\n'.encode()
    )
    for folder in {os.path.dirname(os.path.join(made, name)) for name in sums} | {made}:
        files.sync_folder(folder)
    before = found(path)
    number = before[0][0] + 1 if before else 1
    folder = os.path.join(path, f"{number:08d}-step-{step}")
    files.rename_folder(made, folder)
    whole = [other for _, other in before if other not in _found_damaged and _looks_whole(other)]
    for _, other in before:
        if other not in whole[: KEPT - 1]:
            files.remove(os.path.join(other, MANIFEST))  # from now on it is none
            files.remove(other)
    return folder


def manifest_of(folder):
    """What a checkpoint consists of.

    Raises
    ------
    zarr3.DamagedError, OSError
    """
    try:
        text = files.read(os.path.join(folder, MANIFEST))
        sum_, body = json.loads(text)["checksum"], text.partition(b'"manifest": ')[2][: -len(b"}\n")]
        if checksum_of(body) != sum_:
            raise ValueError("its checksum is another one")
        return read_manifest(body)
    except FileNotFoundError:
        raise zarr3.DamagedError(f"it has no {MANIFEST}") from None
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        raise zarr3.DamagedError(f"{MANIFEST}: {problem}") from None


def read_manifest(text):
    """A manifest of its JSON.

    Raises
    ------
    ValueError
    """
    return _READ(json.loads(text), "")


def check_sizes(folder, manifest):
    """Whether all files are there, with the sizes that they had.

    Raises
    ------
    zarr3.DamagedError, OSError
    """
    for name, (size, _) in manifest["files"].items():
        try:
            now = os.path.getsize(os.path.join(folder, name))
        except FileNotFoundError:
            raise zarr3.DamagedError(f"{name} is missing") from None
        if now != size:
            raise zarr3.DamagedError(f"{name} has {now} bytes; {size} were written")


def checked(name, data, manifest):
    """Refuse a file's bytes that are not what was written.

    Raises
    ------
    zarr3.DamagedError
    """
    if manifest["files"].get(name) != (len(data), checksum_of(data)):
        raise zarr3.DamagedError(f"the checksum of {name} is another one")


def mark_damaged(folder):
    """The next checkpoint of this program removes this one first."""
    _found_damaged.add(folder)


def _looks_whole(folder):
    try:
        check_sizes(folder, manifest_of(folder))
    except (zarr3.DamagedError, OSError):
        return False
    return True
