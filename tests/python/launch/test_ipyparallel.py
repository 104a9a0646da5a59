"""The page on ipyparallel: its program runs where ipyparallel is installed."""

import re
from pathlib import Path

import pytest
from launches import PYTHON, ended

PAGE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "ipyparallel.md"


def test_the_page(tmp_path):
    pytest.importorskip("ipyparallel")
    (program,) = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "program.py").write_text(program)
    done = ended(PYTHON, "program.py", cwd=tmp_path, env={"IPYTHONDIR": str(tmp_path)})
    assert done.stdout == "[(0, 2, 100.0), (1, 2, 100.0)]\n[40.0, 40.0]\n", done.stdout + done.stderr
