"""Rates of bodies kept on disk beside their kernels, so that a program that runs again need not measure again.

A rate is found by the kernel, the arrays and loops that it was measured on, and the launch that the machine belongs to.
Rank 0's file counts. Nothing is kept where no machine is kept, nor what was measured beside other work. Measuring the
machine again (`tilewave measure`) makes all rates of its launch new ones, too.
"""

import datetime
import json
import time

from tilewave import _core
from tilewave.kernel import cache
from tilewave.machine import known
from tilewave.machine.busy import queued_s
from tilewave.plan.plan import CHOICES, Plan

SUFFIX = ".rates"
#: Seconds that a rate is good for: meanwhile a system may have got another kernel or firmware.
MOST_AGE_S = 14 * 86400.0
#: A rate is not kept where the lanes of rank 0 have waited for a CPU for so much of the time that measuring took: other
#: programs had it. Of two lanes on two CPUs of a Zen 4 beside other programs 0.5 to 2; nobody waits without them.
DISTURBED = 0.4
_NUMBERS = ("point_s", "row_s", "tile_s", "one_lane_factor", "lanes")


class Store:
    """The rates of a launch on disk, for the core's planner."""

    def __init__(self, context, launch):
        self._context, self._launch = context, launch
        self._begun, self._queued = time.perf_counter(), queued_s()

    def read(self, keys):
        """Of each key the rates that rank 0 has kept, an empty list where that is none; collective."""
        text = json.dumps([_read(f"{key}\n{self._launch}") for key in keys]) if self._context.rank == 0 else ""
        found = json.loads(self._context._core.broadcast(text.encode()))
        self._begun, self._queued = time.perf_counter(), queued_s()
        return [[_from_data(one, each["date"]) for one in each["rates"]] for each in found]

    def keep(self, key, measured, lanes):
        """Keep what so many lanes have measured since `read`, unless others had the CPUs meanwhile; on rank 0."""
        disturbed = queued_s() - self._queued > DISTURBED * lanes * (time.perf_counter() - self._begun)
        if disturbed or any(one.note.startswith(_core.NOT_MEASURED) for one in measured):
            return
        rates = [
            {
                "plan": Plan._from_core(one.plan).choices(),
                "note": one.note,
                **{name: getattr(one.rate, name) for name in _NUMBERS},
            }
            for one in measured
        ]
        data = {"date": time.time(), "rates": rates}
        cache.keep(f"{key}\n{self._launch}", json.dumps(data).encode(), SUFFIX)


def store_of(context):
    """The `Store` of a launch, None where no rates are kept; the same on every rank."""
    launch = launch_of(context)
    return Store(context, launch) if launch else None


def launch_of(context):
    """The text that tells launches apart whose rates differ, and machines that were measured at different times; empty
    where no rates are kept. The same on every rank."""
    machine = context._machine
    if machine is None or context._dry_run is not None or not _core.measure.connected(context._core):
        return ""
    if not all(name in machine.conditions for name in known.CACHED):
        return ""
    return json.dumps({name: machine.conditions.get(name) for name in (*known.CACHED, "date")}, sort_keys=True)


def _read(key):
    """What a file says, as plain data: no rates without one, and where it is too old or no such data."""
    try:
        data = json.loads(cache.find(key, SUFFIX))
        if 0 <= time.time() - data["date"] <= MOST_AGE_S:
            for rate in data["rates"]:
                _plan(rate)
            date = datetime.datetime.fromtimestamp(data["date"]).isoformat(" ", "minutes")
            return {"date": date, "rates": data["rates"]}
    except Exception:  # the other ranks wait for this one's answer
        pass
    return {"date": "", "rates": []}


def _plan(data):
    return Plan(**dict(zip(CHOICES, data["plan"], strict=True)))._to_core()


def _from_data(data, date):
    note = data["note"] if "kept from" in data["note"] else f"{data['note']}, kept from {date}"
    return _core.MeasuredRate(_plan(data), _core.KernelRate(**{name: data[name] for name in _NUMBERS}), note=note)
