"""`tilewave run`: exit codes, arguments, tracebacks, and that no rank survives."""

import dataclasses
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
import uuid
from pathlib import Path

import pytest

from tilewave.cli.ping_facts import PingFacts
from tilewave.launch import launch, processes, shared_files

SOURCE = Path(__file__).resolve().parents[3] / "python" / "tilewave"
# How long it waits for ranks that do not end, and that keep the cores busy: here they never would.
SHORTER = {
    "launch/processes.py": {"PATIENCE_S = 5.0": "PATIENCE_S = 1.0"},
    "launch/endings.py": {
        'GRACE_S = {"gone": 2.0, "silent": 2.0, "exit": 10.0}': 'GRACE_S = {"gone": 2.0, "silent": 1.0, "exit": 2.0}'
    },
}


@pytest.fixture
def package(tmp_path):
    """A folder for PYTHONPATH with all sources of the package, but no compiled core and no front that wants one."""
    package = tmp_path / "package" / "tilewave"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    (package / "__init__.py").write_text("")
    for file, shorter in SHORTER.items():
        text = (package / file).read_text()
        for given, wanted in shorter.items():
            assert given in text
            text = text.replace(given, wanted)
        (package / file).write_text(text)
    return package.parent


@pytest.fixture
def start(package, tmp_path):
    """Start the CLI on a script, without the compiled core."""

    def start(script, *arguments, options=(), env=None, name="script.py"):
        (tmp_path / name).write_text(
            "import os, sys, time\nrank = int(os.environ.get('PMI_RANK', 0))\n" + textwrap.dedent(script)
        )
        return subprocess.Popen(
            [sys.executable, "-m", "tilewave.cli.commands", "run", *options, name, *arguments],
            cwd=tmp_path,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(package), **(env or {})},
        )

    return start


@pytest.fixture
def run(start):
    def run(*arguments, timeout=60, **more):
        process = start(*arguments, **more)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.terminate()  # it ends its ranks
            out, err = process.communicate(timeout=30)
            pytest.fail(f"no end within {timeout} s: {out} {err}")
        return process.returncode, out, err

    return run


both = pytest.mark.parametrize("ranks", ["1", "2"])


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
    started = time.monotonic()
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
    assert time.monotonic() - started < 30


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
        process.communicate(timeout=60)
        assert process.returncode == code
        wait_until(lambda: processes.tagged(mark) == [])
    finally:
        processes.kill(mark)
        process.communicate(timeout=10)


def test_slurm_and_hosts(monkeypatch):
    monkeypatch.setattr(launch, "is_open_mpi", lambda _: False)
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_NTASKS", "8")
    command = launch.mpiexec_command(4, ["prog"])
    assert command[1:] == ["-n", "4", "-bootstrap", "slurm", "prog"]
    command = launch.mpiexec_command(5, ["prog"], ["a", "b"])
    assert command[1:] == ["-n", "5", "-hosts", "a:2,b:3", "prog"]
    assert launch.default_ranks() == 8
    assert launch.default_ranks("a:2,b") == 3
    monkeypatch.delenv("SLURM_JOB_ID")
    assert launch.default_ranks() == 1


def doctor(**env):
    return subprocess.run(
        [sys.executable, "-m", "tilewave.cli.commands", "doctor"],
        text=True,
        timeout=100,
        capture_output=True,
        env={**os.environ, "COLUMNS": "200", "PYTHONUTF8": "1", **env},
    )


def test_doctor_of_this_installation(monkeypatch):
    monkeypatch.delenv("TILEWAVE_THREADS", raising=False)
    done = doctor()
    assert done.returncode == 0, done.stdout + done.stderr
    for words in (r"\(MPI \d", r"\d\.\d\d µs one way", r"\d+ for one rank, \d+ for each of 2", "usable here"):
        assert re.search(words, done.stdout), done.stdout


FACTS = PingFacts(2, 1.5e-6, [0, 1], 3, 5, 6.5, "Some MPI 1.2\nmore", "5.0", "/lib/libsome.so", "multiple")


@pytest.mark.parametrize(
    "facts, code, words",
    [
        (None, 1, ["Compiled core", "pip install"]),
        (
            FACTS,
            0,
            [
                "Some MPI 1.2 (MPI 5.0)",
                "libsome",
                "1.50 µs",
                "5 for one rank, 3 for each of 2",
                "the time of 6.5 CPUs",
                "usable here",
            ],
        ),
        (dataclasses.replace(FACTS, size=1), 1, ["do not belong"]),
        ("no network", 1, ["no network", "exit code"]),
    ],
    ids=["no core", "fine", "wrong mpiexec", "broken"],
)
def test_doctor(package, monkeypatch, facts, code, words):
    monkeypatch.delenv("TILEWAVE_THREADS", raising=False)
    if facts is not None:  # in place of the core and of the module that pings with it
        (package / "tilewave" / "_core.py").write_text("")
        (package / "tilewave" / "cli" / "ping.py").write_text(
            f"raise OSError({facts!r})"
            if isinstance(facts, str)
            else f"import os\nif os.environ['PMI_RANK'] == '0':\n    print({facts.line()!r})\n"
        )
    done = doctor(PYTHONPATH=str(package))
    assert done.returncode == code, done.stdout + done.stderr
    for word in words:
        assert word in done.stdout


