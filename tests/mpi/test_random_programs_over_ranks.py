"""Random programs over MPI: as tests/python/nests/test_random_programs.py, on ranks that are processes."""

import sys

import pytest
import sampling
from random_paths import switched_off

import tilewave as tw
from random_programs import case
from random_programs.runs import outcome_on
from random_programs.script import shown

pytestmark = pytest.mark.mpi(ranks=[2, 3])

COUNT = 25
FIRST, SEEDS_OF_A_RUN = 900_000, 1_000_000


def test_random_programs(mpi_ranks, monkeypatch):
    monkeypatch.setenv("TILEWAVE_CACHE_DIR", "")  # nobody needs their kernels again
    first = sampling.number() * SEEDS_OF_A_RUN + FIRST + mpi_ranks * 1000
    wrong, run = [], 0
    for seed in range(first, first + COUNT * case.SETTINGS_OF_A_PROGRAM, case.SETTINGS_OF_A_PROGRAM):
        one = case.drawn(seed)
        if not isinstance(one, case.Case):
            continue
        setting = one.setting
        setting.ranks, setting.lanes = mpi_ranks, min(setting.lanes, 2)
        setting.plan = {name: value for name, value in setting.plan.items() if name not in ("grid", "weights")}
        setting.plan["threads"], setting.plans = setting.lanes, {}
        setting.moved, setting.layouts = {}, {k: v for k, v in setting.layouts.items() if k not in one.written()}
        print(f"random program, seed {seed}", file=sys.__stderr__, flush=True)
        with switched_off(setting.without):
            context = tw.Context(threads=setting.lanes)
        found = outcome_on(context, one.program, setting)
        run += found.kind == "run"
        if found.kind == "wrong":
            wrong.append(shown(one, found, seed))
    assert not wrong, "\n".join(wrong)
    assert run > COUNT // 2
