"""Each reader of files with valid files, changes of these, and what must hold of all that it takes."""

import contextlib
import json
import math
import os
import re
import shutil
import zlib
from pathlib import Path

import numpy as np
from mutations import changed_bytes, changed_json, changed_tree
from sealed import sealed, with_file

import tilewave as tw
from tilewave import _core, files
from tilewave.field.chunks import checksum_of
from tilewave.launch import allocations, hosts, launch
from tilewave.launch.variables import LaunchError
from tilewave.machine.machine import named

OTHERS = os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")  # than regular files
MOST_THREADS = 32  # of a plan that is run: more may want more memory than there is
MOST_BYTES = 256 << 20  # of an array that is taken: whoever asks for more may lack memory


class OneFile:
    """A reader of one file."""

    refuses = tw.ConfigError
    change_bytes = staticmethod(changed_json)

    def __init__(self, folder):
        self.path = folder / "file"
        self.valid = self.make()

    def make(self):
        """Valid contents, as bytes."""
        raise NotImplementedError

    def change(self, pick):
        data = self.change_bytes(pick, pick.choice(self.valid))
        files.remove(self.path)
        if pick.random() < 0.01:
            pick.choice(OTHERS)(self.path)
        else:
            self.path.write_bytes(data)

    def saved(self, value):
        value.save(self.path)
        return self.path.read_bytes()


def fits(field):
    """All its values are there."""
    whole = field.gather()
    assert (whole.shape, whole.dtype) == (field.shape, field.dtype)
    if whole.dtype == bool:
        assert whole.view(np.uint8).max(initial=0) <= 1


class Npy(OneFile):
    change_bytes = staticmethod(changed_bytes)

    def make(self):
        made = []
        for shape, dtype, order in ((3, 4), "f8", "C"), ((2, 3, 2), ">i2", "F"), ((9,), "?", "C"), ((0, 3), "c8", "C"):
            np.save(f"{self.path}.npy", np.ones(shape, dtype, order))
            made.append(Path(f"{self.path}.npy").read_bytes())
        return made

    def read(self):
        fits(tw.load(self.path))


class Machines(OneFile):
    def make(self):
        self.schedule = tw.Schedule.build(tasks, 3)
        return [self.saved(tw.Machine.load(name)) for name in named()]

    def read(self):
        found = tw.Machine.load(self.path)
        found._to_core()
        assert str(found) and found._to_text()
        assert 0 <= tw.predict(self.schedule, found).time_s < math.inf


@tw.nest
def relax(A, i, j):
    A[i, j] = A[i-1, j] + A[i, j-1]


@tw.nest
def heat(u, t, i):
    u[t+1, i] = u[t, i-1] + u[t, i+1]


class Plans(OneFile):
    def make(self):
        nests = (relax, {"A": tw.field((40, 30))}), (heat, {"u": tw.field((90,)), "steps": 7})
        self.field, self.whole = tw.field((40, 30)), np.ones((40, 30))
        for i in range(1, 40):
            for j in range(1, 30):
                self.whole[i, j] = self.whole[i - 1, j] + self.whole[i, j - 1]
        return [self.saved(tw.plan(nest, **given)) for nest, given in nests]

    def read(self):
        found = tw.Plan.load(self.path)
        assert str(found) and found.explain()
        if found.threads > MOST_THREADS:
            return
        self.field[...] = 1.0
        tw.run(relax, A=self.field, plan=found)
        assert np.array_equal(self.field.gather(), self.whole)


class Schedules(OneFile):
    def make(self):
        nests = (relax, {"A": tw.field((12, 9))}), (heat, {"u": tw.field((30,)), "steps": 3})
        made = [tw.schedule(nest, **given) for nest, given in nests]
        return [self.saved(one) for one in (*made, tw.Schedule.build(tasks, 3))]

    def read(self):
        found = tw.Schedule.load(self.path)
        assert str(found)
        for use in (tw.check, tw.predict):
            with contextlib.suppress(tw.ConfigError):
                use(found)


def count(before, out):
    out[...] = before + 1


def tasks(b):
    lane, A, B = b.lane(), b.array("A", 6), b.array("B", 6)
    lane.task(count, [A.owned], [B.owned], number=b.rank)


class Hosts(OneFile):
    refuses = LaunchError
    change_bytes = staticmethod(changed_bytes)

    def make(self):
        return [b"node1 slots=2\nnode2:3\n# no host\nme@node3 max_slots=7\n", b"a\na\nb\n" * 20, "ä\n".encode()]

    def read(self):
        for host in hosts.read_hostfile(self.path):
            assert re.fullmatch(hosts.HOST, host, re.ASCII)


