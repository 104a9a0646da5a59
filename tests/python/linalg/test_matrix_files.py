"""Matrices begin and end in files."""

import numpy as np
import pytest
from local_ranks import results_of

import tilewave as tw


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["f4", "c16"])
def test_files_hold_matrices_of_any_layout(tmp_path, ranks, dtype):
    a = np.random.default_rng(ranks).standard_normal((7, 5)).astype(dtype) * (1j if dtype == "c16" else 1)

    def body(context):
        A = tw.linalg.matrix(a, layout="cyclic", block=2, context=context)
        A.save(tmp_path / "a.npy")
        A.T.save(tmp_path / "turned.npy")
        A.H.save(tmp_path / "a.zarr", dims=("y", "x"))
        B = tw.linalg.load(tmp_path / "a.npy", layout="columns", context=context)
        C = tw.linalg.load(tmp_path / "a.zarr", "c16", context=context)
        with pytest.raises(tw.ConfigError, match=r"dims= was given for a \.npy file"):
            A.save(tmp_path / "b.npy", dims=("y", "x"))
        return B.gather(), C.gather(), (B.dtype, B.layout.name)

    b, c, kind = results_of(ranks, 1, body)[0]
    assert np.array_equal(b, a) and np.array_equal(c, a.T.conj()) and kind == (a.dtype, "columns")
    assert np.array_equal(np.load(tmp_path / "a.npy"), a) and np.array_equal(np.load(tmp_path / "turned.npy"), a.T)


def test_files_of_other_dimensions_are_refused(tmp_path):
    np.save(tmp_path / "cube.npy", np.zeros((2, 3, 4)))
    with pytest.raises(tw.ConfigError, match="allowed: two integers"):
        tw.linalg.load(tmp_path / "cube.npy")
    np.save(tmp_path / "whole.npy", np.arange(6).reshape(2, 3))
    assert tw.linalg.load(tmp_path / "whole.npy").dtype == "f8"
