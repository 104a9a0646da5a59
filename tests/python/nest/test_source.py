"""The text that a nest is read from is the text of the function in memory, or the nest is refused."""

import ast
import os
import sys
import textwrap
import time

import numpy as np
import pytest
from launches import PYTHON, TILEWAVE, ended

import tilewave as tw
from bodies import load
from tilewave.nest import source as reading

HEADER = "import tilewave as tw\n"
LATER = (
    HEADER
    + """
def early():
    @tw.nest
    def before(A, i):
        A[i] = A[i-1] + 7.0
    return before

def later(c=2.0):
    @tw.nest
    def body(A, i):
        A[i] = A[i-1] * c + 1.0
    return body
"""
)


def computed(nest):
    """What a nest gives, after comparing it with the function that Python has."""
    A, plain = np.ones(6), np.ones(6)
    nest.reference(nest.iteration_box((6,)), {"A": plain})
    tw.run(nest, A=A)
    assert np.array_equal(A, plain), (A, plain)
    return A


def edited(module, *changes):
    """Write another version of a module's file, as a user does who saves it."""
    with open(module.__file__) as file:
        text = file.read()
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    with open(module.__file__, "w") as file:
        file.write(text)


@pytest.mark.parametrize(
    "change",
    [
        ("A[i-1] * c + 1.0", "A[i-1] * c + 5.0"),
        ("A[i-1] * c + 1.0", "A[i-1] * c - 1.0"),
        ("A[i-1] * c", "A[i-2] * c"),
        ("    def body(A, i):", "    def body(A, i, *, c=1.0):"),
        ("+ 1.0", "+ True"),
    ],
)
def test_an_edited_function_is_refused(tmp_path, change):
    module = load(tmp_path, "edited", LATER)
    edited(module, change)
    with pytest.raises(
        tw.ConfigError, match=r"'body' \(.*edited.py:10\): its source file was changed since .* start the program again"
    ):
        module.later()
    with pytest.raises(tw.ConfigError, match="changed"):  # also once it is known
        module.later()


def test_a_text_that_was_read_before_the_edit_is_kept(tmp_path):
    module = load(tmp_path, "kept", LATER)
    before = computed(module.early())
    edited(module, ("+ 1.0", "+ 5.0"), ("+ 7.0", "+ 9.0"))
    assert computed(module.later())[1] == 3.0 and np.array_equal(computed(module.early()), before)


def test_a_function_that_has_only_moved_is_found(tmp_path):
    module = load(tmp_path, "moved", LATER)
    edited(module, ("\ndef later", "\n\n# more\n\ndef later"), ("+ 7.0", "+ 9.0"))
    nest = module.later()
    assert computed(nest)[1] == 3.0 and nest.line == 14


def test_a_module_that_is_loaded_again_has_its_new_text(tmp_path):
    module = load(tmp_path, "again", LATER)
    module.early()
    edited(module, ("+ 7.0", "+ 9.5"))
    os.utime(module.__file__, (time.time() + 5,) * 2)
    module.__spec__.loader.exec_module(module)
    assert computed(module.early())[1] == 10.5