class Jobs(OneFile):
    """The environment that a batch system sets, as if it were a file of JSON."""

    refuses = LaunchError

    def make(self):
        slurm = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-3,07],m", "SLURM_TASKS_PER_NODE": "2(x3),1,4"}
        lines = f"{self.path}.hosts"
        Path(lines).write_text("a\nb\n")
        return [
            slurm | {"SLURM_NTASKS": "11", "PMI_RANK": "3"},
            {"SLURM_JOB_ID": "7", "SLURM_NNODES": "3", "SLURM_NTASKS": "5", "PMI_RANK": "1"},
            {"PBS_JOBID": "7.x", "PBS_NODEFILE": lines, "PMIX_RANK": "0"},
            {"LSB_JOBID": "7", "LSB_MCPU_HOSTS": "a 2 b.c 4", "OMPI_COMM_WORLD_RANK": "2"},
        ]

    def change(self, pick):
        found = changed_tree(pick, pick.choice(self.valid))
        self.now = {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}

    def read(self):
        env = self.now
        try:
            os.environ.update(env)
        except (ValueError, OSError):  # a name that is empty, or has "="
            return  # no environment can be so
        try:
            given, rank = allocations.allocation(env), launch.rank()
        finally:
            for name in env:
                os.environ.pop(name, None)
        assert rank is None or rank >= 0
        if given is not None:
            assert 1 <= len(given.hosts) or not given.hosts and given.nodes >= 1
            assert sum(count for _, count in given.hosts) == given.ranks or not given.hosts
            assert all(re.fullmatch(hosts.HOST, host, re.ASCII) and count > 0 for host, count in given.hosts)
            assert "\n" not in allocations.described(given.ranks, (), given)


class Kernels(OneFile):
    """Object code on disk: what is found is what was stored, or nothing."""

    change_bytes = staticmethod(changed_bytes)
    KEY, DATA = "a module", b"object code" * 9

    def make(self):
        os.environ["TILEWAVE_CACHE_DIR"] = str(self.path.parent)
        _core.file_cache.store(self.KEY, ".kernel", self.DATA, 99)
        (self.path,) = self.path.parent.glob("*.kernel")
        return [self.path.read_bytes()]

    def change(self, pick):
        super().change(pick)
        self.path.chmod(pick.choice((0o600, 0o600, 0o622)))

    def read(self):
        found = _core.file_cache.find(self.KEY, ".kernel")
        assert found in (None, self.DATA)
        if self.path.is_file() and (self.path.stat().st_mode & 0o22 or self.path.read_bytes() not in self.valid):
            assert found is None


def codec(name, **settings):
    return {"name": name, "configuration": settings}


class Zarr:
    refuses = tw.ConfigError

    def __init__(self, folder):
        self.path = folder / "x.zarr"
        whole = np.arange(35.0).reshape(5, 7)
        tw.field(whole).save(self.path)
        node = json.loads((self.path / "x" / "zarr.json").read_text())
        little, gzip = codec("bytes", endian="little"), codec("gzip", level=1)
        grid = codec("regular", chunk_shape=[3, 4])
        parts = {(i, j): np.zeros((3, 4)) for i in range(2) for j in range(2)}
        for (i, j), part in parts.items():
            some = whole[3 * i : 3 * i + 3, 4 * j : 4 * j + 4]
            part[: some.shape[0], : some.shape[1]] = some

        def pack(data):
            made = zlib.compressobj(1, zlib.DEFLATED, 31)
            return made.compress(data) + made.flush()

        def with_sum(data):
            return data + _core.crc32c(data).to_bytes(4, "little")

        crc, turned = codec("crc32c"), codec("transpose", order=[1, 0])
        keys = {s: codec("v2", separator=s) for s in "./"}
        self.valid = [
            {"zarr.json": node, "c.0.0": whole.tobytes()},
            {"zarr.json": node | {"chunk_grid": grid, "codecs": [little, gzip], "chunk_key_encoding": keys["/"]},
             **{f"{i}/{j}": pack(part.tobytes()) for (i, j), part in parts.items()}},
            {"zarr.json": node | {"chunk_grid": grid, "codecs": [turned, little, crc], "chunk_key_encoding": keys["."]},
             **{f"{i}.{j}": with_sum(part.T.tobytes()) for (i, j), part in parts.items() if i}},
            {"zarr.json": node | {"data_type": "bool", "fill_value": True}, "c.0.0": bytes(range(35))},
        ]  # fmt: skip

    def change(self, pick):
        store = dict(pick.choice(self.valid))
        name = pick.choice(list(store)) if pick.random() < 0.3 else "zarr.json"
        store["zarr.json"] = json.dumps(store["zarr.json"]).encode()
        store[name] = (changed_json if name == "zarr.json" else changed_bytes)(pick, store[name])
        files.remove(self.path)
        for each, data in store.items():
            (self.path / each).parent.mkdir(parents=True, exist_ok=True)
            (self.path / each).write_bytes(data)
        if pick.random() < 0.02:
            (self.path / name).unlink()
            pick.choice(OTHERS)(self.path / name)

    def read(self):
        try:
            fits(tw.load(self.path))
        except MemoryError:
            node = json.loads((self.path / "zarr.json").read_bytes())
            if np.prod([float(n) for n in node["shape"]]) * np.dtype(node["data_type"]).itemsize < MOST_BYTES:
                raise


