"""Functions that bodies call: the plain loops, bit for bit, and what is refused."""

import re

import numpy as np
import pytest

import tilewave as tw
from bodies import HEADER, load
from kernel_helpers import compare
from tilewave.kernel.compile import compile_kernel

CASES = {
    "expression": ("def f(x):\n    return x * x + WEIGHT\n", "A[i, j] = f(B[i, j]) - f(A[i-1, j])"),
    "early returns": (
        "def f(x):\n    if x > 1:\n        return 1\n    elif x < -1.0:\n        x = -x\n"
        "        return x / 2\n    y = x * 3\n    return y\n",
        "A[i, j] = f(B[i, j]) * 2 + f(j)",
    ),
    "defaults and names": (
        "def f(x, y=2, *, z=0.5):\n    return x - y * z\n",
        "A[i, j] = f(1, z=B[i, j]) + f(B[i, j], 3) + f(y=i, x=j) + f(z=1, x=A[i-1, j], y=2)",
    ),
    "several values": (
        "def f(x, y):\n    if x > y:\n        return y, x\n    return x, y\n",
        "a, b = f(A[i, j], B[i, j])\n    [c, d] = f(a, 1)\n    A[i, j] = a - b + c * d",
    ),
    "of functions": (
        "def f(x):\n    return g(x) + g(x + 1)\ndef g(x, y=1):\n    return h(x) if x > y else h(y)\n"
        "def h(x):\n    x += COUNT\n    return x\n",
        "A[i, j] = f(B[i, j]) + h(2)",
    ),
    "own names": (
        "def f(A, i):\n    x = A + i\n    j = x * 2\n    return j\n",
        "x = 5\n    A[i, j] = f(B[i, j], x) + x + j",
    ),
    "only where it is needed": (
        "def f(x):\n    if x > 2:\n        raise ValueError('large')\n    return x\n",
        "A[i, j] = f(B[i, j]) if B[i, j] < 2 else 0\n"
        "    if B[i, j] < 1 and f(B[i, j]) > 0 or B[i, j] != B[i, j]: A[i, j] += 1",
    ),
    "raises": (
        "def f(x):\n    assert x < 5, 'five'\n    if x > 2:\n        raise ValueError('large')\n    return x\n",
        "A[i, j] = 7\n    A[i, j] = f(B[i, j] * 2)",
    ),
    "raises at last": (
        "def f(x):\n    if x < 90:\n        return x + 1\n    raise ValueError('large')\n",
        "A[i, j] = f(B[i, j])",
    ),
    "text": ('def f(x):\n    """Says what it does."""\n    y: float = x\n    return y\n', "A[i, j] = f(B[i, j])"),
    "as an argument": ("def f(x):\n    return np.sqrt(abs(x))\n", "A[i, j] = max(f(f(B[i, j])), f(i), abs(f(2)))"),
    "later": ("", "A[i, j] = f(B[i, j])", "def f(x):\n    return x + 3\n"),
    "before other names": ("def abs(x):\n    return x - 100\n", "A[i, j] = abs(B[i, j])"),
    "decorated": ("import tilewave\n@tilewave.inline\ndef f(x):\n    return -x\n", "A[i, j] = f(B[i, j])"),
}


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4"])
@pytest.mark.parametrize("name", CASES)
def test_functions_mean_what_python_has(tmp_path, name, dtype):
    before, text, *after = CASES[name]
    uses = "" if "B[" in text else "    unused = B[i, j]\n"
    module = load(
        tmp_path, "functions", f"{HEADER}{before}@nest\ndef body(A, B, i, j):\n{uses}    {text}\n{''.join(after)}"
    )
    for seed in (1, 2):
        compare(module.body, {"A": dtype, "B": dtype}, (6, 23), seed=seed, special=0.1 * (dtype[0] == "f"))


