"""This file has what stands for a user's function when ranks compare: two that may compute different things have
different texts."""

import functools
import hashlib
import types

import numpy as np

from tilewave.context.collective import plain

#: Objects within objects that are looked at: a cycle ends there.
MOST_DEEP = 8


def function_text(function):
    """The name of a function, and a hash of its code and of the values that it carries.

    Parameters
    ----------
    function : callable
        A function, method, `functools.partial`, ufunc, or an object with ``__call__``.

    Returns
    -------
    str
        The same on every rank for the same function. Carried are defaults, the values of enclosing functions, arguments
        of a partial, and attributes of an object that is called: numbers, texts, arrays, functions, and lists,
        tuples, sets and dicts of these. Of other values, objects with methods for instance, and of global names only
        the type or the name counts.
    """
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or type(function).__qualname__
    digest = hashlib.sha256(_text(function, 0, called=True).encode(errors="backslashreplace")).hexdigest()
    return plain(f"{getattr(function, '__module__', '')}.{name} {digest[:12]}")


def code_text(function):
    """The name of a function and a hash of its code; what it carries may differ between ranks."""
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    inner = getattr(function, "py_func", function)
    code = getattr(inner, "__code__", None)
    digest = hashlib.sha256(_code(code).encode(errors="backslashreplace")).hexdigest() if code else ""
    return plain(f"{getattr(function, '__module__', '')}.{name} {digest[:12]}")


def _text(value, depth, called=False):
    """A text that differs where values do, as far as they are of the kinds that are looked at."""
    kind = type(value).__qualname__
    if depth > MOST_DEEP:
        return kind
    inside = functools.partial(_text, depth=depth + 1)
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        return f"{kind} {value!r}"
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            return f"{kind} {value.shape}"
        values = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return f"{kind} {value.dtype} {value.shape} {values}"
    if isinstance(value, tuple | list):
        return f"{kind} {[inside(each) for each in value]}"
    if isinstance(value, set | frozenset):  # whose order differs between processes
        return f"{kind} {sorted(inside(each) for each in value)}"
    if isinstance(value, dict):
        return f"{kind} {sorted((inside(key), inside(each)) for key, each in value.items())}"
    if isinstance(value, functools.partial):
        return f"{kind} {[inside(each) for each in (value.func, value.args, value.keywords)]}"
    if isinstance(value, types.FunctionType):
        carried = [inside(each) for each in (value.__defaults__, value.__kwdefaults__, *_cells(value))]
        return f"{kind} {value.__module__} {_code(value.__code__)} {carried}"
    if isinstance(value, types.MethodType):
        return f"{kind} {inside(value.__func__)} {_text(value.__self__, depth + 1, called)}"
    if isinstance(value, type | types.BuiltinFunctionType | np.ufunc):
        return f"{kind} {getattr(value, '__module__', '')} {getattr(value, '__qualname__', value.__name__)}"
    if called and isinstance(inner := getattr(value, "py_func", None), types.FunctionType):  # compiled by Numba
        return f"{kind} {inside(inner)}"
    if called and not isinstance(value, types.ModuleType):  # what its __call__ or method does follows from these
        body = getattr(type(value), "__call__", None)  # noqa: B004 - the function itself, of the class
        return f"{kind} {inside(body)} {inside(getattr(value, '__dict__', {}))}"
    return kind


def _cells(function):
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # a name of the enclosing function that has no value yet
            yield None


def _code(code):
    constants = [_code(each) if isinstance(each, types.CodeType) else _text(each, 0) for each in code.co_consts]
    return str((code.co_code.hex(), constants, code.co_names, code.co_varnames, code.co_freevars))
