"""The examples run, check themselves, and write their pictures."""

import json
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.mpi(ranks=[1, 2, 3])
PROGRAMS = "sor least_cost eikonal alignment transport pairs gaussian_process flow migration shortest_paths".split()
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("examples")


def run(monkeypatch, name, *arguments):
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
    runpy.run_path(str(EXAMPLES / "cases" / name), run_name="__main__")


def is_rank_zero():
    import tilewave as tw

    return tw.context().rank == 0


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("[0-9]*.py")), ids=lambda path: path.stem)
@pytest.mark.sample(3)
def test_short_examples(monkeypatch, folder, path):
    """Each asserts what it shows, on any number of ranks."""
    if path.stem == "14_halos":
        pytest.importorskip("numba")
    monkeypatch.chdir(folder)
    runpy.run_path(str(path), run_name="__main__")
    if path.stem == "01_first_nest" and is_rank_zero():
        assert (folder / "demo" / "01_first_nest.png").stat().st_size > 5000


@pytest.mark.sample(1)
def test_sweep(monkeypatch, folder):
    run(monkeypatch, "sweep.py", "--shape", "9,14,80", "--out", folder / "sweep")
    if is_rank_zero():
        trace = json.loads((folder / "sweep.json").read_text())["traceEvents"]
        assert any(e["name"].startswith("compute") for e in trace)
        assert (folder / "sweep.png").stat().st_size > 5000


@pytest.mark.parametrize("shape, dtype", [((20, 31), "f8"), ((7, 9, 11), "f4"), ((13, 6), "i2")])
@pytest.mark.sample(1)
def test_sweep_of_a_file(monkeypatch, folder, shape, dtype):
    path = folder / f"input{shape}{dtype}.npy"
    np.save(path, (np.random.default_rng(2).random(shape) * 50).astype(dtype))
    run(monkeypatch, "sweep.py", "--input", path, "--out", folder / "file")


def test_sweep_of_a_bad_file(monkeypatch, folder):
    np.save(folder / "bad.npy", np.zeros(5))
    for path in (folder / "none.npy", folder / "bad.npy"):
        with pytest.raises(SystemExit, match="--input"):
            run(monkeypatch, "sweep.py", "--input", path)


@pytest.mark.sample(1)
def test_terrain(monkeypatch, folder):
    run(monkeypatch, "terrain.py", "--out", folder / "terrain.png")
    if is_rank_zero():
        assert (folder / "terrain.png").stat().st_size > 20000


@pytest.mark.sample(1)
def test_patterns(monkeypatch, folder):
    run(monkeypatch, "modes.py", "--modes", 3, "--out", folder / "modes.png")
    if is_rank_zero():
        assert (folder / "modes.png").stat().st_size > 20000


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.sample(1)
def test_general_nests(monkeypatch, folder, name):
    run(monkeypatch, f"{name}.py", "--small", "--output", folder / f"{name}.png")
    if is_rank_zero():
        assert (folder / f"{name}.png").stat().st_size > 20000
