"""Shared-memory files of MPI that killed jobs have left."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from launches import wait_until
from tilewave.launch import shared_files

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
