"""Programs that tests start."""

import os
import subprocess
import sys
import time

import pytest
from tilewave.launch.launch import program_of

PYTHON = sys.executable
TILEWAVE = (*program_of("tilewave.cli.commands"),)
HANG_S = 300  # what runs into it has hung, however busy the machine is
both = pytest.mark.parametrize("ranks", ["1", "2"])


def wait_until(condition, seconds=HANG_S):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def ended(*command, timeout=HANG_S, env=None, **more):
    """A program that has ended, with what it has printed; `env` are variables that it has in addition to this one's."""
    env = {**os.environ, **(env or {})}
    return subprocess.run([*map(str, command)], env=env, capture_output=True, text=True, timeout=timeout, **more)
