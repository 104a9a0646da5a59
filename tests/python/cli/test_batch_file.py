"""``tilewave batch``: job files of batch systems, with what a script is predicted to take."""

import os
import subprocess

import pytest
from typer.testing import CliRunner

from launches import TILEWAVE, ended

from tilewave.cli import batch_file, commands


@pytest.mark.parametrize(
    "system, words",
    [
        ("slurm", ["#SBATCH --nodes=2", "--ntasks=4", "--ntasks-per-node=2", "--cpus-per-task=3", "--time=00:03:00"]),
        ("pbs", ["#PBS -l select=2:ncpus=6:mpiprocs=2:ompthreads=3:mem=", "walltime=00:03:00", 'cd "$PBS_O_WORKDIR"']),
        ("pbs", ["#PBS -l place=scatter"]),
        ("lsf", ["#BSUB -n 4", '#BSUB -R "span[ptile=2] affinity[core(3)] rusage[mem=', "#BSUB -W 00:03"]),
        ("flux", ["#flux: -N 2", "#flux: -n 4", "#flux: -c 3", "#flux: -t 3m"]),
    ],
)
def test_job_files(tmp_path, script, monkeypatch, system, words):
    monkeypatch.chdir(tmp_path)
    options = ["-N", "2", "--ranks-per-node", "2", "--threads", "3", "--system", system, "--queue", "short"]
    done = CliRunner().invoke(commands.app, ["batch", *options, str(script), "48"])
    assert done.exit_code == 0, done.output
    text = (tmp_path / "program.sh").read_text()
    for word in (*words, "core-hours", "a rank", "short", f"run -n 4 --threads 3 {script} 48"):
        assert word in text, text
    checked = ended("bash", "-n", tmp_path / "program.sh")
    assert checked.returncode == 0 and "program.sh: submit it with" in done.output
    more = "--account", "us", "--restart"
    again = CliRunner().invoke(commands.app, ["batch", *options, *more, str(script), "48"])
    text = (tmp_path / "program.sh").read_text()
    assert again.exit_code == 0 and "us\n" in text and f"run -n 4 --threads 3 --restart {script} 48" in text
    assert ("#SBATCH --no-kill\n" in text) == (system == "slurm")


@pytest.mark.parametrize(
    "name, job",
    [("a b (1).py", "a_b_1_"), ("2d.py", "job_2d"), ("[x].py", "job__x_"), ("é.py", "job__"), ("a" * 40, "a" * 15)],
)
def test_names_that_all_systems_take(name, job):
    assert batch_file.name_of(f"folder/{name}") == job


@pytest.mark.parametrize("name", [b"-x.py", b"s\xff.py", b"a\nb $(x).py"])
def test_names_of_any_bytes(tmp_path, script, name):
    """The job file starts this script, with its arguments as they are."""
    path = os.path.join(os.fsencode(tmp_path), name)
    os.link(script, path)
    done = ended_bytes(*TILEWAVE, "batch", "-o", "job.sh", "--", name, "48", "-n\n", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "job.sh").read_bytes().split(b"exec ")
    assert len(lines) == 2
    show = b"tilewave() { printf '%s\\0' \"$@\"; }\ntilewave "
    (tmp_path / "shown.sh").write_bytes(show + lines[1].split(b" ", 1)[1])
    words = subprocess.run(["bash", tmp_path / "shown.sh"], capture_output=True, check=True).stdout.split(b"\0")
    assert words[-4:] == [name, b"48", b"-n\n", b""]
    assert (words[-5:-4] == [b"--"]) == name.startswith(b"-")
    plan = ended_bytes(*TILEWAVE, "run", "--print", "--", name, cwd=tmp_path)
    assert plan.returncode == 0 and b"Traceback" not in plan.stderr


def ended_bytes(*command, cwd):
    return subprocess.run(command, cwd=cwd, capture_output=True, timeout=300)


def test_files_of_others_stay(tmp_path, script, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.sh").write_text("mine")
    before = script.read_text()
    for options in ((), ("-o", "program.py"), ("-o", ".")):
        done = CliRunner().invoke(commands.app, ["batch", *options, str(script), "48"])
        assert done.exit_code == 2 and "allowed: -o with another name" in done.output
    assert (tmp_path / "program.sh").read_text() == "mine" and script.read_text() == before


@pytest.mark.parametrize(
    "options, words",
    [
        (["--system", "sge"], "--system: given 'sge'; allowed: slurm, pbs, lsf, flux"),
        (["-N", "0"], "nodes 0, ranks per node None were given; allowed: 1 and more"),
        (["--time", "soon"], "--time: given 'soon'; allowed: auto, minutes as in 90, or 1:30:00"),
        (["--rounds", "0"], "rounds 0 were given"),
        (["-o", "nowhere/x.sh"], "no folder for nowhere/x.sh"),
        (["--queue", "a\ntouch pwned"], r"--queue: given 'a\ntouch pwned'; allowed: a name of letters"),
        (["--account", "a b"], "--account: given 'a b'; allowed: a name of letters"),
        (["--account=-x"], "--account: given '-x'; allowed: a name of letters"),
    ],
)
def test_jobs_that_are_refused(tmp_path, script, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(commands.app, ["batch", *options, str(script), "48"])
    assert done.exit_code == 2 and words in done.output
    assert not list(tmp_path.glob("*.sh"))


@pytest.mark.parametrize("given, seconds", [("90", 5400), ("1:30:00", 5400), ("0:45", 2700), ("2:00:01", 7260)])
def test_time_limits(given, seconds):
    assert batch_file.time_limit_s(given, 1.0) == seconds
    assert batch_file.time_limit_s("auto", 3600.0) == 5520
