"""Whole programs: every MPI thread level, the C++ example, Ctrl-C in the middle of a run."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from launches import TILEWAVE, ended

from tilewave.launch import which_mpi

ROOT = Path(__file__).resolve().parents[3]
SWEEP = """
import numpy as np, tilewave as tw, warnings
warnings.simplefilter("ignore")
@tw.nest
def add(A, i, j):
    A[i, j] = A[i-1, j] * 0.5 + A[i, j-1] * 0.25 + i
context = tw.Context(threads=3)
plain = np.random.default_rng(4).random((40, 50))
A = tw.field(plain.shape, init=plain, context=context)
tw.run(add, A=A, context=context, plan={"tile": (3, 7)})
add.reference(add.iteration_box(plain.shape), {"A": plain})
whole = A.gather()
if context.rank == 0:
    from tilewave import _core
    print("level", _core.mpi_info()["thread_level"], "equal", np.array_equal(whole, plain))
"""
LONG = """
import numpy as np, tilewave as tw
@tw.nest
def slow(A, t, i, j):
    A[t+1, i, j] = np.exp(-A[t, i-1, j]) + np.exp(-A[t, i, j-1])
A = tw.field((1000, 1000), "f8")
print("go", flush=True)
try:
    tw.run(slow, A=A, steps=4000)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    raise
"""


def write(folder, text):
    path = folder / "program.py"
    path.write_text(text)
    return path


def launched(launch_tool, script, ranks):
    return launch_tool.mpiexec_command(ranks, [sys.executable, str(script)])


@pytest.mark.parametrize("library", [which_mpi.STANDARD, which_mpi.MPICH])
@pytest.mark.parametrize("level", ["single", "funneled", "serialized", "multiple"])
def test_thread_levels(tmp_path, launch_tool, level, library):
    env = {"TILEWAVE_THREAD_LEVEL": level, "TILEWAVE_LIBMPI": f"{sys.prefix}/lib/{library}"}
    done = ended(*launched(launch_tool, write(tmp_path, SWEEP), 2), env=env)
    assert f"level {level} equal True" in done.stdout, done.stdout + done.stderr


def test_an_unknown_thread_level_is_named(tmp_path, launch_tool):
    done = ended(*launched(launch_tool, write(tmp_path, SWEEP), 2), env={"TILEWAVE_THREAD_LEVEL": "many"})
    assert done.returncode and "allowed: single, funneled" in done.stderr


@pytest.mark.parametrize(
    "given, expected", [("shared", "equal True"), ("maybe", "TILEWAVE_WITHOUT is 'maybe', and no fast path")]
)
def test_without_shared_memory(tmp_path, launch_tool, given, expected):
    done = ended(*launched(launch_tool, write(tmp_path, SWEEP), 2), env={"TILEWAVE_WITHOUT": given})
    assert expected in done.stdout + done.stderr, done.stdout + done.stderr


def interrupt(command, wait_s):
    # A shell's background jobs ignore the signal, and so would what they start.
    program = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert program.stdout.readline().startswith("go")  # of two ranks, perhaps in one line
        time.sleep(1.0)
        begin = time.monotonic()
        program.send_signal(signal.SIGINT)
        output, _ = program.communicate(timeout=wait_s)
        return program.returncode, time.monotonic() - begin, output
    finally:
        program.kill()
        program.wait()


def test_ctrl_c_in_one_process(tmp_path):
    code, _, output = interrupt([sys.executable, str(write(tmp_path, LONG))], 30)
    assert code and "interrupted" in output


def test_ctrl_c_ends_all_ranks(tmp_path):
    code, _, output = interrupt([*TILEWAVE, "run", "-n", "2", str(write(tmp_path, LONG))], 40)
    assert code == 130, output


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("11_nest_in_cpp", "last value     8.999999"),
        ("19_multigrid_in_cpp", "in the 484 cells around (21, 21)"),
        ("20_paths_in_cpp", "mean path      5.1079\nbest alignment 2265"),
    ],
)
def test_cpp_example(name, text, tmp_path, launch_tool):
    program = ROOT / "build" / "cpp" / "examples" / name
    if not program.exists():
        pytest.skip(f"build/cpp/examples/{name} is not built: tools/test.sh builds it where GoogleTest is")
    done = ended(*launch_tool.mpiexec_command(3, [str(program), "1"]), cwd=tmp_path)
    assert text in done.stdout, done.stdout + done.stderr
    assert all(path.stat().st_size > 1000 for path in tmp_path.glob("*.json"))
