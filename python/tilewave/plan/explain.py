"""Why a plan was chosen, as text."""

import math

from tilewave import _core, units
from tilewave.plan.sentence import by, points_of, sentence, weights_of
from tilewave.timeline.parts import PARTS

POLL_PERIOD_S = _core.Plan().poll_period_s  # by rule

#: Choices that are about messages: of one rank they do nothing, but for the order of tiles.
OF_MESSAGES = (
    "grid",
    "weights",
    "schedule",
    "lookahead",
    "chunk_bytes",
    "aggregate",
    "poll_period_s",
    "helper",
    "synchronous",
)
OF_LANES = ("factors", "grouping", "slices")
OF_SWEEPS = ("mapping_dim", "grouping", "slices", "lookahead", "aggregate", "skew")


def in_effect(choices, extents=()):
    """The names of the choices that do something in a plan, in their order.

    Parameters
    ----------
    choices : dict
        All choices of the plan, by name.
    extents : sequence of int
        Of the loops, where they are known.

    Returns
    -------
    list of str
    """
    idle = set()
    ranks, lanes = math.prod(choices["grid"]), math.prod(choices["factors"])
    if ranks == 1:
        idle.update(OF_MESSAGES)
    if lanes == 1:
        idle.update(OF_LANES)
    if choices["generator"] != "sweep":
        idle.update(OF_SWEEPS)
    if choices["generator"] in ("pivot", "gather"):
        idle.update(("schedule", "chunk_bytes"))
    if choices["schedule"] != "overlapping":
        idle.add("lookahead")
    if choices["grouping"] != "vertical":
        idle.add("slices")
    one_tile = len(extents) == len(choices["tile"]) and all(t >= n for t, n in zip(choices["tile"], extents))
    if ranks == lanes == 1 and one_tile:
        idle.add("mapping_dim")
    if not choices["row"] and choices["storage"] == "plain":
        idle.update(("row", "storage"))
    idle.update(name for name in ("skew", "weights") if not choices[name])
    idle.update(name for name in ("temporal_block", "aggregate", "slices", "lookahead") if choices[name] == 1)
    idle.update(name for name in ("helper", "synchronous") if not choices[name])
    return [name for name in choices if name not in idle]


def explain(plan):
    """The plan, the numbers it was chosen with, the others and why they lost, what was not tried; see
    `Plan.explain`.
    """
    lines = [
        sentence(plan, "runs") + _of_unequal(plan),
        "",
        "The plan",
        *("  " + line for line in str(plan).splitlines()),
    ]
    if plan.memory_bytes is not None:
        copies = plan.notes.get("replicated", {})
        whole = (f"{name} whole ({units.size(count)})" for name, count in copies.items())
        of = ["its parts of the fields, and staging", *whole]
        lines.append(f"  {'memory':14} {units.size(plan.memory_bytes)} on the rank that needs most: {', '.join(of)}")
    if plan.predicted:
        lines += ["", "Where the time goes (average of the lanes)", *_parts(plan.predicted.parts)]
    notes = plan.notes
    if not notes:
        return "\n".join([*lines, "", "Nothing is known of how it was chosen: it was made by hand."])
    extents = " x ".join(f"{name} {extent}" for name, extent in zip(notes.get("loops", ()), notes.get("extents", ())))
    lines += [
        "",
        f"For nest {notes.get('nest')}: {extents}; {units.count(notes.get('ranks'), 'rank')}, up to "
        f"{units.count(notes.get('threads'), 'thread')} each",
    ]
    if cpus := of_cpus(plan):
        lines[-1] += f"; computes with {cpus}"
    lines += [
        "",
        "The body's rate",
        *_rate(notes.get("rate", {})),
        *_alternatives(notes.get("alternatives")),
        *_planning(notes.get("planning")),
        "",
        "The machine's numbers",
        *_machine(notes.get("machine", {})),
        *_placed(notes.get("placed")),
        *_faces(plan),
        *_grids(plan),
    ]
    lines += ["", "Fixed by you", *_items(notes.get("fixed", {})), *_without(notes.get("without")), *_ranked(plan)]
    lines += ["", "Not tried", *_not_tried(plan)]
    return "\n".join(lines)


