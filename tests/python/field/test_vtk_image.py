"""Images for ParaView, read back by VTK."""

import os
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from local_ranks import on_ranks, results_of

import tilewave as tw


def arrays():
    for number, shape in enumerate([(7,), (6, 5), (4, 5, 6), (1, 9, 2)]):
        for dtype in ("f8", "c8") if number else ("f4", "i2", "i8", "u1"):
            yield np.random.default_rng(number).integers(0, 99, shape).astype(dtype)


@pytest.mark.parametrize("ranks", [1, 3])
def test_vtk_reads_them(tmp_path, ranks):
    pytest.importorskip("vtkmodules", reason="pip install vtk, which is 100 MB, to read images back")
    from vtkmodules.util.numpy_support import vtk_to_numpy
    from vtkmodules.vtkIOXML import vtkXMLPImageDataReader

    for number, whole in enumerate(arrays()):
        path = tmp_path / f"a{number}.pvti"
        spacing, origin = tuple(0.5 + k for k in range(whole.ndim)), tuple(float(k) for k in range(whole.ndim))

        def save(context):
            field = tw.field(whole, context=context)
            field.save(path, spacing=spacing, origin=origin)

        results_of(ranks, 1, save)
        reader = vtkXMLPImageDataReader()
        reader.SetFileName(str(path))
        reader.Update()
        image = reader.GetOutput()
        values = vtk_to_numpy(image.GetCellData().GetArray(f"a{number}"))
        if whole.dtype.kind == "c":
            values = values[:, 0] + 1j * values[:, 1]
        assert np.array_equal(values.reshape(whole.shape), whole), (whole.shape, whole.dtype)
        extents = whole.shape[::-1] + (1,) * (3 - whole.ndim)
        assert image.GetDimensions() == tuple(n + 1 for n in extents)
        assert image.GetSpacing()[: whole.ndim] == spacing[::-1]
        center = [0.0] * 3
        bounds = image.GetCell(0).GetBounds()
        center = [(bounds[2 * k] + bounds[2 * k + 1]) / 2 for k in range(whole.ndim)]
        assert np.allclose(center, origin[::-1])


@pytest.mark.parametrize("ranks", [1, 3])
def test_pieces(tmp_path, ranks):
    """Without VTK: the text is XML, pieces cover the whole, and the bytes are the blocks'."""
    whole = np.arange(20.0).reshape(4, 5)
    results_of(ranks, 1, lambda context: tw.field(whole, context=context).save(tmp_path / "u.pvti"))
    image = ElementTree.parse(tmp_path / "u.pvti").getroot()[0]
    assert image.get("WholeExtent") == "0 5 0 4 0 1" and image.get("Origin") == "-0.5 -0.5 0.0"
    found = np.zeros_like(whole)
    for piece in image.iter("Piece"):
        x0, x1, y0, y1, *_ = map(int, piece.get("Extent").split())
        data = (tmp_path / piece.get("Source")).read_bytes().partition(b"\n_")[2]
        size = int.from_bytes(data[:8], "little")
        assert size == 8 * (x1 - x0) * (y1 - y0) and data[8 + size :].startswith(b"\n</AppendedData>")
        found[y0:y1, x0:x1] = np.frombuffer(data[8 : 8 + size], "<f8").reshape(y1 - y0, x1 - x0)
    assert np.array_equal(found, whole)
    assert sorted(os.listdir(tmp_path)) == ["u.pieces", "u.pvti"]
    results_of(1, 1, lambda context: tw.field(whole, context=context).save(tmp_path / "u.pvti"))
    assert os.listdir(tmp_path / "u.pieces") == ["0.vti"]  # those of more ranks are gone


WRONG = {
    "four dimensions": (lambda c, at: tw.field((2, 2, 2, 2), context=c).save(at / "u.pvti"), "up to 3 dimensions"),
    "vti": (lambda c, at: tw.field((2, 2), context=c).save(at / "u.vti"), "ends in .pvti"),
    "loading": (lambda c, at: tw.load(at / "u.pvti", context=c), "is for ParaView; allowed: .npy files"),
    "spacing": (lambda c, at: tw.field((2, 2), context=c).save(at / "u.pvti", spacing=0), "allowed: positive numbers"),
    "three": (lambda c, at: tw.field((2, 2), context=c).save(at / "u.pvti", origin=(1, 2, 3)), "one or 2 of them"),
    "text": (lambda c, at: tw.field((2, 2), context=c).save(at / "u.pvti", origin="x"), "one or 2 of them"),
    "dims": (lambda c, at: tw.field((2, 2), context=c).save(at / "u.pvti", dims=("a", "b")), "allowed: for .zarr"),
    "other files": (lambda c, at: tw.field((2, 2), context=c).save(at / "v.pvti"), "is no folder of .vti files"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused(tmp_path, name):
    call, words = WRONG[name]
    (tmp_path / "v.pieces").mkdir()
    (tmp_path / "v.pieces" / "notes").write_text("somebody's")
    _, errors = on_ranks(2, 1, lambda context: call(context, tmp_path))
    assert all(isinstance(error, tw.ConfigError) and words in str(error) for error in errors), errors
    assert os.listdir(tmp_path) == ["v.pieces"] and len(set(map(str, errors))) == 1
