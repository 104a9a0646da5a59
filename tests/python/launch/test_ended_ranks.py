"""Ranks that end while others go on calling, and what is said of long waits: whole programs under `tilewave run`."""

import os
import subprocess
import sys
import textwrap

import pytest


@pytest.fixture
def run(tmp_path):
    def run(ranks, script, **env):
        path = tmp_path / "script.py"
        path.write_text(
            "import sys, time, numpy as np, tilewave as tw\nA = tw.field((6, 6), init=1.0)\n" + textwrap.dedent(script)
        )
        done = subprocess.run(
            [sys.executable, "-m", "tilewave.cli.commands", "run", "-n", str(ranks), str(path)],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=tmp_path,
            env={**os.environ, "TILEWAVE_MACHINE": "default", "TILEWAVE_SHARED_MEMORY": "on", **env},
        )
        return done.returncode, done.stdout, done.stderr

    return run


def test_a_rank_that_ends_early_fails_the_others_calls(run):
    code, out, err = run(
        2,
        """
        if tw.rank == 1: sys.exit(0)
        tw.sum(A)
    """,
    )
    assert code != 0 and "rank 1 has ended; rank 0 calls tw.sum, script.py:5" in err.replace("\n", " ")


def test_all_that_are_left_learn_of_it_and_later_calls_fail_at_once(run):
    code, out, err = run(
        3,
        """
        if tw.rank == 1: sys.exit(3)
        M, called = np.ones((2, 2)), 0
        for call in (
            lambda: tw.patterns.broadcast(M),
            lambda: tw.patterns.broadcast(M, wait=False).wait(),
            lambda: A.gather(),
            lambda: tw.Context(),
        ):
            try: call()
            except tw.MpiError as error:
                called += "rank 1 has ended; rank %d calls tw." % tw.rank in str(error) and "script.py:" in str(error)
        sys.stdout.write("%d\\n" % called)
    """,
    )
    assert out == "4\n4\n" and code != 0


def test_ranks_that_all_end_well_say_nothing(run):
    code, out, err = run(
        3,
        """
        other = tw.Context()
        handle = tw.patterns.broadcast(np.ones((400, 400)), wait=False)
        tw.barrier(context=other)
    """,
        PYTHONWARNINGS="ignore",
    )
    assert (code, out, err) == (0, "", "")


def test_long_waits_say_for_whom_and_where(run):
    code, out, err = run(
        2,
        """
        if tw.rank == 1: time.sleep(1.5)
        tw.sum(A)
        if tw.rank == 0: time.sleep(1.5)
        tw.patterns.broadcast(np.ones((3, 3)), wait=False).wait()
    """,
        TILEWAVE_WAIT_S="0.3",
    )
    assert code == 0
    assert "tilewave: rank 0 waits in tw.sum, script.py:5, for rank 1\n" in err
    assert "tilewave: rank 1 waits in tw.patterns.broadcast, script.py:7, for rank 0\n" in err
    assert err.count("waits") == 2
