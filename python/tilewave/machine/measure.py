"""`tilewave.measure`: a machine's numbers by experiment on the real executor."""

import datetime
import time

from tilewave import _core, notices, units
from tilewave.allgather import allgather
from tilewave.machine import busy, known
from tilewave.machine.machine import Machine
from tilewave.machine.network import Network
from tilewave.machine.numbers import NUMBERS
from tilewave.version import version

#: Below the 30 and 3 s that are promised: the last experiment may take longer than planned.
BUDGET_S = {False: 22.0, True: 2.2}
#: Of it, for what lanes, memory and ranks of a host at once cost; messages between two ranks take the rest.
HAND_OVER, STEP, COPIES, MEMORY, SPEEDS, CARDS = 0.02, 0.01, 0.04, 0.15, 0.04, 0.03
#: A machine is measured without being asked for once runs have taken so many times as long as that takes.
WORTH = 10


def measured(context, quick, budget_s, save=True):
    session, began = Session(context, quick, budget_s), time.monotonic()
    try:
        found = _experiments(session)
    finally:
        session.progress.end()
    known.use(context, found)
    context._rates.clear()  # as rates on disk, they belong to the numbers before
    if context.rank == 0:
        notices.log("INFO", "machine: measured in %s", units.seconds(time.monotonic() - began))
    if save and context.rank == 0:
        known.store(found)
        if known.busy(found):
            notices.warn(
                "other programs had the CPUs while this machine was measured: its numbers are used in this process "
                f"and not stored (threads waited for {100 * known.busy(found):.0f} % of the time). A process that "
                "finds none measures again; on an idle machine `tilewave measure` gives numbers that are stored"
            )
    return found


def _experiments(session):
    """All experiments, and the machine that they give: the same on every rank, as all know all samples."""
    from tilewave.machine import host as measure_host  # most programs find a stored machine
    from tilewave.machine import links as measure_links

    context, spread = session.context, {}
    numbers = {name: getattr(known.startup_machine(context), name) for name in NUMBERS}
    conditions = known.conditions(context)
    hosts = list(dict.fromkeys(conditions["hosts"]))
    places = {host: place for place, host in enumerate(hosts)}
    host_of = [places[host] for host in conditions["hosts"]]
    kinds = measure_links.pairs(host_of)
    # Parts of the time, of which links get what is left.
    if context.threads > 1:
        numbers["hand_over_s"] = session.note(spread, "hand_over_s", measure_host.hand_over(session, HAND_OVER))
    numbers["step_s"] = session.note(spread, "step_s", measure_host.step(session, STEP))
    copies = measure_host.copies(session, COPIES, spread)
    memory = measure_host.memory(session, MEMORY, host_of, spread)
    speeds = []
    if context.size > 1:
        shares = known.startup_machine(context).lane_speeds(context.size, context.threads)
        speeds = measure_host.speeds(session, SPEEDS, shares, spread)
    links = {}
    for done, (kind, pair) in enumerate(kinds.items()):
        part = (1.0 - session.used()) / (len(kinds) - done)
        links[kind] = measure_links.link(session, part, kind, pair, spread)
    network = None
    if "other_host" in kinds:
        byte_s = links["other_host"].byte_s
        cards = measure_links.cards(session, session.until(CARDS), kinds["other_host"], host_of, byte_s)
        network = Network("hosts", cards=cards) if cards > 1 else None
    if kinds:
        kind = "other_host" if "other_host" in kinds else "same_host"
        numbers["poll_s"] = session.note(spread, "poll_s", measure_links.poll(session, 0.01, kinds[kind]))
    conditions = {
        **conditions,
        "date": session.date,
        "tilewave": session.version,
        "quick": session.quick,
        "measured_s": round(session.now_s, 3),
    }
    session.note_busy(conditions)
    if "busy" in conditions:  # by other programs, which slow some ranks more than others
        speeds = []
    return Machine(
        conditions,
        **numbers,
        copy_byte_s=copies,
        memory=memory,
        host_of=host_of,
        speeds=speeds,
        network=network,
        spread=spread,
        **links,
    )


