"""Threads whose first calls make the default context all get the same one, on every rank."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import threading

import tilewave as tw

def work():
    start.wait()
    made.append(tw.context())

made, start = [], threading.Barrier(4)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(set(map(id, made))) == 1
assert tw.sum(tw.field((5,), init=1.0)) == 5 and tw.size == 2
"""


@pytest.mark.parametrize("again", range(3))
def test_one_context_for_all_threads(tmp_path, again):
    script = tmp_path / "threads.py"
    script.write_text(PROGRAM)
    tool = Path(sys.executable).with_name("tilewave")
    done = subprocess.run([tool, "run", "-n", "2", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
