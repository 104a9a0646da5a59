"""Arrays in Zarr folders: written by any number of ranks, read by other programs, and theirs read here."""

import json
import os
import random
import shutil
import warnings
import zlib

import numpy as np
import pytest
from local_ranks import on_ranks, refused_on_all, results_of

import tilewave as tw
from tilewave import _core, files
from tilewave.field import zarr3, zarr_codecs

DTYPES = "f4 f8 c8 c16 i1 i2 i4 i8 u1 u2 u4 u8 ?".split()


def files_of(folder):
    return {
        os.path.relpath(os.path.join(at, name), folder): open(os.path.join(at, name), "rb").read()
        for at, _, names in os.walk(folder)
        for name in names
    }


def random_array(pick, number):
    shape = tuple(pick.choice((0, 1, 3, 8, 13)) for _ in range(pick.randint(1, 4)))
    return np.random.default_rng(number).integers(0, 99, shape).astype(pick.choice(DTYPES))


@pytest.mark.parametrize("seed", range(2))
def test_files_are_the_same_for_any_number_of_ranks(tmp_path, monkeypatch, seed):
    print(f"seed {seed}")
    pick = random.Random(seed)
    monkeypatch.setattr(os, "fsync", lambda number: None)
    for number in range(4):
        whole = random_array(pick, number)
        monkeypatch.setattr(zarr3, "CHUNK_BYTES", max(whole.nbytes // pick.choice((1, 5, 20)), 16))
        found = []
        for ranks in (1, 2, 4):
            path = tmp_path / f"{number}-{ranks}" / "a.zarr"
            path.parent.mkdir()
            otherwise = pick.random() < 0.5

            def body(context):
                field = tw.field(whole, context=context)
                if otherwise:
                    grid = [1] * whole.ndim
                    grid[-1] = ranks
                    field._storage.relayout(_core.Layout(whole.shape, tuple(grid)))
                field.save(path, attributes={"units": "m"})

            results_of(ranks, 1, body)
            found.append(files_of(path))
            other = pick.choice((1, 3))
            read = results_of(other, 1, lambda context: tw.load(path, context=context).gather())
            assert read[0].tobytes() == whole.tobytes() and read[0].dtype == whole.dtype
        assert all(each == found[0] for each in found), (number, whole.shape, whole.dtype)


def test_chunks_at_ends_are_filled_up_with_zeros(tmp_path, monkeypatch):
    monkeypatch.setattr(zarr3, "CHUNK_BYTES", 7 * 7 * 8)
    tw.field((13, 13), init=1.0).save(tmp_path / "u.zarr")
    found = {name: np.frombuffer(data) for name, data in files_of(tmp_path / "u.zarr" / "u").items() if name[0] == "c"}
    counts = {name: int(values.sum()) for name, values in found.items()}
    assert counts == {"c.0.0": 49, "c.0.1": 42, "c.1.0": 42, "c.1.1": 36}


def test_other_programs_read_them(tmp_path):
    zarr = pytest.importorskip("zarr", minversion="3")
    whole = np.random.default_rng(1).normal(size=(40, 30, 20))
    pick = random.Random(2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zarr3, "CHUNK_BYTES", 20000)

        def save(context):
            tw.field(whole, context=context).save(tmp_path / "u.zarr", dims=("z", "y", "x"), attributes={"units": "K"})

        results_of(3, 1, save)
    array = zarr.open(tmp_path / "u.zarr", mode="r")["u"]
    assert np.array_equal(array[...], whole) and dict(array.attrs) == {"units": "K"}
    assert array.metadata.dimension_names == ("z", "y", "x")
    for number in range(10):
        other = random_array(pick, number)
        tw.field(other).save(tmp_path / "many.zarr" / f"a{number}")
        read = zarr.open(tmp_path / "many.zarr", mode="r")[f"a{number}"]
        assert read.dtype == other.dtype and np.array_equal(read[...], other)
    assert sorted(zarr.open(tmp_path / "many.zarr", mode="r")) == sorted(f"a{n}" for n in range(10))


def test_xarray_reads_them(tmp_path):
    pytest.importorskip("zarr", minversion="3")
    xarray = pytest.importorskip("xarray")
    whole = np.random.default_rng(1).normal(size=(40, 30))
    u = tw.field(whole)
    u.save(tmp_path / "run.zarr" / "u", dims=("y", "x"), attributes={"units": "K"})
    tw.field(whole[0]).save(tmp_path / "run.zarr" / "v", dims=("x",))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        data = xarray.open_zarr(tmp_path / "run.zarr")
    assert data.u.dims == ("y", "x") and data.u.units == "K" and dict(data.sizes) == {"y": 40, "x": 30}
    assert np.array_equal(data.u, whole) and np.array_equal(data.v, whole[0])
    here = u.to_xarray(dims=("y", "x"), attributes={"units": "K"})
    assert np.array_equal(here, data.u) and here.dims == ("y", "x") and here.attrs == {"units": "K"}


def test_without_xarray(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "xarray", None)
    refused_on_all(2, lambda context: tw.field((3,), context=context).to_xarray(), "pip install xarray")


CODECS = {
    "plain": {},
    "default": None,
    "gzip": {"compressors": "GzipCodec"},
    "gzip and crc32c": {"compressors": ["GzipCodec", "Crc32cCodec"]},
    "crc32c": {"compressors": "Crc32cCodec"},
    "zstd": {"compressors": "ZstdCodec"},
    "big": {"serializer": "big"},
    "transposed": {"filters": "TransposeCodec"},
}


@pytest.mark.parametrize("name", CODECS)
def test_arrays_of_other_programs_are_read(tmp_path, name):
    zarr = pytest.importorskip("zarr", minversion="3")
    from zarr import codecs

    pick = random.Random(len(name))
    for number in range(3):
        whole = random_array(pick, number) if number != 1 else np.arange(60.0).reshape(3, 4, 5)
        settings = {} if CODECS[name] is None else {"compressors": None, **CODECS[name]}
        for key, value in list(settings.items()):
            made = [
                codecs.TransposeCodec(
                    order=tuple(pick.sample(range(whole.ndim), whole.ndim)) if number != 1 else (1, 2, 0)
                )
                if each == "TransposeCodec"
                else codecs.BytesCodec(endian="big")
                if each == "big"
                else getattr(codecs, each)()
                for each in (value if isinstance(value, list) else [value] if value else [])
            ]
            settings[key] = made[0] if key == "serializer" else made or None
        path = tmp_path / f"{number}.zarr"
        array = zarr.create_array(
            path, shape=whole.shape, dtype=whole.dtype, fill_value=pick.choice((0, 7)),
            chunks=tuple(pick.choice((1, 2, 5, 20)) for _ in whole.shape),
            chunk_key_encoding={"name": pick.choice(("default", "v2")), "separator": pick.choice("./")}, **settings,
        )  # fmt: skip
        if number:  # chunks that were never written have the fill value
            array[...] = whole
        expected = array[...]
        found = results_of(pick.choice((1, 2, 3)), 1, lambda context: tw.load(path, context=context).gather())
        assert found[0].dtype == whole.dtype and np.array_equal(found[0], expected), number


def node_of(folder):
    return json.loads((folder / "zarr.json").read_text())


def changed(**more):
    def change(store):
        folder = store / "u"
        (folder / "zarr.json").write_text(json.dumps(node_of(folder) | more))

    return change


def without(name):
    def change(store):
        node = node_of(store / "u")
        del node[name]
        (store / "u" / "zarr.json").write_text(json.dumps(node))

    return change


def codec(name, **settings):
    return {"name": name, "configuration": settings}


BYTES = codec("bytes", endian="little")


def keys(separator):
    return changed(chunk_key_encoding={"name": "v2", "configuration": {"separator": separator}})


def chunk_is(make, *codecs):
    """The only chunk's file is another one; of an array with these codecs of bytes."""

    def change(store):
        (store / "u" / "c.0.0").unlink()
        make(store / "u" / "c.0.0")
        changed(codecs=[BYTES, *codecs])(store)

    return change


def bomb(data):
    """Writes the bytes that become 30 MB."""
    return lambda path: path.write_bytes(data(bytes(30 << 20)))


def gzip(data):
    made = zlib.compressobj(9, zlib.DEFLATED, 31)
    return made.compress(data) + made.flush()


DAMAGE = {
    "a chunk cut short": (lambda s: os.truncate(s / "u" / "c.0.0", 5), "its chunk c.0.0 has 5 bytes; 96 are needed"),
    "an empty chunk": (lambda s: os.truncate(s / "u" / "c.0.0", 0), "its chunk c.0.0 has 0 bytes; 96 are needed"),
    "no JSON": (lambda s: (s / "u" / "zarr.json").write_text("{"), "its zarr.json is no JSON"),
    "binary": (lambda s: (s / "u" / "zarr.json").write_bytes(b"\xff\xfe"), "its zarr.json is no JSON"),
    "no metadata": (lambda s: (s / "zarr.json").unlink(), "it is a folder without zarr.json: no Zarr array"),
    "a list": (lambda s: (s / "zarr.json").write_text("[]"), "no array or group of Zarr format 3"),
    "another format": (changed(zarr_format=2), "no array or group of Zarr format 3"),
    "format 2": (
        lambda s: ((s / "zarr.json").unlink(), (s / ".zgroup").write_text("{}")),
        "it is in Zarr format 2; allowed: format 3",
    ),
    "no codecs": (without("codecs"), "lacks what an array has: KeyError 'codecs'"),
    "no shape": (without("shape"), "lacks what an array has: KeyError 'shape'"),
    "no codec": (changed(codecs=[]), "it has no codec 'bytes'"),
    "a shape of texts": (changed(shape=["4", 3]), "one to six extents"),
    "a negative shape": (changed(shape=[-4, 3]), "one to six extents"),
    "seven dimensions": (changed(shape=[1] * 7), "one to six extents"),
    "no dimension": (changed(shape=[]), "one to six extents"),
    "float16": (changed(data_type="float16"), "it holds 'float16'; allowed: bool, int8"),
    "a dtype of a list": (changed(data_type=["f8"]), "lacks what an array has"),
    "chunks of 0": (changed(chunk_grid=codec("regular", chunk_shape=[0, 3])), "its chunks are"),
    "another grid": (changed(chunk_grid=codec("rectilinear", chunk_shape=[4, 3])), "its chunks are"),
    "keys": (changed(chunk_key_encoding={"name": "x"}), "its chunk keys are 'x'; allowed: default, v2"),
    "a fill value": (changed(fill_value="x"), "its fill value is 'x'"),
    "transformers": (changed(storage_transformers=[1]), "it has storage transformers; allowed: none"),
    "sharding": (changed(codecs=[codec("sharding_indexed")]), "its codec 'sharding_indexed' is not known here"),
    "blosc": (changed(codecs=[BYTES, codec("blosc")]), "'blosc' is not known here; allowed: bytes, transpose, gzip"),
    "gzip": (changed(codecs=[BYTES, codec("gzip", level=1)]), "its chunk c.0.0 cannot be decoded"),
    "crc32c": (changed(codecs=[BYTES, codec("crc32c")]), "cannot be decoded: its checksum is another one"),
    "another order": (changed(codecs=[BYTES, codec("transpose", order=[0, 1])]), "'transpose' is not known here"),
    "transpose": (changed(codecs=[codec("transpose", order=[0, 0]), BYTES]), "its transpose has the order [0, 0]"),
    "a separator that leads out": (keys("/../../"), "the separator of its chunk keys is '/../../'; allowed: '.', '/'"),
    "a number as separator": (keys(5), "the separator of its chunk keys is 5; allowed: '.', '/'"),
    "no separator": (keys(None), "the separator of its chunk keys is None; allowed: '.', '/'"),
    "a list as separator": (keys([]), "the separator of its chunk keys is []; allowed: '.', '/'"),
    "a FIFO": (chunk_is(os.mkfifo), "it is no regular file"),
    "a FIFO with gzip": (chunk_is(os.mkfifo, codec("gzip")), "it is no regular file"),
    "a device": (chunk_is(lambda path: path.symlink_to("/dev/zero"), codec("gzip")), "it is no regular file"),
    "a folder": (chunk_is(os.mkdir, codec("gzip")), "it is no regular file"),
    "metadata of a FIFO": (
        lambda s: [(s / "u" / "zarr.json").unlink(), os.mkfifo(s / "u" / "zarr.json")],
        "it is no regular file",
    ),
    "a bomb of gzip": (chunk_is(bomb(gzip), codec("gzip")), "it has more than 65644 bytes"),
    "gzip cut short": (chunk_is(lambda path: path.write_bytes(gzip(bytes(96))[:-9]), codec("gzip")), "it is cut short"),
    "a long file": (lambda s: os.truncate(s / "u" / "c.0.0", 1 << 40), f"has {1 << 40} bytes; 96 are needed"),
    "many chunks": (
        changed(shape=[1 << 26, 1], chunk_grid=codec("regular", chunk_shape=[1, 1])),
        "it has 67108864 chunks; allowed: 1048576, or chunks of at least 4096 bytes",
    ),
    "a large chunk": (
        changed(chunk_grid=codec("regular", chunk_shape=[1 << 40, 3]), codecs=[BYTES, codec("gzip")]),
        "its chunks have 26388279066624 bytes each, the whole array 96; allowed: as many as that, or 268435456",
    ),
    "a chunk of 2**70": (changed(chunk_grid=codec("regular", chunk_shape=[1 << 70, 3])), "its chunks are"),
    "extents of 2**70": (changed(shape=[0, 1 << 70]), "one to six extents"),
    "many codecs": (changed(codecs=[BYTES, *[codec("gzip")] * 20]), "allowed: a list of at most 16"),
    "codecs of none": (changed(codecs=7), "its codecs are 7; allowed: a list"),
    "a fill value of two": (changed(fill_value=[1, 2]), "its fill value is [1, 2], which is no float64"),
    "deep metadata": (lambda s: (s / "u" / "zarr.json").write_text("[" * 100_000), "its zarr.json is no JSON"),
    "large metadata": (lambda s: os.truncate(s / "u" / "zarr.json", 1 << 40), "allowed: 33554432"),
    "two arrays": (lambda s: shutil.copytree(s / "u", s / "v"), "it is a group of 2 arrays; allowed: one of them"),
    "no array": (lambda s: shutil.rmtree(s / "u"), "it is a group of 0 arrays"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_arrays_are_one_error_on_every_rank(tmp_path, name):
    damage, words = DAMAGE[name]
    path = tmp_path / "u.zarr"
    tw.field(np.arange(12.0).reshape(4, 3)).save(path)
    damage(path)
    refused_on_all(2, lambda context: tw.load(path, context=context), words)


def test_a_missing_library_for_zstd(tmp_path, monkeypatch):
    tw.field(np.arange(12.0).reshape(4, 3)).save(tmp_path / "u.zarr")
    changed(codecs=[BYTES, codec("zstd")])(tmp_path / "u.zarr")
    monkeypatch.setattr(zarr_codecs, "ZSTD", {"no.such": None})
    refused_on_all(2, lambda context: tw.load(tmp_path / "u.zarr", context=context), "pip install zstandard")


@pytest.mark.parametrize("name", zarr_codecs.ZSTD)
def test_zstd_decompresses_no_more_than_a_chunk_needs(name):
    module = pytest.importorskip(name)
    compress = getattr(module, "compress", None) or module.ZstdCompressor().compress
    for size, most in ((1, 1), (5, 5), (300, 300), (70_000, 70_000), (200_000, 199_999), (20 << 20, 1000)):
        packed = bytes(compress(bytes(size)))
        if size <= most:
            assert bytes(zarr_codecs.ZSTD[name](module, packed, most)) == bytes(size)
            continue
        with pytest.raises(ValueError, match="bytes"):
            zarr_codecs.ZSTD[name](module, packed, most)


def test_crc32c():
    assert _core.crc32c(b"123456789") == 0xE3069283 and _core.crc32c(b"") == 0


def test_fill_values():
    given = {"f8": ("NaN", "-Infinity", 2, "0x4000000000000000"), "c8": ([1, "NaN"],), "i2": (-7, None)}
    for dtype, values in given.items():
        for value in values:
            found = zarr3._fill_value(value, np.dtype(dtype))
            assert found.dtype == np.dtype(dtype)
    assert zarr3._fill_value("0x4000000000000000", np.dtype("f8")) == 2.0
    wrong = {
        "f8": ({}, [1], "9" * 10_000 + "x"), "f4": ("0xfffffffff",), "i4": (1.5, "1"), "i1": (300,), "u1": (-1,),
        "?": (2,), "c8": (1, [1, 2, 3]),
    }  # fmt: skip
    for dtype, values in wrong.items():
        for value in values:
            with pytest.raises(zarr3.DamagedError, match="its fill value is"):
                zarr3._fill_value(value, np.dtype(dtype))


WRONG = {
    "no folder": (lambda u, at: u.save(at / "none" / "u.zarr"), "No such file or directory"),
    "a file in its place": (lambda u, at: u.save(at / "file.zarr"), "is there already, and no single Zarr array"),
    "other files in it": (lambda u, at: u.save(at / "other.zarr"), "is there already, and no single Zarr array"),
    "two arrays in it": (lambda u, at: u.save(at / "two.zarr"), "is there already, and no single Zarr array"),
    "in an array": (lambda u, at: u.save(at / "two.zarr" / "a" / "b"), "is no group, in which the array would be"),
    "dims": (lambda u, at: u.save(at / "u.zarr", dims=("x",)), "dims=('x',) was given; allowed: 2 different names"),
    "equal dims": (lambda u, at: u.save(at / "u.zarr", dims=("x", "x")), "allowed: 2 different names"),
    "dims as text": (lambda u, at: u.save(at / "u.zarr", dims="xy"), "allowed: 2 different names"),
    "attributes": (lambda u, at: u.save(at / "u.zarr", attributes={"a": 1j}), "allowed: a dict of texts, numbers"),
    "attributes of no dict": (lambda u, at: u.save(at / "u.zarr", attributes=[1]), "allowed: a dict"),
    "dims of NumPy's": (lambda u, at: u.save(at / "u.npy", dims=("y", "x")), "dims= was given for a .npy file"),
    "spacing": (lambda u, at: u.save(at / "u.zarr", spacing=1), "spacing= was given for a .zarr file"),
    "other dims": (
        lambda u, at: u.save(at / "u.zarr", dims=("y", "x" if u.context.rank else "z")),
        "differ|x|z",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_saved(tmp_path, name):
    call, words = WRONG[name]
    (tmp_path / "file.zarr").write_text("somebody's")
    (tmp_path / "other.zarr").mkdir()
    (tmp_path / "other.zarr" / "a").write_text("somebody's")
    for each in "ab":
        tw.field((3,), init=1.0).save(tmp_path / "two.zarr" / each)
    before = sorted(files_of(tmp_path))
    _, errors = on_ranks(2, 1, lambda context: call(tw.field((4, 3), init=1.0, context=context), tmp_path))
    assert all(isinstance(error, tw.ConfigError) for error in errors), errors
    assert any(word in str(error) for error in errors for word in words.split("|")), errors
    assert len(set(map(str, errors))) == 1 and sorted(files_of(tmp_path)) == before


def test_an_array_replaces_another(tmp_path):
    path = tmp_path / "u.zarr"
    for size in (5, 7):
        tw.field(np.arange(float(size))).save(path)
        assert np.array_equal(tw.load(path)[...], np.arange(float(size)))
        tw.field(np.arange(float(size))).save(tmp_path / "run.zarr" / "deep" / "v")
        assert np.array_equal(tw.load(tmp_path / "run.zarr")[...], np.arange(float(size)))
    assert sorted(os.listdir(tmp_path)) == ["run.zarr", "u.zarr"]


@pytest.mark.parametrize("call", ["fsync", "rename"])
@pytest.mark.parametrize("ending", ["zarr", "pvti"])
def test_a_full_disk_on_one_rank_leaves_the_old_array(tmp_path, monkeypatch, call, ending):
    path = tmp_path / f"u.{ending}"
    tw.field((8,), init=1.0).save(path)
    before = files_of(tmp_path)
    done, refused = getattr(os, call), []

    def full(*arguments, **more):
        if not refused:
            refused.append(call)
            raise OSError(28, "No space left on device")
        return done(*arguments, **more)

    monkeypatch.setattr(os, call, full)
    refused_on_all(2, lambda context: tw.field((8,), init=2.0, context=context).save(path), "No space left on device")
    assert files_of(tmp_path) == before


def test_a_history_is_saved(tmp_path):
    u = tw.field((6,), init=lambda i: i, history=[lambda i: -i])
    u.buffer(-1).save(tmp_path / "u.zarr", dims=("x",))
    assert np.array_equal(tw.load(tmp_path / "u.zarr")[...], -np.arange(6.0))
    assert tuple(node_of(tmp_path / "u.zarr" / "u")["dimension_names"]) == ("x",)


def test_abandoned_folders_go(tmp_path):
    old = tmp_path / f".tilewave-{'1' * 32}.part"
    new = tmp_path / f".tilewave-{'2' * 32}.part"
    for folder in (old, new):
        (folder / "u").mkdir(parents=True)
    os.utime(old, (0, 0))
    tw.field((6,)).save(tmp_path / "u.zarr")
    assert sorted(os.listdir(tmp_path)) == [new.name, "u.zarr"]


def test_another_program_may_end_meanwhile(tmp_path, monkeypatch):
    other = tmp_path / f".tilewave-{'1' * 32}.part"
    other.mkdir()
    entries = list(os.scandir(tmp_path))
    assert entries[0].is_dir(follow_symlinks=False)  # as it was when the folder was read
    other.rename(tmp_path / "theirs.zarr")
    monkeypatch.setattr(files.os, "scandir", lambda folder: entries)
    assert os.path.isdir(files.begin_folder(str(tmp_path / "u.zarr")))
