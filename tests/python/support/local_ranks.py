"""Ranks as threads of one process, for tests that need many runs and no launch."""

import dataclasses
import threading

from tilewave import _core
from tilewave.context.context import Context
from tilewave.errors import ConfigError
from tilewave.machine import known
from tilewave.nests.plan import kernel_maker

LONG_S = 300  # what runs into it has hung, however busy the machine is


def on_ranks(ranks, threads, body, timeout_s=LONG_S, without=None, **fabric):
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


def results_of(ranks, threads, body, timeout_s=LONG_S, without=None, **fabric):
    """What body(context) returns on each of some local ranks, in rank order; raises the first error of one."""
    results, errors = on_ranks(ranks, threads, body, timeout_s, without, **fabric)
    for error in filter(None, errors):
        raise error
    return results


def refused_on_all(ranks, body, text):
    """Checks that all of some local ranks raise the same ConfigError, with a text in it."""
    _, errors = on_ranks(ranks, 1, body)
    assert all(isinstance(error, ConfigError) and text in str(error) for error in errors), errors
    assert len(set(map(str, errors))) == 1, errors


def with_speeds(context, speeds):
    """Make a context know how fast its ranks' CPUs are; its links have default numbers, whatever else runs here."""
    core = _core.Machine()
    core.host_of = known.startup_machine(context).host_of
    machine = known.Machine._from_core(core, known.conditions(context))
    known.use(context, dataclasses.replace(machine, speeds=speeds))


def steady_rates(monkeypatch, point_s=1e-9, row_s=2e-8, tile_s=3e-7):
    """Make every body take so long, whatever else runs here, where its rate is measured."""
    tiles = (50, 20000), (500, 12000), (4, 8)
    samples = [(rows, points, tile_s + rows * row_s + points * point_s, 0.0) for rows, points in tiles]
    monkeypatch.setattr(kernel_maker, "sampled", lambda *_: samples)


def together(*works):
    """Call each in a thread of its own; raises what the first of them has raised."""
    errors = []

    def run(work):
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG_S)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if errors:
        raise errors[0]