def test_a_script_that_is_edited_while_it_runs(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import numpy as np, tilewave as tw
        def later():
            @tw.nest
            def f(A, i):
                A[i] = A[i-1] + 1.0
            return f
        text = open(__file__).read()
        open(__file__, "w").write(text.replace("+ 1.0", "+ 5.0", 1))
        A = np.zeros(4)
        tw.run(later(), A=A)
        open(__file__, "w").write(text)
        print(A)
    """)
    )
    for command in ([PYTHON, "script.py"], [*TILEWAVE, "run", "script.py"]):
        done = ended(*command, cwd=tmp_path)
        assert done.stdout.strip() == "[0. 1. 2. 3.]", done.stderr


# What is no edit.


@tw.nest
def asserting(A, i):
    """Pytest writes these asserts anew."""
    assert A[i-1] < 100.0, "large"
    x = A[i-1] * 2
    assert x >= 0.0 and A[i] == 1.0
    if x > 3:
        assert x != 5.0
    A[i] = x


def test_asserts_in_a_test(tmp_path):
    assert any(name.startswith("@py") for name in asserting.function.__code__.co_names), (
        "pytest leaves asserts as they are"
    )
    assert computed(asserting)[-1] == 32.0

    def body(A, i):
        assert A[i] == 1.0
        A[i] = A[i-1] + 3

    assert computed(tw.nest(body))[1] == 4.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_changed", lambda file: True)
        with pytest.raises(tw.ConfigError, match="changed"):
            tw.nest(body)


TEXTS = {
    "future": "from __future__ import annotations\n"
    + HEADER
    + "@tw.nest\ndef body(A: int, i: 'x'):\n    A[i] = A[i-1] + 1.0\n",
    "decorated": HEADER + "def same(f):\n    return f\n@tw.nest\n@same\ndef body(A, i):\n    A[i] = A[i-1] + 1.0\n",
    "one line": HEADER + "@tw.nest\ndef body(A, i): A[i] = A[i-1] + 1.0",
    "method": HEADER + "class C:\n    @tw.nest\n    def body(A, i):\n        A[i] = A[i-1] + 1.0\nbody = C.body\n",
    "closure": HEADER + "def make(c):\n  def inner():\n    @tw.nest\n    def body(A, i):\n        A[i] = A[i-1] + c\n"
    "    return body\n  return inner()\n"
    "body = make(1.0)\n",
    "form feed and tabs": HEADER + "\f\n@tw.nest\ndef body(A, i):\n\tA[i] = A[i-1] + \\\n\t\t1.0\n",
    "other letters": HEADER + "# é ü 漢\n@tw.nest\ndef body(Ä, i):\n    Ä[i] = Ä[i-1] + 1.0  # ß\n",
    "twice": HEADER
    + "@tw.nest\ndef body(A, i):\n    A[i] = A[i-1] + 9.0\n@tw.nest\ndef body(A, i):\n    A[i] = A[i-1] + 1.0\n",
    "by hand": HEADER + "def body(A, i):\n    A[i] = A[i-1] + 1.0\nbody = tw.nest(body)\n",
    "if": HEADER + "if True:\n  if True:\n    @tw.nest\n    def body(A, i):\n        A[i] = A[i-1] + 1.0\n",
}


@pytest.mark.parametrize("name", TEXTS)
def test_functions_of_all_kinds(tmp_path, name):
    nest = load(tmp_path, "kinds", TEXTS[name]).body
    A = np.ones(6)
    tw.run(nest, **{nest.arrays[0]: A})
    assert np.array_equal(A, np.arange(1.0, 7.0))
    assert nest.text_of(nest.places[0]) == f"{nest.arrays[0]}[i]"


BODY = (
    "import numpy as np, tilewave as tw\n@tw.nest\ndef body(A, i):\n    A[i] = A[i-1] + 2.0\n"
    "A = np.zeros(3); tw.run(body, A=A); print(A)\n"
)


@pytest.mark.parametrize("options", [[], ["-O"], ["-I"]])
def test_nests_of_python_c(options):
    path = f"import sys; sys.path[:0] = {sys.path!r}\n"
    done = ended(PYTHON, *options, "-c", path + BODY, "argument", env={"PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.stdout.strip() == "[0. 2. 4.]", done.stderr


def test_nests_of_texts():
    nest = tw.nest_from(
        """
        def twice(x):
            return 2 * x

        def body(A, i):
            A[i] = A[i-1] + c * np.sqrt(4.0) + math.floor(0.5)
    """,
        {"c": 0.5},
    )
    assert nest.name == "body" and computed(nest)[-1] == 6.0 and nest.line == 5
    names = {"tw": tw}
    decorated = tw.nest_from("@tw.nest\ndef body(A, i):\n    A[i] = A[i-1] + 1\n", names)
    assert isinstance(decorated, tw.Nest) and computed(decorated)[-1] == 6.0 and [*names] == ["tw"]
    texts = [f"def body(A, i):\n    A[i] = A[i-1] + {k}\n" for k in range(5)]
    assert [computed(tw.nest_from(text))[1] for text in texts] == [1, 2, 3, 4, 5]
    assert tw.nest_from(texts[1]).signature() == tw.nest_from(texts[1]).signature()


@pytest.mark.parametrize(
    ("text", "names", "message"),
    [
        (3, None, "given int and NoneType; allowed: Python source as a str"),
        ("def f(A, i): A[i] = 1", [1], "given str and list"),
        ("def f(A, i:", None, "the text is no Python: .*line 1"),
        ("x = 1", None, "no def; allowed: the body of a nest"),
        ("def f(A, i):\n    A[-i] = 1", None, r"<nest \w+>:2:5: `A\[-i\]`"),
        ("def f(A, i):\n    A[i] = 1\n\0", None, "no Python"),
        ("def f(A, i, *, steps):\n    A[i] = steps", None, "taken"),
    ],
)
def test_texts_that_are_refused(text, names, message):
    with pytest.raises(tw.ConfigError, match=message) as error:
        tw.nest_from(text, names)
    assert error.value.of_program


def test_nodes_that_tell_their_parents(monkeypatch):
    """IPython notes the parent of each node, of which contexts and operators are one object in all trees."""
    tree = ast.parse("x = y + 1")
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            monkeypatch.setattr(child, "parent", node, raising=False)
    nest = tw.nest_from("def summed(A, i):\n    x: float = A[i-1] + 1\n    A[i] = x")
    assert computed(nest)[-1] == 6
