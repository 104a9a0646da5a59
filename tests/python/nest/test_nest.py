"""@nest: what it reads from a body, and what it refuses."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from launches import PYTHON, ended

from bodies import HEADER, load
from tilewave.nest.dependences import Place
from tilewave.errors import ConfigError
from tilewave.nest.names import ALLOWED_FUNCTIONS, NUMPY_TYPES
from tilewave.nest.nest import REQUIRED, Nest, nest

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
    assert (relax.arrays, relax.written, relax.indices) == (("A",), ("A",), ("i", "j", "k"))
    assert (mixed.arrays, mixed.written, mixed.indices) == (("B", "A"), ("A",), ("i", "j"))
    assert mixed.axes == {"B": ("i", "j"), "A": ("i", "j")} and mixed.tables == ()
    assert mixed.scalars == {"c": REQUIRED, "d": 2.0} and relax.scalars == {}
    assert isinstance(relax, Nest) and relax.rank == 3


def test_places_come_once_each_written_ones_first():
    assert mixed.places == (
        Place("A", (0, 0), ("i", "j"), written=True, read=True, always=True),
        Place("B", (0, 1), ("i", "j"), written=False, read=True, always=False),
        Place("B", (-2, 1), ("i", "j"), written=False, read=True, always=False),
        Place("A", (-1, -2), ("i", "j"), written=False, read=True, always=False),
    )
    line = mixed.function.__code__.co_firstlineno
    assert [int(mixed.where(place).split(":")[-2]) - line for place in mixed.places] == [3, 2, 2, 3]
    assert mixed.text_of(mixed.places[2]) == "B[-2+i, 1+j]"
    assert mixed.where(mixed.places[2]).endswith(f"test_nest.py:{line + 2}:28")


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("A[i, j] = 1", {"A": (True, False, True)}),
        ("A[i, j] += 1", {"A": (True, True, True)}),
        ("A[i, j] = 1; A[i, j] += A[i, j]", {"A": (True, False, True)}),
        ("if c: A[i, j] = 1", {"A": (True, True, False)}),
        ("if c: A[i, j] = 1\n    else: A[i, j] = 2", {"A": (True, False, True)}),
        ("if c: A[i, j] = 1\n    else: raise ValueError", {"A": (True, False, True)}),
        ("if c: A[i, j] = 1\n    A[i, j] = A[i, j] + 2", {"A": (True, True, True)}),
        ("if c: A[i, j] = 1\n    B[i, j] = A[i, j]", {"A": (True, True, False), "B": (True, False, True)}),
        ("A[i, j] = B[i, j] if c else A[i, j]", {"A": (True, True, True), "B": (False, True, False)}),
        ("A[i, j] = 1; B[i, j] = A[i, j]; A[i, j] = B[i, j]", {"A": (True, False, True), "B": (True, False, True)}),
    ],
)
def test_which_places_are_written_read_and_always_assigned(tmp_path, text, flags):
    head = "A, B, i, j, *, c=1" if "B" in flags else "A, i, j, *, c=1"
    found = load(tmp_path, "flags", f"{HEADER}@nest\ndef body({head}):\n    {text}\n").body
    assert {p.array: (p.written, p.read, p.always) for p in found.places} == flags


def test_iteration_box():
    same = {"A": (9, 9), "B": (9, 9)}
    assert relax.iteration_box({"A": (4, 5, 6)}) == ((1, 4), (1, 5), (1, 6))
    assert mixed.iteration_box(same) == ((2, 9), (2, 8))
    assert mixed.iteration_box({"A": (9, 9), "B": (7, 12)}) == ((2, 7), (2, 9))
    assert mixed.iteration_box({"A": (1, 2), "B": (1, 2)}) == ((2, 2), (2, 2))


@nest
def alignment(H, S, a, b, i, j, *, gap):
    H[i, j] = max(H[i-1, j-1] + S[a[i-1], b[j-1]], H[i-1, j] - gap, H[i, j-1] - gap)


@nest
def product(C, A, B, i, j, k):
    C[i, j] += A[i, k] * B[k, j]


@nest
def two_levels(U, F, w, t, i, j):
    U[t+1, i, j] = U[t+1, i-1, j] + U[t, i+1, j] * w[j] + F[i, j]


def test_arrays_of_lower_rank_and_tables():
    assert alignment.tables == ("S",) and alignment.table_rank("S") == 2
    assert alignment.axes == {"H": ("i", "j"), "a": ("i",), "b": ("j",)}
    assert alignment.arrays == ("H", "S", "a", "b") and alignment.written == ("H",)
    box = alignment.iteration_box({"H": (8, 9), "a": (7,), "b": (8,), "S": (4, 4)})
    assert box == ((1, 8), (1, 9))
    assert product.axes == {"C": ("i", "j"), "A": ("i", "k"), "B": ("k", "j")}
    assert product.iteration_box({"C": (3, 4), "A": (3, 5), "B": (5, 4)}) == ((0, 3), (0, 4), (0, 5))


def test_time():
    assert two_levels.time == "t" and relax.time is None and product.time is None
    assert two_levels.iteration_box({"U": (3, 6, 7), "F": (6, 7), "w": (7,)}) == ((0, 2), (1, 5), (0, 7))


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("A[i+1, j] = A[i, j]", "i"), ("A[i, j] = A[i-1, j]", None), ("A[i+1, j] = A[i-1, j]", "i"),
        ("A[i+1, j] = A[i-6, j]", "i"), ("A[i+1, j] = A[i-7, j]", None), ("A[i-1, j] = A[i, j]", None),
        ("A[i+1, j] = A[i, j] + B[i+2, j]", None), ("A[i+1, j] = B[j, i]", None), ("A[i+1, j] = B[j]", "i"),
        ("A[i+1, j] = B[i+1]", "i"), ("A[i+1, j] = 1; B[j] = 2", None), ("A[i+1, j] = 1; A[i, j] = 2", None),
        ("A[i+1, j] = 1; B[i+1] = 2", "i"),
    ],
)
def test_which_bodies_have_time_steps(tmp_path, text, time):
    head = "A, B, i, j" if "B" in text else "A, i, j"
    assert load(tmp_path, "steps_body", f"{HEADER}@nest\ndef body({head}):\n    {text}\n").body.time == time


def test_box_needs_every_shape_and_an_array_for_every_index(tmp_path):
    with pytest.raises(ConfigError, match="needs the shape of its array 'B'"):
        mixed.iteration_box({"A": (3, 3)})
    found = load(tmp_path, "free", HEADER + ("@nest\ndef body(A, S, i, k):\n    n = k + 1\n    A[i] = S[k, n]\n")).body
    with pytest.raises(ConfigError, match="no array bounds loop index 'k'"):
        found.iteration_box({"A": (3,), "S": (3, 3)})


def test_box_of_another_rank_is_refused():
    with pytest.raises(ConfigError, match=r"'B'.*subscripts \(i, j\).*\(3, 4, 5\).*rank 2"):
        mixed.iteration_box({"B": (3, 4, 5), "A": (3, 4)})


def test_scalars_are_bound_by_name():
    assert mixed.bind_scalars({"c": 1}) == {"c": 1, "d": 2.0}
    with pytest.raises(ConfigError, match="needs a value for its scalar 'c'"):
        mixed.bind_scalars({})
    with pytest.raises(ConfigError, match="no scalar 'e'; allowed: c, d"):
        mixed.bind_scalars({"c": 1, "e": 2})
    with pytest.raises(ConfigError, match="'c'.*given str.*allowed: int, float"):
        mixed.bind_scalars({"c": "1"})
    with pytest.raises(ConfigError, match="given float16"):
        mixed.bind_scalars({"c": np.float16(1)})


def test_calling_and_printing_help():
    with pytest.raises(TypeError, match=r"tilewave.run\(relax, ...\)"):
        relax(1, 2)
    text = repr(mixed)
    for word in ("mixed", "loops i, j", "writes A[i, j]", "B[-2+i, 1+j]", "(1, 2) flow", "scalars c, d"):
        assert word in text


def test_reference_runs_plain_loops():
    array = np.ones((3, 4, 5), "f4")
    expected = array.copy()
    relax.reference(relax.iteration_box({"A": array.shape}), {"A": array})
    for i in range(1, 3):
        for j in range(1, 4):
            for k in range(1, 5):
                expected[i, j, k] = (
                    np.sqrt(expected[i-1, j, k]) + np.sqrt(expected[i, j-1, k]) + np.sqrt(expected[i, j, k-1])
                )
    assert np.array_equal(array, expected)


def test_parameters_in_any_order(tmp_path):
    body = load(
        tmp_path, "any_order", HEADER + ("@nest\ndef body(j, A, i, B, *, c=1):\n    A[j, i] = B[j-1, i] * c + j\n")
    ).body
    assert body.indices == ("j", "i") and body.arrays == ("A", "B")
    arrays = {"A": np.zeros((3, 2)), "B": np.arange(6.0).reshape(3, 2)}
    body.reference(body.iteration_box({"A": (3, 2), "B": (3, 2)}), arrays, {"c": 10})
    assert np.array_equal(arrays["A"], [[0, 0], [1, 11], [22, 32]])


def test_signature_covers_body_and_constants(tmp_path):
    text = HEADER + "@nest\ndef body(A, i, *, c=1):\n    A[i] = A[i-1] * WEIGHT + abs(c)\n"
    first, again = load(tmp_path, "sig_a", text).body, load(tmp_path, "sig_b", text).body
    assert first.signature() == again.signature() and len(first.signature()) == 64
    spaced = load(tmp_path, "sig_c", text.replace("A[i] =", "# note\n    A[i]  =")).body
    assert spaced.signature() == first.signature()
    for change in (
        ("i-1", "i-2"), ("WEIGHT = 0.125", "WEIGHT = 0.25"), ("WEIGHT = 0.125", "WEIGHT = np.float64(0.125)"),
        ("abs(c)", "float(c)"), ("import math\n", "import math\nfrom numpy import fabs as abs\n"),
    ):
        other = load(tmp_path, "sig_d", text.replace(*change)).body
        assert other.signature() != first.signature(), change


def test_constants_are_those_of_the_moment(tmp_path):
    module = load(
        tmp_path,
        "late",
        (
            "from tilewave import nest\n@nest\ndef body(A, i):\n"
            "    if A[i-1] > LIMIT:\n        raise Problem('x')\n    A[i] = LATER * root(A[i-1])\n"
        ),
    )
    with pytest.raises(ConfigError, match=r"late.py:4:17: `LIMIT`: name 'LIMIT' is not defined"):
        module.body.constants()
    module.LIMIT, module.LATER, module.root, module.Problem = 3, 0.5, np.sqrt, ValueError
    assert module.body.constants() == {"LIMIT": 3, "LATER": 0.5}
    before = module.body.signature()
    module.LATER = 0.75
    assert module.body.constants()["LATER"] == 0.75 and module.body.signature() != before
    module.root = np.sort
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
    "transposed": (
        "A[i, j] = A[j, i]",
        "A[j, i]",
        ["'A'", "by j, i here and by i, j", "transposed", "does not see what the run writes"],
    ),
    "read in another order": (
        "x = A[j, i]; A[i, j] = x",
        "A[i, j]",
        ["'A' is written", "by i, j here and by j, i", "a copy of 'A'"],
    ),
    "read twice in another order": (
        "A[i, j] += B[i, j] + A[j, i-1]",
        "A[j, i-1]",
        ["'A' is written", "by j, i here and by i, j", "a copy of 'A'"],
    ),
    "order of writing": ("A[j, i] = 1 + B[i, j]", "A[j, i]", ["order j, i", "order i, j"]),
    "scaled": ("A[i, j] = A[2*i, j]", "A[2*i, j]", ["i, j by 2, 1 here and by 1, 1 before", "same factors"]),
    "scaled by other factors": ("A[2*i, j] = A[4*i, j]", "A[4*i, j]", ["by 4, 1 here and by 2, 1", "same factors"]),
    "negated": ("A[i, j] = B[-i, j] + A[i-1, j]", "B[-i, j]", ["scales", "by -1"]),
    "sum of indices": ("A[i, j] = B[i+j, j]", "B[i+j, j]", ["several loop indices"]),
    "repeated": ("A[i, i] = B[i, j]", "A[i, i]", ["'i' is repeated", "'A', which is written", "B[i, i]"]),
    "repeated in a read": ("A[i, j] = A[i, i-1]", "A[i, i-1]", ["by i, i here and by i, j", "transposed"]),
    "constant": ("A[i, j] = B[0, j]", "B[0, j]", ["`0`", "no loop index"]),
    "float offset": ("A[i, j] = B[i+1.0, j]", "B[i+1.0, j]", ["`i+1.0`", "index + integer"]),
    "quotient written": ("A[i, j//2] = 1 + B[i, j]", "A[i, j//2]", ["'A'", "computed", "A[t // k, i]", "time steps"]),
    "quotient beside no time": ("A[i//2, j] = B[i+3, j]", "i//2, j", ["'A'", "no time", "A[b, i] = B[k*b, i]"]),
    "rows of two kinds": ("A[i//2, j] = A[i//2-1, j] + B[i, j]", "A[i//2-1, j]", ["another first", "after the run"]),
    "quotient beside offsets": ("A[i, j] = B[i//2, j] + B[i, j]", "B[i, j]\n", ["'B'", "as a table", "given twice"]),
    "slice": ("A[i, j] = B[i, j:]", "B[i, j:]", ["slice", "index + integer"]),
    "ranks": ("A[i, j] = B[i, j] + B[i]", "B[i]", ["1 subscript here and 2 before"]),
    "constant last": ("A[i, j] = B[i, j, 0]", "B[i, j, 0]", ["`0`", "no loop index"]),
    "array in subscript": ("A[i, j] = T[A, j]", "A, j", ["'A'", "without a subscript"]),
    "table beside offsets": ("A[i, j] = B[A[i, j], j] + B[i, j]", "B[i, j]\n", ["'B'", "as a table"]),
    "written table": ("x = 1; A[i, j] = 2; T[x, j] = 2", "T[x, j]", ["'T'", "computed"]),
    "no subscript": ("A[i, j] = T[()]", "T[()]", ["'T' has no subscript"]),
    "slice of a table": ("A[i, j] = T[A[i, j], :]", ":]", ["slice"]),
    "outside name in subscript": ("A[i, j] = B[i+COUNT, j]", "B[i+COUNT, j]", ["'COUNT'", "loop"]),
    "scalar in subscript": ("A[i, j] = A[i-c, j]", "A[i-c, j]", ["looked up as a table", "given twice"]),
    "far": ("A[i, j] = B[i, j-9223372036854775808]", "B[i, j-9", ["9223372036854775808 away", "below 2**40"]),
    "chained subscript": ("A[i, j] = B[i, j][0]", "B[i, j][0]", ["only a name can be subscripted"]),
    "subscripted local": ("A[i, j] = TABLE[i, j]", "TABLE[i, j]", ["'TABLE'", "no parameter"]),
    "subscripted scalar": ("A[i, j] = c[i, j]", "c[i, j]", ["'c'", "scalar (keyword-only)"]),
    "whole array": ("A[i, j] = B[i, j] + B", "B\n", ["'B'", "without a subscript", "B[i, j]"]),
    "attribute of array": ("A[i, j] = B[i, j] + B.size", "B.size", ["attribute 'size' of `B`"]),
    "nothing written": ("assert A[i, j] > B[i, j]", "def body", ["assigns to no array"]),
    "for": ("for x in (1, 2): A[i, j] = x", "for x", ["a loop inside a body", "if/elif"]),
    "while": ("while A[i, j]: A[i, j] = 1", "while", ["a loop inside a body"]),
    "return": ("A[i, j] = 1; return 3", "return 3", ["return is not supported"]),
    "call": ("A[i, j] = print(1)", "print(1)", ["print in a body", "allowed: an array that keeps"]),
    "call of own": ("A[i, j] = helper(1, 2)", "helper(1, 2)", ["given 2 positional", "allowed: helper(x)"]),
    "np call": ("A[i, j] = np.interp(1, 2, 3)", "np.interp(1, 2, 3)", ["calling np.interp"]),
    "keyword": ("A[i, j] = np.exp(1, out=None)", "np.exp(1, out=None)", ["keywords"]),
    "too many": ("A[i, j] = np.exp(1, 2)", "np.exp(1, 2)", ["2 argument", "allowed: 1 here"]),
    "too few": ("A[i, j] = min(A[i-1, j])", "min(A", ["1 argument", "2 or more"]),
    "list": ("A[i, j] = [1]", "[1]", ["a list as a value is not supported", "allowed: numbers"]),
    "dict": ("A[i, j] = {}", "{}", ["a dict"]),
    "tuple": ("A[i, j] = 1, 2", "1, 2", ["a tuple"]),
    "comprehension": ("A[i, j] = [x for x in (1,)]", "[x for", ["a comprehension"]),
    "lambda": ("A[i, j] = lambda: 1", "lambda", ["a lambda"]),
    "string": ("A[i, j] = 'one'", "'one'", ["constant of type str", "int, float, bool"]),
    "f-string": ("A[i, j] = f'{c}'", "f'{c}'", ["an f-string"]),
    "walrus": ("A[i, j] = (x := 1)", "x := 1", ["assignment expression"]),
    "global": ("global WEIGHT; A[i, j] = 1", "global", ["global is not supported"]),
    "annotated": ("A[i, j] = 1; A[i, j]: int", "A[i, j]: int", ["annotation of an element", "x: float"]),
    "annotated unassigned": ("x: int; A[i, j] = x", "x\n", ["'x' may be read before"]),
    "tuple kept": ("x = y, z = 1, 2; A[i, j] = z", "1, 2", ["a tuple as a value", "a, b = x, y"]),
    "unpacking": ("x, y = B[i, j]; A[i, j] = x", "B[i, j]", ["unpacking this value", "a, b = x, y"]),
    "too many values": ("x, y = 1, 2, 3; A[i, j] = x", "1, 2, 3", ["3 values for 2 targets"]),
    "starred": ("x, *y = 1, 2; A[i, j] = x", "1, 2", ["2 values for 2 targets"]),
    "swapped index": ("i, x = 1, 2; A[i, j] = x", "i, x", ["'i'", "a loop index"]),
    "delete": ("x = 1; A[i, j] = x; del x", "del x", ["del is not supported"]),
    "print": ("A[i, j] = 1; print(A[i, j])", "print(", ["print in a body", "printed after the run", "names the point"]),
    "unused value": ("A[i, j] = 1; A[i, j]", "A[i, j]\n", ["value is not used"]),
    "matrix product": ("A[i, j] = B[i, j] @ c", "B[i, j] @ c", ["MatMult", "+ - *", "<< >>"]),
    "augmented product": ("A[i, j] @= 1", "A[i, j] @= 1", ["MatMult", "+=", ">>="]),
    "is": ("A[i, j] = i is j", "i is j", ["Is", "<="]),
    "assign index": ("i = 1; A[i, j] = 2", "i = 1", ["'i'", "a loop index"]),
    "assign scalar": ("c = 1; A[i, j] = c", "c = 1", ["'c'", "a scalar parameter"]),
    "assign array": ("A[i, j] = 1; B = 2", "B = 2", ["'B'", "an array of the nest"]),
    "unassigned": ("A[i, j] = x + 1; x = 2", "x + 1", ["'x'", "before it is assigned"]),
    "maybe unassigned": ("if c: x = 1\n    A[i, j] = x", "x\n", ["'x' may be read before", "every path"]),
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
    text = (
        HEADER + "TABLE = [1.0]\n\ndef helper(x):\n    return x\n\n@nest\n"
        f"def body(A, B, i, j, *, c=1.0):\n{uses}    {body}\n"
    )
    if "B" not in text.split("def body", 1)[1][20:]:
        text = text.replace("(A, B, i", "(A, i")
    if "T[" in body:
        text = text.replace("(A, B, i", "(A, B, T, i")
    start = text.index("def body")
    inside = text.index(body, start) if pointed != "def body" else start
    place = text.rindex(pointed) if pointed.endswith("\n") else text.index(pointed, inside)
    line = text.count("\n", 0, place) + 1
    column = place - text.rindex("\n", 0, place)
    with pytest.raises(ConfigError) as error:
        load(tmp_path, "refused", text)
    message = str(error.value)
    assert f"refused.py:{line}:{column}: `" in message, message
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("np.minimun(A[i], 1)", "np.minimum,"),
        ("math.arctan(A[i])", "np.arctan,"),
        ("np.arctn2(A[i], 1.0)", "np.arctan2,"),
        ("maximum(A[i], 1)", "np.maximum,"),
        ("math.sqr(A[i])", "math.sqrt, np.sqrt,"),
        ("nothing_like_it(A[i])", "abs, int,"),
    ],
)
def test_the_nearest_functions_come_first(tmp_path, text, first):
    with pytest.raises(ConfigError, match=re.escape(f"allowed: {first}")):
        load(tmp_path, "nearest", HEADER + f"@nest\ndef body(A, i):\n    A[i] = {text}\n").body.constants()


def test_the_guide_lists_all_functions():
    page = Path(__file__).parents[3] / "docs" / "guide" / "bodies.md"
    listed = {*re.findall(r"[a-z_0-9]+", page.read_text())}
    functions = {each.rpartition(".")[2] for each in ALLOWED_FUNCTIONS} - {*NUMPY_TYPES}
    assert functions <= listed


@pytest.mark.parametrize(
    "name",
    ["nest", "context", "over", "reverse", "steps", "periodic", "plan", "fastmath", "reduce", "inject", "record"],
)
def test_names_that_run_takes_for_itself(tmp_path, name):
    for k, (head, text) in enumerate(
        [
            (f"A, i, *, {name}=1", f"A[i] = {name}"),
            (f"A, {name}, i", f"A[i] = {name}[i]"),
            (f"{name}, i", f"{name}[i] = 1"),
            (f"A, {name}, i", f"A[i] = {name}[int(A[i-1])]"),
        ]
    ):
        with pytest.raises(
            ConfigError, match=rf"names.py:\d+:\d+: .*'{name}' of nest 'body' .* taken: {name}= .*allowed: another"
        ) as error:
            load(tmp_path, "names", f"{HEADER}@nest\ndef body({head}):\n    {text}\n")
        assert error.value.of_program, k
    found = load(tmp_path, "index", f"{HEADER}@nest\ndef body(A, {name}):\n    A[{name}] = A[{name}-1]\n").body
    assert found.indices == (name,)  # an index is no keyword


@pytest.mark.parametrize(
    ("head", "pointed", "words"),
    [
        ("A, i, *more", "more", ["*arguments", "keyword-only"]),
        ("A, i, **more", "more", ["**keywords"]),
        ("A, /, i", "A", ["positional-only"]),
        ("A, i=0", "0", ["default"]),
        ("A, i, c", "c", ["'c' is neither subscripted", "keyword-only"]),
    ],
)
def test_parameter_lists_that_are_refused(tmp_path, head, pointed, words):
    text = HEADER + f"@nest\ndef body({head}):\n    A[i] = 1\n"
    place = text.index(pointed, text.index("def body(") + 9)
    line, column = text.count("\n", 0, place) + 1, place - text.rindex("\n", 0, place)
    with pytest.raises(ConfigError) as error:
        load(tmp_path, "parameters", text)
    assert f"parameters.py:{line}:{column}: " in str(error.value)
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
    with pytest.raises(ConfigError, match="'body'.*source text is not available.*tilewave.nest_from"):
        exec("@nest\ndef body(A, i):\n    A[i] = 1\n", scope)


def test_source_from_standard_input(tmp_path):
    text = "from tilewave import nest\n@nest\ndef body(A, i):\n    A[i] = 1\n"
    done = ended(PYTHON, "-", input=text, env={"PYTHONPATH": ":".join(sys.path)})
    assert done.returncode == 1 and "source text is not available" in done.stderr
