"""`tilewave run --restart`: what is launched again, on which hosts, and that the bits do not change."""

import os
import random
import shutil
import signal

import pytest
import waves
from launches import TILEWAVE, ended, wait_until
from local_ranks import results_of

from tilewave.launch import restarts

NOTED = """
import signal
from tilewave.launch import restarts
if rank == 0:
    launched = os.path.getsize("launches")
    with open("launches", "a") as file:
        file.write("x")
def save(step):
    restarts.note_checkpoint("c", step)
def die():
    os.kill(os.getpid(), signal.SIGKILL)
"""
SEVERAL = pytest.mark.parametrize("ranks", ["1", "2"])


@pytest.fixture
def restarted(run, tmp_path):
    """Run a script with --restart: exit code, launches, stderr."""

    def restarted(script, *options):
        (tmp_path / "launches").touch()
        code, _, err = run(NOTED + script, options=("--restart", *options))
        return code, os.path.getsize(tmp_path / "launches"), err

    return restarted


@SEVERAL
def test_a_rank_that_dies_is_launched_again(restarted, ranks):
    code, launches, err = restarted("if rank == 0 and launched < 2:\n save(launched + 5)\n die()\n", "-n", ranks)
    assert (code, launches) == (0, 3), err
    with_ranks = f"with {ranks} rank{'s' * (ranks > '1')}"
    for time in (1, 2):
        assert f"again ({time} of at most 3), from the checkpoint of step {time + 4}, {with_ranks}\n" in err


@SEVERAL
@pytest.mark.parametrize("times, options", [(3, []), (1, ["--restarts", "1"])])
def test_not_for_ever(restarted, ranks, times, options):
    code, launches, err = restarted("if rank == 0:\n save(1)\n die()\n", "-n", ranks, *options)
    assert code and launches == 1 + times and f"not launched again: it was, {times} time" in err, err


@SEVERAL
def test_deaths_before_the_next_checkpoint(restarted, ranks):
    script = "if rank == 0:\n if launched in (1, 4):\n  save(launched)\n if launched < 6:\n  die()\n"
    code, launches, err = restarted(script, "-n", ranks, "--restarts", "9")
    assert (code, launches) == (0, 7), err
    steps = ["as it began"] + 3 * ["from the checkpoint of step 1"] + 2 * ["from the checkpoint of step 4"]
    assert [line.split(", ")[1] for line in err.splitlines() if "launched again" in line] == steps


@SEVERAL
def test_three_launches_in_a_row_without_a_checkpoint(restarted, ranks):
    script = "if rank == 0:\n if not launched:\n  save(1)\n die()\n"
    code, launches, err = restarted(script, "-n", ranks, "--restarts", "9")
    assert code and launches == 4 and "not launched again: 3 launches in a row made no checkpoint" in err, err


def test_launches_know_how_long_those_before_have_lived(restarted):
    script = """
from tilewave.checkpoints import interval
print(interval.between_failures_s(), file=sys.stderr)
if launched < 2:
    time.sleep(0.2)
    die()
"""
    code, launches, err = restarted(script)
    assert (code, launches) == (0, 3), err
    first, *others = [float(line) for line in err.splitlines() if line[0].isdigit()]
    assert first == 24 * 3600 and len(others) == 2 and all(0.2 < lived < 3600 for lived in others)


@SEVERAL
@pytest.mark.parametrize(
    "ending, code",
    [("raise ValueError('mine')", 1), ("sys.exit(3)", 3), ("raise MpiError('rank 1 has ended')", 1)],
)
def test_what_a_program_raises_is_not_repeated(restarted, ranks, ending, code):
    script = f"from tilewave.errors import MpiError\nif rank == 0:\n save(1)\n {ending}\n"
    found, launches, err = restarted(script, "-n", ranks)
    assert (found, launches) == (code, 1) and "not launched again: rank 0 raised an error" in err, err


