"""Benchmarks: ``tilewave bench NAME [--json FILE] [--quick]``."""

import functools
import importlib

#: The modules of benchmarks, which are imported when they are run.
MODULES = {"cholesky": "factors", "lu": "factors", "plan": "planning", "qr": "factors"}
MODULES |= {
    name: name
    for name in (
        "bodies costs executor first halo hiding matmul multigrid nests partitions paths patterns several simulate "
        "stencils transport"
    ).split()
}
MODULES = {name: f"bench.{module}" for name, module in MODULES.items()} | {"papers": "docs.papers.regenerate"}


def _run(name, json_path=None, quick=False, args=()):
    importlib.import_module(MODULES[name])
    importlib.import_module("bench.runner").BENCHMARKS[name](json_path, quick, args)


NAMES = {name: functools.partial(_run, name) for name in MODULES}