class Checkpoints:
    refuses = tw.ConfigError

    def __init__(self, folder):
        self.path, valid = folder / "checkpoints", folder / "valid"
        rng = {name: np.random.Generator(getattr(np.random, name)(3)) for name in ("MT19937", "Philox", "SFC64")}
        for each in rng.values():
            each.integers(0, 9, dtype="u4"), each.spawn(1)
        halo = tw.field((9, 8), init=1.0, halo=((1, 2), 1), periodic=("i",))
        self.valid = valid / "00000001-step-1"
        tw.checkpoint(
            valid, 1, u=tw.field((9, 7), init=7.0), halo=halo, old=tw.field((6,), init=1.0, history=[2.0]),
            blocks=tw.field((10,), blocks=tw.Blocks(8, shift=1)), M=tw.linalg.matrix(np.eye(4)),
            flags=tw.field((9,), "?"), C=tw.linalg.matrix(np.eye(4), layout="cyclic", block=2),
            z=np.arange(4), p=np.random.default_rng(2),
            data={"a": [1, (2.5, None)], 3: np.float32(1), "b": b"x", "c": 1j}, **rng,
        )  # fmt: skip

    def change(self, pick):
        shutil.rmtree(self.path, ignore_errors=True)
        folder = self.path / self.valid.name
        shutil.copytree(self.valid, folder)
        kind = pick.randrange(4)
        if kind == 0:
            sealed(folder, lambda body, _: _replace(body, changed_tree(pick, body)))
        elif kind == 1:
            sealed(folder, lambda body, at: _change_values(pick, body, at))
        elif kind == 2:
            name = pick.choice(sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()))
            change = changed_json if name.endswith(".json") else changed_bytes
            if name == "manifest.json":
                (folder / name).write_bytes(changed_bytes(pick, (folder / name).read_bytes()))
            else:
                sealed(folder, lambda body, at: with_file(body, at, name, lambda data: change(pick, data)))
        else:
            file = pick.choice(sorted(file for file in folder.rglob("*") if file.is_file()))
            data = file.read_bytes()
            file.unlink()
            pick.choice((*OTHERS, *[lambda path: path.write_bytes(changed_bytes(pick, data))] * 9))(file)

    def read(self):
        found = tw.resume(self.path)
        if found is None:
            return
        assert found["step"] >= 0
        for value in found.values():
            if isinstance(value, tw.Field):
                for back in range(1 + value.history):
                    fits(value.buffer(-back)) if back else fits(value)
                value.close()
            elif isinstance(value, np.random.Generator):
                value.random(700), value.integers(0, 9, 9, dtype="u4"), value.spawn(1)
            elif isinstance(value, tw.linalg.Matrix):
                assert value.gather().shape == value.shape
            else:
                assert len(repr(value)) < MOST_BYTES


def _replace(body, other):
    """In place; what is no object stands for an empty one."""
    body.clear()
    body.update(other if isinstance(other, dict) else {})


def _change_values(pick, body, folder):
    """Another tree or other arrays of one item of plain data."""
    item = pick.choice([item for item in body["items"].values() if item["kind"] == "plain"])
    data = (folder / "values.bin").read_bytes()
    begin, end = item["begin"], item["begin"] + item["bytes"]
    line, rest = data[begin:end].split(b"\n", 1)
    if rest and pick.random() < 0.3:
        rest = changed_bytes(pick, rest)
    else:
        line = changed_json(pick, line)
    made = data + line + b"\n" + rest
    (folder / "values.bin").write_bytes(made)
    body["files"]["values.bin"] = [len(made), checksum_of(made)]
    item["begin"], item["bytes"] = len(data), len(made) - len(data)


TARGETS = {
    "npy": Npy,
    "zarr": Zarr,
    "checkpoint": Checkpoints,
    "machine": Machines,
    "plan": Plans,
    "schedule": Schedules,
    "hosts": Hosts,
    "job": Jobs,
    "kernels": Kernels,
}
