"""Ranks that end while others go on calling, and what is said of long waits: whole programs under `tilewave run`."""

import os
import textwrap
import time

import numpy as np
import pytest
from launches import TILEWAVE, ended

import tilewave as tw
from local_ranks import on_ranks

pytestmark = pytest.mark.one_draw(8)


@pytest.fixture
def run(tmp_path):
    def run(ranks, script, **env):
        path = tmp_path / "script.py"
        path.write_text(
            "import sys, time, numpy as np, tilewave as tw\nA = tw.field((6, 6), init=1.0)\n" + textwrap.dedent(script)
        )
        env |= {"TILEWAVE_MACHINE": "default"}
        done = ended(*TILEWAVE, "run", "-n", ranks, path, cwd=tmp_path, env=env)
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
    # Beside other work ranks wait elsewhere, too.
    assert err.count("tilewave: rank 0 waits in tw.sum, script.py:5, for rank 1\n") == 1
    assert err.count("tilewave: rank 1 waits in tw.patterns.broadcast, script.py:7, for rank 0\n") == 1


@pytest.mark.parametrize("what", ["exchange", "pattern", "handle", "receive"])
def test_a_wait_for_a_rank_that_has_ended_is_an_error(what):
    def body(context):
        if what == "exchange":
            u = tw.field((20, 20), halo=1, periodic=(0, 1), grid=(2, 1), context=context)
            prepared = tw.exchange(u, start=False)
        else:
            prepared = tw.patterns.spread(np.ones((3, 3)), start=False, context=context)
        prepared.run()
        if context.rank == 1:
            return
        if what == "receive":
            tw.patterns.receive(np.empty((4, 4)), source=1, context=context)
        elif what == "handle":
            prepared.start()
            prepared.wait()
        else:
            prepared.run()

    _, (error, _) = on_ranks(2, 1, body)
    assert isinstance(error, tw.MpiError) and str(error).startswith("rank 1 has ended; rank 0 waits ")


def test_a_wait_for_another_rank_than_the_one_that_has_ended_goes_on():
    matrix = np.empty((2, 2))

    def body(context):
        if context.rank == 1:
            time.sleep(3.5)  # longer than waits go on without looking who has ended
            tw.patterns.send(np.full((2, 2), 7.0), 0, context=context)
        elif context.rank == 0:
            tw.patterns.receive(matrix, source=1, context=context)

    _, errors = on_ranks(3, 1, body)
    assert np.all(matrix == 7.0) and errors == [None] * 3


def test_ranks_that_end_well_beside_calls_that_compare_nothing_fail_the_job(run):
    code, out, err = run(
        2,
        """
        u = tw.field((20, 20), halo=1, periodic=(0, 1), grid=(2, 1))
        exchange, pattern = tw.exchange(u, start=False), tw.patterns.spread(np.ones((3, 3)), start=False)
        native = tw.patterns.spread(np.ones((3, 3)), algorithm="mpi", start=False)
        calls = (exchange.run, pattern.run, lambda: tw.patterns.receive(np.ones((3, 3)), source=1), native.run)
        for call in (exchange.run, pattern.run, native.run): call()
        if tw.rank == 1: sys.exit(0)
        for number, call in enumerate(calls):
            try: call()
            except tw.MpiError as error: print(number, str(error)[:30])
        calls[0]()
    """,
    )
    assert out == "".join(f"{n} rank 1 has ended; rank 0 waits\n" for n in range(4)) and code == 1, out + err


def test_a_rank_that_ends_before_mpi_starts_fails_the_job(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys\nif os.environ['PMI_RANK'] == '1': sys.exit(0)\nimport tilewave as tw\ntw.barrier()\n"
    )
    done = ended(*TILEWAVE, "run", "-n", "2", script)
    assert done.returncode == 1 and "rank 1 came to the end of the script without calling Tilewave" in done.stderr


def test_a_program_that_a_rank_starts_is_a_program_of_one_rank(run, tmp_path):
    (tmp_path / "other.py").write_text("import tilewave as tw\nprint(tw.size, tw.sum(tw.field((3,), init=1.0)))\n")
    code, out, err = run(
        2,
        """
        import os, subprocess
        if tw.rank == 1:
            subprocess.run([sys.executable, "other.py"], check=True)
            os.system(sys.executable + " other.py")  # with what mpiexec and this rank have open, too
        tw.barrier()
    """,
    )
    assert code == 0 and out == "1 3.0\n1 3.0\n", out + err


@pytest.mark.parametrize("ends", ["os.kill(os.getpid(), 9)", "os._exit(3)"])
def test_a_rank_that_is_killed_before_a_context_leaves_no_file(tmp_path, ends):
    """MPI's file has a name then, and nobody takes it away: the launcher does."""
    pytest.importorskip("mpi4py")
    script = tmp_path / "script.py"
    script.write_text(
        "import os, re, sys, time\nfrom mpi4py import MPI\n"
        "mine = re.findall(r'/dev/shm/mpich_shm_\\w+', open('/proc/self/maps').read())\n"
        "open(f'file-{MPI.COMM_WORLD.rank}', 'w').write(mine[0])\n"
        f"time.sleep(0.5)\nif MPI.COMM_WORLD.rank == 1: {ends}\ntime.sleep(30)\n"
    )
    done = ended(*TILEWAVE, "run", "-n", "2", script, cwd=tmp_path)
    files = {(tmp_path / f"file-{rank}").read_text() for rank in range(2)}
    assert done.returncode != 0 and len(files) == 1
    assert not os.path.exists(files.pop())
