"""`tilewave.measure`: a machine's numbers by experiment on the real executor."""
import copy
import datetime
import time

from tilewave import machine, measure_host, measure_links, notices
from tilewave.collective import collective
from tilewave.errors import ConfigError
from tilewave.nest import Nest

#: Below the 30 and 3 s that are promised: the last experiment may take longer than told.
BUDGET_S = {False: 22.0, True: 2.2}


@collective("tw.measure")
def measure(quick=False, context=None, nest=None, **arguments):
    """Measure what messages, lanes and memory of this launch cost; collective.

    Parameters
    ----------
    quick : bool
        At most 3 s in place of 30, with fewer and smaller sizes.
    context : Context, optional
        Default: all ranks of the launch.
    nest : Nest, optional
        Then the rate of this kernel, too, on tiles of its plan: ``kernels[nest.name]``.
    **arguments
        Of the nest, as in `plan`.

    Returns
    -------
    Machine
        The same on every rank. It is kept for later launches of this shape on these hosts, and the context uses it.

    Raises
    ------
    ConfigError
        On every rank, when ``quick`` is no bool on any, or as `plan`.
    """
    if not isinstance(quick, bool):
        raise ConfigError(f"quick: given {quick!r}; allowed: True, False")
    if nest is not None and not isinstance(nest, Nest):
        raise ConfigError(f"nest: given {type(nest).__name__}; allowed: a function under @tilewave.nest")
    with_nest = nest is not None or bool(arguments)
    yield f"quick {quick!r}, {f'nest {nest and nest.name!r}' if with_nest else 'no nest'}"
    found = _measure(context, quick, BUDGET_S[quick])
    if with_nest:
        from tilewave.run import plan
        from tilewave.stale import kernel_record

        planned = plan(nest, context=context, **arguments)
        found.kernels[nest.name] = kernel_record(planned)
        if context.rank == 0:
            machine.keep(found)
    return copy.deepcopy(found)  # the context keeps the other


def _measure(context, quick, budget_s, save=True):
    session = Session(context, quick, budget_s)
    with session.progress:
        found = _experiments(session)
    machine.use(context, found)
    if save and context.rank == 0:
        machine.keep(found)
    return found


def _experiments(session):
    """All experiments, and the machine that they give: the same on every rank, as all know all samples."""
    context, spread = session.context, {}
    own = machine.own_constants(context)
    numbers = {name: getattr(own, name) for name in machine.NUMBERS}
    conditions = machine.conditions(context)
    hosts = list(dict.fromkeys(conditions["hosts"]))
    host_of = [hosts.index(h) for h in conditions["hosts"]]
    kinds = measure_links.pairs(host_of)
    # Parts of the time, of which links get what is left.
    if context.threads > 1:
        numbers["hand_over_s"] = session.note(spread, "hand_over_s", measure_host.hand_over(session, 0.02))
    numbers["step_s"] = session.note(spread, "step_s", measure_host.step(session, 0.01))
    copies = measure_host.copies(session, 0.04, spread)
    memory = measure_host.memory(session, 0.15, host_of, spread)
    links = {}
    for done, (kind, pair) in enumerate(kinds.items()):
        part = (1.0 - session.used()) / (len(kinds) - done)
        links[kind] = measure_links.link(session, part, kind, pair, host_of, spread)
    if kinds:
        kind = "other_host" if "other_host" in kinds else "same_host"
        numbers["poll_s"] = session.note(spread, "poll_s", measure_links.poll(session, 0.01, kinds[kind]))
    conditions = {**conditions, "date": session.date, "tilewave": session.version, "quick": session.quick,
                  "measured_s": round(session.elapsed(), 3)}
    return machine.Machine(conditions, **numbers, copy_byte_s=copies, memory=memory, host_of=host_of, spread=spread, **links)


class Session:
    """One measuring: its time, and experiments whose samples all ranks know.

    Decisions are made by every rank alike, out of shared samples and rank 0's clock.
    """

    def __init__(self, context, quick, budget_s):
        import tilewave

        self.context, self.quick, self.budget_s = context, quick, budget_s
        self.progress = Progress(context.rank == 0, budget_s)
        self.begin_s = time.perf_counter()
        self.now_s = 0.0  # rank 0's clock at the end of the last experiment
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        self.date, self.version = machine.share(context, [now, tilewave.__version__])[0]

    def elapsed(self):
        """Seconds since the begin, as rank 0 saw it after the last experiment."""
        return self.now_s

    def used(self):
        """Part of the time that is over."""
        return min(self.now_s / self.budget_s, 1.0)

    def until(self, part):
        """When an experiment must end that may take this part of the time, from now on."""
        return self.now_s + part * self.budget_s

    def run(self, experiment, *arguments, **more):
        """Call an experiment of the core on this rank; the results of all ranks, in rank order.

        What fails on one rank alone fails on all.
        """
        error, found = None, None
        try:
            found = experiment(self.context._core, *arguments, **more)
        except BaseException as problem:
            error = problem
        every = machine.share(self.context, [time.perf_counter() - self.begin_s, found, error is not None])
        self.now_s = every[0][0]
        if any(failed for _, _, failed in every):
            self.context.agree(error)
        self.progress.show(self.used())
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

    def note(self, spread, name, sample):
        """The value of a sample; its spread is written down."""
        spread[name] = sample.spread
        return sample.value


class Progress:
    """How far measuring is, on rank 0: a line that stays one on a terminal; elsewhere one for each quarter of a long time."""

    def __init__(self, mine, budget_s):
        style = notices.style() if mine else ""
        self.on, self.line = bool(style), style == "line"
        self.every = 0.01 if self.line else 0.25 if budget_s > 5 else 2.0
        self.shown = 0.0

    def __enter__(self):
        if self.on and not self.line:
            notices.write("tilewave: measuring this machine\n")
        return self

    def show(self, part):
        """``part`` of the time is over."""
        if self.on and part >= self.shown + self.every:
            self.shown = part - part % self.every
            notices.write(f"\rmeasuring this machine: {100 * part:3.0f} %" if self.line else f"measuring {100 * self.shown:.0f} %\n")

    def __exit__(self, *_):
        if self.line:
            notices.write("\r" + " " * 32 + "\r")
