"""Every operator of Python's data model on fields: NumPy's type and bits, in place where NumPy is, or an error."""

import copy
import operator
import pickle

import numpy as np
import pytest
from local_ranks import results_of

import tilewave as tw

BINARY = "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift lt le gt ge eq ne".split()
IN_PLACE = "iadd isub imul itruediv ifloordiv imod ipow iand ior ixor ilshift irshift".split()
UNARY = "neg pos invert abs".split()
FUNCTIONS = {name: getattr(operator, name) for name in BINARY + IN_PLACE + UNARY} | {"divmod": divmod}
FUNCTIONS |= {f"np.{f.__name__}": f for f in (np.power, np.left_shift, np.divmod, np.add, np.less, np.bitwise_or)}
DTYPES = ["?", "i1", "i4", "i8", "u1", "u8", "f4", "f8", "c8", "c16"]
SCALARS = [2, -1, 0.5, 2.0, 3, 1.5, True, 1j, 300, np.float32(2), np.float64(0.5), np.int8(3), np.uint8(2), np.array(2)]


def drawn(draw, shape, dtype):
    if np.dtype(dtype).kind in "?biu":
        return draw.integers(-9 if dtype[0] == "i" else 0, 10, shape).astype(dtype)
    found = draw.choice([0.0, -0.0, 2, 1, np.inf, np.nan, 0.5, *draw.standard_normal(9)], shape)
    return (found + 1j * draw.standard_normal(shape) if dtype[0] == "c" else found).astype(dtype)


def laid(draw, a):
    """The same numbers in another order of memory, read-only."""
    wide = np.zeros([2 * n for n in a.shape], a.dtype)
    wide[(slice(None, None, 2),) * a.ndim] = a
    a = [a.copy(), np.asfortranarray(a), wide[(slice(None, None, 2),) * a.ndim], a[::-1].copy()[::-1]][draw.integers(4)]
    a.flags.writeable = False
    return a


def attempt(call):
    try:
        return call(), None
    except Exception as error:
        return None, error


def same(found, wanted):
    if isinstance(wanted, tuple):
        return all(map(same, found, wanted))
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return False
    if found.dtype.kind == "c":  # products of complex numbers are not fused
        return np.allclose(found, wanted, 1e-4, 1e-4, True)
    if found.dtype.kind == "f":
        found, wanted = (np.where(np.isnan(x), np.nan, x) for x in (found, wanted))
    return found.tobytes() == wanted.tobytes()


def compared(seed, name):
    """An operator on a field and another operand, and on their arrays."""
    draw = np.random.default_rng([seed, *name.encode()])
    shape = tuple(map(int, draw.integers(1, 6, draw.integers(1, 4)) if seed % 3 else draw.integers(2, 99, 1)))
    a, b = drawn(draw, shape, str(draw.choice(DTYPES))), drawn(draw, shape, str(draw.choice(DTYPES)))
    b, scalar = laid(draw, b), SCALARS[draw.integers(len(SCALARS))]
    kind, swapped = str(draw.choice(["field", "array", "scalar", "row", "expression"])), draw.random() < 0.4
    function, in_place = FUNCTIONS[name], name in IN_PLACE
    what = f"seed {seed}: {name} {kind} {a.dtype} {shape} {scalar if kind == 'scalar' else b.dtype} {swapped}"

    def applied(x, make):
        if name in UNARY:
            return function(x)
        y = {"array": b, "scalar": scalar, "row": make(b[(0,) * (b.ndim - 1)])}.get(kind)
        y = make(b) if y is None else y
        if kind == "expression":
            y = tw.where(True, y, y) if isinstance(y, tw.Field) else y
        found = function(y, x) if swapped and not in_place else function(x, y)
        assert not in_place or found is x
        return found

    with np.errstate(all="ignore"):
        wanted, refused = attempt(lambda: applied(a.copy(), lambda y: y))

    def body(context):
        u = tw.field(a, context=context)
        found, error = attempt(lambda: applied(u, lambda y: tw.field(y, context=context)))
        if error is None:
            each = found if isinstance(found, tuple) else (found,)
            each, error = attempt(lambda: tuple(x.copy()[...] for x in each))
            found = each if isinstance(found, tuple) else each and each[0]
        return found, error

    for found, error in results_of(1 + seed % 3, 1, body):
        kinds = a.dtype.kind, np.asarray(scalar).dtype.kind, b.dtype.kind
        order = name in ("lt", "le", "gt", "ge", "np.less") and "c" in kinds
        if refused is not None or order and error is not None:
            negative = isinstance(error, tw.KernelError) and "negative integer powers" in str(error)
            assert isinstance(error, TypeError | tw.ConfigError) or negative, (what, error, refused)
        else:
            assert error is None and same(np.asarray(found) if found.__class__ is tw.Field else found, wanted), (
                what, error, found, wanted,
            )  # fmt: skip


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
@pytest.mark.parametrize("seed", range(8))
def test_operators_are_numpys(name, seed):
    compared(seed, name)


