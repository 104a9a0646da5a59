"""Benchmarks: ``tilewave bench NAME [--json FILE] [--quick]``."""

from bench.bodies import bodies
from bench.costs import costs
from bench.executor import executor
from bench.factors import cholesky, lu, qr
from bench.first import first
from bench.halo import halo
from bench.hiding import hiding
from bench.matmul import matmul
from bench.multigrid import multigrid
from bench.nests import nests
from bench.partitions import partitions
from bench.paths import paths
from bench.patterns import patterns
from bench.planning import planning
from bench.several import several
from bench.simulate import simulate
from bench.stencils import stencils
from bench.transport import transport


def papers(json_path=None, quick=False, args=()):
    """Tables, figures and pages of the four papers, by the programs beside the pages."""
    from docs.papers.regenerate import papers as regenerate  # its programs use modules of this folder

    regenerate(json_path, quick, args)


NAMES = {
    "bodies": bodies,
    "cholesky": cholesky,
    "costs": costs,
    "executor": executor,
    "first": first,
    "halo": halo,
    "hiding": hiding,
    "lu": lu,
    "matmul": matmul,
    "multigrid": multigrid,
    "nests": nests,
    "papers": papers,
    "partitions": partitions,
    "paths": paths,
    "patterns": patterns,
    "plan": planning,
    "qr": qr,
    "several": several,
    "simulate": simulate,
    "stencils": stencils,
    "transport": transport,
}