def test_facts_of_a_ping_survive_their_line():
    assert PingFacts.of_output(f"noise\nping of another program\n{FACTS.line()}\n") == FACTS
    assert PingFacts.of_output('ping {"size": 2}') is None


def test_bench_looks_into_the_registry(package):
    (package / "tilewave_bench.py").write_text(
        "def one(json_path, quick):\n    print('one', json_path, quick)\nNAMES = {'one': one}\n"
    )

    def bench(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "tilewave.cli.commands", "bench", *arguments],
            text=True,
            timeout=60,
            capture_output=True,
            env={**os.environ, "PYTHONPATH": str(package)},
        )

    assert bench("one", "--json", "x.json", "--quick").stdout == "one x.json True\n"
    unknown = bench("two")
    assert unknown.returncode == 2 and "no benchmark 'two'; there are: one" in unknown.stderr


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


@pytest.mark.parametrize(
    "ending, words", [("raise KeyError('mine')", "KeyError: 'mine'"), ("sys.exit(3)", "rank 1 ended with exit code 3")]
)
def test_a_rank_that_fails_before_or_after_mpi_while_the_others_wait(run, ending, words):
    pytest.importorskip("mpi4py")
    started = time.monotonic()
    before = "raise" in ending
    code, _, err = run(
        f"""
        if {before} and rank == 1:
            {ending}
        from mpi4py import MPI
        if rank == 1:
            {ending}
        MPI.COMM_WORLD.Barrier()
    """,
        options=("-n", "3"),
    )
    assert code == (1 if before else 3)
    assert err.count(words) == 1
    assert time.monotonic() - started < 30


@pytest.mark.parametrize(("who", "shown"), [("True", 1), ("rank", 2), ("rank == 1", 1)])
def test_an_error_that_every_rank_meets_is_shown_once(run, who, shown):
    """By rank 0; by others where rank 0 does not come to it."""
    code, _, err = run(
        f"""
        class Refused(ValueError):
            of_program = True
        if {who}:
            raise Refused("no nest")
        time.sleep(60)
    """,
        options=("-n", "3"),
    )
    assert code == 1 and 1 <= err.count("Refused: no nest") <= shown and ("rank " in err) == (who != "True"), err


@pytest.mark.parametrize("name", ["-genv", ":", "=a b:c.py"])
def test_names_of_scripts_that_mean_something_to_launchers(run, name):
    code, out, err = run(
        "print(os.path.basename(sys.argv[0]), sys.argv[1:])", ":", options=("-n", "2", "--"), name=name
    )
    assert code == 0 and out.splitlines() == [f"{name} [':']"] * 2, err


WAITING = """
    if {mpi}:
        from mpi4py import MPI
    if rank == 1:
        {ending}
    if {mpi}:
        MPI.COMM_WORLD.Barrier()
    time.sleep(100)
"""


@pytest.mark.parametrize(
    "mpi, ending",
    [
        (True, "os._exit(0)"),
        (True, "os.kill(os.getpid(), 9)"),
        (False, "os._exit(0)"),
        (False, "import atexit; atexit.register(os._exit, 0); sys.exit()"),
    ],
)
def test_a_rank_that_ends_without_a_word_fails_the_job(run, mpi, ending):
    if mpi:
        pytest.importorskip("mpi4py")
    before = shared_files.present()
    code, _, err = run(WAITING.format(mpi=mpi, ending=ending), options=("-n", "3"))
    assert code not in (0, 137) and err.count("tilewave:") == 1
    if "kill" in ending:  # who of those that Hydra then kills has ended first is not certain
        assert " ended before the script was over" in err and "SIGKILL" in err and code == 9
    else:
        assert "rank 1 ended before the script was over, by os._exit(0)" in err and code == 1
    assert shared_files.orphans(before) == []


def test_ranks_may_have_children_and_become_other_programs(run):
    code, out, err = run(
        """
        if rank == 0:
            if os.fork() == 0:
                os._exit(3)
            os.wait()
        else:
            os.execv(sys.executable, [sys.executable, "-c", "print('another')"])
    """,
        options=("-n", "2"),
    )
    assert code == 0 and out == "another\n", err


