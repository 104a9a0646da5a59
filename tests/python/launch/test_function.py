"""`tw.launch`: results, errors and ends of functions on ranks that a test, a thread or a notebook starts."""

import functools
import importlib.util
import linecache
import os
import pickle
import signal
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from launches import PYTHON, ended, wait_until

import tilewave as tw
from tilewave.launch import processes

pytestmark = pytest.mark.one_draw(9)
LIMIT_S = 100


def launch(*arguments, **more):
    return tw.launch(*arguments, **{"timeout_s": LIMIT_S, **more})


@tw.nest
def prefix(A, i):
    A[i] = A[i-1] + 1.0


def sums(n, start):
    A = tw.field((n,), init=start)
    tw.run(prefix, A=A)
    return tw.rank, tw.size, tw.context().threads, float(tw.max(A))


@pytest.fixture(autouse=True)
def nothing_is_left():
    """No process of a launch, and no folder."""
    yield
    for process in processes.tagged(os.environ[processes.TAG]):
        with open(f"/proc/{process}/cmdline") as command:
            assert "function_on_rank" not in command.read()


@pytest.mark.parametrize("ranks", [1, 3])
def test_results_come_back_by_rank(ranks):
    found = launch(sums, ranks, 50, 2.0, threads=2)
    assert found == [(rank, ranks, 2, 51.0) for rank in range(ranks)]


def test_functions_of_functions_and_their_values_go_along():
    c, shared = 3.0, np.arange(4.0)

    @tw.nest
    def scale(A, i):
        A[i] = c * A[i]

    def work(more, *, power):
        A = tw.field((4,), init=shared)
        tw.run(scale, A=A)
        whole = A.gather()
        return None if whole is None else whole**power + more

    first, second = launch(functools.partial(work, power=2), 2, 1.0)
    assert np.array_equal(first, (3 * shared) ** 2 + 1.0) and second is None


def test_an_error_of_one_rank_comes_with_rank_and_traceback():
    def work():
        tw.barrier()
        if tw.rank == 1:
            raise ValueError("of mine")
        tw.barrier()

    words = r"(?s)rank 1 of 3 raised ValueError: of mine.*in work.*raise ValueError"
    with pytest.raises(tw.RankError, match=words) as caught:
        launch(work, 3)
    error = caught.value
    assert (error.rank, error.ranks[0] in (0, 1), str(error.__cause__)) == (1, True, "of mine")
    assert 1 in error.ranks and "test_function.py" in error.traceback


def test_an_error_of_all_ranks_is_one():
    def work():
        tw.run(prefix, A=3)

    words = r"rank 0 of 2 raised tilewave.errors.ConfigError.*\(and so on rank 1\)"
    with pytest.raises(tw.RankError, match=words) as caught:
        launch(work, 2)
    assert isinstance(caught.value.__cause__, tw.ConfigError) and caught.value.ranks == (0, 1)


def test_errors_that_cannot_be_pickled_come_as_text():
    class Odd(Exception):
        def __init__(self, one, two):
            super().__init__(f"{one} {two}")

    def work():
        raise Odd(1, 2)

    with pytest.raises(tw.RankError, match="Odd: 1 2") as caught:
        launch(work, 1)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("how", ["os._exit(3)", "os.kill(os.getpid(), 9)"])
def test_a_rank_that_goes_without_a_word(how):
    def work(how):
        tw.barrier()
        if tw.rank == 1:
            exec(how, {"os": os})
        tw.barrier()

    with pytest.raises(tw.RankError, match="1") as caught:
        launch(work, 2, how)
    assert 1 in caught.value.ranks or isinstance(caught.value.__cause__, tw.MpiError)


def test_sys_exit_without_a_code_is_a_return():
    assert launch(sys.exit, 2) == [None, None]


def test_a_launch_that_takes_too_long():
    with pytest.raises(TimeoutError, match=r"launch: ranks 0, 1 of 2 had no result after timeout_s=1.5 s"):
        tw.launch(time.sleep, 2, 60, timeout_s=1.5)


@pytest.mark.parametrize(
    "arguments, more, words",
    [
        ((3,), {}, "launch: function: given 3; allowed: a function"),
        ((len, 0), {}, "launch: ranks: given 0; allowed: an integer >= 1"),
        ((len, 2.0), {}, "launch: ranks: given 2.0"),
        ((len, 2), {"threads": 0}, "launch: threads: given 0"),
        ((len, 2), {"timeout_s": -1}, "launch: timeout_s: given -1; allowed: a number of seconds > 0"),
        ((len, 2, threading.Lock()), {}, "cannot be sent to ranks: TypeError: cannot pickle '_thread.lock' object"),
        ((len, 2), {"hosts": "a b"}, "launch: host 'a b'; allowed: NAME"),
        ((len, 1 << 30), {}, "launch: 1073741824 ranks; allowed: 1 to"),
    ],
)
def test_what_is_refused(arguments, more, words):
    with pytest.raises(tw.ConfigError) as caught:
        launch(*arguments, **more)
    assert words in str(caught.value)


