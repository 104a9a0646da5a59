"""`tilewave run`: exit codes, arguments, tracebacks, and that no rank survives."""

import signal
import subprocess
import sys
import textwrap
import uuid
from pathlib import Path

import pytest
from launches import both, wait_until

from tilewave.launch import processes


@both
@pytest.mark.parametrize("env", [{"PYTHONUNBUFFERED": ""}, {"PYTHONUNBUFFERED": "1"}])
def test_arguments_pass_untouched(run, ranks, env):
    given = [
        "--help",
        "-n",
        "3",
        "--",
        "a b",
        "--version",
        "",
        ":",
        "-n",
        "1",
        "/bin/echo",
        "=x",
        "-genv",
        "A",
        "B",
        "-x",
        "#",
        "\\",
        "$HOME",
    ]
    code, out, err = run(
        "print(sys.argv[1:], __name__, os.environ.get('TILEWAVE_THREADS'))\n"
        "assert sys.path[0] == os.path.dirname(__file__)",
        *given,
        options=("-n", ranks, "--threads", "2"),
        env=env,
    )
    assert code == 0, err
    assert out.splitlines() == [f"{given} __main__ 2"] * int(ranks)  # whole lines, whoever writes


@both
@pytest.mark.parametrize("ending, expected", [("sys.exit(5)", 5), ("pass", 0), ("sys.exit()", 0)])
def test_exit_codes(run, ranks, ending, expected):
    assert run(ending, options=("-n", ranks))[0] == expected


@both
@pytest.mark.parametrize("with_mpi", [False, True])
def test_agreed_errors_speak_once(run, ranks, with_mpi):
    if with_mpi:
        pytest.importorskip("mpi4py")
    code, _, err = run(
        f"""
        if {with_mpi}:
            from mpi4py import MPI
        error = ValueError("all know this")
        error.agreed = True
        raise error
    """,
        options=("-n", ranks),
    )
    assert code == 1
    assert err.count("ValueError: all know this") == 1
    assert "runpy" not in err and "script.py" in err


def test_an_error_on_one_rank_ends_all(run):
    pytest.importorskip("mpi4py")
    code, _, err = run(
        """
        from mpi4py import MPI
        if rank == 1:
            [][0]
        MPI.COMM_WORLD.Barrier()
    """,
        options=("-n", "3"),
    )
    assert code == 1
    assert "rank 1:\nTraceback" in err and "IndexError" in err and "rank 0:" not in err


def test_an_error_without_mpiexec(run):
    code, _, err = run("1 / 0")
    assert code == 1 and err.startswith("Traceback") and "rank" not in err
    assert "ZeroDivisionError" in err and "runpy" not in err


@pytest.mark.parametrize(
    "options, words",
    [
        (("-n", "0"), "0 ranks; allowed: 1 or more"),
        (("-n", "-3"), "-3 ranks; allowed: 1 or more"),
        (("--threads", "0"), "0 threads; allowed: 1 or more"),
        (("--hosts", "a:b"), "host 'a:b'; allowed"),
        (("--hosts=-oX",), "host '-oX'; allowed"),
        (("--hosts=a,b@-oX",), "host 'b@-oX'; allowed"),
        (("--hosts", "a;b"), "host 'a;b'; allowed"),
        (("--hosts", "a:2,b\n"), "allowed: NAME, NAME:RANKS or USER@NAME"),
        (("-n", "99999999999"), "99999999999 ranks; allowed: 1 to"),
        (("--hosts", "a:999999999,b:999999999"), "1999999998 ranks; allowed: 1 to 1048576"),
    ],
)
def test_bad_options(run, options, words):
    code, _, err = run("pass", options=options)
    assert code == 2 and words in err


def test_missing_script_and_mpiexec(run):
    code, _, err = run("pass", options=("missing.py",))
    assert code == 2 and "no script 'missing.py'" in err
    code, _, err = run("pass", options=("-n", "2"), env={"TILEWAVE_MPIEXEC": "/no/mpiexec"})
    assert code == 2 and "'/no/mpiexec'" in err
    code, _, err = run("pass", options=("-n", "2"), env={"TILEWAVE_MPIEXEC": "mpiexec -v"})
    assert code == 2 and "allowed: the path or name of a program, without options" in err


def test_inside_mpiexec(run):
    pytest.importorskip("mpi4py")
    code, _, err = run("pass", env={"PMI_RANK": "1", "PMI_SIZE": "2", "PMI_FD": "99"})
    assert code == 2 and "one of 2 processes that mpiexec started" in err and "tilewave COMMAND -n 4" in err
    code, out, err = run(
        "from mpi4py import MPI; print(MPI.COMM_WORLD.size)", env={"PMI_RANK": "0", "PMI_SIZE": "1", "PMI_FD": "99"}
    )
    assert code == 0 and out == "1\n", err


SLEEPING = "time.sleep(100)"
SPINNING = """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        pass
"""


@both
@pytest.mark.parametrize("signum, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
@pytest.mark.parametrize("body", [SLEEPING, SPINNING], ids=["sleeping", "stubborn"])
def test_signals_end_all_ranks(start, tmp_path, ranks, signum, code, body):
    mark = uuid.uuid4().hex  # found in the environment of every process that descends from it
    process = start(
        "import signal\nopen(f'up-{rank}', 'w').close()\n" + textwrap.dedent(body),
        options=("-n", ranks),
        env={"TILEWAVE_TEST_MARK": mark},
    )
    try:
        wait_until(lambda: len(list(tmp_path.glob("up-*"))) == int(ranks))
        assert len(processes.tagged(mark)) > int(ranks)
        process.send_signal(signum)
        process.communicate(timeout=300)
        assert process.returncode == code
        wait_until(lambda: processes.tagged(mark) == [])
    finally:
        processes.kill(mark)
        process.communicate(timeout=300)


PROGRAM = """
import threading

import tilewave as tw

def work():
    start.wait()
    made.append(tw.context())

made, start = [], threading.Barrier(4)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(set(map(id, made))) == 1
assert tw.sum(tw.field((5,), init=1.0)) == 5 and tw.size == 2
"""


@pytest.mark.parametrize("again", range(3))
def test_one_context_for_all_threads(tmp_path, again):
    script = tmp_path / "threads.py"
    script.write_text(PROGRAM)
    tool = Path(sys.executable).with_name("tilewave")
    done = subprocess.run([tool, "run", "-n", "2", script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