def test_an_error_in_a_child_of_a_rank_is_not_the_ranks(run):
    code, _, err = run(
        """
        if rank == 1:
            if os.fork() == 0:
                raise ValueError("in the child")
            os.wait()
            time.sleep(1.5)
    """,
        options=("-n", "2"),
    )
    assert code == 0 and "in the child" in err


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare") or subprocess.run(["unshare", "-pf", "true"]).returncode != 0,
    reason="no process ids of its own can be made here",
)
def test_ranks_of_hosts_whose_processes_are_not_seen_here(run, tmp_path):
    """They have other process ids: mpiexec says how they end."""
    ssh = tmp_path / "ssh"
    ssh.write_text(
        '#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\nshift\nexec unshare -pf --mount-proc sh -c "$*"\n'
    )
    ssh.chmod(0o755)
    hosts = f"--hosts={socket.gethostname()},someone@elsewhere"
    for ending, expected in (("pass", 0), ("sys.exit(3 * rank)", 3), ("if rank == 0: os._exit(0)", 1)):
        code, out, err = run(
            f"print(rank, os.getpid() < 9, sys.argv[1:])\n{ending}",
            ":",
            options=("-n", "2", hosts),
            env={"HYDRA_BOOTSTRAP_EXEC": str(ssh)},
        )
        assert code == expected and sorted(out.splitlines()) == ["0 False [':']", "1 True [':']"], err
        assert ("rank 0 ended before" in err) == (expected == 1)


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_launcher_that_hangs_is_ended_by_a_signal(start, tmp_path, signum):
    hangs = tmp_path / "mpiexec"
    hangs.write_text("#!/bin/sh\ntrap '' TERM INT\n[ $1 = --version ] && exit\ntouch up\nwhile :; do sleep 0.1; done\n")
    hangs.chmod(0o755)
    process = start("pass", options=("-n", "2"), env={"TILEWAVE_MPIEXEC": str(hangs)})
    try:
        wait_until((tmp_path / "up").exists)
        process.send_signal(signum)
        process.communicate(timeout=30)
        assert process.returncode == 128 + signum
    finally:
        process.kill()
        process.communicate(timeout=10)


@pytest.fixture
def shm(monkeypatch, tmp_path):
    """A folder in place of /dev/shm, and a function that makes a file in it, some seconds old."""
    folder = tmp_path / "shm"
    folder.mkdir()
    monkeypatch.setattr(shared_files, "SHM", str(folder))

    def plant(name, age_s=100):
        path = folder / name
        path.write_bytes(b"x" * 4096)
        os.utime(path, (time.time() - age_s,) * 2)
        return path

    return plant


def test_what_killed_jobs_have_left_is_removed(shm):
    left = [shm("mpich_shm_1a2b_0"), shm("mpich_shm_837b53d9_12"), shm("ucx_shm_posix_2403050")]
    kept = [
        shm("mpich_shm_5e_0", age_s=0),
        shm("mpich_shm_"),
        shm("sem.mine"),
        shm("my_mpich_shm_1_0"),
        shm("mpich_shm_1.bak"),
    ]
    folder = left[0].parent / "mpich_shm_77_0"
    folder.mkdir()
    os.utime(folder, (1, 1))
    link = left[0].parent / "mpich_shm_78_0"
    link.symlink_to(kept[0])
    shared_files.remove_left_over()
    assert not any(path.exists() for path in left)
    assert all(path.exists() for path in [*kept, folder, link])


def test_what_a_living_process_has_open_or_mapped_stays(shm):
    mapped, opened = shm("mpich_shm_1_0"), shm("mpich_shm_2_0")
    user = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"""
import mmap, sys
with open({str(mapped)!r}, "r+b") as file:
    memory = mmap.mmap(file.fileno(), 4096)
file = open({str(opened)!r})
print("up", flush=True)
sys.stdin.read()
""",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert user.stdout.readline() == b"up\n"
        shared_files.remove_left_over()
        assert mapped.exists() and opened.exists() and shared_files.orphans() == []
    finally:
        user.communicate(timeout=10)
    shared_files.remove_left_over()
    assert not mapped.exists() and not opened.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_what_belongs_to_others_stays(shm):
    theirs = shm("mpich_shm_3_0")
    os.chown(theirs, 12345, 12345)
    shared_files.remove_left_over()
    assert theirs.exists() and shared_files.orphans() == []


def test_the_next_start_removes_what_a_killed_launcher_left(run, start, tmp_path):
    pytest.importorskip("mpi4py")
    process = start(
        """
        from mpi4py import MPI
        MPI.COMM_WORLD.Barrier()
        if rank == 0:
            open("up", "w").write(" ".join(f for f in os.listdir("/dev/shm") if f in open("/proc/self/maps").read()))
            os.rename("up", "found")
        time.sleep(100)
    """,
        options=("-n", "2"),
    )
    try:
        wait_until((tmp_path / "found").exists)
    finally:
        process.kill()
        process.communicate(timeout=10)
    found = [Path("/dev/shm", name) for name in (tmp_path / "found").read_text().split()]
    assert found
    time.sleep(1.2)  # its ranks end, and it is not young any more
    assert run("pass")[0] == 0
    assert not any(path.exists() for path in found)