def test_functions_of_other_modules_need_the_decorator(tmp_path):
    other = load(
        tmp_path,
        "other_module",
        HEADER + "import tilewave\nSCALE = 3\n@tilewave.inline\ndef marked(x):\n    return x * SCALE\n"
        "def plain(x):\n    return x\n",
    )
    text = (
        f"{HEADER}import other_module\nfrom other_module import marked, plain\nSCALE = 100\n@nest\n"
        "def body(A, i):\n    A[i] = {}(A[i-1]) + SCALE\n"
    )
    for name in ("marked", "other_module.marked"):
        body = load(tmp_path, "user", text.format(name)).body
        compare(body, {"A": "f8"}, (20,), seed=3)
        assert body.constants() == {"SCALE": 100, f"{name}:SCALE": 3}
    before = body.signature()
    other.SCALE = 4
    assert body.signature() != before
    compare(body, {"A": "f8"}, (20,), seed=3)
    assert other.marked(2) == 8
    with pytest.raises(
        tw.ConfigError, match="calling plain is not supported; allowed: .* those under @tilewave.inline"
    ):
        load(tmp_path, "user", text.format("plain"))


def test_closures():
    def make(c):
        def add(x):
            return x + c

        return add

    one, two = make(1), make(0.5)

    @tw.nest
    def body(A, i):
        A[i] = one(A[i-1]) * two(A[i-1])

    compare(body, {"A": "f8"}, (9,), seed=1)
    assert body.constants() == {"one:c": 1, "two:c": 0.5}


def test_a_function_that_is_defined_again(tmp_path):
    text = HEADER + "def f(x):\n    return x + 1\n@nest\ndef body(A, i):\n    A[i] = f(A[i-1])\n"
    module = load(tmp_path, "again", text)
    A = np.zeros(4)
    tw.run(module.body, A=A)
    first = module.body.signature()
    module.f = load(tmp_path, "other", text.replace("x + 1", "x + 2")).f
    with pytest.raises(tw.ConfigError, match="calling f is not supported"):  # of another module
        tw.run(module.body, A=A)
    tw.inline(module.f)
    tw.run(module.body, A=A)
    assert A.tolist() == [0, 2, 4, 6] and module.body.signature() != first


def test_lines_and_messages(tmp_path):
    text = (
        HEADER + "{}def f(x):\n    if x > 3:\n        raise ValueError('large')\n    return x + 1\n"
        "{}@nest\ndef body(A, i):\n    A[i] = f(A[i-1])\n"
    )
    for before, between in (
        ("", ""),
        ("\n\n", ""),
        ("", "\n\n"),
        ("", ""),
    ):  # code that is found in the cache, and code that is not
        module = load(tmp_path, "lines", text.format(before, between))
        line = module.f.__code__.co_firstlineno + 2
        assert [*compile_kernel(module.body, {"A": "f8"}).sites] == [("ValueError", "large", line)]
        with pytest.raises(tw.KernelError, match=rf"ValueError\('large'\) at i=5 .* line {line}"):
            tw.run(module.body, A=np.zeros(9))


