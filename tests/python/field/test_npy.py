"""Files of arrays, written block by block."""

import itertools
import os
import random
import types

import numpy as np
import pytest

import tilewave as tw
from tilewave import files
from tilewave.field import npy
from tilewave.errors import ConfigError

DTYPES = tuple(map(np.dtype, ("f4", "f8", "i2")))


def writer(path, whole, owned=None, order="C"):
    """Of a field's block."""
    local = np.array(whole[owned or ...], order=order)
    field = types.SimpleNamespace(shape=whole.shape, dtype=whole.dtype, owned=owned, _view=lambda back: local)
    return npy.Writer(str(path), field, 0)


def save(path, whole, grid, order="C"):
    made = writer(path, whole).begin()
    cuts = [[slice(n * k // parts, n * (k + 1) // parts) for k in range(parts)] for n, parts in zip(whole.shape, grid)]
    for owned in itertools.product(*cuts):
        assert writer(path, whole, owned, order).write(made) is None
    writer(path, whole).finish(made)


@pytest.mark.parametrize("seed", range(4))
def test_files_are_numpys_own(tmp_path, monkeypatch, seed):
    pick = random.Random(seed)
    monkeypatch.setattr(npy, "PIECE_BYTES", 50)
    for number in range(15):
        shape = tuple(pick.choice((0, 1, 3, 8)) for _ in range(pick.randint(1, 4)))
        whole = np.random.default_rng(number).integers(-99, 99, shape).astype(pick.choice(DTYPES))
        path = tmp_path / f"{number}.npy"
        save(path, whole, [pick.randint(1, 3) for _ in shape], pick.choice("CF"))
        expected = tmp_path / "numpys.npy"
        np.save(expected, whole)
        assert path.read_bytes() == expected.read_bytes()
        back = npy.opened(str(path), DTYPES)
        assert np.array_equal(back, whole) and back.dtype == whole.dtype
    assert not list(tmp_path.glob(".*"))


def test_other_orders_are_read(tmp_path):
    whole = np.arange(60.0).reshape(3, 4, 5)
    np.save(tmp_path / "f.npy", np.asfortranarray(whole))
    np.save(tmp_path / "b.npy", whole.astype(">f8"))
    for name in "fb":
        assert np.array_equal(npy.opened(str(tmp_path / f"{name}.npy"), DTYPES), whole)


def test_a_file_has_no_name_before_it_is_whole(tmp_path):
    path = tmp_path / "old.npy"
    np.save(path, np.zeros(3))
    before = path.read_bytes()
    made = writer(path, np.zeros(100)).begin()
    assert os.path.dirname(made) == str(tmp_path) and os.path.getsize(made) > 800
    assert path.read_bytes() == before
    files.remove(made)
    files.remove(made)
    assert os.listdir(tmp_path) == ["old.npy"]


def head(shape, descr="'<f8'"):
    """The beginning of a .npy file."""
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text


def test_any_byte_but_0_is_true(tmp_path):
    """In files; NumPy keeps such bytes, and a nest would take one of their bits."""
    whole = np.array([0, 1, 2, 255, 0], np.uint8)
    np.save(tmp_path / "x.npy", whole.view(bool))
    tw.field(whole.view(bool)).save(tmp_path / "x.zarr")
    (tmp_path / "x.zarr" / "x" / "c.0").write_bytes(whole.tobytes())
    for name in ("x.npy", "x.zarr"):
        assert tw.load(tmp_path / name).gather().tobytes() == b"\0\1\1\1\0"


@pytest.mark.parametrize(
    "make,words",
    [
        (lambda p: p.write_bytes(b"no array"), "no .npy file"),
        (lambda p: p.write_bytes(b""), "no .npy file"),
        (lambda p: None, "No such file"),
        (lambda p: p.mkdir(), "no regular file"),
        (lambda p: os.mkfifo(p), "no regular file"),
        (lambda p: np.save(p, np.zeros(4, "u2")), "holds uint16; allowed: float32, float64, int16"),
        (lambda p: np.save(p, np.array([None, {}])), "holds object"),
        (lambda p: np.save(p, np.float64(1)), "shape ()"),
        (lambda p: np.save(p, np.zeros((1,) * 7)), "one to six"),
        (lambda p: p.symlink_to("/dev/zero"), "no regular file"),
        (lambda p: p.write_bytes(head("(True, 3)")), "its shape is (True, 3)"),
        (lambda p: p.write_bytes(head("(0, 2305843009213693952)")), "its shape is (0, 2305843009213693952)"),
        (lambda p: p.write_bytes(head("-" * 5000 + "3")), "no .npy file"),
        (lambda p: p.write_bytes(head("(3,)", "(" * 5000)), "no .npy file"),
        (lambda p: p.write_bytes(head("(3,)").replace(b"\1\0", b"\3\0", 1)), "no .npy file"),
        (lambda p: p.write_bytes(head("(3,)").replace(b"\1\0", b"\7\0", 1)), "its header or format has (7, 0)"),
        (
            lambda p: (np.save(p, np.zeros(100)), os.truncate(p, 500)),
            "is cut short: it has 500 bytes, an array of shape",
        ),
        (
            lambda p: (np.save(p, np.zeros(100)), os.truncate(p, p.stat().st_size - 1)),
            "is cut short: it has 927 bytes, an array of shape",
        ),
    ],
)
def test_what_is_no_file_of_an_array(tmp_path, make, words):
    path = tmp_path / "x.npy"
    make(path)
    with pytest.raises(ConfigError) as error:
        npy.opened(str(path), DTYPES)
    assert words in str(error.value) and "load" in str(error.value)


def test_what_cannot_be_written(tmp_path):
    for path, words in (
        (tmp_path / "no/where.npy", "No such file"),
        (tmp_path, "folder"),
        (f"{tmp_path}/{'n' * 300}.npy", "name too long"),
    ):
        with pytest.raises(ConfigError) as error:
            writer(path, np.zeros(4)).finish(writer(path, np.zeros(4)).begin())
        assert "save" in str(error.value) and words in str(error.value)
    for path in (3, None, b"x", "", "a\0b"):
        with pytest.raises(ConfigError, match="allowed: the name of a .npy file"):
            npy.path_of("save", path)
    problem = writer("x.npy", np.zeros(4), (slice(0, 4),)).write(str(tmp_path / "gone"))
    assert isinstance(problem, ConfigError) and "same disk" in str(problem)
