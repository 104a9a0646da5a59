"""A script that the tests of commands plan."""

import pytest

SCRIPT = """\
import sys
import tilewave as tw

@tw.nest
def relax(A, i, j):
    A[i, j] = A[i-1, j] + A[i, j-1]

A = tw.field((64, int(sys.argv[1])), "f8", init=1.0)
tw.run(relax, A=A)
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(SCRIPT)
    return path
