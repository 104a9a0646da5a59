"""The kernels of PolyBench by name."""

KERNELS = {}


def kernel(function):
    """Know a kernel by its name."""
    KERNELS[function.__name__] = function
    return function
