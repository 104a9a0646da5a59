"""A context of the tests of one module; ranks compile each kernel once.

All ranks of a test want the same kernels at the same time, and here they have few cores: the first
to come compiles, the others wait for what it puts into the cache. (Several processes that compile
one kernel at once are tested in tests/python/kernel/test_kernel_cache.py.)
"""

import fcntl
import hashlib
import os
from pathlib import Path

import pytest

LOCKS = 64  # files, so that different kernels hardly wait for each other


@pytest.fixture(scope="session", autouse=True)
def kernels_are_compiled_once():
    folder = os.environ.get("TILEWAVE_MPI_FOLDER")
    if folder is None:  # the parent, whose tests start programs
        yield
        return
    from tilewave.kernel import cache as kernel_cache

    object_code = kernel_cache.object_code

    def by_one_rank(key, build):
        lock = int(hashlib.sha256(key.encode()).hexdigest(), 16) % LOCKS
        with open(Path(folder, f"compiling-{lock}"), "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            return object_code(key, build)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_cache, "object_code", by_one_rank)
        yield


@pytest.fixture(scope="module")
def context():
    """Of one lane a rank, and the one of calls that are given none; a module may have one of its own."""
    import tilewave as tw

    return tw.set_default(threads=1)
