"""Checkpoints whose entries make no sense, with right checksums: each is refused, and the one before is taken."""

import json
import os
import re
import warnings

import numpy as np
import pytest
from local_ranks import refused_on_all, results_of
from sealed import blob, sealed, with_file

import tilewave as tw
from tilewave.checkpoints import folders, manifest, plain


@pytest.fixture(autouse=True)
def no_disk(monkeypatch):
    """Nothing here depends on what survives a power cut."""
    monkeypatch.setattr(os, "fsync", lambda number: None)


def state(context=None):
    return {
        "u": tw.field((9, 7), init=7.0, context=context),
        "h": tw.field((9, 8), init=1.0, halo=1, periodic=("i",), context=context),
        "old": tw.field((12,), init=1.0, history=2, context=context),
        "M": tw.linalg.matrix((6, 5), context=context),
        "z": np.arange(4),
    }


def entry(name, **more):
    return lambda body, folder: body["items"][name].update(more)


def array_of(name, array="u"):
    """Change the metadata of an array."""

    def change(body, folder):
        def node(data):
            found = json.loads(data)
            found |= name
            return json.dumps(found).encode()

        with_file(body, folder, f"fields.zarr/{array}/zarr.json", node)

    return change


def values(tree):
    """Put other plain data in place of z."""
    return lambda body, folder: blob(body, folder, "z", json.dumps(tree).encode() + b"\n")


def renamed(name):
    def change(body, folder):
        body["items"][name] = body["items"].pop("u")

    return change


