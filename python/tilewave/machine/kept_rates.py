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
from tilewave.plan import planning
from tilewave.plan.plan import CHOICES, Plan
from tilewave.plan.rate import NOT_MEASURED, Rate

SUFFIX = ".rates"
#: Seconds that a rate is good for: meanwhile a system may have got another kernel or firmware.
MOST_AGE_S = 14 * 86400.0
#: A rate is not kept where the lanes of rank 0 have waited for a CPU for so much of the time that measuring took: other
#: programs had it. Of two lanes on two CPUs of a Zen 4 beside other programs 0.5 to 2; nobody waits without them.
DISTURBED = 0.4
_NUMBERS = ("point_s", "row_s", "tile_s", "one_lane_factor", "lanes")


def launch_of(context):
    """The text that tells launches apart whose rates differ, and machines that were measured at different times; empty
    where no rates are kept. The same on every rank."""
    machine = context._machine
    if machine is None or planning.wanted is not None or not _core.measure.connected(context._core):
        return ""
    if not all(name in machine.conditions for name in known.CACHED):
        return ""
    return json.dumps({name: machine.conditions.get(name) for name in (*known.CACHED, "date")}, sort_keys=True)


def read(context, keys):
    """Of each key what rank 0 has kept, or None; collective.

    Parameters
    ----------
    context : Context
    keys : list of str
        With the text of the launch; as many on every rank.

    Returns
    -------
    list of (list of (the core's plan, Rate)) or None
    """
    text = b""
    if context.rank == 0:
        text = json.dumps([_read(key) for key in keys]).encode()
    found = json.loads(context._core.broadcast(text))
    return [each and [_from_data(context, one, each["date"]) for one in each["rates"]] for each in found]


def keep(key, measured):
    """Write the rates of a key, [(the core's plan, Rate)], where later launches find them; on rank 0."""
    if any(rate.note.startswith(NOT_MEASURED) for _, rate in measured):
        return
    rates = [
        {"plan": Plan._from_core(plan).choices(), "note": rate.note, **{name: getattr(rate, name) for name in _NUMBERS}}
        for plan, rate in measured
    ]
    data = {"date": time.time(), "rates": rates}
    cache.keep(key, json.dumps(data).encode(), SUFFIX)


def _read(key):
    """What a file says, as plain data; None without one, and where it is too old or no such data."""
    try:
        data = json.loads(cache.find(key, SUFFIX) or "null")
        if data is None or not 0 <= time.time() - data["date"] <= MOST_AGE_S:
            return None
        date = datetime.datetime.fromtimestamp(data["date"]).isoformat(" ", "minutes")
        for rate in data["rates"]:
            _plan(rate)
        return {"date": date, "rates": data["rates"]}
    except Exception:  # the other ranks wait for this one's answer
        return None


def _plan(data):
    return Plan(**dict(zip(CHOICES, data["plan"], strict=True)))._to_core()


def _from_data(context, data, date):
    note = data["note"] if "kept from" in data["note"] else f"{data['note']}, kept from {date}"
    return _plan(data), Rate(note=note, **{name: data[name] for name in _NUMBERS})
