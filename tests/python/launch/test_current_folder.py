"""Ranks import nothing from the current folder that their script would not: modules of other users may lie there."""

import sys

import pytest
from launches import PYTHON, TILEWAVE, ended

PROGRAM = """
import sys
import tilewave as tw
def work():
    import traceback
    return tw.size
if __name__ == "__main__":
    print("program", tw.launch(work, 2) if "launch" in sys.argv else tw.sum(tw.field((9,), "f8", init=1.0)))
"""


@pytest.fixture
def planted(tmp_path):
    """A folder with a module of each name that ranks might import, and the path of a program in another folder."""
    program = tmp_path / "elsewhere" / "program.py"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    folder = tmp_path / "here"
    folder.mkdir()
    for name in (*sys.stdlib_module_names, "tilewave", "numpy", "llvmlite", "bench", "sitecustomize"):
        (folder / f"{name}.py").write_text("import posix\nposix.write(1, b'PLANTED')\nposix._exit(9)\n")
    return folder, program


@pytest.mark.parametrize("safe", ["", "1"])
@pytest.mark.parametrize(
    "command",
    [
        (PYTHON, "PROGRAM"),
        (PYTHON, "PROGRAM", "launch"),
        (*TILEWAVE, "run", "PROGRAM"),
        (*TILEWAVE, "run", "-n", "2", "PROGRAM"),
        (*TILEWAVE, "plan", "PROGRAM", "launch"),
        (*TILEWAVE, "doctor"),
    ],
    ids=lambda words: "-".join(word.rpartition("/")[2] for word in words),
)
def test_nothing_is_imported_from_the_current_folder(planted, command, safe):
    folder, program = planted
    env = {"PYTHONSAFEPATH": safe} if safe else {}
    done = ended(*(program if word == "PROGRAM" else word for word in command), cwd=folder, env=env)
    assert "PLANTED" not in done.stdout + done.stderr, done.stdout + done.stderr
    if "doctor" in command:
        assert "2-rank ping" in done.stdout and "one way" in done.stdout
    elif "plan" not in command:
        assert "program [2, 2]" in done.stdout if "launch" in command else "program 9.0" in done.stdout, done.stderr
