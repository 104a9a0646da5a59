"""@nest: what it reads from a body, and what it refuses."""

import subprocess
import sys

import numpy as np
import pytest

from body_generator import HEADER, load
from tilewave.errors import ConfigError
from tilewave.nest import REQUIRED, Nest, nest

OMEGA = 0.5


@nest
def relax(A, i, j, k):
    """Sum of roots."""
    A[i, j, k] = np.sqrt(A[i-1, j, k]) + np.sqrt(A[i, j-1, k]) + np.sqrt(A[i, j, k-1])


@nest
def mixed(B, A, i, j, *, c, d=2.0):
    left = c * B[i, j+1] + B[-2+i, 1+j]
    A[i, j] = left + OMEGA * A[i-1, j-2] + A[i, j] + d * B[i, j+1]


def test_reads_the_roles_of_the_parameters():
    assert relax.name == relax.__name__ == "relax" and relax.__doc__ == "Sum of roots."
    assert (relax.arrays, relax.written, relax.indices) == (("A",), "A", ("i", "j", "k"))
    assert (mixed.arrays, mixed.written, mixed.indices) == (("B", "A"), "A", ("i", "j"))
    assert mixed.scalars == {"c": REQUIRED, "d": 2.0} and relax.scalars == {}
    assert isinstance(relax, Nest) and relax.rank == 3


def test_accesses_come_once_each_in_source_order():
    assert mixed.accesses == (
        ("B", (0, 1)), ("B", (-2, 1)), ("A", (-1, -2)), ("A", (0, 0)),
    )
    line = mixed.function.__code__.co_firstlineno
    assert mixed.line_of(("B", (-2, 1))) == line + 2
    assert mixed.line_of(("A", (0, 0))) == line + 3
    assert mixed.text_of(("B", (-2, 1))) == "B[-2+i, 1+j]"
    assert mixed.where(("B", (-2, 1))).endswith(f"test_nest.py:{line + 2}:28")


def test_flow_dependences():
    assert relax.flow_dependences == ((1, 0, 0), (0, 1, 0), (0, 0, 1))
    assert mixed.flow_dependences == ((1, 2),)
    relax.check_box_sweep()
    mixed.check_box_sweep()


def test_iteration_box():
    assert relax.iteration_box((4, 5, 6)) == ((1, 4), (1, 5), (1, 6))
    assert mixed.iteration_box((9, 9)) == ((2, 9), (2, 8))
    assert mixed.iteration_box((9, 9), over={"j": (3, np.int64(7))}) == ((2, 9), (3, 7))
    assert mixed.iteration_box((1, 2)) == ((2, 2), (2, 2))


@pytest.mark.parametrize(("over", "words"), [
    ({"j": (1, 8)}, ["(1, 8)", "'j'", "within (2, 8)"]),
    ({"i": (2, 10)}, ["(2, 10)", "within (2, 9)"]),
    ({"i": (5, 4)}, ["(5, 4)"]),
    ({"k": (0, 1)}, ["no index 'k'", "allowed: i, j"]),
    ({"i": "0:n"}, ["'0:n'", "not supported", "pair of ints"]),
    ({"i": lambda j: j}, ["not supported", "pair of ints"]),
])
def test_bounds_that_are_refused(over, words):
    with pytest.raises(ConfigError) as error:
        mixed.iteration_box((9, 9), over)
    assert all(word in str(error.value) for word in words), error.value


def test_box_of_another_rank_is_refused():
    with pytest.raises(ConfigError, match=r"2 loop indices.*\(3, 4, 5\).*rank 2"):
        mixed.iteration_box((3, 4, 5))


