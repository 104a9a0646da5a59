"""``tilewave run --restart`` on hosts of which ranks and whole hosts are killed at random moments."""

import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import time
from pathlib import Path

import pytest
import waves
from launches import TILEWAVE, wait_until
from local_ranks import results_of

pytestmark = pytest.mark.cluster
HOSTS = 3
#: Goes on for ever, until so many kills have been noted before it starts: then three more steps.
PROGRAM = """
import sys
from waves import *
path, kills, wanted = sys.argv[1:]
done = len(open(kills).read())
state = tw.resume(path) or begin()
until = state["step"] + 3 if done >= int(wanted) else 10**9
tw.print("end", until, tw.size, steps(state, until, path))
"""


def ranks_of(namespace):
    """Ids of the ranks on a host."""
    pids = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True, check=True).stdout.split()
    return [int(pid) for pid in pids if b"tilewave.cli.on_rank" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def kill(pids):
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def test_ranks_and_hosts_that_die(tmp_path, cluster_tool, cluster_name, request):
    runs, kills = (10, 10) if request.config.getoption("--long") else (1, 2)
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    pick = random.Random(seed)
    shutil.copy(waves.__file__, tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
    lost_s, found = [], []
    for run in range(runs):
        folder = tmp_path / str(run)
        folder.mkdir()
        with cluster_tool.Cluster(HOSTS, "none", name=cluster_name) as box:
            found.append(disturbed(box, folder, kills, pick, lost_s))
            assert not box.pids()
    print(f"{runs * kills} kills; from a death to the next checkpoint {statistics.median(lost_s):.2f} s (median)")
    for step, bits in found:
        assert results_of(1, 1, lambda context, step=step: waves.steps(waves.begin(context), step))[0] == bits


def disturbed(box, folder, kills, pick, lost_s):
    """A run of which ranks are killed, and once a host with all that runs there; its steps and bits."""
    path, noted = folder / "c", folder / "kills"
    noted.touch()
    reach = folder / "reach"  # in place of ssh
    reach.write_text(box.launcher(HOSTS))
    reach.chmod(0o755)
    (folder / "hosts").write_text("".join(f"10.77.0.{host}\n" for host in range(1, HOSTS + 1)))
    options = "--restarts", str(kills), "--hostfile", str(folder / "hosts")
    program = str(folder.parent / "program.py"), str(path), str(noted), str(kills)
    env = {"HYDRA_LAUNCHER_EXEC": str(reach), "HYDRA_LAUNCHER": "ssh", "HYDRA_IFACE": "bridge0"}
    env["TILEWAVE_THREADS"] = "1"
    out, err = folder / "out", folder / "err"
    command = "ip", "netns", "exec", f"{box.name}-head", *TILEWAVE, "run", *options, *program
    with out.open("w") as stdout, err.open("w") as stderr:
        process = subprocess.Popen(command, env={**os.environ, **env}, cwd=folder, stdout=stdout, stderr=stderr)

    def again(number):
        assert process.poll() is None, out.read_text() + err.read_text()
        return err.read_text().count("launched again") == number

    hosts = [f"{box.name}-{host}" for host in range(1, HOSTS + 1)]
    host_at = pick.randrange(kills)
    try:
        for number in range(kills):
            began = time.monotonic()
            wait_until(lambda number=number: again(number))
            before = names_in(path)
            wait_until(lambda number=number, before=before: again(number) and names_in(path) - before)
            if number:
                lost_s.append(time.monotonic() - began)
            time.sleep(pick.uniform(0.0, 0.4))
            with open(noted, "a") as file:
                file.write("x")
            host = pick.choice(hosts)
            if number == host_at:
                gone = subprocess.run(["ip", "netns", "pids", host], capture_output=True, text=True, check=True)
                subprocess.run(["ip", "netns", "delete", host], check=True)
                kill(map(int, gone.stdout.split()))
                hosts.remove(host)
            else:
                kill(pick.sample(ranks_of(host), 1))
        process.wait(300)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    out, err = out.read_text(), err.read_text()
    assert process.returncode == 0, out + err
    assert err.count("launched again") == kills and err.count("does not answer; launched again") == 1, err
    assert "damaged" not in err, err
    step, ranks, bits = re.search(r"end (\d+) (\d+) (\w+)", out).groups()
    assert int(ranks) == HOSTS - 1
    return int(step), bits


def names_in(path):
    """Checkpoints, complete ones."""
    return {name for name in os.listdir(path) if not name.startswith(".")} if path.exists() else set()
