"""What is said on stderr without being asked: warnings at the user's line, progress of long runs."""

import io
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import tilewave as tw
from tilewave import notices


@tw.nest
def add(A, i, j):
    A[i, j] = A[i-1, j] + A[i, j-1]


def helper(context):
    A = np.ones((30, 31))
    tw.run(add, A=A, context=context, plan={"factors": (91, 1), "tile": (1, 5)})  # the line


def test_a_warning_points_at_the_line_that_called_tilewave():
    with pytest.warns(RuntimeWarning, match="91 threads") as caught:
        helper(tw.Context())
    line = helper.__code__.co_firstlineno + 2
    assert [(each.filename, each.lineno) for each in caught] == [(__file__, line)]
    with pytest.warns(RuntimeWarning, match="more than the") as caught:
        tw.Context(threads=70)
    assert [each.filename for each in caught] == [__file__]


def test_a_warning_comes_once_a_line(tmp_path):
    script = tmp_path / "often.py"
    script.write_text(
        textwrap.dedent("""\
        import tilewave as tw
        for _ in range(3):
            tw.Context(threads=70)
        """)
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("RuntimeWarning") == 1 and "often.py:3: RuntimeWarning" in done.stderr, done.stderr


class Clock:
    def __init__(self, monkeypatch, style, terminal=False):
        self.now, self.text = 100.0, io.StringIO()
        self.text.isatty = lambda: terminal
        if style is None:
            monkeypatch.delenv(notices.VARIABLE, raising=False)
        else:
            monkeypatch.setenv(notices.VARIABLE, style)
        monkeypatch.setattr(notices.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(sys, "stderr", self.text)

    def run(self, progress, seconds, name="relax"):
        progress.of = name
        for beat in range(101):
            progress.at(beat / 100)
            self.now += seconds / 100
        progress.end()
        return self.text.getvalue()


def test_short_runs_say_nothing(monkeypatch):
    clock = Clock(monkeypatch, "1")
    assert clock.run(notices.Progress(True), 4.9) == ""


def test_a_long_run_says_each_quarter_once_with_the_nests_name(monkeypatch):
    clock = Clock(monkeypatch, "1")
    progress = notices.Progress(True)
    lines = clock.run(progress, 10).splitlines()  # at a quarter of it nobody knew that it would be long
    assert lines == ["running relax 50 %", "running relax 75 %", "running relax 100 %"]
    assert clock.run(progress, 40).splitlines() == lines + [f"running relax {part} %" for part in (25, 50, 75, 100)]


@pytest.mark.parametrize("style,terminal", [("line", False), (None, True), ("1", True)])
def test_a_terminal_has_one_line_that_goes(monkeypatch, style, terminal):
    clock = Clock(monkeypatch, style, terminal)
    text = clock.run(notices.Progress(True), 20)
    assert "\n" not in text and "\rrunning relax  60 %" in text
    assert text.split("\r")[-2].isspace() and text.endswith("\r")


@pytest.mark.parametrize(
    "style,terminal,mine", [("0", True, True), (None, False, True), ("1", True, False), ("line", False, False)]
)
def test_the_switch_and_other_ranks_say_nothing(monkeypatch, style, terminal, mine):
    clock = Clock(monkeypatch, style, terminal)
    assert clock.run(notices.Progress(mine), 60) == ""


def test_waiting_between_runs_is_no_progress(monkeypatch):
    clock = Clock(monkeypatch, "1")
    assert clock.run(notices.Progress(True), 60, name="") == ""


@tw.nest
def dear(A, i, j):
    A[i, j] = np.tan(np.sin(A[i-1, j]) + np.cos(A[i, j-1]))


def test_a_run_names_its_nest_and_clears_it(monkeypatch, capfd):
    monkeypatch.setenv(notices.VARIABLE, "1")
    monkeypatch.setattr(notices, "LEAST_S", 0.0)
    monkeypatch.setattr(notices, "QUARTER", 0.01)
    context = tw.Context()
    tw.run(
        dear, A=np.zeros((2500, 2500)), context=context, plan={"tile": (32, 32)}
    )  # at least 0.2 s: several beats of 50 ms
    assert context._heart.progress.of == ""
    assert "running dear " in capfd.readouterr().err