def _of_unequal(plan):
    """Why ranks that are not equally fast have more points than others, or not; empty where nothing was compared."""
    times = {}  # the best with blocks in proportion, and with even ones
    for each in plan.notes.get("alternatives") or ():
        weighted = bool(each["choices"].get("weights"))
        times[weighted] = min(times.get(weighted, math.inf), each["time_s"])
    if len(times) < 2:
        return ""
    taken, other = (units.seconds(times[bool(plan.weights) == weighted]) for weighted in (True, False))
    if plan.weights:
        return f" Ranks are not equally fast: even blocks are predicted to take {other} in place of {taken}."
    return f" Ranks are not equally fast, but blocks in proportion are predicted to take {other}, even ones {taken}."


def of_cpus(plan):
    """How many lanes a rank has of its CPUs, and why not all; empty where the number of CPUs is not known."""
    cpus, fewer = plan.notes.get("cpus"), plan.notes.get("fewer")
    if cpus is None:
        return ""
    each = " of each rank" if plan.notes.get("ranks", 1) > 1 else ""
    return f"{plan.threads} of {cpus} CPU{'s' if cpus > 1 else ''}{each}" + (f": {fewer}" if fewer else "")


def _rate(rate):
    if rate:
        known = {"point": rate["point_s"], "row": rate["row_s"], "tile": rate["tile_s"]}
        costs = ", ".join(f"{units.seconds(time_s)} a {what}" for what, time_s in known.items() if time_s) or "nothing"
        spread = f"; times differ by {100 * rate['spread']:.0f} %" if rate.get("spread") else ""
        yield f"  {costs}, on one lane while all compute; {rate['note']}{spread}"


def _planning(planning):
    """Return what planning has cost, of which budget, and what it did not measure."""
    if not planning:
        return
    spent, before, budget = (planning[name] for name in ("spent_s", "before_s", "budget_s"))
    earlier = f", {units.seconds(before)} in earlier calls" if before else ""
    of = f" of a budget of {units.seconds(budget)}" if budget is not None else ""
    rates = planning["samples"]
    yield from ("", f"What planning has cost beyond compiling ({planning['planning']})")
    yield f"  {units.seconds(spent)}{of}{earlier}; {units.count(rates, 'rate')} measured"
    if planning["settled"]:
        yield "  no kind of tiles is left that may be better"
    else:
        yield "  kinds of tiles that may be better are not measured"
    if late := planning["not_measured"]:
        yield f"  not measured, as the budget was spent: may take {units.seconds(late['time_s'])},"
        yield f"    {short(late['choices'])}"
    if not planning["settled"] and planning["planning"] == "auto":
        yield "  equal calls may spend a tenth of the time of all their runs, and then have another plan"
    if runs := planning["runs_s"]:
        yield f"  planned once more after runs of {units.seconds(runs)}"
    if replaced := planning["replaced"]:
        yield f"  in place of: {replaced}"


def _alternatives(alternatives):
    if alternatives:
        yield from ("", "Layouts of loops and arrays, each with its best plan")
        times = _times(each["time_s"] for each in alternatives)
        for each, time in zip(alternatives, times, strict=True):
            brought = (
                f", and {units.seconds(each['bringing_s'])} to bring NumPy arrays into that order and back"
                if each["bringing_s"]
                else ""
            )
            alone, taken = ", rank 0 for all" if each["on_one_rank"] else "", ": taken" if each["taken"] else ""
            alone += ", each step gathered" * (each.get("generator") == "gather")
            yield f"  {time}  {_layout(each['choices'])}{alone}{brought}{taken}"


