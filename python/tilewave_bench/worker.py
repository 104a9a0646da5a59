"""What each rank of a benchmark runs: ``python -m tilewave_bench.worker MODULE ARGUMENTS OUT``."""

import importlib
import json
import sys
from pathlib import Path


def main():
    module, arguments, out = sys.argv[1:]
    result = importlib.import_module(module).worker(**json.loads(arguments))
    if result is not None:
        Path(out).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
