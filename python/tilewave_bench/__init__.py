"""Benchmarks: ``tilewave bench NAME [--json FILE] [--quick]``."""

from tilewave_bench.executor import executor
from tilewave_bench.halo import halo
from tilewave_bench.hiding import hiding
from tilewave_bench.multigrid import multigrid
from tilewave_bench.nests import nests
from tilewave_bench.paper import paper
from tilewave_bench.patterns import patterns
from tilewave_bench.planning import planning
from tilewave_bench.sweep import sweep

NAMES = {
    "executor": executor,
    "halo": halo,
    "hiding": hiding,
    "multigrid": multigrid,
    "nests": nests,
    "paper": paper,
    "patterns": patterns,
    "plan": planning,
    "sweep": sweep,
}