@SEVERAL
def test_errors_that_follow_a_death(restarted, ranks):
    script = """
from tilewave.errors import MpiError
if rank == 0 and not launched:
    save(1)
    try:
        raise MpiError("MPI_Test: connection closed")
    except MpiError as error:
        raise RuntimeError("the halo was not exchanged")
"""
    code, launches, err = restarted(script, "-n", ranks)
    assert (code, launches) == (0, 2), err


@SEVERAL
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_who_ends_it_means_it(start, tmp_path, ranks, number):
    (tmp_path / "launches").touch()
    script = NOTED + "if rank == 0:\n save(1)\n open('saved', 'w')\ntime.sleep(60)\n"
    process = start(script, options=("--restart", "-n", ranks))
    try:
        wait_until((tmp_path / "saved").exists)
        process.send_signal(number)
        _, err = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 128 + number and "launched again" not in err, err
    assert os.path.getsize(tmp_path / "launches") == 1 and not list(tmp_path.glob(".tilewave-restart-*"))


def test_programs_that_ranks_start_note_nothing(restarted):
    script = """
import subprocess
subprocess.run([sys.executable, "-c", "from tilewave.launch import restarts; restarts.take_folder(); "
                "restarts.note_checkpoint('c', 1)"], check=True)
die()
"""
    code, launches, err = restarted(script)
    assert code == 137 and launches == 3 and "no checkpoint" in err, err


@pytest.mark.parametrize("hosts, ranks, there, left", [
    (["a", "b", "c"], 3, ["a", "c"], 2),
    (["a", "b", "c"], 6, ["c"], 2),
    (["a:2", "b:2", "c:2"], 6, ["a:2", "b:2"], 4),
    (["a:2", "b:2", "c:2"], 4, ["a:2", "c:2"], 4),  # one was in reserve
    (["a", "b", "c"], 2, ["b", "c"], 2),
    (["a:4", "b"], 10, ["a:4"], 8),
    (["a:4", "b"], 10, ["b"], 2),
    (["a:4", "b"], 10, [], 0),
])  # fmt: skip
def test_ranks_that_are_left(hosts, ranks, there, left):
    assert restarts.ranks_left(hosts, ranks, there) == left


def test_what_is_asked_for_wrongly(run):
    code, _, err = run("", options=("--restarts", "0"))
    assert code == 2 and "0 restarts; allowed: 1 or more" in err


#: One rank kills itself some time after the first checkpoint; the next launch makes three more steps.
DYING = """
import os, signal, sys, threading
from waves import *
path, who, after_s = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
again = os.path.exists(path)
kill = threading.Timer(after_s, lambda: os.kill(os.getpid(), signal.SIGKILL))
kill.daemon = True
def saved():
    if tw.rank == who and not again and not kill.is_alive():
        kill.start()
state = tw.resume(path) or begin()
until = state["step"] + 3 if again else 10**9
tw.print(until, steps(state, until, path, saved))
"""


def test_the_same_bits_as_undisturbed(tmp_path):
    seed = random.randrange(10**6)
    pick = random.Random(seed)
    who, after_s = pick.randrange(2), pick.uniform(0.0, 0.3)
    print(f"seed {seed}: rank {who} dies {after_s:.3f} s after its first checkpoint")
    shutil.copy(waves.__file__, tmp_path)
    (tmp_path / "dying.py").write_text(DYING)
    program = tmp_path / "dying.py", tmp_path / "c", who, after_s
    done = ended(*TILEWAVE, "run", "--restart", "-n", "2", *program, env={"TILEWAVE_THREADS": "1"})
    assert done.returncode == 0 and "launched again (1 of at most 3), from the checkpoint" in done.stderr, done.stderr
    step, bits = done.stdout.splitlines()[-1].split()  # behind what mpiexec says of the death
    assert results_of(1, 1, lambda context: waves.steps(waves.begin(context), int(step)))[0] == bits
