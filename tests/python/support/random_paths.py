"""Random subsets of the fast paths, for random tests: results are the same without them."""

import contextlib
import random

import pytest

from tilewave import _core


def random_paths(seed):
    """Names of fast paths, with commas: none for some seeds, some or most of them for others. It prints them."""
    dice = random.Random(f"fast paths {seed}")
    share = dice.choice((0, 0.2, 0.5, 0.9))
    names = ",".join(name for name in _core.fast_paths if dice.random() < share)
    print(f"seed {seed}: TILEWAVE_WITHOUT={names}")
    return names


@contextlib.contextmanager
def switched_off(names):
    """Contexts that this rank, a process or a thread, makes meanwhile do without these fast paths."""
    import rank_threads

    if rank_threads.here.rank is None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TILEWAVE_WITHOUT", names)
            yield
        return
    rank_threads.here.without = names
    try:
        yield
    finally:
        rank_threads.here.without = None
