"""Checks that no header or source includes one of a higher layer, and that only src/transport names MPI."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A file may include itself, its own layer where told, and anything to its left.
LAYERS = [
    {"error"}, {"index", "rational", "matrix", "machine"}, {"space", "fourier_motzkin", "residues"}, {"tiling"},
    {"grouping"}, {"linear_schedule", "cost"}, {"layout"}, {"schedule"}, {"problem"},
    {"copy", "memory", "rows", "boxes", "shear", "broadcast_rounds", "binomial", "lane_builder", "plan", "plan_checks", "plan_rules", "memory_order", "tile_rows", "strip_width", "steps_together", "check", "check_end", "check_memory", "check_shapes",
     "check_versions", "checker", "transport", "alarms", "cpus", "lanes", "reduction"},
    {"sweep", "sweep_geometry", "sweep_rims", "blocks_in_a_row", "timeline", "timeline_bytes", "mailroom", "pattern", "pattern_shape", "pattern_lanes", "pattern_plan",
     "pattern_trees", "pattern_shift"}, {"executor", "execution", "compute", "execution_planes", "frontier", "frontier_rows"},
    {"predict", "simulation", "simulation_messages", "simulation_setup", "simulation_sharing", "parts_count", "tile_work", "recording"},
    {"planner", "plan_rates", "plan_candidates", "plan_alternatives", "plan_estimate", "plan_evaluation", "rate", "sample_pieces"}, {"checksum", "context", "exchange", "agreement", "waiting"},
    {"conversion", "field", "measure", "measure_host", "run_blocks", "time_buffers"}, {"patterns", "carried", "pattern_call", "pattern_transfer", "sends", "run", "run_sample"}, {"nest"}, {"tilewave"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def includes(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if match := re.match(r'\s*#include "(?:tilewave/)?([\w/]+)\.hpp"', line):
            yield number, match[1].split("/")[-1]


def main():
    wrong = []
    files = [*ROOT.glob("include/tilewave/*.hpp"), *ROOT.glob("src/*.[ch]pp")]
    for path in sorted(files):
        level = LEVEL.get(path.stem)
        if level is None:
            wrong.append(f"{path.relative_to(ROOT)}: not in tools/layers.py; give it a layer")
            continue
        wrong += [f"{path.relative_to(ROOT)}:{n}: {path.stem} includes {name}, of a higher layer"
                  for n, name in includes(path) if LEVEL.get(name, 0) > level]
        wrong += [f"{path.relative_to(ROOT)}:{n}: names MPI; only src/transport may"
                  for n, line in enumerate(path.read_text().splitlines(), 1)
                  if re.search(r"#include <mpi\.h>|\bMPI_[A-Z]", line)]
    print("\n".join(wrong) or f"layers: {len(files)} files in order")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
