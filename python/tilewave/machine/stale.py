"""Runs that miss their predictions: which number of the machine looks stale.

Where TILEWAVE_MACHINE is ``auto`` it is measured again. Only rank 0 compares and decides, so that a repeated call says
nothing more to the others. It answers the next call as if that were not prepared: then all ranks plan, and before that
they ask rank 0 what is to be measured again.
"""

import copy
import dataclasses
import json
import os

from tilewave import _core, units
from tilewave.machine import host as measure_host
from tilewave.machine import kept_rates, known
from tilewave.machine import links as measure_links
from tilewave.machine.busy import queued_s
from tilewave.machine.measure import Session
from tilewave.notices import warn
from tilewave.plan import planning
from tilewave.timeline.timeline import Timeline

#: A run misses its prediction where it takes so many times longer, or shorter.
FACTOR = 1.5
#: Of shorter runs, as predicted and as measured, nothing is said: a system takes a few ms now and then.
LEAST_S = 5e-3
#: So many runs in a row must miss, all the same way.
MISSES = 2
#: A number that was measured again may be so once more when so many runs in a row have met their prediction with it.
HELD = 10
#: Nothing is said of a number where this rank's lanes have waited for a CPU for so much of what a run took longer:
#: other programs have it. With some 13 busy processes on 2 CPUs of a Zen 4, runs that took 4 to 20 times what was
#: predicted: 0.94 to 1.2 of it with one lane, 1.6 to 2.8 with two, which both wait; without a miss 0.
DISTURBED = 0.4
#: A number is named where it explains so much of what the run took more or less.
EXPLAINED = 0.4
#: Seconds that measuring one number again may take, about.
BUDGET_S = 1.0


@dataclasses.dataclass(frozen=True)
class Suspect:
    """A number that looks stale.

    Attributes
    ----------
    name : str
        "bandwidth", "latency", "hand-over", "copies" or "rate".
    link : str
        "same_host" or "other_host", of the first two; else empty.
    nest : str
        Of the rate.
    """

    name: str
    link: str = ""
    nest: str = ""

    @property
    def text(self):
        """As users read it."""
        if self.link:
            hosts = "two hosts" if self.link == "other_host" else "one host"
            return f"{self.name} between ranks of {hosts} ({self.link})"
        return {
            "rate": f"rate of the body of nest {self.nest!r}",
            "hand-over": "hand-over between lanes (hand_over_s)",
            "copies": "packing (copy_byte_s)",
        }[self.name]


