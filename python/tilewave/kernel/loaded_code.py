"""Which code of Tilewave makes kernels, from the modules in memory: files may have changed since they were loaded."""

import functools
import hashlib
import sys
import types

#: Modules whose code decides what a kernel computes, and those among them whose code does not.
_MAKERS = ("tilewave.kernel.", "tilewave.nest.")
_OTHERS = (
    "tilewave.kernel.cache",
    "tilewave.kernel.loaded_code",
    "tilewave.nest.bounds",
    "tilewave.nest.reference",
    "tilewave.nest.reserved",
)


@functools.cache
def digest():
    """Hash of the loaded code that makes kernels, and of the constants that it uses.

    Files are not looked at: a process that was started before an upgrade has the code from before it. Lines and
    comments do not count. It takes about 10 ms, once.

    Returns
    -------
    str
        64 hexadecimal digits, the same in each process that has loaded the same code.
    """
    made = hashlib.sha256()
    for name in sorted(name for name in sys.modules if name.startswith(_MAKERS) and name not in _OTHERS):
        members = vars(sys.modules[name])
        for key, value in sorted(members.items()):
            if not key.startswith("__") and key not in members.get("__state__", ()):
                made.update(f"{name}.{key}={_told(value, name)}\n".encode())
    return made.hexdigest()


def _told(value, module):
    """A text that differs where the code or the value of an object of a module does."""
    value = getattr(value, "__wrapped__", value)  # under functools.lru_cache
    if isinstance(value, types.FunctionType):
        return (
            f"{_code(value.__code__)} {_told(value.__defaults__, module)} {_told(value.__kwdefaults__, module)}"
            if value.__module__ == module
            else value.__qualname__
        )
    if isinstance(value, type):
        members = vars(value).items() if value.__module__ == module else ()
        bases = [base.__qualname__ for base in value.__bases__]
        return f"{value.__qualname__} {bases} " + str(
            [
                (name, _told(member, module))
                for name, member in sorted(members)
                if name[:2] != "__" or isinstance(member, types.FunctionType)
            ]
        )
    if isinstance(value, property):
        return _told(value.fget, module)
    if isinstance(value, staticmethod | classmethod):
        return _told(value.__func__, module)
    if isinstance(value, dict):
        return str(sorted((_told(key, module), _told(each, module)) for key, each in value.items()))
    if isinstance(value, tuple | list):
        return str([_told(each, module) for each in value])
    if isinstance(value, set | frozenset):
        return str(sorted(_told(each, module) for each in value))
    if isinstance(value, types.ModuleType):
        return value.__name__
    text = repr(value)  # of numbers, texts, NumPy's and LLVM's types
    return type(value).__qualname__ if " at 0x" in text else text


def _code(code):
    constants = [_code(each) if isinstance(each, types.CodeType) else _told(each, "") for each in code.co_consts]
    return str((code.co_code.hex(), constants, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars))
