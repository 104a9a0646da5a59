"""This file has what each rank of ``tilewave measure`` runs: one JSON argument."""

import json
import sys

import tilewave as tw


def main():
    wanted = json.loads(sys.argv[1])
    context = tw.Context()
    found = context._machine if wanted["show"] else None  # from an earlier launch
    if found is None:
        found = tw.measure(quick=wanted["quick"], context=context)
    if context.rank == 0:
        from tilewave.machine import known
        from tilewave.machine import show as machine_show

        machine_show.show(found)
        if wanted["file"]:
            found.save(wanted["file"])
        if wanted["picture"]:
            machine_show.picture(found, wanted["picture"])
        path = known.cache_path(found.conditions) if "cpus" in found.conditions else None
        if path is not None and path.exists() and not known.busy(found):
            print(f"stored in {path}")


if __name__ == "__main__":
    main()