def test_scalars_are_bound_by_name():
    assert mixed.bind_scalars({"c": 1}) == {"c": 1, "d": 2.0}
    with pytest.raises(ConfigError, match="needs a value for its scalar 'c'"):
        mixed.bind_scalars({})
    with pytest.raises(ConfigError, match="no scalar 'e'; allowed: c, d"):
        mixed.bind_scalars({"c": 1, "e": 2})
    with pytest.raises(ConfigError, match="'c'.*given str.*allowed: int, float"):
        mixed.bind_scalars({"c": "1"})
    with pytest.raises(ConfigError, match="given complex128"):
        mixed.bind_scalars({"c": np.complex128(1)})


def test_calling_and_printing_help():
    with pytest.raises(TypeError, match=r"tilewave.run\(relax, ...\)"):
        relax(1, 2)
    text = repr(mixed)
    for word in ("mixed", "loops i, j", "writes A", "B[-2+i, 1+j]", "(1, 2)", "scalars c, d"):
        assert word in text


def test_reference_runs_plain_loops():
    array = np.ones((3, 4, 5), "f4")
    expected = array.copy()
    relax.reference(relax.iteration_box(array.shape), {"A": array})
    for i in range(1, 3):
        for j in range(1, 4):
            for k in range(1, 5):
                expected[i, j, k] = np.sqrt(expected[i-1, j, k]) + np.sqrt(expected[i, j-1, k]) \
                    + np.sqrt(expected[i, j, k-1])
    assert np.array_equal(array, expected)


def test_parameters_in_any_order(tmp_path):
    body = load(tmp_path, "any_order", HEADER + (
        "@nest\ndef body(j, A, i, B, *, c=1):\n    A[j, i] = B[j-1, i] * c + j\n")).body
    assert body.indices == ("j", "i") and body.arrays == ("A", "B")
    arrays = {"A": np.zeros((3, 2)), "B": np.arange(6.0).reshape(3, 2)}
    body.reference(body.iteration_box((3, 2)), arrays, {"c": 10})
    assert np.array_equal(arrays["A"], [[0, 0], [1, 11], [22, 32]])


def test_signature_covers_body_and_constants(tmp_path):
    text = HEADER + "@nest\ndef body(A, i, *, c=1):\n    A[i] = A[i-1] * WEIGHT + abs(c)\n"
    first, again = load(tmp_path, "sig_a", text).body, load(tmp_path, "sig_b", text).body
    assert first.signature() == again.signature() and len(first.signature()) == 64
    spaced = load(tmp_path, "sig_c", text.replace("A[i] =", "# note\n    A[i]  =")).body
    assert spaced.signature() == first.signature()
    for change in (("i-1", "i-2"), ("WEIGHT = 0.125", "WEIGHT = 0.25"),
                   ("WEIGHT = 0.125", "WEIGHT = np.float64(0.125)"), ("abs(c)", "float(c)"),
                   ("import math\n", "import math\nfrom numpy import fabs as abs\n")):
        other = load(tmp_path, "sig_d", text.replace(*change)).body
        assert other.signature() != first.signature(), change


def test_constants_are_those_of_the_moment(tmp_path):
    module = load(tmp_path, "late", (
        "from tilewave.nest import nest\n@nest\ndef body(A, i):\n"
        "    if A[i-1] > LIMIT:\n        raise Problem('x')\n    A[i] = LATER * root(A[i-1])\n"))
    with pytest.raises(ConfigError, match=r"late.py:4:17: `LIMIT`: name 'LIMIT' is not defined"):
        module.body.constants()
    module.LIMIT, module.LATER, module.root, module.Problem = 3, 0.5, np.sqrt, ValueError
    assert module.body.constants() == {"LIMIT": 3, "LATER": 0.5}
    before = module.body.signature()
    module.LATER = 0.75
    assert module.body.constants()["LATER"] == 0.75 and module.body.signature() != before
    module.root = print
    with pytest.raises(ConfigError, match="late.py:6:20: `root.*calling root is not supported"):
        module.body.constants()
    module.root, module.Problem = np.sqrt, int
    with pytest.raises(ConfigError, match="late.py:5:15: `Problem`: this is no exception class"):
        module.body.constants()


