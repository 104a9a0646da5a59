"""Files are written as a whole or not at all, and what others could have put in place is not taken over."""

import errno
import json
import os
import signal
import stat
import subprocess
import sys

import numpy as np
import pytest

import tilewave as tw
from tilewave import entries, files
from tilewave.machine import known, machine as machines


def task(out):
    out[...] = 1


def generate(b, n=6):
    A = b.array("A", n)
    b.lane().task(task, [], [A.owned], number=b.rank)


@tw.nest
def grow(A, i):
    A[i] = A[i - 1] + 1


SAVES = {
    "schedule": lambda path: tw.Schedule.build(generate, 1).save(path),
    "machine": lambda path: tw.Machine(conditions={}).save(path),
    "plan": lambda path: tw.plan(grow, A=np.ones(64)).save(path),
    "timeline.json": lambda path: tw.predict(tw.Schedule.build(generate, 1)).timeline.save(path),
    "timeline.html": lambda path: tw.predict(tw.Schedule.build(generate, 1)).timeline.save(path),
    "field.npy": lambda path: tw.field((64,), init=1.0).save(path),
}


@pytest.fixture(params=SAVES)
def saved(request, tmp_path):
    """(what saves a file, its path in a folder of its own)."""
    folder = tmp_path / "folder"
    folder.mkdir()
    return SAVES[request.param], folder / (request.param if "." in request.param else request.param + ".json")


def refuse(monkeypatch, name, code):
    def refused(*_, **__):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, name, refused)


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file(saved, monkeypatch, call):
    save, path = saved
    path.write_text("what was there before")
    refuse(monkeypatch, call, errno.ENOSPC)
    with pytest.raises(tw.ConfigError, match="No space left on device") as caught:
        save(path)
    assert path.name in str(caught.value)
    assert os.listdir(path.parent) == [path.name] and path.read_text() == "what was there before"


def test_a_file_replaces_another_with_its_rights_and_through_a_link(saved):
    save, path = saved
    path.write_text("what was there before")
    path.chmod(0o640)
    link = path.parent / ("link" + path.suffix)
    link.symlink_to(path.name)
    (path if path.suffix == ".npy" else link).touch()
    save(path)
    first = path.read_bytes()
    assert first != b"what was there before" and path.stat().st_mode & 0o777 == 0o640
    if path.suffix != ".npy":
        path.write_text("")
        save(link)
        assert link.is_symlink() and path.stat().st_size > 0
    assert sorted(os.listdir(path.parent)) == sorted([path.name, link.name])


@pytest.mark.parametrize("name", ["", "none/of/it.json", "a\0b.json"])
def test_places_where_no_file_can_be(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    for save in (SAVES["schedule"], SAVES["machine"], SAVES["plan"]):
        with pytest.raises(tw.ConfigError, match="cannot be written"):
            save(name)
    with pytest.raises(tw.ConfigError, match="given 3; allowed: a path"):
        SAVES["machine"](3)
    assert os.listdir(tmp_path) == []


def test_pipes_and_devices_stay_what_they_are(tmp_path):
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        tw.Schedule.build(generate, 1).save(pipe)
        assert json.loads(os.read(reader, 1 << 20))["functions"] == ["task"]
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    with pytest.raises(tw.ConfigError, match="no ordinary file"):
        tw.field((4,), init=0.0).save(pipe)


WRITER = """
import os, signal, sys
from tilewave import files
fsync = os.fsync
os.fsync = lambda number: os.kill(os.getpid(), signal.SIGKILL)
files.write(sys.argv[1], b"new")
"""


def test_what_a_killed_process_leaves_goes_later(tmp_path, monkeypatch):
    path = tmp_path / "data.json"
    path.write_text("old")
    done = subprocess.run([sys.executable, "-c", WRITER, str(path)], timeout=300)
    assert done.returncode == -signal.SIGKILL and path.read_text() == "old"
    (left,) = set(os.listdir(tmp_path)) - {"data.json"}
    others = [f".tilewave-{'0' * 31}.part", f"tilewave-{'0' * 32}.part", f".tilewave-{'0' * 32}.part.txt", "a.part"]
    for name in others:
        (tmp_path / name).write_text("somebody's")
        os.utime(tmp_path / name, (0, 0))
    folder = tmp_path / f".tilewave-{'1' * 32}.part"
    folder.mkdir()
    os.utime(folder, (0, 0))
    files._looked_through.clear()
    files.write(path, b"new")
    assert left in os.listdir(tmp_path)  # its writer may be at work
    os.utime(tmp_path / left, (0, 0))
    files._looked_through.clear()
    files.write(path, b"newer")
    assert set(os.listdir(tmp_path)) == {"data.json", folder.name, *others} and path.read_text() == "newer"


def test_a_write_that_is_cut_short(tmp_path):
    """A real limit: the system takes a part of the bytes."""
    script = """
import resource, signal, sys
import tilewave as tw
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    tw.Machine(conditions={}).save(sys.argv[1])
except tw.ConfigError as error:
    print(error)
"""
    path = tmp_path / "machine.json"
    path.write_text("old")
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=300)
    assert "machine.json' cannot be written: File too large" in done.stdout, done.stderr
    assert os.listdir(tmp_path) == ["machine.json"] and path.read_text() == "old"


