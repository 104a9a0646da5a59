"""Which number of the machine looks stale after a run that missed its prediction: a comparison of values.

Nothing is measured here and nothing is noted: a report asks, and shows the answer.
"""

from tilewave import _core, units
from tilewave.machine import known

#: A run misses its prediction where it takes so many times longer, or shorter.
FACTOR = 1.5
#: Of shorter runs, as predicted and as measured, nothing is reported: a system takes a few ms now and then.
LEAST_S = 5e-3
#: A number is named where it explains so much of what the run took more or less.
EXPLAINED = 0.4
#: What a report calls the number behind each part of the time but messages, and the machine's entry of it.
_NUMBERS = {
    "rate": ("rate of the body", ""),
    "hand-over": ("hand-over between lanes (hand_over_s)", "hand_over_s"),
    "copies": ("packing (copy_byte_s)", ""),
}


def looks_stale(context, plan, measured, messages):
    """The number that looks stale after a run, as text with what to do; empty where none does.

    Parameters
    ----------
    context : Context
    plan : Plan
    measured : Measured
    messages : callable
        Gives (rank, rank, bytes) of each send of the run.
    """
    predicted, parts = plan.predicted, measured.parts
    machine = context._machine
    crowded = context._core.oversubscribed or plan.threads > len(_core.allowed_cpus())  # there was a warning
    if predicted is None or parts is None or crowded or machine is None or "date" not in machine.conditions:
        return ""
    if plan.notes.get("given_whole") or not misses(measured.time_s, predicted.time_s):
        return ""  # tiles given as a whole plan may be of a kind that no rate was measured on
    sends = messages() if context.size > 1 else []
    part, fresh = suspected_part(predicted.parts, parts, bool(sends)), known.startup_machine(context)
    if part == "messages":
        found = _link_text(machine, fresh, suspected_number(machine, fresh, sends, measured.time_s > predicted.time_s))
    elif part is not None:
        name, entry = _NUMBERS[part]
        found = name + (f"; the machine's number is {units.seconds(getattr(machine, entry))}" if entry else "")
    else:
        return ""
    shape = f"-n {context.size}" + (f" --threads {context.threads}" if context.threads > 1 else "")
    return found and f"{found}; if no other program has the CPUs, measure again: `tilewave measure {shape}`"


def misses(time_s, predicted_s):
    """Return whether a run took so much longer or shorter than predicted that some number must be wrong."""
    return max(time_s, predicted_s) >= LEAST_S and not predicted_s < FACTOR * time_s < FACTOR * FACTOR * predicted_s


def suspected_part(predicted, measured, messages):
    """Which kind of number explains most of the difference between a run's parts.

    Parameters
    ----------
    predicted, measured : Parts
    messages : bool
        Whether ranks send each other any. Without, lanes wait for the first tile of others only for hand-overs.

    Returns
    -------
    str or None
        "rate", "messages", "hand-over" or "copies"; None where no one explains `EXPLAINED` of it.
    """
    sign = 1 if measured.total_s > predicted.total_s else -1
    more = {
        name: sign * (getattr(measured, name) - getattr(predicted, name))
        for name in ("total_s", "compute_s", "wait_s", "post_s", "fill_s", "drain_s", "pack_s", "hand_over_s")
    }
    # Lanes wait at their begin and end for others' computing: that part is as much slower as their computing is.
    ends = more["fill_s"] + more["drain_s"]
    share = more["compute_s"] / predicted.compute_s if predicted.compute_s > 0 else 0.0
    of_others = min(max(share * (predicted.fill_s + predicted.drain_s), 0.0), max(ends, 0.0))
    explained = {
        "rate": more["compute_s"] + of_others,
        "messages": more["wait_s"] + more["post_s"],
        "hand-over": more["hand_over_s"],
        "copies": more["pack_s"],
    }
    explained["messages" if messages else "hand-over"] += ends  # only one is named: they may claim the same seconds
    part = max(explained, key=explained.get)
    return part if more["total_s"] > 0 and explained[part] >= EXPLAINED * more["total_s"] else None


def suspected_number(machine, fresh, messages, longer):
    """("latency" or "bandwidth", the kind of link); None where the machine knows no link of these messages.

    Parameters
    ----------
    machine : Machine
    fresh : core Machine
        What the context measured itself, in a few ms, when it was made: to the farthest rank.
    messages : sequence of (rank, rank, bytes)
        Of the run.
    longer : bool
        Whether messages took longer than the machine says.
    """
    kinds = {"same_host": [], "other_host": []}
    for a, b, size in messages:
        hosts = machine.host_of
        kinds["same_host" if not hosts or hosts[a] == hosts[b] else "other_host"].append(size)
    links = {kind: getattr(machine, kind) for kind in kinds}
    shares = {
        kind: (len(sizes) * links[kind].latency_s, sum(sizes) * links[kind].byte_s)
        for kind, sizes in kinds.items()
        if sizes and links[kind] is not None
    }
    if not shares:
        return None
    kind = max(shares, key=lambda kind: sum(shares[kind]))
    link, (latency, bandwidth) = links[kind], shares[kind]
    if kind == ("other_host" if links["other_host"] is not None else "same_host"):  # of these there are fresh numbers
        numbers = (latency, fresh.latency_s, link.latency_s), (bandwidth, fresh.byte_s, link.byte_s)
        sign = 1 if longer else -1
        by_fresh = [
            sign * share * (now / then - 1) if max(now / then, then / now) > FACTOR else 0.0
            for share, now, then in numbers
        ]
        if max(by_fresh) > (1 - 1 / FACTOR) * (latency + bandwidth):  # else it cannot be what runs miss by
            latency, bandwidth = by_fresh
    return "latency" if latency > bandwidth else "bandwidth", kind


def _link_text(machine, fresh, found):
    """The number that `suspected_number` found: as it is stored, and as the context measured it."""
    if found is None:
        return ""
    name, kind = found
    link, hosts = getattr(machine, kind), "two hosts" if kind == "other_host" else "one host"
    then, now = (
        (units.seconds(link.latency_s), units.seconds(fresh.latency_s))
        if name == "latency"
        else (units.rate(link.byte_s), units.rate(fresh.byte_s))
    )
    return (
        f"{name} between ranks of {hosts} ({kind}); the machine's number is {then}, and {now} was measured when this "
        "context was made"
    )
