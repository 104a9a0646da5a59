"""Benchmarks: ``tilewave bench NAME [--json FILE] [--quick]``."""
from tilewave.bench.executor import executor
from tilewave.bench.hiding import hiding
from tilewave.bench.patterns import patterns
from tilewave.bench.sweep import sweep

NAMES = {"executor": executor, "hiding": hiding, "patterns": patterns, "sweep": sweep}