def of(context):
    """The machine of a context: given by TILEWAVE_MACHINE, stored, or assumed; collective.

    Returns
    -------
    Machine
        The same on every rank; the context's core uses it, too.

    Raises
    ------
    ConfigError
        On every rank, when TILEWAVE_MACHINE names a file that does not do.
    """
    if context._machine is not None:
        return context._machine
    if not _core.measure.connected(context._core) or context._part_of is not None:
        return known.constants(context)
    if known.look(context, complain=True) is None:
        known.assume(context)
    return context._machine


def looked_up(context):
    """A context's machine, before plans are compared: looked up once, and measured once runs have taken so long that it
    costs little; a part of a collective call: ``yield from`` it.
    """
    if not context._asked:  # collective, so outside what may fail on one rank
        yield "the machine's numbers are looked up first"
        of(context)
        context._asked = True
    elif context._assumed and context._core.ran_s > WORTH * _takes_s(context):
        yield "the machine's numbers are measured first"
        measured(context, True, BUDGET_S[True])


def _takes_s(context):
    """Return what measuring quickly takes."""
    return BUDGET_S[True] * (1.0 if context.size > 1 else HAND_OVER + STEP + COPIES + MEMORY)


class Session:
    """One measuring: its time, and experiments whose samples all ranks know.

    Every rank makes the same decisions, out of shared samples and rank 0's clock.
    """

    def __init__(self, context, quick, budget_s):
        self.context, self.quick, self.budget_s = context, quick, budget_s
        line = notices.style() == "line"
        self.progress = notices.Progress(context.rank == 0, "measuring", 0.0 if line else None)
        self.progress.of = "this machine:"
        if context.rank == 0 and notices.style() == "lines":
            notices.write("tilewave: measuring this machine\n")
        self.begin_s, self.queued_s = time.perf_counter(), busy.queued_s()
        self.now_s = 0.0  # since the begin, by rank 0's clock at the end of the last experiment
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        self.date, self.version = allgather(context, [now, version()])[0]

    def used(self):
        """Part of the time that is over."""
        return min(self.now_s / self.budget_s, 1.0)

    def until(self, part):
        """When an experiment must end that may take this part of the time, from now on."""
        return self.now_s + part * self.budget_s

    def run(self, experiment, *arguments, **more):
        """Call an experiment of the core on this rank; the results of all ranks, in rank order.

        An experiment that fails on one rank fails on all.
        """
        error, found = None, None
        try:
            found = experiment(self.context._core, *arguments, **more)
        except BaseException as problem:
            error = problem
        failed = error is not None or self.context._interrupted()  # Ctrl-C is seen between experiments
        every = allgather(self.context, [time.perf_counter() - self.begin_s, found, failed])
        self.now_s = every[0][0]
        if any(failed for _, _, failed in every):
            self.context.agree(error)
        self.progress.at(self.used())
        return [found for _, found, _ in every]

    def repeat(self, experiment, until_s, least=3, most=200, first=2):
        """Samples of ``experiment(count)``, repeated as long as there is time.

        At most `most`, and at least `least` where that does not take four times the time.
        """
        begin, samples, count = self.now_s, [], first
        while True:
            before = self.now_s
            samples += experiment(count)
            each = max((self.now_s - before) / count, 1e-7)
            left = until_s - self.now_s
            over = len(samples) >= least or self.now_s - begin > 4 * (until_s - begin)
            if len(samples) >= most or (left < each and over):
                return samples
            count = max(1, min(most - len(samples), int(left / each), 4 * count))

    def note_busy(self, conditions):
        """Write down for which part of the time threads of some rank have waited for a CPU, where that is much; a part
        of the collective call. Lanes that are more than the CPUs wait for each other.
        """
        part = (busy.queued_s() - self.queued_s) / max(time.perf_counter() - self.begin_s, 1e-9)
        most = max(allgather(self.context, part))
        if most > busy.BUSY and not self.context._core.oversubscribed:
            conditions["busy"] = round(most, 3)

    def note(self, spread, name, sample):
        """The value of a sample; its spread is written down."""
        spread[name] = sample.spread
        return sample.value
