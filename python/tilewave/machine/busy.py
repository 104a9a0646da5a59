"""Tell whether other programs have this host's CPUs, as Linux says it of the threads of this process."""

from tilewave._core.measure import queued_s as queued_s

#: A machine was busy where the threads of some rank have waited for a CPU for so much of the time that measuring took,
#: all threads together. Of two lanes on two CPUs of a Zen 4: 0.5 to 2 with other programs, 0 without.
BUSY = 0.1