def _layout(choices):
    across = choices["storage"] == "skewed"
    text = (
        f"points of a row {tuple(choices['row'])} are neighbours in memory"
        if across and choices["row"]
        else "arrays are row-major"
    )
    skew = choices["skew"]
    if skew:
        text += f", tiles are cut along the sum of loops {skew[0]} and {skew[1]}"
    weights = choices.get("weights")
    return text + (f", ranks have points in proportion to {weights_of(weights)}" if weights else "")


def _machine(machine):
    known = [name for name in MEANINGS if name in machine]
    for name, time in zip(known, _times(machine[name] for name in known), strict=True):
        yield f"  {MEANINGS[name]:34} {time}"
    if "cache_bytes" in machine:
        yield f"  {'cache of a core':34} {units.size(machine['cache_bytes'])}"
    for name, label in (("same_host", "on one host"), ("other_host", "between hosts")):
        if link := machine.get(name):
            limit = link["bandwidth_bytes_s"]
            rate = "unlimited" if limit is None else units.text(limit, units.RATES)
            latency, send, receive = (units.seconds(link[each]) for each in ("latency_s", "send_s", "receive_s"))
            yield (
                f"  messages {label:25} {latency} latency, {rate}, {send} to post a send, {receive} a receive, "
                f"{100 * link['hidden_polled']:.0f} % hidden behind computing"
            )


def _placed(placed):
    """The host's CPUs, and where the lanes of the rank that explains are."""
    if placed:
        cpus = ", ".join(map(str, placed["cpus"]))
        yield f"  {'CPUs allowed here':34} {placed['topology']}"
        yield f"  {'lanes are':34} {f'pinned to CPUs {cpus}, in order' if cpus else 'not pinned'}"


def _faces(plan):
    """The cost of each direction of the process grid."""
    faces = plan.predicted.faces if plan.predicted else []
    if faces:
        yield from ("", f"Faces of the process grid {by(plan.grid)}: what a rank in the middle sends in a run")
    copies, transfers = (_times(getattr(face, name) for face in faces) for name in ("copy_s", "transfer_s"))
    for face, copy, transfer in zip(faces, copies, transfers, strict=True):
        direction = "(" + ", ".join(f"{step:+d}" if step else "0" for step in face.direction) + ")"
        how = f"{copy} to pack and unpack" if face.packed else "in place"
        yield (
            f"  to {direction:12} {units.count(face.messages, 'message')}, {units.size(face.bytes)}, "
            f"{units.size(face.run_bytes)} contiguous: {how}, {transfer} of messages"
        )


def _grids(plan):
    """The best that each process grid was predicted to take, where several were simulated."""
    best = {}
    for record in plan.ranked:
        grid = tuple(record["choices"]["grid"])
        best[grid] = min(best.get(grid, record["time_s"]), record["time_s"])
    if len(best) > 1:
        yield from ("", "Process grids, each with the best plan that was simulated")
    listed = sorted(best.items(), key=lambda one: one[1]) if len(best) > 1 else []
    for (grid, _), time in zip(listed, _times(time_s for _, time_s in listed), strict=True):
        yield f"  {by(grid):12} {time}{': taken' if grid == tuple(plan.grid) else ''}"


MEANINGS = {
    "hand_over_s": "hand-over between lanes",
    "poll_s": "a poll of the transport",
    "step_s": "overhead of a step",
}


def _items(fixed):
    if not fixed:
        yield "  nothing"
    for name, value in fixed.items():
        yield f"  {name} = {tuple(value) if isinstance(value, list) else value}"


def _without(names):
    if names:
        yield from ("", f"Fast paths that TILEWAVE_WITHOUT switches off: {names}")


def _ranked(plan):
    notes = plan.notes
    if notes.get("given_whole"):
        yield from ("", "The plan was given as a whole: it is obeyed, and no other was tried")
        return
    if chosen_for := notes.get("chosen_for"):
        yield from (
            "",
            f"It was chosen for a run over {points_of(chosen_for)} and fitted to this one, as only bounds or steps "
            "differ; no other was tried",
        )
        return
    yield from ("", f"{notes.get('considered')} plans estimated, {len(plan.ranked)} simulated; the best first")
    times = _times(record["time_s"] for record in plan.ranked)
    for number, (record, time) in enumerate(zip(plan.ranked, times, strict=True), 1):
        yield f"  {number:2}. {time}  {short(record['choices'], notes.get('extents', ()))}"
        yield f"      {record['reason'] or 'taken'}"


