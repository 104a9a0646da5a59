"""Checkpoints with other content whose checksums are right."""

import json
from pathlib import Path

from tilewave.field.chunks import checksum_of


def sealed(folder, change):
    """Change the manifest, by `change(body, folder)`, and what else there is; then write its checksum."""
    path = Path(folder, "manifest.json")
    body = json.loads(path.read_text())["manifest"]
    change(body, Path(folder))
    text = json.dumps(body)
    path.write_text(f'{{"checksum": "{checksum_of(text.encode())}",\n"manifest": {text}}}\n')


def with_file(body, folder, name, change):
    """Change a file's bytes, and its entry."""
    data = change((folder / name).read_bytes())
    (folder / name).write_bytes(data)
    body["files"][name] = [len(data), checksum_of(data)]


def blob(body, folder, item, data):
    """Other bytes for plain data, the only item that there is."""
    with_file(body, folder, "values.bin", lambda old: data)
    body["items"][item].update(begin=0, bytes=len(data))
