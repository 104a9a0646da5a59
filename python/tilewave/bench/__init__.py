"""Benchmarks: ``tilewave bench NAME [--json FILE] [--quick]``."""
from tilewave.bench.executor import executor
from tilewave.bench.hiding import hiding
from tilewave.bench.nests import nests
from tilewave.bench.patterns import patterns
from tilewave.bench.sweep import sweep

NAMES = {"executor": executor, "hiding": hiding, "nests": nests, "patterns": patterns, "sweep": sweep}
