"""Plain data as text and bytes, and back with the same bits and types. Nothing that is read can run code."""

import io
import json
import math

import numpy as np

from tilewave.dtypes import is_masked
from tilewave.errors import ConfigError, shown

ALLOWED = (
    "None, bool, int, float, complex, str, bytes, lists, tuples and dicts of these, NumPy arrays and numbers, "
    "numpy.random.Generator, fields and matrices"
)
_SAME = (type(None), bool, int, str)
_BITS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")


def check(name, value):
    """Refuse what `encoded` cannot write, without looking at elements.

    Raises
    ------
    ConfigError
    """
    try:
        _tree(value, name, None)
    except RecursionError:
        raise ConfigError(
            f"checkpoint: {name}: given a value within itself, or nested too deep; allowed: {ALLOWED}"
        ) from None


def encoded(name, value):
    """A value as bytes: a line of JSON, then its arrays as NumPy writes them.

    Raises
    ------
    ConfigError
    """
    arrays = []
    out = io.BytesIO(json.dumps(_tree(value, name, arrays)).encode() + b"\n")
    out.seek(0, io.SEEK_END)
    for array in arrays:
        np.lib.format.write_array(out, array, allow_pickle=False)
    return out.getvalue()


def decoded(data):
    """The value of `encoded`.

    Raises
    ------
    ValueError
    """
    file = io.BytesIO(data)
    tree = json.loads(file.readline())
    arrays = []
    while file.tell() < len(data):
        arrays.append(np.lib.format.read_array(file, allow_pickle=False))
    return _value(tree, arrays)


def _tree(value, where, arrays):
    """A value in the terms of JSON; arrays are appended to `arrays` and meant by number."""
    kind = type(value)
    if kind in _SAME:
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if kind is complex:
        return {"complex": [_tree(part, where, arrays) for part in (value.real, value.imag)]}
    if kind is bytes:
        return {"bytes": value.hex()}
    if kind in (list, tuple):
        entries = [_tree(each, f"{where}[{at}]", arrays) for at, each in enumerate(value)]
        return entries if kind is list else {"tuple": entries}
    if kind is dict:
        return {"dict": [[_tree(part, f"{where}[{key!r}]", arrays) for part in (key, value[key])] for key in value]}
    if isinstance(value, np.ndarray | np.generic) and not is_masked(value) and not value.dtype.hasobject:
        if arrays is not None:
            arrays.append(np.asarray(value))
        return {"array" if isinstance(value, np.ndarray) else "number": len(arrays or ()) - 1}
    if kind is np.random.Generator and type(value.bit_generator).__name__ in _BITS:
        bits = value.bit_generator
        return {
            "generator": type(bits).__name__,
            "state": _tree(bits.state, where, arrays),
            "seed": _tree(_seed(bits), where, arrays),
        }
    raise ConfigError(f"checkpoint: {where}: given {shown(value)}; allowed: {ALLOWED}")


def _seed(bits):
    """What a generator's children are made of; None where it was not made of a seed."""
    seed = bits.seed_seq
    return None if type(seed) is not np.random.SeedSequence else {k: _plain(v) for k, v in seed.state.items()}


def _plain(value):
    """Entropy may be a list of integers, or an array."""
    return [int(each) for each in value] if isinstance(value, np.ndarray) else value


def _value(tree, arrays):
    if isinstance(tree, list):
        return [_value(each, arrays) for each in tree]
    if not isinstance(tree, dict):
        return tree
    if "generator" in tree and tree["generator"] in _BITS:
        make = getattr(np.random, tree["generator"])
        seed = _value(tree["seed"], arrays)
        bits = make(np.random.SeedSequence(**seed)) if seed else make()
        bits.state = _value(tree["state"], arrays)
        return np.random.Generator(bits)
    ((kind, given),) = tree.items()
    make = {
        "float": float,
        "complex": lambda parts: complex(*_value(parts, arrays)),
        "bytes": bytes.fromhex,
        "tuple": lambda entries: tuple(_value(entries, arrays)),
        "dict": lambda pairs: dict(_value(pairs, arrays)),
        "array": lambda number: arrays[number],
        "number": lambda number: arrays[number][()],
    }[kind]
    return make(given)
