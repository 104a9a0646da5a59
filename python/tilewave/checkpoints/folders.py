"""The folder of a program's checkpoints: a folder each, with a manifest that is written last. On rank 0, without
messages.
"""

import json
import os
import re
import stat

from tilewave import files
from tilewave.checkpoints import manifest as manifests
from tilewave.field import zarr3
from tilewave.field.chunks import checksum_of

MANIFEST = "manifest.json"
KEPT = 2  # checkpoints, the newest
_NAME = re.compile(r"(\d{8,})-step-\d+")

_found_damaged = set()  # folders that `resume` has found so in this process


def found(path):
    """(number, folder) of each checkpoint in a folder, damaged ones too, the newest first."""
    if not os.path.isdir(path):
        return []
    names = ((_NAME.fullmatch(entry.name), entry.path) for entry in os.scandir(path) if entry.is_dir())
    return sorted(((int(match[1]), folder) for match, folder in names if match), reverse=True)


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
    manifest = {"format": manifests.FORMAT, "step": step, "items": items, "files": sums}
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
    """Return what a checkpoint consists of.

    Raises
    ------
    zarr3.DamagedError, OSError
    """
    try:
        text = files.read(os.path.join(folder, MANIFEST))
        sum_, body = json.loads(text)["checksum"], text.partition(b'"manifest": ')[2][: -len(b"}\n")]
        if checksum_of(body) != sum_:
            raise ValueError("its checksum is another one")
        return manifests.read(body)
    except FileNotFoundError:
        raise zarr3.DamagedError(f"it has no {MANIFEST}") from None
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        raise zarr3.DamagedError(f"{MANIFEST}: {problem}") from None


def check_sizes(folder, manifest):
    """Refuse a checkpoint unless all files are there, regular ones with the sizes that they had.

    Raises
    ------
    zarr3.DamagedError, OSError
    """
    for name, (size, _) in manifest["files"].items():
        try:
            now = os.stat(os.path.join(folder, name))
        except FileNotFoundError:
            raise zarr3.DamagedError(f"{name} is missing") from None
        if not stat.S_ISREG(now.st_mode):
            raise zarr3.DamagedError(f"{name}: it is no regular file")
        if now.st_size != size:
            raise zarr3.DamagedError(f"{name} has {now.st_size} bytes; {size} were written")


def read_file(folder, name, manifest):
    """Return the bytes of a file, which must be those that were written.

    Raises
    ------
    zarr3.DamagedError, OSError
    """
    size, _ = manifest["files"][name]
    data = files.read(os.path.join(folder, name), size)
    checked(name, data, manifest)
    return data


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