def short(c, extents=()):
    """The choices that do something, in a line.

    Parameters
    ----------
    c : dict
        All choices, by name.
    extents : sequence of int
        Of the loops, where they are known.
    """
    texts = {
        "grid": lambda: f"grid {by(c['grid'])}",
        "weights": lambda: f"points in proportion to {weights_of(c['weights'])}",
        "mapping_dim": lambda: f"mapping dimension {c['mapping_dim']}",
        "tile": lambda: f"tile {by(c['tile'])}",
        "schedule": lambda: c["schedule"],
        "factors": lambda: f"lanes {by(c['factors'])}",
        "grouping": lambda: c["grouping"],
        "slices": lambda: f"{c['slices']} slices",
        "generator": lambda: "stencil" if c["generator"] == "stencil" else "",
        "temporal_block": lambda: f"temporal blocks of {c['temporal_block']} time steps",
        "aggregate": lambda: f"messages of {c['aggregate']} tiles together",
        "row": lambda: f"rows along {tuple(c['row'])}" if c["row"] else "",
        "storage": lambda: f"{c['storage']} storage",
        "skew": lambda: f"cut along the sum of loops {c['skew'][0]} and {c['skew'][1]}",
        "helper": lambda: "a helper",
        "synchronous": lambda: "synchronous sends",
        "poll_period_s": lambda: _polls(c),
        "lookahead": lambda: f"look-ahead {c['lookahead']}",
        "chunk_bytes": lambda: f"chunks of {units.size(c['chunk_bytes'])}",
    }
    names = in_effect(c, extents)
    return ", ".join(filter(None, (text() for name, text in texts.items() if name in names)))


def _polls(c):
    """How often the transport is polled in a tile, where that is not the usual."""
    if c["poll_period_s"] in (POLL_PERIOD_S, 0 if c["helper"] else None):
        return ""
    return f"polls every {units.seconds(c['poll_period_s'])}" if c["poll_period_s"] else "no polls in tiles"


def _not_tried(plan):
    notes, choices = plan.notes, plan
    if plan.generator == "pivot":
        yield "  other blocks of steps and rows: as many as fit the caches are taken by rule"
        return
    if plan.generator == "gather":
        yield "  other chunks of what travels: of some KB, by rule; another loop that is divided: the longest is"
        return
    if notes.get("sequential"):
        yield f"  any other order: only the order of the loops is certain to be right, because of {notes['sequential']}"
    if "storage" in notes.get("by_rule", {}) and "alternatives" not in notes:
        yield "  plain storage: rows without dependences become vectors only in skewed storage"
    elif "alternatives" not in notes and choices.storage == "plain" and "storage" not in notes.get("fixed", {}):
        yield (
            "  skewed storage: rows along the last dimension do, or no other rows have independent points "
            "for every array"
        )
    if notes.get("threads", 1) == 1:
        yield "  more lanes, vertical groups: one thread a rank was allowed"
    if notes.get("ranks", 1) > 1 and notes.get("threads", 1) == 1 and "helper" not in notes.get("fixed", {}):
        yield "  a helper thread for progress: it would need a second thread a rank"
    yield "  rows of fewer than 12 points: the rate was measured with longer ones"


def _parts(parts):
    names = [name for name in PARTS if getattr(parts, name) > 0]
    for name, time in zip(names, _times(getattr(parts, name) for name in names), strict=True):
        yield f"  {PARTS[name]:10} {time}"


def _times(seconds):
    """A column of times with its unit."""
    unit, cells = units.column(seconds, units.TIMES)
    return [f"{cell} {unit}" for cell in cells]
