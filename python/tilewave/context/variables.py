"""Environment variables that say how much is told: wrong values are errors of the first context, not left out."""

import math
import os

from tilewave import notices, tracebacks
from tilewave.errors import ConfigError, shown

#: Asks for runs of nests to be compared with their plain loops.
VERIFY = "TILEWAVE_VERIFY"


def _is_time(text):
    try:
        return 0 < float(text) < math.inf
    except ValueError:
        return False


#: What each allows, in code and in words; empty: as if there were none. The core looks at others, as TILEWAVE_PIN.
ALLOWED = {
    "TILEWAVE_WAIT_S": (_is_time, "seconds above 0"),
    VERIFY: (("0", "1").__contains__, "0, 1"),
    notices.VARIABLE: (("0", "1", "line").__contains__, "0, 1, line"),
    tracebacks.VARIABLE: (("all",).__contains__, "all"),
}


def check():
    """Refuse a variable that has a value of another kind.

    Raises
    ------
    ConfigError
    """
    for name, (allows, words) in ALLOWED.items():
        given = os.environ.get(name)
        if given and not allows(given):
            raise ConfigError(f"{name} is {shown(given)}; allowed: {words}")
