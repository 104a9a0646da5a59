"""Plain data of all ranks on every rank."""

import json

from tilewave import _core


def allgather(context, value):
    """Every rank's value, plain data, in rank order; collective. Neighbours that give the same share one object."""
    found = []
    for text, ranks in _core.measure.allgather(context._core, json.dumps(value).encode()):
        found += [json.loads(text)] * ranks
    return found