class Watch:
    """Compares the runs of a context with their predictions; on rank 0 only.

    Attributes
    ----------
    wanted : Suspect or None
        What is to be measured again.
    """

    def __init__(self):
        self.wanted, self._wanted_by = None, ""
        self._told = set()
        # Of numbers that were measured again: the nest whose runs had missed, and how many of its runs were fine since.
        self._measured = {}
        self._queued_s = 0.0

    def ran(self, nest, ready, core):
        """Note a run. Less than 1 us where it took what was predicted."""
        kernel, predicted = ready.kernel, ready.plan.predicted
        kernel.runs += 1
        if predicted is None:
            return
        time_s, expected_s = core.time_s, predicted.time_s
        if expected_s < FACTOR * time_s < FACTOR * FACTOR * expected_s:
            kernel.misses = 0
            if self._measured:
                self._held(nest.name)
        elif kernel.runs > 1 and max(time_s, expected_s) >= LEAST_S:
            self._missed(nest, ready, core, 1 if time_s > expected_s else -1)

    def renewed(self, suspect):
        """Note that a number has been measured again."""
        self._measured[suspect] = self._wanted_by, 0
        self.wanted = None

    def _held(self, name):
        """Note a run of a nest that met its prediction: with numbers that hold, what misses later is something new."""
        for suspect, (by, runs) in [*self._measured.items()]:
            if by == name and runs + 1 < HELD:
                self._measured[suspect] = by, runs + 1
            elif by == name:
                del self._measured[suspect]
                self._told.discard(suspect)

    def _missed(self, nest, ready, core, way):
        self._measured = {
            suspect: (by, 0 if by == nest.name else runs) for suspect, (by, runs) in self._measured.items()
        }
        context, kernel = ready.context, ready.kernel
        given = os.environ.get(known.VARIABLE, "")
        crowded = context._core.oversubscribed or ready.plan.threads > len(_core.allowed_cpus())  # a warning said so
        if given == "default" or planning.wanted is not None or crowded:
            return
        kernel.misses = kernel.misses + way if kernel.misses * way >= 0 else way
        before, self._queued_s = self._queued_s, queued_s()
        queued = self._queued_s - before  # since the miss before this one
        if abs(kernel.misses) >= MISSES and queued > DISTURBED * (core.time_s - ready.plan.predicted.time_s) > 0:
            kernel.misses = way
            return
        if abs(kernel.misses) < MISSES or core.interrupted or not core.parts.total_s > 0:
            return
        kernel.misses = 0
        predicted = ready.plan.predicted
        messages = _messages(core.timeline) if context.size > 1 else []
        part = suspected_part(predicted.parts, core.parts, bool(messages))
        if part == "rate" and ready.plan.notes.get("given_whole"):
            return  # its tiles may be of a kind that no rate was measured on
        suspect = None
        if part in ("rate", "hand-over", "copies"):
            suspect = Suspect(part, nest=nest.name if part == "rate" else "")
        elif part == "messages":
            suspect = suspected_number(context._machine, known.own_constants(context), messages, way)
        if suspect is None:
            return
        if part == "rate":
            kept_rates.forget(ready.rate.kept if ready.rate else "")
        again = given == known.AUTO and suspect not in self._measured
        if again:
            self.wanted, self._wanted_by = suspect, nest.name
        if suspect not in self._told:
            self._told.add(suspect)
            warn(_told(nest, suspect, context, predicted, core, again))


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
    way = 1 if measured.total_s > predicted.total_s else -1
    more = {
        name: way * (getattr(measured, name) - getattr(predicted, name))
        for name in ("total_s", "compute_s", "wait_s", "post_s", "fill_s", "drain_s", "pack_s", "hand_over_s")
    }
    # Lanes wait at their begin and end for others' computing: as far as it is that, it is as much slower as their own.
    beside = more["fill_s"] + more["drain_s"]
    share = more["compute_s"] / predicted.compute_s if predicted.compute_s > 0 else 0.0
    of_others = min(max(share * (predicted.fill_s + predicted.drain_s), 0.0), max(beside, 0.0))
    explained = {
        "rate": more["compute_s"] + of_others,
        "messages": more["wait_s"] + more["post_s"],
        "hand-over": more["hand_over_s"],
        "copies": more["pack_s"],
    }
    explained["messages" if messages else "hand-over"] += beside - of_others
    part = max(explained, key=explained.get)
    return part if more["total_s"] > 0 and explained[part] >= EXPLAINED * more["total_s"] else None


