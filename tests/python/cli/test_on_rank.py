"""What each rank of a launch runs: which part of a traceback is shown, who has left first."""

import os
import sys
import threading
import time

import numpy as np
import pytest

import tilewave as tw
from tilewave.cli import on_rank
from tilewave.launch.launch import QUOTE


@pytest.mark.parametrize("words", [[], ["script.py"], [QUOTE + "script.py", "plain"]])
def test_it_is_no_command_for_users(monkeypatch, words):
    monkeypatch.setattr(sys, "argv", ["on_rank", *words])
    with pytest.raises(SystemExit, match="tilewave run -n 2 SCRIPT"):
        on_rank.main()


def raised(path, text):
    """The error that a script raises."""
    path.write_text(text)
    try:
        exec(compile(text, str(path), "exec"), {"tw": tw, "np": np})
    except Exception as error:
        return error
    raise AssertionError("no error")


def test_our_own_errors_show_where_the_script_called(tmp_path):
    script = tmp_path / "program.py"
    text = on_rank._traceback(raised(script, "def mine():\n    tw.field((3, -1), 'f8')\n\nmine()\n"), str(script))
    lines = text.splitlines()
    assert lines[0] == "Traceback (most recent call last):" and lines[-1].startswith("tilewave.errors.ConfigError: ")
    assert f'File "{script}", line 4' in text and f'File "{script}", line 2, in mine' in text
    assert "tilewave/field" not in text and __file__ not in text


def test_other_errors_show_all_frames_below_the_script(tmp_path):
    script = tmp_path / "program.py"
    text = on_rank._traceback(raised(script, "np.linalg.inv(np.zeros((2, 2)))\n"), str(script))
    assert f'File "{script}", line 1' in text and "numpy" in text and __file__ not in text
    assert text.splitlines()[-1].endswith("LinAlgError: Singular matrix")


def test_an_error_with_a_cause_shows_both(tmp_path):
    script = tmp_path / "program.py"
    text = on_rank._traceback(
        raised(script, "try:\n    {}['key']\nexcept KeyError as e:\n    raise tw.ConfigError('mine') from e\n"),
        str(script),
    )
    assert "KeyError: 'key'" in text and "direct cause" in text and text.rstrip().endswith("ConfigError: mine")


@pytest.mark.parametrize(
    "notes, left",
    [
        ("", False), ("12 0 start\n", False), ("12 0 start\n3 1 gone\n", False), ("12 0 start\n1 0 gone\n", True),
        ("1 0 exit\n", True), ("0 0 over\n", False), ("1 10 gone\n", False), ("gone 0\n", False),
    ],
)
def test_rank_0_has_left_when_its_notes_say_so(tmp_path, monkeypatch, notes, left):
    path = tmp_path / "notes"
    path.write_text(notes)
    monkeypatch.setattr(on_rank, "_noting", (os.getpid(), str(path)))
    assert on_rank._rank_0_has_left(within_s=0.03) is left


def test_rank_0_is_waited_for(tmp_path, monkeypatch):
    path = tmp_path / "notes"
    monkeypatch.setattr(on_rank, "_noting", (os.getpid(), str(path)))

    def leave():
        time.sleep(0.05)
        path.write_text("1 0 gone\n")

    writer = threading.Thread(target=leave)
    writer.start()
    assert on_rank._rank_0_has_left(within_s=30)
    writer.join()
    monkeypatch.setattr(on_rank, "_noting", None)
    assert not on_rank._rank_0_has_left(within_s=0.01)


def test_notes_are_of_the_process_that_began(tmp_path, monkeypatch):
    path = tmp_path / "notes"
    path.write_text("")
    monkeypatch.setattr(on_rank, "_noting", (os.getpid(), str(path)))
    monkeypatch.setattr(on_rank, "rank", lambda: 3)
    on_rank._note(5, "exit")
    monkeypatch.setattr(on_rank, "rank", lambda: None)
    on_rank._note(0, "over")
    monkeypatch.setattr(on_rank, "_noting", (os.getpid() + 1, str(path)))  # as a child of the rank has it
    on_rank._note(9, "exit")
    assert path.read_text() == "5 3 exit\n0 0 over\n"
    monkeypatch.setattr(on_rank, "_noting", (os.getpid(), str(tmp_path / "gone")))
    on_rank._note(9, "exit")  # the launcher has ended and removed it
    assert not (tmp_path / "gone").exists()
