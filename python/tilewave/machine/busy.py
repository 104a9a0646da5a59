"""Whether other programs have this host's CPUs, as Linux tells it of the threads of this process."""

import contextlib
import glob
from pathlib import Path

#: A machine was busy where the threads of some rank have waited for a CPU for so much of the time that measuring took,
#: all threads together. Of two lanes on two CPUs of a Zen 4: 0.5 to 2 with other programs, 0 without.
BUSY = 0.1


def queued_s():
    """Seconds that threads of this process were ready to run and another program had the CPU; 0 where Linux does not
    say.
    """
    total = 0
    for path in glob.glob("/proc/self/task/*/schedstat"):
        with contextlib.suppress(OSError, ValueError, IndexError):  # of a thread that has ended meanwhile
            total += int(Path(path).read_text().split()[1])
    return total * 1e-9
