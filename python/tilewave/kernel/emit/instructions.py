"""Which instructions kernels may use: the processor's, or fewer of them."""

import functools
import os

import llvmlite.binding as llvm

from tilewave.errors import ConfigError, shown

VARIABLE = "TILEWAVE_INSTRUCTIONS"
#: By the values of `VARIABLE`: the beginnings of the names, LLVM's, of instructions that kernels then do without.
WITHOUT = {"": (), "avx512": (), "avx2": ("avx512", "avx10", "evex512", "amx")}


@functools.cache
def features():
    """LLVM's names of instructions, and whether kernels may use them.

    Raises
    ------
    ConfigError
        For a value of `VARIABLE` that is not known.
    """
    given = os.environ.get(VARIABLE, "")
    if given not in WITHOUT:
        raise ConfigError(f"{VARIABLE}={shown(given)}; allowed: {', '.join(filter(None, WITHOUT))}")
    found = llvm.get_host_cpu_features()
    for name in found:
        found[name] = found[name] and not name.startswith(WITHOUT[given])
    return found
