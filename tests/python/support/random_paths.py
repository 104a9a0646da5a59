"""Random subsets of the fast paths, for random tests: results are the same without them."""

import contextlib
import random

import pytest

from tilewave import _core


#: What a program that has it is refused without.
NEEDED = "backwards", "reductions"


def paths_to_leave_out():
    """Names of fast paths and rewrites without which every program runs."""
    return [name for name in _core.fast_paths if name not in NEEDED]


def random_paths(seed):
    """Names of fast paths, with commas: none for some seeds, some or most of them for others. It prints them."""
    dice = random.Random(f"fast paths {seed}")
    share = dice.choice((0, 0.2, 0.5, 0.9))
    names = ",".join(name for name in paths_to_leave_out() if dice.random() < share)
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
