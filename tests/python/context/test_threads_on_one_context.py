"""Two threads of a rank on one context: messages go on while another thread is in a call, starts wait for it."""

import random
import threading

import numpy as np
import pytest
from local_ranks import LONG_S, results_of, together

import tilewave as tw

patterns = tw.patterns


@tw.nest
def prefix(A, i):
    A[i] = A[i-1] + 1


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_many_messages_of_two_threads(ranks):
    """Receives of many tags come and go in both threads."""

    def talk(context, tags, seed):
        rng, to, source = random.Random(seed), (context.rank + 1) % context.size, (context.rank - 1) % context.size
        for turn in range(300):
            for tag in tags:
                patterns.send(np.full((1, 3), float(tag + turn)), to, tag, context=context)
            handles = {
                tag: patterns.receive(np.zeros((1, 3)), source, tag, wait=False, context=context)
                for tag in rng.sample(tags, len(tags))
            }
            for tag, handle in handles.items():
                handle.test()
                assert (handle.wait() == tag + turn).all()

    def body(context):
        together(*(lambda n=n: talk(context, range(n, 40, 2), n) for n in (0, 1)))

    results_of(ranks, 1, body, 2 * LONG_S)


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_receive_waits_while_another_thread_sends_and_runs(ranks):
    def body(context):
        begun = threading.Event()
        A = tw.field((60,), "f8", init=0.0, context=context)
        peer = (context.rank + 1) % context.size

        def receives():
            begun.set()
            assert patterns.receive(np.zeros(1), peer, 7, context=context)[0] == 5

        def runs():
            begun.wait()
            for _ in range(3):
                tw.run(prefix, A=A)
            patterns.send(np.full(1, 5.0), peer, 7, context=context)

        together(receives, runs)
        whole = A.gather()
        assert whole is None or (whole == np.arange(60)).all()

    results_of(ranks, 1, body, 2 * LONG_S)


def prepared(context, kind, value):
    """(what runs, what checks it) of something made with start=False."""
    if kind == "exchange":
        u = tw.field((8, 6), "f8", init=value, halo=1, periodic=(0, 1), context=context)
        return tw.exchange(u, start=False), lambda: (u.local == value).all()
    M = np.full((2, 3), value if context.rank == 0 else 0.0)
    return patterns.broadcast(M, start=False, context=context), lambda: (value == M).all()


@pytest.mark.parametrize("kind", ["exchange", "broadcast"])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_prepared_ones_of_two_threads_run_in_any_order(ranks, kind):
    def body(context):
        both = [prepared(context, kind, value) for value in (1.0, 2.0)]

        def repeat(run, right):
            for _ in range(100):
                run.run()
                run.start()
                while not run.test():
                    pass
                run.wait()
            assert right()

        together(*(lambda pair=pair: repeat(*pair) for pair in both[:: 1 if context.rank % 2 else -1]))

    results_of(ranks, 1, body, 2 * LONG_S)


@pytest.mark.parametrize("kind", ["exchange", "broadcast"])
@pytest.mark.parametrize("method", ["start", "run"])
def test_a_start_waits_for_another_threads_call(kind, method):
    def body(context):
        run, right = prepared(context, kind, 3.0)
        thread = threading.Thread(target=getattr(run, method), daemon=True)
        with context._lock:
            thread.start()
            thread.join(0.2)
            assert thread.is_alive()
        thread.join(LONG_S)
        run.wait()
        assert not thread.is_alive() and right()

    results_of(1, 1, body, 2 * LONG_S)