def test_enclosing_scope_and_indented_source():
    weight = np.float32(0.25)

    @nest
    def inner(A, i):
        A[i] = weight * A[i-1]

    assert inner.constants() == {"weight": weight}
    assert type(inner.constants()["weight"]) is np.float32


# What is refused. Each case: a body, the text that the error points at, words of the message.

REFUSED = {
    "transposed": ("A[i, j] = A[j, i]", "A[j, i]", ["'j'", "'i'", "transposed", "index + integer"]),
    "scaled": ("A[i, j] = A[2*i, j]", "A[2*i, j]", ["scales", "'i' by 2", "index + integer"]),
    "negated": ("A[i, j] = B[-i, j] + A[i-1, j]", "B[-i, j]", ["scales", "by -1"]),
    "sum of indices": ("A[i, j] = B[i+j, j]", "B[i+j, j]", ["several loop indices"]),
    "repeated": ("A[i, j] = B[i, i]", "B[i, i]", ["'i' is repeated", "index + integer"]),
    "constant": ("A[i, j] = B[0, j]", "B[0, j]", ["`0`", "no loop index"]),
    "float offset": ("A[i, j] = B[i+1.0, j]", "B[i+1.0, j]", ["`i+1.0`", "index + integer"]),
    "quotient": ("A[i, j] = B[i//2, j]", "B[i//2, j]", ["`i//2`", "index + integer"]),
    "slice": ("A[i, j] = B[i, j:]", "B[i, j:]", ["slice", "index + integer"]),
    "lower rank": ("A[i, j] = B[i]", "B[i]", ["'B' has 1 subscript", "2 loop", "lower rank"]),
    "higher rank": ("A[i, j] = B[i, j, 0]", "B[i, j, 0]", ["3 subscripts", "i, j"]),
    "array in subscript": ("A[i, j] = B[A[i, j], j]", "B[A[i, j], j]", ["'A' used inside"]),
    "outside name in subscript": ("A[i, j] = B[i+COUNT, j]", "B[i+COUNT, j]", ["'COUNT'", "loop"]),
    "scalar in subscript": ("A[i, j] = B[i+c, j]", "B[i+c, j]", ["'c'", "loop index"]),
    "chained subscript": ("A[i, j] = B[i, j][0]", "B[i, j][0]", ["only a name can be subscripted"]),
    "subscripted local": ("A[i, j] = TABLE[i, j]", "TABLE[i, j]", ["'TABLE'", "no parameter"]),
    "subscripted scalar": ("A[i, j] = c[i, j]", "c[i, j]", ["'c'", "scalar (keyword-only)"]),
    "whole array": ("A[i, j] = B[i, j] + B", "B\n", ["'B'", "without a subscript", "B[i, j]"]),
    "attribute of array": ("A[i, j] = B[i, j] + B.size", "B.size", ["attribute 'size' of `B`"]),
    "two written": ("A[i, j] = 1; B[i, j] = 2", "B[i, j]", ["'B' beside 'A'", "one written"]),
    "shifted write": ("A[i-1, j] = 1", "A[i-1, j]", ["offset (-1, 0)", "A[i, j] as the target"]),
    "nothing written": ("x = A[i, j]", "def body", ["assigns to no array"]),
    "for": ("for x in (1, 2): A[i, j] = x", "for x", ["a loop inside a body", "if/elif"]),
    "while": ("while A[i, j]: A[i, j] = 1", "while", ["a loop inside a body"]),
    "return": ("A[i, j] = 1; return 3", "return 3", ["return is not supported"]),
    "call": ("A[i, j] = print(1)", "print(1)", ["calling print", "min, max, abs", "np.exp"]),
    "call of own": ("A[i, j] = helper(1)", "helper(1)", ["calling helper"]),
    "np call": ("A[i, j] = np.interp(1, 2, 3)", "np.interp(1, 2, 3)", ["calling np.interp"]),
    "keyword": ("A[i, j] = np.exp(1, out=None)", "np.exp(1, out=None)", ["keywords"]),
    "too many": ("A[i, j] = np.exp(1, 2)", "np.exp(1, 2)", ["2 argument", "allowed: 1 here"]),
    "too few": ("A[i, j] = min(A[i-1, j])", "min(A", ["1 argument", "2 or more"]),
    "list": ("A[i, j] = [1]", "[1]", ["a list is not supported", "allowed: numbers"]),
    "dict": ("A[i, j] = {}", "{}", ["a dict"]),
    "tuple": ("A[i, j] = 1, 2", "1, 2", ["a tuple"]),
    "comprehension": ("A[i, j] = [x for x in (1,)]", "[x for", ["a comprehension"]),
    "lambda": ("A[i, j] = lambda: 1", "lambda", ["a lambda"]),
    "string": ("A[i, j] = 'one'", "'one'", ["constant of type str", "int, float, bool"]),
    "complex": ("A[i, j] = 1j", "1j", ["constant of type complex"]),
    "f-string": ("A[i, j] = f'{c}'", "f'{c}'", ["an f-string"]),
    "walrus": ("A[i, j] = (x := 1)", "x := 1", ["assignment expression"]),
    "global": ("global WEIGHT; A[i, j] = 1", "global", ["global is not supported"]),
    "annotated": ("x: int = 1; A[i, j] = x", "x: int", ["annotated assignment"]),
    "chained assignment": ("x = A[i, j] = 1", "x = A", ["chained assignment"]),
    "unpacking": ("x, y = 1, 2; A[i, j] = x", "1, 2", ["a tuple"]),
    "delete": ("x = 1; A[i, j] = x; del x", "del x", ["del is not supported"]),
    "unused value": ("A[i, j] = 1; A[i, j]", "A[i, j]\n", ["value is not used"]),
    "matrix product": ("A[i, j] = B[i, j] @ c", "B[i, j] @ c", ["MatMult", "+ - *"]),
    "bit operator": ("A[i, j] = i & 1", "i & 1", ["BitAnd", "//"]),
    "augmented bits": ("A[i, j] |= 1", "A[i, j] |= 1", ["BitOr", "+="]),
    "invert": ("A[i, j] = ~i", "~i", ["Invert", "- + not"]),
    "is": ("A[i, j] = i is j", "i is j", ["Is", "<="]),
    "assign index": ("i = 1; A[i, j] = 2", "i = 1", ["'i'", "a loop index"]),
    "assign scalar": ("c = 1; A[i, j] = c", "c = 1", ["'c'", "a scalar parameter"]),
    "assign array": ("A[i, j] = 1; B = 2", "B = 2", ["'B'", "an array of the nest"]),
    "unassigned": ("A[i, j] = x + 1; x = 2", "x + 1", ["'x'", "before it is assigned"]),
    "maybe unassigned": (
        "if c: x = 1\n    A[i, j] = x", "x\n", ["'x' may be read before", "every path"]),
    "own constant": ("A[i, j] = TABLE", "TABLE", ["'TABLE' (list)", "numbers defined outside"]),
    "raise always": ("raise ValueError('x')\n    A[i, j] = 1", "raise", ["every point"]),
    "raise nothing": ("if c: raise\n    A[i, j] = 1", "raise", ["form of raise", "inside an if"]),
    "raise text": ("if c: raise ValueError(f'{i}')\n    A[i, j] = 1", "f'{i}'", ["computed"]),
    "raise int": ("if c: raise int(1)\n    A[i, j] = 1", "int", ["no exception class"]),
    "assert text": ("assert c, str(i)\n    A[i, j] = 1", "str(i)", ["computed", "constant string"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_place_and_what_is_allowed(tmp_path, name):
    body, pointed, words = REFUSED[name]
    uses = "    unused = B[i, j] + c\n" if "B[i" not in body else ""
    text = HEADER + "TABLE = [1.0]\n\ndef helper(x):\n    return x\n\n@nest\n" \
        f"def body(A, B, i, j, *, c=1.0):\n{uses}    {body}\n"
    if "B" not in text.split("def body", 1)[1][20:]:
        text = text.replace("(A, B, i", "(A, i")
    start = text.index("def body")
    inside = text.index(body, start) if pointed != "def body" else start
    place = text.rindex(pointed) if pointed.endswith("\n") or name in ("two written",) \
        else text.index(pointed, inside)
    line = text.count("\n", 0, place) + 1
    column = place - text.rindex("\n", 0, place)
    with pytest.raises(ConfigError) as error:
        load(tmp_path, "refused", text)
    message = str(error.value)
    assert f"refused.py:{line}:{column}: `" in message, message
    assert all(word in message for word in words), message


@pytest.mark.parametrize(("head", "pointed", "words"), [
    ("A, i, *more", "more", ["*arguments", "keyword-only"]),
    ("A, i, **more", "more", ["**keywords"]),
    ("A, /, i", "A", ["positional-only"]),
    ("A, i=0", "0", ["default"]),
    ("A, i, c", "c", ["'c' is neither subscripted", "keyword-only"]),
])
def test_parameter_lists_that_are_refused(tmp_path, head, pointed, words):
    text = HEADER + f"@nest\ndef body({head}):\n    A[i] = 1\n"
    place = text.index(pointed, text.index("def body(") + 9)
    line, column = text.count("\n", 0, place) + 1, place - text.rindex("\n", 0, place)
    with pytest.raises(ConfigError) as error:
        load(tmp_path, "parameters", text)
    assert f"parameters.py:{line}:{column}: " in str(error.value)
    assert all(word in str(error.value) for word in words), error.value


@pytest.mark.parametrize(("body", "words"), [
    ("A[i, j] = A[i, j+1]", ["(0, -1)", "`A[i, j+1]`", "later in the loops", "offsets <= 0"]),
    ("A[i, j] = A[i-1, j] + A[i-1, j+1]", ["(1, -1)", "`A[i-1, j+1]`", "negative component"]),
    ("A[i, j] = A[i+1, j]", ["(-1, 0)", "`A[i+1, j]`", "A[i-1, j], A[i, j-1]"]),
])
def test_dependences_that_no_box_sweep_honours(tmp_path, body, words):
    found = load(tmp_path, "sweep", HEADER + f"@nest\ndef body(A, i, j):\n    {body}\n").body
    with pytest.raises(ConfigError) as error:
        found.check_box_sweep()
    column = 5 + body.rindex("A[")
    line = found.function.__code__.co_firstlineno + 2
    assert f"sweep.py:{line}:{column}: " in str(error.value)
    assert all(word in str(error.value) for word in words), error.value


def test_what_is_not_a_plain_function_is_refused():
    with pytest.raises(ConfigError, match="given a lambda"):
        nest(lambda A, i: None)
    with pytest.raises(ConfigError, match="written with def"):
        nest(np.sqrt)
    with pytest.raises(ConfigError, match="written with def"):
        nest(relax)


def test_source_that_python_does_not_keep():
    scope = {"nest": nest}
    with pytest.raises(ConfigError, match="'body'.*source text is not available.*python -c"):
        exec("@nest\ndef body(A, i):\n    A[i] = 1\n", scope)


def test_source_from_standard_input(tmp_path):
    text = "from tilewave.nest import nest\n@nest\ndef body(A, i):\n    A[i] = 1\n"
    done = subprocess.run([sys.executable, "-"], input=text, text=True, capture_output=True,
                          env={"PYTHONPATH": ":".join(sys.path)}, check=False)
    assert done.returncode == 1 and "source text is not available" in done.stderr
