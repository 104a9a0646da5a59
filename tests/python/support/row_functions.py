"""Row functions of kernels, written in Python, which Numba compiles where a test asks for one: that takes seconds."""

import functools


def row_function(body):
    """A function that returns the compiled one, whose `address` a kernel takes."""

    @functools.cache
    def compiled():
        import numba

        integers = numba.types.CPointer(numba.types.int64)
        pointers = numba.types.CPointer(integers)
        given = pointers, integers, numba.types.int64, integers, integers, integers
        return numba.cfunc(numba.types.int64(*given))(body)

    return compiled


def loops(function):
    """Of loops that Numba compiles when they are first called."""

    @functools.cache
    def compiled():
        import numba

        return numba.njit(function)

    return lambda *arguments: compiled()(*arguments)
