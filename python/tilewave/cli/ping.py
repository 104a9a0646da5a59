"""What `tilewave doctor` runs on two ranks: rank 0 prints one line of JSON."""

import json

from tilewave import _core
from tilewave.runtime.context import Context


def main():
    context = Context()
    facts = dict(_core.mpi_info() if context.size > 1 else {"size": 1})
    facts["latency_s"] = context._core.machine().latency_s
    facts["pinning"], facts["threads"] = context.cpus, context.threads
    facts["threads_of_one_rank"] = _core.Context.local(_core.LocalFabric(1), 0, 0).threads
    quota = _core.cpu_quota()
    facts["quota"] = quota if quota < len(_core.allowed_cpus()) else None
    if context.rank == 0:
        print("ping " + json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
