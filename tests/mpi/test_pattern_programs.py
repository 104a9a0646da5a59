"""Programs that end, are interrupted or fail while patterns and sends are under way: none may hang."""

import os
import signal
import subprocess
import textwrap
import time

import pytest
from launches import HANG_S

from launches import TILEWAVE
from tilewave.context import interrupts

pytestmark = pytest.mark.one_draw(5)
START = """
import functools, os, signal, sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np
import tilewave as tw
context = tw.Context()
rank, size = context.rank, context.size
big = np.ones((700, 500))
broadcast, reduce, spread, send, receive = (
    functools.partial(getattr(tw.patterns, name), context=context)
    for name in ("broadcast", "reduce", "spread", "send", "receive")
)
close = context.close
"""


@pytest.fixture
def start(tmp_path):
    def start(script, ranks=2):
        path = tmp_path / "program.py"
        path.write_text(START + textwrap.dedent(script))
        return subprocess.Popen(
            [*TILEWAVE, "run", "-n", str(ranks), str(path)],
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    return start


@pytest.fixture
def run(start):
    def run(script, ranks=2):
        process = start(script, ranks)
        try:
            out, err = process.communicate(timeout=HANG_S)
        except subprocess.TimeoutExpired:
            process.terminate()  # it ends its ranks
            out, err = process.communicate(timeout=HANG_S)
            pytest.fail(f"no end within {HANG_S} s: {out} {err}")
        return process.returncode, out, err

    return run


def test_the_end_of_the_program_waits_for_sends_and_patterns(run):
    code, out, err = run("""
        for k in range(3):
            if rank == 0:
                send(k * big, 1, k)
        M = np.full((600, 700), float(rank == 0))
        handle = broadcast(M, 0, chunk_bytes=1000, wait=False)
        if rank == 1:
            time.sleep(0.3)
            for k in (2, 0, 1):
                assert (receive(np.zeros_like(big), 0, k) == k).all()
            assert (handle.wait() == 1).all()
            print("all there")
    """)
    assert (code, out, err) == (0, "all there\n", "")


@pytest.mark.parametrize("without", ["", "shared"])
@pytest.mark.parametrize("with_mpi4py", [False, True])
def test_a_receiver_may_end_before_its_sender_knows(run, monkeypatch, without, with_mpi4py):
    """Answers to large messages that the sender has not taken yet when the receiver has left the program."""
    monkeypatch.setenv("TILEWAVE_WITHOUT", without)
    code, out, err = run(
        ("from mpi4py import MPI\ncontext = tw.Context(MPI.COMM_WORLD)\n" if with_mpi4py else "")
        + """
        large = np.arange(1 << 23, dtype="f8").reshape(1 << 13, 1 << 10)  # 64 MB
        for k in range(3):
            if rank == 0:
                tw.patterns.send(large, 1, context=context)
            elif rank == 1:
                got = tw.patterns.receive(np.zeros((1 << 13, 1 << 10 + k % 2), "f8")[:, :1 << 10], 0, context=context)
                assert (got == large).all()
        if rank == 0:
            time.sleep(0.5)
        print("over", flush=True)
    """.replace("\n        ", "\n"),
        ranks=2,
    )
    assert (code, out, err) == (0, "over\n" * 2, "")


def test_a_send_outlives_its_context(run):
    code, out, err = run("""
        def give():
            send(big, 1, context=other)
        other = tw.Context()
        if rank == 0:
            give()
        else:
            time.sleep(0.2)
            print(receive(np.zeros_like(big), 0, context=other).sum())
        del other
    """)
    assert (code, out, err) == (0, "350000.0\n", "")


def test_an_error_of_all_ranks_that_nobody_catches(run):
    code, out, err = run(
        """
        handle = broadcast(big, 0, wait=False)
        reduce(big, 0, "xor" if rank == 1 else "sum")
    """,
        ranks=3,
    )
    assert code == 1 and out == "" and err.count("reduce: op 'xor' was given; allowed: sum") == 1


def test_a_rank_that_fails_alone_while_others_wait(run):
    code, out, err = run(
        """
        if rank == 1:
            send(big, 0, 5)  # nobody receives it
            raise OSError("the disk is full")
        reduce(big, 0)
    """,
        ranks=3,
    )
    assert code == 1 and "OSError: the disk is full" in err


def test_a_rank_that_dies(run):
    code, out, err = run(
        """
        handle = spread(big, wait=False)
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        handle.wait()
        broadcast(big, 1)
    """,
        ranks=3,
    )
    assert code not in (0, None)


@pytest.mark.parametrize(
    "waits, signals",
    [
        ("broadcast(big, 1)", 2),  # the first is for all ranks, once they come
        ("receive(big, 1); close()", 1),
        ("send(big, 1); send(big, 1, limit_bytes=big.nbytes + 32)", 1),
    ],
)
def test_ctrl_c_while_rank_0_waits(start, waits, signals):
    process = start(f"""
        if rank == 0:
            print(os.getpid(), flush=True)
            try:
                {waits}
            except KeyboardInterrupt:
                print("caught", flush=True)
                raise
        while True:
            time.sleep(0.1)
    """)
    try:
        rank_0 = int(process.stdout.readline())
        for _ in range(signals):
            time.sleep(interrupts.AGAIN_S + 0.3)
            os.kill(rank_0, signal.SIGINT)  # it alone: the others must not keep it
        assert process.stdout.readline() == "caught\n"
        out, err = process.communicate(timeout=HANG_S)
        assert process.returncode != 0, (out, err)
    finally:
        process.terminate()
        process.communicate(timeout=HANG_S)
