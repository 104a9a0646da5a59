"""The benchmarks run in their quick form and write the JSON that docs/benchmarks.md is made from."""

import json
from pathlib import Path

import pytest
import tilewave as tw

from bench import NAMES
from docs.papers import page
from docs.papers.regenerate import PAPERS

DOCS = Path(__file__).resolve().parents[3] / "docs" / "papers"

KEYS = {"case", "contender", "value", "unit", "spread", "ratio_to_contender", "fraction_of_limit"}


# The cases of `bench nests` that need neither two hosts nor long.
NESTS = {"args": ["--case", "recurrence,gauss-seidel,alignment,batches"]}
# Two ranks here, no hosts.
HERE = {"args": ["--where", "2x1"]}


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("bodies", {}), ("cholesky", HERE), ("costs", {}), ("executor", {}),
        ("first", {"args": ["--case", "import,tiny nest,sizes,poisson"]}), ("halo", {}), ("lu", HERE),
        ("matmul", HERE), ("multigrid", {"args": ["--extent", "8", "--where", "1x1"]}),
        ("nests", NESTS), ("partitions", HERE), ("paths", {"args": ["--case", "layers,piggyback"]}),
        ("patterns", {}), ("plan", HERE),
        pytest.param("qr", HERE, marks=pytest.mark.skipif(not hasattr(tw.linalg, "qr"), reason="no QR factors")),
        ("several", {"args": ["--where", "1x1,2x1"]}), ("stencils", {"args": ["--where", "1x1,2x1"]}),
        ("transport", HERE),
    ],
)
def test_quick(name, more, tmp_path, capsys):
    NAMES[name](json_path=tmp_path / "rows.json", quick=True, **more)
    data = json.loads((tmp_path / "rows.json").read_text())
    assert data["bench"] == name and data["machine"]["cpus"] >= 1
    assert data["rows"] and all(set(r) == KEYS and r["value"] >= 0 for r in data["rows"])
    assert "median" in capsys.readouterr().out


def test_papers(tmp_path):
    """Predicted only: findings, pages and pictures of each paper, and the site's pages are those of their findings."""
    NAMES["papers"](quick=True, args=["-o", str(tmp_path)])
    for name in PAPERS:
        found = json.loads((tmp_path / f"{name}.json").read_text())
        figures = [tmp_path / f"{name}-{one['name']}.png" for one in found["figures"]]
        assert figures and all(figure.stat().st_size > 10000 for figure in figures)
        predicted = [row[2] for table in found["tables"] for row in table["rows"] if row[2] is not None]
        assert len(predicted) > 10 and found["why"] and found["left_out"]
        assert page.text(found) == (tmp_path / f"{name}.md").read_text()
        stored = DOCS / f"{name}.json"
        assert page.text(json.loads(stored.read_text())) == stored.with_suffix(".md").read_text()


@pytest.mark.parametrize("kind", ["cholesky", "lu", "qr"])
def test_factors_are_predicted_for_ranks_that_are_not_here(kind, tmp_path):
    path = tmp_path / "rows.json"
    NAMES[kind](path, args=["--predict", "4,9", "--size", "600"])
    rows = json.loads(path.read_text())["rows"]
    assert [r["case"] for r in rows] == [f"predicted, n = 600, {ranks} ranks" for ranks in (4, 4, 9, 9)]
    assert all(r["value"] > 0 for r in rows)
    assert [r["contender"].split(",")[0] for r in rows[1::2]] == ["grid 1x4", "grid 1x9"]
    for ranks, free, in_a_row in zip((4, 9), rows[::2], rows[1::2], strict=True):
        p, q = map(int, free["contender"].split(",")[0].removeprefix("grid ").split("x"))
        assert p <= q and 0.85 * ranks <= p * q <= ranks
        assert free["ratio_to_contender"] == pytest.approx(in_a_row["value"] / free["value"]) and free["value"] > 0


def test_unknown_case():
    with pytest.raises(SystemExit, match="no case 'blok'; there are: arrays"):
        NAMES["nests"](args=["--case", "blok"])


def test_of_hpls_settings_the_fastest_counts(tmp_path, monkeypatch):
    """Its input names the sizes; its output is read, and wrong values end the benchmark."""
    from bench import hpl, runner

    (tmp_path / "bin" / "here").mkdir(parents=True)
    (tmp_path / "bin" / "here" / "xhpl").touch()
    monkeypatch.setenv("TILEWAVE_CONTENDERS", str(tmp_path))
    inputs, verdict = [], ["PASSED"]

    def output(place, *command):
        folder, ranks = Path(command[-1].split("'")[1]), place.ranks
        lines = (folder / "HPL.dat").read_text().splitlines()
        inputs.append(lines)
        sizes, kinds, depths = (lines[at].split("  ")[0].split() for at in (5, 22, 24))
        seconds = lambda d, k: 0.5 if (d, k) == ("1", "3") else 0.9
        rate = lambda n, d, k: 1e-9 * n * n * (2 / 3 * n + 3 / 2) / seconds(d, k)
        out = [
            f"WR{d}{k}R2R4 {n} 128 1 {ranks} {seconds(d, k):.2f} {rate(int(n), d, k)!r}\n|Ax-b| = 1e-3 ... {verdict[0]}"
            for n in sizes
            for k in kinds
            for d in depths
        ]
        (folder / "HPL.out").write_text("\n".join(out))

    monkeypatch.setattr(runner.Place, "output", output)
    found = hpl.contenders(runner.here(2), [200, 300], 3)
    assert all(one["seconds"] == pytest.approx([0.5] * 3) for (one,) in found.values()) and set(found) == {200, 300}
    assert found[200][0]["name"] == "HPL, modified 2-ring, depth 1, block 128" and len(inputs) == 3
    verdict[0] = "FAILED"
    with pytest.raises(SystemExit, match="wrong values"):
        hpl.contenders(runner.here(2), [200], 1)
    monkeypatch.setenv("TILEWAVE_CONTENDERS", str(tmp_path / "bin"))
    assert hpl.contenders(runner.here(2), [200], 1) == {}
