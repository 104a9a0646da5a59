"""Ranks as threads of one process, for tests that need many runs and no launch."""

import threading

from tilewave import _core
from tilewave.context.context import Context


def on_ranks(ranks, threads, body, timeout_s=60, without=None, **fabric):
    """(results, errors) of body(context) on each of some local ranks. `without`: names of fast paths; `fabric`: what
    `LocalFabric` takes.
    """
    fabric = _core.LocalFabric(ranks, **fabric)
    results, errors = [None] * ranks, [None] * ranks

    def work(rank):
        try:
            results[rank] = body(Context._of(_core.Context.local(fabric, rank, threads, without)))
        except BaseException as error:
            errors[rank] = error

    workers = [threading.Thread(target=work, args=(r,), daemon=True) for r in range(ranks)]
    for w in workers:
        w.start()
    for w in workers:
        w.join(timeout_s)
    stuck = [r for r, w in enumerate(workers) if w.is_alive()]
    assert not stuck, f"ranks {stuck} of {ranks} still run after {timeout_s} s; errors {errors}"
    return results, errors


def results_of(ranks, threads, body, timeout_s=60, without=None, **fabric):
    """What body(context) returns on each of some local ranks, in rank order; raises the first error of one."""
    results, errors = on_ranks(ranks, threads, body, timeout_s, without, **fabric)
    for error in filter(None, errors):
        raise error
    return results