def suspected_number(machine, own, messages, way):
    """Latency or bandwidth, and of which neighbours; None where the machine knows none of these.

    Parameters
    ----------
    machine : Machine
    own : core Machine
        What the context measured itself, in a few ms, when it was made: to the farthest rank.
    messages : sequence of (rank, rank, bytes)
        Of the run.
    way : int
        1 where messages took longer than the machine says, -1 where less.
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
    farthest = "other_host" if links["other_host"] is not None else "same_host"
    if kind == farthest:  # of these there are fresh numbers: how much more the messages cost by them
        numbers = (latency, own.latency_s, link.latency_s), (bandwidth, own.byte_s, link.byte_s)
        by_own = [
            way * share * (fresh / kept - 1) if max(fresh / kept, kept / fresh) > FACTOR else 0.0
            for share, fresh, kept in numbers
        ]
        if max(by_own) > (1 - 1 / FACTOR) * (latency + bandwidth):  # else it cannot be what runs miss by
            latency, bandwidth = by_own
    return Suspect("latency" if latency > bandwidth else "bandwidth", kind)


def _messages(timeline):
    """(rank, rank, bytes) of each send that was recorded."""
    requests = Timeline(timeline).requests
    sends = requests[requests["send"] == 1]
    return list(zip(sends["rank"].tolist(), sends["peer"].tolist(), sends["bytes"].tolist(), strict=True))


#: Parts of the time as the warning names them.
_SHOWN = {
    "compute_s": "computing",
    "wait_s": "waiting",
    "fill_s": "fill",
    "drain_s": "drain",
    "hand_over_s": "hand-over",
    "pack_s": "packing",
}


def _told(nest, suspect, context, predicted, core, again):
    """The warning."""
    shown = []
    for name, label in _SHOWN.items():
        found_s, expected_s = getattr(core.parts, name), getattr(predicted.parts, name)
        if max(found_s, expected_s) > 0.05 * max(core.time_s, predicted.time_s):
            shown.append((label, found_s, expected_s))
    machine, own, kept = context._machine, known.own_constants(context), ""
    if suspect.link:
        link = getattr(machine, suspect.link)
        number, fresh = (
            (units.seconds(link.latency_s), units.seconds(own.latency_s))
            if suspect.name == "latency"
            else (units.rate(link.byte_s), units.rate(own.byte_s))
        )
        kept = f"; the machine's number is {number}, and {fresh} was measured when this context was made"
    elif suspect.name == "hand-over":
        kept = f"; the machine's number is {units.seconds(machine.hand_over_s)}"
    shape = f"-n {context.size}" + (f" --threads {context.threads}" if context.threads > 1 else "")
    end = f"measure again with `tilewave measure {shape}`, or let TILEWAVE_MACHINE=auto do it"
    if again:
        end = "it is measured again at the next call"
    elif suspect.name == "rate":
        end = "a new process measures it again, and so does TILEWAVE_MACHINE=auto"
    times = [core.time_s, predicted.time_s, *(time_s for _, *both in shown for time_s in both)]
    unit, scale = units.unit_of(times, units.TIMES)
    took, wanted, *each = (units.number(time_s / scale) for time_s in times)
    parts = [f"{label} {each[2 * k]} {unit} (predicted {each[2 * k + 1]})" for k, (label, *_) in enumerate(shown)]
    return (
        f"nest {nest.name!r} took {took} {unit} where {wanted} {unit} was predicted, "
        f"and not for the first time: {', '.join(parts)}. What looks stale is the {suspect.text}{kept}; {end}"
    )


def renew(context):
    """Measure again what rank 0 wants, if anything: collective, in every call that plans.

    Returns
    -------
    Suspect or None
        What has been measured, and is used and kept from now on; of a rate, what is no longer known.
    """
    if not _core.measure.connected(context._core):
        return None
    watch = context._watch
    mine = json.dumps(watch.wanted and dataclasses.astuple(watch.wanted))
    wanted = json.loads(context._core.broadcast(mine.encode()))
    if wanted is None:
        return None
    suspect = Suspect(*wanted)
    watch.renewed(suspect)
    if suspect.name == "rate":
        for kept in (context._rates, context._prepared, context._plans):
            kept.forget(lambda key: key.nest == suspect.nest)
        return suspect
    found = _measured(context, suspect)
    known.use(context, found)
    if context.rank == 0:
        known.keep(found)
    return suspect


def _measured(context, suspect):
    """The machine with that number measured anew: the same on every rank."""
    found, spread = copy.deepcopy(context._machine), {}
    session = Session(context, True, BUDGET_S)
    with session.progress:
        if suspect.name == "hand-over":
            found.hand_over_s = session.note(spread, "hand_over_s", measure_host.hand_over(session, 1.0))
        elif suspect.name == "copies":
            found.copy_byte_s = measure_host.copies(session, 1.0, spread)
        else:
            pair = measure_links.pairs(found.host_of)[suspect.link]
            link = measure_links.link(session, 1.0, suspect.link, pair, found.host_of, spread)
            setattr(found, suspect.link, link)
            if suspect.link == "other_host" or found.other_host is None:  # as contexts find them, to the farthest rank
                found.latency_s, found.byte_s = link.latency_s, link.byte_s
    session.note_busy(found.conditions)
    found.spread.update(spread)
    found.conditions["renewed"] = {**found.conditions.get("renewed", {}), suspect.link or suspect.name: session.date}
    return found


def keep_rate(context, nest, plan):
    """Note the rate of a body that was measured again in the machine and its file; part of a collective call."""
    context._machine.kernels[nest.name] = kernel_record(plan)
    if context.rank == 0 and _core.measure.connected(context._core):
        known.keep(context._machine)


def kernel_record(plan):
    """What a machine keeps of a body's rate, of a plan that was chosen with it."""
    return {"tile": list(plan.tile), "row": list(plan.row), **plan.notes["rate"]}
