"""Bodies of nests as source text, in files that are imported."""

import importlib.util
import sys
import tempfile
import threading
from pathlib import Path

HEADER = """\
import math
import numpy as np
from tilewave import nest

WEIGHT = 0.125
COUNT = 5
SINGLE = np.float32(0.7)
BYTE = np.uint8(201)
SHORT = np.int16(-77)

"""


_loading = threading.Lock()


def access(array, indices, offsets):
    """An array's element at the point of the loops, moved by offsets, as text."""
    moved = (f"{index}{offset:+d}" if offset else index for index, offset in zip(indices, offsets, strict=True))
    return f"{array}[{', '.join(moved)}]"


def load(folder, name, text):
    """Write source text to a file and import it, so that its functions have source."""
    # A folder of its own: bytecode and line caches go by name, size and time.
    path = Path(tempfile.mkdtemp(dir=folder)) / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    with _loading:  # ranks that are threads load theirs at the same time
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return module