REFUSED = {
    "loop": ("def f(x):\n    for k in range(3): x += k\n    return x\n", "f(A[i])", 2, ["a loop inside a body"]),
    "no return": ("def f(x):\n    x += 1\n", "f(A[i])", 1, ["has to return a number"]),
    "empty return": ("def f(x):\n    if x: return\n    return x\n", "f(A[i])", 2, ["a return without a value"]),
    "may end": ("def f(x):\n    if x > 1:\n        return 2\n", "f(A[i])", 1, ["f may end without a return"]),
    "different returns": (
        "def f(x):\n    if x: return 1, 2\n    return x\n",
        "f(A[i])",
        3,
        ["no values together here and 2 before"],
    ),
    "recursion": ("def f(x):\n    return f(x - 1) if x > 0 else 0\n", "f(A[i])", 1, ["f, which calls itself"]),
    "recursion of two": ("def f(x):\n    return g(x)\ndef g(x):\n    return f(x)\n", "f(A[i])", 1, ["calls itself"]),
    "array": ("def f(x):\n    return x[0]\n", "f(A[i])", 2, ["a subscript in a function", "f(A[i, j])"]),
    "array given": ("def f(x):\n    return x\n", "f(A)", None, ["array 'A' is used without a subscript"]),
    "store": ("def f(x):\n    x[0] = 1\n    return 1\n", "f(A[i])", 2, ["assigning to an element"]),
    "star": ("def f(*x):\n    return 1\n", "f(A[i])", 1, ["*arguments and **keywords"]),
    "stars": ("def f(x, **y):\n    return 1\n", "f(A[i])", 1, ["*arguments and **keywords"]),
    "given a star": ("def f(x):\n    return x\n", "f(*A[i])", None, ["positional argument"]),
    "default": ("def f(x, y=(1, 2)):\n    return x\n", "f(A[i])", 1, ["default of 'y', tuple"]),
    "too many": ("def f(x):\n    return x\n", "f(A[i], 2)", None, ["2 positional", "allowed: f(x)"]),
    "missing": ("def f(x, y):\n    return x\n", "f(A[i])", None, ["needs a value for 'y'"]),
    "unknown": ("def f(x):\n    return x\n", "f(A[i], z=1)", None, ["f given z="]),
    "twice": ("def f(x):\n    return x\n", "f(A[i], x=1)", None, ["f given x="]),
    "by name": ("def f(x, /):\n    return x\n", "f(x=A[i])", None, ["f given x="]),
    "tuple as a value": ("def f(x):\n    return x, 1\n", "f(A[i]) + 1", None, ["returns 2 values", "unpacking them"]),
    "print": ("def f(x):\n    print(x)\n    return x\n", "f(A[i])", 2, ["print in a body"]),
    "names of the nest": ("def f(x):\n    return x + i\n", "f(A[i])", 2, ["name 'i' is not defined"]),
    "unassigned": ("def f(x):\n    if x: y = 1\n    return y\n", "f(A[i])", 3, ["'y' may be read before"]),
    "lambda": ("f = lambda x: x\n", "f(A[i])", 1, ["given a lambda"]),
    "generator": ("def f(x):\n    yield x\n    return x\n", "f(A[i])", 2, ["value is not used"]),
    "call of others": ("def f(x):\n    return np.sort(x)\n", "f(A[i])", 2, ["calling np.sort", "allowed: np.sqrt"]),
    "wrapped": (
        "import functools\ndef g(x):\n    return x\n@functools.wraps(g)\ndef f(x):\n    return x\n",
        "f(A[i])",
        None,
        ["must be the innermost decorator"],
    ),
    "cached": (
        "import functools\n@functools.cache\ndef f(x):\n    return x\n",
        "f(A[i])",
        None,
        ["calling f is not supported"],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(tmp_path, name):
    before, call, line, words = REFUSED[name]
    with pytest.raises(tw.ConfigError) as error:
        load(tmp_path, "refused", f"{HEADER}{before}@nest\ndef body(A, i):\n    A[i] = {call}\n").body.constants()
    message = str(error.value)
    assert all(word in message for word in words), message
    if line:
        assert re.search(rf"refused.py:{HEADER.count(chr(10)) + line}[:)]", message), message


def test_types_that_a_function_has_no_translation_for(tmp_path):
    module = load(
        tmp_path,
        "untyped",
        HEADER + "def f(x):\n    y = x + 1\n    return y & 3\n@nest\ndef body(A, i):\n    A[i] = f(A[i-1])\n",
    )
    compare(module.body, {"A": "i8"}, (20,), seed=1)
    with pytest.raises(
        tw.ConfigError,
        match=rf"untyped.py:{module.f.__code__.co_firstlineno + 2}:12: "
        "`y & 3`: not supported: .*NumPy float64 and Python int",
    ):
        compile_kernel(module.body, {"A": "f8"})
