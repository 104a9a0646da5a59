"""Every operator of Python's data model on matrices: NumPy's type and bits, in place where NumPy is, or an error."""

import copy
import operator
import pickle

import numpy as np
import pytest
from local_ranks import refused_on_all, results_of

import tilewave as tw

BINARY = "add sub mul truediv floordiv mod pow matmul".split()
IN_PLACE = "iadd isub imul itruediv ifloordiv imod ipow imatmul".split()
REFUSED = "and_ or_ xor lshift rshift lt le gt ge eq ne iand ior ixor ilshift irshift".split()
FUNCTIONS = {name: getattr(operator, name) for name in [*BINARY, *IN_PLACE, *REFUSED, "neg", "pos", "abs", "invert"]}
FUNCTIONS |= {"divmod": divmod} | {f"np.{f.__name__}": f for f in (np.power, np.divmod, np.add, np.absolute, np.matmul)}
LAYOUTS = ["rows", "columns", "cyclic"]


def attempt(call):
    try:
        return call(), None
    except Exception as error:
        return None, error


def close(found, wanted, name):
    if isinstance(wanted, tuple):
        return all(close(*pair, name) for pair in zip(found, wanted, strict=True))
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return False
    exact = "matmul" not in name and found.dtype.kind != "c"
    return np.array_equal(found, wanted, True) if exact else np.allclose(found, wanted, 1e-3, 1e-3, True)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
@pytest.mark.parametrize("seed", range(6))
def test_operators_are_numpys(name, seed):
    draw = np.random.default_rng([seed, *name.encode()])
    types = [str(each) for each in draw.choice(["f4", "f8", "c8", "c16"], 2)]
    a, b = (np.round(draw.standard_normal((5, 5)) * 4) / 2 for _ in range(2))
    a, b = (np.where(x == 0, 1, x + (1j if t[0] == "c" else 0)).astype(t) for x, t in zip((a, b), types, strict=True))
    scalar = [2, 0.5, -1, 3, True, 1j, np.float32(2)][draw.integers(7)]
    kind, swapped = str(draw.choice(["matrix", "turned", "array", "row", "scalar"])), draw.random() < 0.4
    one, other = (str(each) for each in draw.choice(LAYOUTS, 2))
    array = np.asfortranarray(b) if seed % 2 else b
    array.flags.writeable = False

    def applied(x, y):
        if name in ("neg", "pos", "abs", "invert", "np.absolute"):
            return FUNCTIONS[name](x)
        found = FUNCTIONS[name](*((y, x) if swapped and name not in IN_PLACE else (x, y)))
        assert name not in IN_PLACE or found is x
        return found

    operand = {"turned": b.T, "row": b[0], "scalar": scalar}.get(kind, array)
    with np.errstate(all="ignore"):
        wanted, refused = attempt(lambda: applied(a.copy(), operand))

    def body(context):
        A = tw.linalg.matrix(a, layout=one, context=context)
        B = tw.linalg.matrix(b, layout=other, block=2, context=context)
        found, error = attempt(lambda: applied(A, {"matrix": B, "turned": B.T}.get(kind, operand)))
        whole = lambda x: x if isinstance(x, np.ndarray) else x[:, :].redistribute("rows").gather()
        if error is None:
            found = tuple(map(whole, found)) if isinstance(found, tuple) else whole(found)
        return found, error

    found, error = results_of(1 + seed % 3, 1, body)[0]
    what = f"seed {seed} {name} {types} {kind} {scalar} {swapped} {one} {other}"
    if refused is None and name not in REFUSED:
        assert error is None and close(found, wanted, name), (what, error, found, wanted)
    else:
        assert isinstance(error, TypeError | tw.ConfigError), (what, error, found)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_blocks_of_matrices_are_set_to_matrices(ranks):
    a, b = np.arange(30.0).reshape(6, 5), -np.arange(20.0).reshape(4, 5)

    def body(context):
        A, B = (tw.linalg.matrix(x, layout="cyclic", block=2, context=context) for x in (a, b))
        A[2:4, 1:5:2] = B[:2, 3:]
        A[::-2, 0:4] = B.T[1:4, :]
        A[:2] = A[4:]
        for wrong, text in (
            (lambda: A.__setitem__(slice(0, 2), B), r"shape \(4, 5\) was given for elements of shape \(2, 5\)"),
            (lambda: A.__setitem__(slice(0, 4), B.astype("c16")), "complex128 for float64"),
        ):
            with pytest.raises(tw.ConfigError, match=text):
                wrong()
        return A.gather()

    wanted = a.copy()
    wanted[2:4, 1:5:2] = b[:2, 3:]
    wanted[::-2, 0:4] = b.T[1:4]
    wanted[:2] = wanted[4:].copy()
    assert np.array_equal(results_of(ranks, 1, body)[0], wanted)


def test_what_python_asks_of_matrices():
    A = tw.linalg.matrix(np.eye(3))
    assert len(A) == 3 and A is not None
    for twin in (copy.copy(A), copy.deepcopy(A.T)):
        twin += 1
        assert A[0, 1] == 0 and twin[0, 1] == 1
    with pytest.raises(TypeError, match="pickle: .* allowed: A.save"):
        pickle.dumps(A)
    compared = (lambda x: 1 in x), (lambda x: x < x), (lambda x: x == 1)
    for wrong in (bool, list, int, float, complex, round, np.asarray, *compared):
        with pytest.raises(TypeError, match="allowed"):
            wrong(A)
    turned = A.T
    with pytest.raises(TypeError, match="A.T is no matrix of its own"):
        turned += 1
    with pytest.raises(tw.ConfigError, match="allowed: A = A @ B"):
        A @= tw.linalg.matrix((3, 2))

    def of_one_rank(context):
        A, B = tw.linalg.matrix((3, 4), context=context), tw.linalg.matrix((3, 4), context=context)
        return A.T + (B if context.rank else B.T)

    refused_on_all(2, of_one_rank, "given matrices of shapes (4, 3) and (3, 4)")
