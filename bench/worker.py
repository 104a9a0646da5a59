"""What each rank of a benchmark runs: ``python bench/worker.py MODULE ARGUMENTS OUT``."""

import importlib
import json
import sys
from pathlib import Path


def main():
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    module, arguments, out = sys.argv[1:]
    result = importlib.import_module(module).worker(**json.loads(arguments))
    if result is not None:
        Path(out).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
