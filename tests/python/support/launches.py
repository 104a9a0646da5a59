"""Programs that tests start."""

import os
import subprocess
import sys
import time

import pytest
from tilewave.launch.launch import program_of

PYTHON = sys.executable
TILEWAVE = (*program_of("tilewave.cli.commands"),)
both = pytest.mark.parametrize("ranks", ["1", "2"])


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def ended(*command, timeout=120, env=None, **more):
    """A program that has ended, with what it has printed; `env` are variables that it has in addition to this one's."""
    env = {**os.environ, **(env or {})}
    return subprocess.run([*map(str, command)], env=env, capture_output=True, text=True, timeout=timeout, **more)
