"""The examples run, check themselves, and write their pictures."""
import json
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = [pytest.mark.mpi(ranks=[1, 2, 3]),
              pytest.mark.filterwarnings("ignore:.*more than the:RuntimeWarning")]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("examples")


def run(monkeypatch, name, *arguments):
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")


def is_rank_zero():
    import tilewave as tw
    return tw.context.default_context().rank == 0


def test_sweep(monkeypatch, folder):
    run(monkeypatch, "01_sweep.py", "--shape", "9,14,80", "--out", folder / "sweep")
    if is_rank_zero():
        trace = json.loads((folder / "sweep.json").read_text())["traceEvents"]
        assert any(e["name"].startswith("compute") for e in trace)
        assert (folder / "sweep.png").stat().st_size > 5000


@pytest.mark.parametrize("shape, dtype", [((20, 31), "f8"), ((7, 9, 11), "f4"), ((13, 6), "i2")])
def test_sweep_of_a_file(monkeypatch, folder, shape, dtype):
    path = folder / f"input{shape}{dtype}.npy"
    np.save(path, (np.random.default_rng(2).random(shape) * 50).astype(dtype))
    run(monkeypatch, "01_sweep.py", "--input", path, "--out", folder / "file")


def test_sweep_of_a_bad_file(monkeypatch, folder):
    np.save(folder / "bad.npy", np.zeros(5))
    for path in (folder / "none.npy", folder / "bad.npy"):
        with pytest.raises(SystemExit, match="--input"):
            run(monkeypatch, "01_sweep.py", "--input", path)


def test_terrain(monkeypatch, folder):
    run(monkeypatch, "02_terrain.py", "--out", folder / "terrain.png")
    if is_rank_zero():
        assert (folder / "terrain.png").stat().st_size > 20000


def test_patterns(monkeypatch, folder):
    run(monkeypatch, "03_patterns.py", "--modes", 3, "--out", folder / "modes.png")
    if is_rank_zero():
        assert (folder / "modes.png").stat().st_size > 20000


@pytest.mark.parametrize("name", ["04_sor", "05_least_cost", "06_eikonal", "07_alignment"])
def test_general_nests(monkeypatch, folder, name):
    run(monkeypatch, f"{name}.py", "--small", "--output", folder / f"{name}.png")
    if is_rank_zero():
        assert (folder / f"{name}.png").stat().st_size > 20000
