"""Arrays of other libraries: looked at where they are read, changed in place where they are written, or refused."""

import array
import importlib

import numpy as np
import pytest

import tilewave as tw


class Owner:
    """An object with an array's interface, as of libraries that NumPy does not know."""

    def __init__(self, values, names=("__array_interface__",)):
        self.values = np.asarray(values)
        for name in names:
            assert hasattr(type(self), name)

    @property
    def dtype(self):
        return self.values.dtype

    @property
    def __array_interface__(self):
        return self.values.__array_interface__


class Exchanged:
    """An object with DLPack alone."""

    def __init__(self, values, device=1):
        self.values, self.device = values, device

    def __dlpack__(self, **how):
        return self.values.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.device, 0


class Copied:
    """An object whose elements are computed when NumPy asks."""

    def __array__(self, dtype=None, copy=None):
        return np.arange(6.0)


@tw.nest
def doubled(x, y, i):
    x[i] = 2 * y[i]


@tw.loops
def tripled(x, y):
    for i in range(len(y)):
        x[i] = 3 * y[i]


def of_library(name, make):
    def made(values):
        try:
            return make(importlib.import_module(name), values)
        except ImportError:
            pytest.skip(f"{name} is not installed")

    return made


READ = {
    "array": lambda values: array.array("d", values),
    "memoryview": lambda values: memoryview(array.array("d", values)),
    "interface": lambda values: Owner(values),
    "dlpack": lambda values: Exchanged(values),
    "list": lambda values: [*map(float, values)],
    "copied": lambda values: Copied(),
    "pandas": of_library("pandas", lambda pandas, values: pandas.Series(values)),
    "polars": of_library("polars", lambda polars, values: polars.Series(values)),
    "xarray": of_library("xarray", lambda xarray, values: xarray.DataArray(values)),
    "torch": of_library("torch", lambda torch, values: torch.tensor(values)),
}
WRITTEN = ("array", "memoryview", "interface", "xarray", "torch")


@pytest.mark.parametrize("kind", READ)
def test_read(kind):
    values = np.arange(6.0)
    given = READ[kind](values)
    x = np.zeros(6)
    tw.run(doubled, x=x, y=given)
    assert np.array_equal(x, 2 * values)
    tripled(x, given)
    assert np.array_equal(x, 3 * values)
    if kind != "list":
        assert np.array_equal(tw.field(given).gather(), values)
    assert np.array_equal(tw.field((6,), init=given).gather(), values)


@pytest.mark.parametrize("kind", WRITTEN)
def test_written_in_place(kind):
    given = READ[kind](np.zeros(6))
    tw.run(doubled, x=given, y=np.arange(6.0))
    assert np.array_equal(np.asarray(given.values if kind == "interface" else given), 2 * np.arange(6.0))
    tripled(given, np.arange(6.0))
    assert np.array_equal(np.asarray(given.values if kind == "interface" else given), 3 * np.arange(6.0))


def frozen(values):
    values.setflags(write=False)
    return values


@pytest.mark.parametrize(("given", "text"), [
    ([0.0] * 6, "given a list, whose elements are no memory; allowed where elements are written"),
    (Copied(), "NumPy gets as a copy"),
    (memoryview(bytes(48)).cast("d"), "read-only"),
    (Owner(frozen(np.zeros(6))), "read-only"),
    (Exchanged(np.zeros(6), 2), "not in a CPU's memory"),
])
def test_refused(given, text):
    with pytest.raises(tw.ConfigError, match=text):
        tw.run(doubled, x=given, y=np.arange(6.0))
    with pytest.raises(tw.ConfigError, match=text):
        tripled(given, np.arange(6.0))


def test_numbers_of_lists_are_those_of_python():
    def quotients(x, y, n):
        for i in range(3):
            x[i] = y[i] / n[i] + 2**62 // n[2]

    found, wanted = np.zeros(3, "f4"), np.zeros(3, "f4")
    tw.loops(quotients)(found, [1.5, 2.5, 3.5], [1, 2, 4])
    quotients(wanted, [1.5, 2.5, 3.5], [1, 2, 4])
    assert found.tobytes() == wanted.tobytes()
    with pytest.raises(ZeroDivisionError):
        tw.loops(quotients)(found, [1.5, 2.5, 3.5], [1, 0, 4])
    with pytest.raises(tw.ConfigError, match="one of ints, or of floats"):
        tw.loops(quotients)(found, [1.5, 2, 3.5], [1, 0, 4])


def test_matrices():
    values = [[4.0, 1.0], [1.0, 3.0]]
    assert np.allclose(tw.linalg.lu(values).solve(np.array([1.0, 2.0])), np.linalg.solve(values, [1.0, 2.0]))
