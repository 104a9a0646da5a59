"""Benchmarks: ``tilewave bench NAME [--json FILE] [--quick]``."""
from tilewave.bench.executor import executor
from tilewave.bench.hiding import hiding
from tilewave.bench.nests import nests
from tilewave.bench.paper import paper
from tilewave.bench.patterns import patterns
from tilewave.bench.planning import planning
from tilewave.bench.sweep import sweep

NAMES = {"executor": executor, "hiding": hiding, "nests": nests, "paper": paper, "patterns": patterns, "plan": planning, "sweep": sweep}