def test_in_place_changes_the_field_and_not_the_name():
    mask = tw.field(np.array([True, False, False]))
    shared = mask
    mask |= np.array([False, True, False])
    assert mask is shared and shared[...].tolist() == [True, True, False]
    count = same = tw.field(np.arange(4))
    count //= 2
    count <<= 3
    assert count is same and same[...].tolist() == [0, 0, 8, 8]
    count[1:, ] **= 2
    count[::2] -= [1, 1]
    assert same[...].tolist() == [-1, 0, 63, 64]
    small = tw.field(np.array([100], "i1"))
    small[...] = small + np.int64(100)  # as arrays are converted
    assert small[0] == -56
    with pytest.raises(tw.ConfigError, match=r"//= : the result has dtype float64, the field int64; allowed: u = "):
        count //= 0.5
    with pytest.raises(TypeError, match="tilewave.dot"):
        count @= count


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_powers_are_those_of_numpys_arrays(dtype):
    a = np.random.default_rng(0).uniform(0, 2, 5000).astype(dtype)
    a = a + a[::-1] * 1j if dtype[0] == "c" else a
    u, exponents = tw.field(a.astype(dtype)), np.arange(5000) % 7 / 2
    a = a.astype(dtype)
    for k in (2, 0.5, 3, -1, 1, 0, -2, 1.5, np.float32(2), np.float64(0.5), np.array(-1)):
        if dtype[0] == "c" and k == 2:  # products of complex numbers are not fused
            assert np.allclose((u**k).copy()[...], a**k)
            continue
        assert (u**k).copy()[...].tobytes() == (a**k).tobytes(), k
        assert np.power(u, k).copy()[...].tobytes() == np.power(a, k).tobytes(), k
    assert abs(u).copy()[...].tobytes() == abs(a).tobytes()
    if dtype[0] == "f":
        exponents = exponents.astype(dtype)
        assert (u**exponents).copy()[...].tobytes() == (a**exponents).tobytes()
        assert (u ** tw.field(exponents)).copy()[...].tobytes() == (a**exponents).tobytes()
        assert (1.5**u).copy()[...].tobytes() == (1.5**a).tobytes()


def test_what_python_asks_of_objects():
    u = tw.field(np.arange(6.0).reshape(2, 3))
    assert len(u) == 2 and 3.0 in u and 7 not in u and u + 1 is not None and 4 in u + 1
    for wrong in (bool, iter, int, float, complex, round, np.asarray, lambda x: x @ x, lambda x: np.eye(2) @ x, list):
        for given in (u, u + 1):
            with pytest.raises(TypeError, match="allowed"):
                wrong(given)
    array = np.zeros((2, 3))
    with pytest.raises(TypeError, match="allowed"):
        array += u
    with pytest.raises(tw.ConfigError, match=r"complex numbers were given; allowed: abs\(u\)"):
        u < 1j  # noqa: B015
    for twin in (copy.copy(u), copy.deepcopy(u), copy.copy(u + 0)):
        twin += 1
        assert u[0, 0] == 0 and twin[0, 0] == 1
    with pytest.raises(TypeError, match="pickle: .* allowed: u.save"):
        pickle.dumps(u)
    assert tw.field(np.arange(3, dtype=">i4"))[...].tolist() == [0, 1, 2]
    small, flags = tw.field(np.array([1, 4], "i1")), tw.field(np.array([True, False]))
    for wrong, way in (
        (lambda: np.sqrt(small), r"result of int8 has dtype float16; allowed: sqrt\(u.astype\('f4'\)\)"),
        (lambda: np.reciprocal(small), "allowed: 1 / u, 1 // u"),
        (lambda: np.maximum(small, 1j), "complex numbers were given"),
        (lambda: small.astype("f2"), "dtype 'f2' was given; allowed: bool"),
    ):
        with pytest.raises(tw.ConfigError, match=way):
            wrong()
    assert np.maximum(flags, ~flags).copy()[...].tolist() == [True, True]
    assert np.fmin(flags, True).copy()[...].tolist() == np.floor(flags).copy()[...].tolist() == [True, False]
    for logical, way in ((np.logical_and, r"\(u != 0\) & \(v != 0\)"), (np.logical_not, "u == 0")):
        with pytest.raises(TypeError, match=way):
            logical(*[u] * logical.nin)
