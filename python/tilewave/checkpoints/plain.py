"""Plain data as text and bytes, and back with the same bits and types. Nothing that is read can run code."""

import io
import json
import math

import numpy as np

from tilewave.dtypes import is_masked
from tilewave.errors import ConfigError, shown
from tilewave.field import npy

ALLOWED = (
    "None, bool, int, float, complex, str, bytes, lists, tuples and dicts of these, NumPy arrays and numbers, "
    "numpy.random.Generator, fields and matrices"
)
_SAME = (type(None), bool, int, str)
MOST_POOL = 1024  # numbers in the pool of a SeedSequence, whose making takes time with their square
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
        Where these are no such bytes.
    """
    file = io.BytesIO(data)
    tree = json.loads(file.readline())
    arrays = []
    while file.tell() < len(data):
        arrays.append(_array(file, data))
    try:
        return _value(tree, arrays)
    except (TypeError, OverflowError) as problem:  # keys that are lists, numbers that no seed can be
        raise ValueError(str(problem)) from None


def _array(file, data):
    """A copy of the array that begins where a file of these bytes stands."""
    shape, fortran, dtype = npy.read_header(file)
    begin = file.tell()
    if dtype.hasobject or math.prod(shape) * dtype.itemsize > len(data) - begin:
        raise ValueError(f"an array of shape {shape} and dtype {dtype} does not fit its {len(data) - begin} bytes")
    file.seek(math.prod(shape) * dtype.itemsize, io.SEEK_CUR)
    return np.ndarray(shape, dtype, data, begin, order="F" if fortran else "C").copy(order="K")


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
        if type(bits.seed_seq) is np.random.SeedSequence and bits.seed_seq.pool_size > MOST_POOL:
            raise ConfigError(
                f"checkpoint: {where}: given a generator of a pool of {bits.seed_seq.pool_size}; allowed: {MOST_POOL}"
            )
        return {
            "generator": type(bits).__name__,
            "state": _tree(bits.state, where, arrays),
            "seed": _tree(_seed(bits), where, arrays),
        }
    raise ConfigError(f"checkpoint: {where}: given {shown(value)}; allowed: {ALLOWED}")


def _seed(bits):
    """Return what a generator's children are made of; None where it was not made of a seed."""
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
    if set(tree) == {"generator", "state", "seed"}:
        return _generator(tree, arrays)
    ((kind, given),) = tree.items()
    if kind not in _MAKE or not isinstance(given, _MAKE[kind][0]) or isinstance(given, bool):
        raise ValueError(f"given {shown(tree)}; allowed: {', '.join(_MAKE)} and what they have")
    return _MAKE[kind][1](given, arrays)


def _of_number(number, arrays):
    if not 0 <= number < len(arrays):
        raise ValueError(f"array {number} is not there; allowed: one of {len(arrays)}")
    return arrays[number]


def _complex(parts, arrays):
    real, imag = _value(parts, arrays)
    return complex(real, imag)


#: Of each kind what it is given, and what is made of that.
_MAKE = {
    "float": (str, lambda text, arrays: float(text)),
    "complex": (list, _complex),
    "bytes": (str, lambda text, arrays: bytes.fromhex(text)),
    "tuple": (list, lambda entries, arrays: tuple(_value(entries, arrays))),
    "dict": (list, lambda pairs, arrays: dict(_value(pairs, arrays))),
    "array": (int, _of_number),
    "number": (int, lambda number, arrays: _of_number(number, arrays)[()]),
}


def _generator(tree, arrays):
    if tree["generator"] not in _BITS:
        raise ValueError(f"given generator {shown(tree['generator'])}; allowed: {', '.join(_BITS)}")
    seed, state = _value(tree["seed"], arrays), _value(tree["state"], arrays)
    if seed is not None:
        _check(seed, np.random.SeedSequence(0).state, "seed")
    bits = getattr(np.random, tree["generator"])(0 if seed is None else np.random.SeedSequence(**seed))
    _check(state, bits.state, "state")
    bits.state = state
    return np.random.Generator(bits)


#: Entries of generators and seeds, at most. NumPy takes any number, and reads its buffers at such positions.
_MOST = {
    "pos": 624, "buffer_pos": 4, "has_uint32": 1, "uinteger": 2**32 - 1, "state": 2**128 - 1, "inc": 2**128 - 1,
    "pool_size": MOST_POOL, "n_children_spawned": 2**32 - 1,
}  # fmt: skip


def _check(given, model, where):
    """Refuse the state of a generator or a seed that is not like one that NumPy has made."""
    if where == "entropy":  # none, a number or a list of numbers
        numbers = given if isinstance(given, list) else [0 if given is None else given]
        right = all(type(number) is int and number >= 0 for number in numbers)
    elif where == "spawn_key":
        right = type(given) is tuple and all(type(number) is int and 0 <= number < 2**32 for number in given)
    elif type(given) is not type(model):
        right = False
    elif isinstance(model, dict):
        right = set(given) == set(model)
        for name in model if right else ():
            _check(given[name], model[name], name)
    elif isinstance(model, np.ndarray):
        right = (given.shape, given.dtype) == (model.shape, model.dtype)
    elif isinstance(model, int):
        right = (4 if where == "pool_size" else 0) <= given <= _MOST[where] and (where != "inc" or given % 2)
    else:
        right = given == model
    if not right:
        raise ValueError(f"the entry {where} of a generator is {shown(given)}, which NumPy does not make")