def test_results_that_cannot_be_sent():
    with pytest.raises(tw.RankError, match=r"Field of shape \(3,\), float64, cannot be sent back.*its gather\(\)"):
        launch(lambda: tw.field((3,)), 1)


def test_threads_of_one_process_launch_at_once():
    found = {}

    def one(number):
        found[number] = launch(sums, 2, 10, float(number), threads=1)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {number: max(r[3] for r in results) for number, results in found.items()} == {0: 9.0, 1: 10.0}


def test_functions_of_modules_that_pytest_finds_and_nobody_else(tmp_path):
    path = tmp_path / "only_here.py"
    path.write_text("import tilewave as tw\ndef work():\n    return tw.rank\n")
    spec = importlib.util.spec_from_file_location("only_here", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["only_here"] = module
    try:
        spec.loader.exec_module(module)
        assert launch(module.work, 2) == [0, 1]
    finally:
        del sys.modules["only_here"]


CELL = """\
import tilewave as tw
c = 0.5
@tw.nest
def relax(A, i):
    A[i] = c * A[i-1]
def work(fail):
    A = tw.field((5,), init=1.0)
    @tw.nest
    def inner(A, i):
        A[i] = A[i] + 1.0
    tw.run(relax, A=A)
    tw.run(inner, A=A)
    if fail: raise KeyError("in a cell")
    return A[...]
"""


def test_functions_and_nests_of_notebook_cells():
    file, names = "<ipython-input-7-abc>", {"__name__": "__main__"}
    linecache.cache[file] = len(CELL), None, CELL.splitlines(True), file
    exec(compile(CELL, file, "exec"), names)
    found = launch(names["work"], 2, False)
    assert np.array_equal(found[0], 0.5 ** np.arange(5) + 1) and np.array_equal(found[0], found[1])
    with pytest.raises(tw.RankError, match='raise KeyError\\("in a cell"\\)'):
        launch(names["work"], 1, True)


def test_nests_are_pickled_by_name_where_that_is_theirs():
    assert pickle.loads(pickle.dumps(prefix)) is prefix


CALLER = """
    import os, sys, time
    {before}
    import tilewave as tw
    def work(seconds):
        open(f"up-{{tw.rank}}", "w").close()
        time.sleep(seconds)
        return tw.size
    if __name__ == "__main__":
        print(tw.launch(work, 2, float(sys.argv[1])), flush=True)
"""


def caller(tmp_path, before=""):
    (tmp_path / "caller.py").write_text(textwrap.dedent(CALLER.format(before=before)))
    return tmp_path / "caller.py"


@pytest.mark.parametrize("before", ["from mpi4py import MPI", "import tilewave; tilewave.field((3,))"])
def test_the_caller_may_have_mpi(tmp_path, before):
    if "mpi4py" in before:
        pytest.importorskip("mpi4py")
    done = ended(PYTHON, caller(tmp_path, before), 0, cwd=tmp_path, timeout=LIMIT_S)
    assert done.stdout == "[2, 2]\n", done.stderr


def test_a_rank_of_another_launch_may_call():
    def first():
        found = tw.launch(lambda: tw.size, 2, timeout_s=LIMIT_S) if tw.rank == 0 else None
        tw.barrier()
        return found

    assert launch(first, 2) == [[2, 2], None]


def test_in_a_step_of_slurm_ranks_are_here(monkeypatch):
    for name, value in {
        "SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-4]", "SLURM_STEP_NUM_TASKS": "4", "SLURM_NTASKS": "4",
    }.items():
        monkeypatch.setenv(name, value)
    assert launch(lambda: tw.size, 2) == [2, 2]
    assert launch(lambda: tw.size, 1) == [1]


def test_an_interrupt_ends_all_ranks(tmp_path):
    import subprocess

    process = subprocess.Popen(
        [PYTHON, caller(tmp_path), "60"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, processes.TAG: (mark := f"{os.environ[processes.TAG]}/interrupt{os.getpid()}")},
    )
    try:
        wait_until(lambda: len(list(tmp_path.glob("up-*"))) == 2)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)
        assert err.rstrip().endswith("KeyboardInterrupt") and "RankError" not in err
        assert process.returncode in (130, -signal.SIGINT)
        wait_until(lambda: processes.tagged(mark) == [])
    finally:
        processes.kill(mark)
        process.communicate(timeout=300)