LARGE = (1 << 61) - 1
DAMAGE = {
    "no history": (entry("u", history=-1), "items.u.history: given -1; allowed: an integer from 0 to 6"),
    "more history": (entry("u", history=1), "manifest.json: files: given 'fields.zarr/u-1/zarr.json'"),
    "a dtype": (entry("u", dtype="object"), "items.u.dtype: given 'object'; allowed: bool, int8"),
    "another dtype": (entry("u", dtype="int64"), "(9, 7), float64, and manifest.json (9, 7), int64"),
    "another shape": (entry("u", shape=[7, 9]), "fields.zarr/u has shape (9, 7), float64, and manifest.json (7, 9)"),
    "a large shape": (entry("u", shape=[1 << 40, 1]), "files of fields.zarr/u: given 504; allowed: 8796093022208"),
    "a shape of 2**122": (entry("u", shape=[LARGE, LARGE]), "items.u.shape[0]"),
    "a halo of one axis": (entry("h", halo=[[1, 1]]), "items.h.halo: given [(1, 1)]; allowed: an entry for each of 2"),
    "a negative halo": (entry("h", halo=[[1, -1], [1, 1]]), "items.h.halo[0][1]: given -1"),
    "a wide halo": (entry("h", halo=[[1 << 31, 0], [1, 1]]), "items.h.halo[0][0]"),
    "an axis": (entry("h", periodic=[2]), "items.h.periodic: given [2]; allowed: some of 2 axes"),
    "halo and history": (entry("old", halo=[[1, 1]]), "items.old.halo: given [(1, 1)]; allowed: null with history"),
    "blocks": (entry("u", blocks=[[9, 0, 1, 0, 1], [7, 1, 1, 0, 1]]), "items.u.blocks: field: blocks: scale=(0, 1)"),
    "more blocks": (entry("u", blocks=[[9, 1, 1, 0, 1]]), "items.u.blocks: given ((9, 1, 1, 0, 1),)"),
    "a layout of a field": (entry("u", layout=["rows", [1, 1], [1, 1]]), "items.u.layout"),
    "no layout": (entry("M", layout=None), "items.M: given"),
    "an empty grid": (entry("M", layout=["rows", [1, 1], [0, 0]]), "items.M.layout[2][0]: given 0; allowed"),
    "an empty block": (entry("M", layout=["cyclic", [0, 1], [1, 1]]), "items.M.layout[1][0]: given 0"),
    "a large block": (entry("M", layout=["cyclic", [1 << 40, 1], [1, 1]]), "resume: block: given"),
    "another layout": (entry("M", layout=["x", [1, 1], [1, 1]]), "items.M.layout[0]: given 'x'; allowed: rows"),
    "weights": (entry("M", weights=[0, 0]), "items.M.weights[0]: given 0"),
    "a matrix of three axes": (entry("M", shape=[1, 2, 3]), "items.M: given"),
    "a matrix of integers": (entry("M", dtype="int64"), "items.M: given"),
    "a step": (lambda body, folder: body.update(step=-7), "step: given -7"),
    "a name": (renamed("step"), "items.step: given 'step'"),
    "a name that leads out": (renamed("../u"), "items.../u: given '../u'; allowed: names as of variables"),
    "a file that leads out": (
        lambda body, folder: body["files"].update({"../../x": [1, "0"]}),
        "files: given '../../x'; allowed: files of the items",
    ),
    "a missing file": (lambda body, folder: body["files"].pop("values.bin"), "within the 0 bytes of values.bin"),
    "values behind the end": (entry("z", begin=1 << 40), "items.z.bytes"),
    "the separator": (
        array_of({"chunk_key_encoding": {"name": "v2", "configuration": {"separator": 5}}}),
        "the separator of its chunk keys is 5",
    ),
    "a dtype of metadata": (array_of({"data_type": "float32"}), "fields.zarr/u has shape (9, 7), float32"),
    "a group": (array_of({"node_type": "group", "shape": None}), "it holds an array of shape None"),
    "other chunks": (
        array_of({"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 1]}}}),
        "its chunk c.0.0 has 504 bytes; 8 are needed",
    ),
    "a number of an array": (values({"array": 7}), "array 7 is not there; allowed: one of 0"),
    "a negative number": (values({"number": -1}), "array -1 is not there"),
    "another kind": (values({"call": "os.system"}), "given {'call': 'os.system'}; allowed: float, complex, bytes"),
    "two kinds": (values({"float": "nan", "bytes": ""}), "is damaged"),
    "a tuple of text": (values({"tuple": "ab"}), "allowed: float, complex, bytes"),
    "keys of lists": (values({"dict": [[[1], 2]]}), "unhashable type: 'list'"),
    "deep data": (lambda body, folder: blob(body, folder, "z", b"[" * 10**5 + b"]" * 10**5 + b"\n"), "recursion"),
    "a short array": (
        lambda body, folder: blob(body, folder, "z", plain.encoded("z", np.arange(4))[:-1]),
        "an array of shape (4,) and dtype int64 does not fit its 31 bytes",
    ),
    "a large array": (
        lambda body, folder: blob(
            body, folder, "z", plain.encoded("z", np.arange(4)).replace(b"(4,), }     ", b"(9999999,), }")
        ),
        "does not fit its 33 bytes",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_the_one_before_is_taken(tmp_path, name):
    damage, words = DAMAGE[name]
    tw.checkpoint(tmp_path, 1, **state())
    damaged = tw.checkpoint(tmp_path, 2, **state()).path
    sealed(damaged, damage)

    def body(context):
        found = tw.resume(tmp_path, context=context)
        return found["step"], found["u"][3, 4]

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert results_of(2, 1, body) == [(1, 7.0)] * 2
    (text,) = [str(each.message) for each in told if "resume" in str(each.message)]
    assert words in text and "is damaged" in text
    sealed(f"{tmp_path}/00000001-step-1", damage)
    refused_on_all(2, lambda context: tw.resume(tmp_path, context=context), "is damaged")


FILES = (folders.MANIFEST, manifest.VALUES, "fields.zarr/zarr.json", "fields.zarr/u/zarr.json", "fields.zarr/u/c.0.0")


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/dev/zero", path), os.mkdir])
def test_files_that_are_none(tmp_path, file, make):
    folder = tw.checkpoint(tmp_path, 1, **state()).path
    os.unlink(f"{folder}/{file}")
    make(f"{folder}/{file}")
    refused_on_all(2, lambda context: tw.resume(tmp_path, context=context), "it is no regular file")


@pytest.mark.parametrize("name", plain._BITS)
def test_positions_of_generators(name):
    """Beyond its buffer a generator reads other memory, as NumPy does not look."""
    rng = np.random.Generator(getattr(np.random, name)(3))
    rng.integers(0, 9, dtype="u4")
    line, rest = plain.encoded("rng", rng).split(b"\n", 1)
    entries = re.findall(rb'\["(pos|buffer_pos|has_uint32|uinteger|inc|state|pool_size)", (\d+)\]', line)
    assert entries
    for entry, value in entries:
        allowed = {b"pos": 624, b"buffer_pos": 4, b"has_uint32": 1, b"pool_size": 1024, b"uinteger": 2**32 - 1}
        most = allowed.get(entry, 2**128 - 1)
        for wrong in (-1, most + 1, 2**31, 2**63, 2**200, True, 1.5, "1", [1]):
            if type(wrong) is int and 0 <= wrong <= most and (entry != b"pool_size" or wrong >= 4):
                continue
            text = line.replace(b'["%s", %s]' % (entry, value), b'["%s", %s]' % (entry, json.dumps(wrong).encode()))
            assert text != line
            with pytest.raises(ValueError, match="of a generator is|allowed: "):
                plain.decoded(text + b"\n" + rest)


def test_arrays_of_generators():
    data = plain.encoded("rng", np.random.Generator(np.random.MT19937(3)))
    for old, new in ((b"(624,)", b"(312,)"), (b"<u4", b"<i4"), (b"MT19937", b"Philox7")):
        wrong = data.replace(old, new)
        with pytest.raises(ValueError, match="of a generator is|allowed: |does not fit|magic"):
            plain.decoded(wrong)


def test_names_that_no_file_can_have(tmp_path):
    for name in ("../u", "a/b", "u-1", "", "zarr.json", "."):
        with pytest.raises(tw.ConfigError, match="given a Field; allowed: a name as of variables"):
            tw.checkpoint(tmp_path / "c", 1, **{name: tw.field((3,))})
    assert os.listdir(tmp_path) == []
    tw.checkpoint(tmp_path / "c", 1, **{"a/b": 5})
    assert tw.resume(tmp_path / "c") == {"step": 1, "a/b": 5}
    wide = np.random.Generator(np.random.PCG64(np.random.SeedSequence(1, pool_size=2000)))
    with pytest.raises(tw.ConfigError, match="given a generator of a pool of 2000; allowed: 1024"):
        tw.checkpoint(tmp_path / "c", 1, rng=wide)


def test_fields_of_six_axes(tmp_path):
    """Halos and blocks of as many axes as fields have."""
    shape = (3, 2, 2, 2, 3, 4)
    halo, blocks = tw.field(shape, init=2.0, halo=1), tw.field(shape, init=3.0, blocks=tw.Blocks(2))
    tw.checkpoint(tmp_path, 1, halo=halo, blocks=blocks)
    found = tw.resume(tmp_path)
    assert found["halo"].halo == halo.halo and found["blocks"]._cuts == blocks._cuts
    assert np.array_equal(found["blocks"].gather(), np.full(shape, 3.0))
