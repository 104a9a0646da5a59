"""Benchmarks: ``tilewave bench NAME [--json FILE] [--quick]``."""

from tilewave_bench.executor import executor
from tilewave_bench.factors import cholesky, lu, qr
from tilewave_bench.halo import halo
from tilewave_bench.hiding import hiding
from tilewave_bench.matmul import matmul
from tilewave_bench.multigrid import multigrid
from tilewave_bench.nests import nests
from tilewave_bench.paper import paper
from tilewave_bench.partitions import partitions
from tilewave_bench.paths import paths
from tilewave_bench.patterns import patterns
from tilewave_bench.planning import planning
from tilewave_bench.stencils import stencils
from tilewave_bench.sweep import sweep
from tilewave_bench.wolfmann import wolfmann

NAMES = {
    "cholesky": cholesky,
    "executor": executor,
    "halo": halo,
    "hiding": hiding,
    "lu": lu,
    "matmul": matmul,
    "multigrid": multigrid,
    "nests": nests,
    "paper": paper,
    "partitions": partitions,
    "paths": paths,
    "patterns": patterns,
    "plan": planning,
    "qr": qr,
    "stencils": stencils,
    "sweep": sweep,
    "wolfmann": wolfmann,
}
