"""This file has what `tilewave doctor` runs on two ranks: rank 0 prints one line, a `PingFacts`."""

import os

from tilewave import _core
from tilewave.cli.ping_facts import PingFacts
from tilewave.context.context import Context
from tilewave.launch.which_mpi import loaded


def main():
    context = Context()
    mpi = _core.mpi_info() if context.size > 1 else {}
    quota = _core.cpu_quota()
    facts = PingFacts(
        size=context.size,
        latency_s=context._core.machine().latency_s,
        cpus=list(context.cpus),
        threads=context.threads,
        threads_of_one_rank=_core.Context.local(_core.LocalFabric(1), 0, 0).threads,
        network=sorted(path for path in loaded("libfabric|libuc[mpst]") if "_" not in os.path.basename(path)),
        quota=quota if quota < len(_core.allowed_cpus()) else None,
        **{name: str(mpi[name]) for name in ("library", "standard", "path", "thread_level") if name in mpi},
    )
    if context.rank == 0:
        print(facts.line(), flush=True)
