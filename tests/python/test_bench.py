"""The benchmarks run in their quick form and write the JSON that docs/benchmarks.md is made from."""
import json

import pytest

from tilewave.bench import NAMES

KEYS = {"case", "contender", "value", "unit", "spread", "ratio_to_contender", "fraction_of_limit"}


# The cases of `bench nests` that need neither two hosts nor long.
NESTS = {"args": ["--case", "block,recurrence,sor,alignment,compile"]}


@pytest.mark.parametrize(("name", "more"), [("executor", {}), ("nests", NESTS), ("paper", {}), ("patterns", {}),
                                            ("plan", {"args": ["--where", "2x1"]}), ("sweep", {})])
def test_quick(name, more, tmp_path, capsys):
    NAMES[name](json_path=tmp_path / "rows.json", quick=True, **more)
    data = json.loads((tmp_path / "rows.json").read_text())
    assert data["bench"] == name and data["machine"]["cpus"] >= 1
    assert data["rows"] and all(set(r) == KEYS and r["value"] >= 0 for r in data["rows"])
    assert "median" in capsys.readouterr().out


def test_unknown_case():
    with pytest.raises(SystemExit, match="no case 'blok'; there are: block"):
        NAMES["nests"](args=["--case", "blok"])
