"""For tests of launches."""

import time

import pytest

both = pytest.mark.parametrize("ranks", ["1", "2"])


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)
