"""`tilewave run` on scripts, with the sources of the package and without its compiled core."""

import os
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

from launches import HANG_S, TILEWAVE
from other_package import comes_first

SOURCE = Path(__file__).resolve().parents[3] / "python" / "tilewave"
# How long it waits for ranks that do not end, and that keep the cores busy: here they never would.
SHORTER = {
    "launch/processes.py": {"PATIENCE_S = 5.0": "PATIENCE_S = 1.0"},
    "launch/endings.py": {
        'GRACE_S = {"gone": 2.0, "silent": 2.0, "vain": 2.0, "exit": 10.0}': (
            'GRACE_S = {"gone": 2.0, "silent": 1.0, "vain": 1.0, "exit": 2.0}'
        )
    },
}


@pytest.fixture
def package(tmp_path):
    """A folder for PYTHONPATH with all sources of the package, but no compiled core and no front that wants one."""
    package = tmp_path / "package" / "tilewave"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("*.so", "__pycache__", "_core"))
    comes_first(package.parent)
    (package / "__init__.py").write_text("")
    for file, shorter in SHORTER.items():
        text = (package / file).read_text()
        for given, wanted in shorter.items():
            assert given in text
            text = text.replace(given, wanted)
        (package / file).write_text(text)
    return package.parent


@pytest.fixture
def start(package, tmp_path):
    """Start the CLI on a script, without the compiled core."""

    def start(script, *arguments, options=(), env=None, name="script.py"):
        (tmp_path / name).write_text(
            "import os, sys, time\nrank = int(os.environ.get('PMI_RANK', 0))\n" + textwrap.dedent(script)
        )
        return subprocess.Popen(
            [*TILEWAVE, "run", *options, name, *arguments],
            cwd=tmp_path,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(package), **(env or {})},
        )

    return start


@pytest.fixture
def run(start):
    def run(*arguments, **more):
        process = start(*arguments, **more)
        try:
            out, err = process.communicate(timeout=HANG_S)
        except subprocess.TimeoutExpired:
            process.terminate()  # it ends its ranks
            out, err = process.communicate(timeout=HANG_S)
            pytest.fail(f"no end within {HANG_S} s: {out} {err}")
        return process.returncode, out, err

    return run