# Machines that are kept from launch to launch.


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A machine, and the path of its file in the cache."""
    monkeypatch.setenv("TILEWAVE_CACHE_DIR", str(tmp_path / "cache"))
    conditions = dict.fromkeys(known.CACHED, 1) | {"hosts": ["here"], "ranks": 1, "threads": 1}
    machine = tw.Machine(conditions=conditions)
    assert known.store(machine)
    return machine, known.cache_path(conditions)


def test_a_kept_machine_is_the_users_own(kept):
    machine, path = kept
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    assert json.loads(machines.read(path, private=True))["conditions"] == machine.conditions


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_kept_machine_that_others_can_write_is_not_read(kept, mode):
    _, path = kept
    path.chmod(mode)
    with pytest.raises(tw.ConfigError, match="belongs to another user, or others can write it"):
        machines.read(path, private=True)
    assert machines.read(path)  # a file that the user names is the user's choice


def test_a_folder_that_others_can_write_keeps_no_machine(kept):
    machine, path = kept
    path.parent.chmod(0o777)
    with pytest.raises(tw.ConfigError, match="its folder belongs to another user, or others can write it"):
        machines.read(path, private=True)
    path.unlink()
    assert not known.store(machine) and os.listdir(path.parent) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file away")
def test_a_kept_machine_of_another_user_is_not_read(kept):
    _, path = kept
    os.chown(path, 65534, -1)
    with pytest.raises(tw.ConfigError, match="belongs to another user"):
        machines.read(path, private=True)


NAN = float("nan")


@pytest.mark.parametrize(
    "kind, right, wrong",
    [
        (entries.integer(-2, 3), [-2, 0, 3], [-3, 4, True, False, 1.0, "1", None]),
        (entries.flag, [True, False], [0, 1, None, "true"]),
        (entries.text, ["", "a", "\n"], [None, 1, b"a", "\ud800"]),
        (entries.number, [0, -1.5, 1e300], [NAN, float("inf"), 1e301, True, "1", None]),
        (entries.one_of(("a", "b")), ["a", "b"], ["c", None, 1]),
        (entries.or_null(entries.flag), [None, True], [0]),
        (entries.of_list(entries.flag, least=1, most=2), [[True], [True, False]], [[], [True] * 3, [1], None, (True,)]),
        (entries.of_list([entries.flag, entries.text]), [[True, "a"]], [[True], ["a", True], [True, "a", "b"]]),
        (entries.of_object({"a": entries.flag}), [{"a": True}], [{"a": 1}, {"a": True, "b": 1}, [], None]),
    ],
)
def test_kinds(kind, right, wrong):
    for value in right:
        assert kind(value, "x") == value
    for value in wrong:
        with pytest.raises(entries.Damaged, match=r"^x[.\[\]\w]*: given .*; allowed: "):
            kind(value, "x")


def test_an_object_names_the_field_that_it_lacks():
    with pytest.raises(ValueError, match=r"x\.b is missing; allowed: the fields a, b"):
        entries.of_object({"a": entries.flag, "b": entries.flag})({"a": True}, "x")
