"""Why a plan was chosen, as text."""

from tilewave import _core
from tilewave.timeline.parts import PARTS

POLL_PERIOD_S = _core.Plan().poll_period_s  # by rule
ROUNDED_UP = 0.9995  # of a unit, from which on three digits are the next unit's 1


def explain(plan):
    """The plan, the numbers it was chosen with, the others and why they lost, what was not tried; see
    `Plan.explain`.
    """
    lines = ["The plan", *("  " + line for line in str(plan).splitlines())]
    if plan.memory_bytes is not None:
        copies = plan.notes.get("replicated", {})
        whole = (f"{name} whole ({_bytes(count)})" for name, count in copies.items())
        of = ["its parts of the fields, and staging", *whole]
        lines.append(f"  {'memory':12} {_bytes(plan.memory_bytes)} on the rank that needs most: {', '.join(of)}")
    if plan.predicted:
        lines += ["", "Where the time goes (average of the lanes)", "  " + _parts(plan.predicted.parts)]
    notes = plan.notes
    if not notes:
        return "\n".join([*lines, "", "Nothing is known of how it was chosen: it was made by hand."])
    extents = " x ".join(f"{name} {extent}" for name, extent in zip(notes.get("loops", ()), notes.get("extents", ())))
    lines += [
        "",
        f"For nest {notes.get('nest')}: {extents}; {notes.get('ranks')} rank(s), up to {notes.get('threads')} "
        "thread(s) each",
    ]
    if told := of_cpus(plan):
        lines[-1] += f"; computes with {told}"
    lines += [
        "",
        "The body's rate",
        *_rate(notes.get("rate", {})),
        *_ways(notes.get("ways")),
        *_turns(notes.get("turns")),
        "",
        "The machine's numbers",
        *_machine(notes.get("machine", {})),
        *_faces(plan),
        *_grids(plan),
    ]
    lines += ["", "Fixed by you", *_items(notes.get("fixed", {})), *_without(notes.get("without")), *_ranked(plan)]
    lines += ["", "Not tried", *_not_tried(plan)]
    return "\n".join(lines)


def of_cpus(plan):
    """How many lanes a rank has of its CPUs, and why not all; empty where the number of CPUs is not known."""
    cpus, fewer = plan.notes.get("cpus"), plan.notes.get("fewer")
    if cpus is None:
        return ""
    each = " of each rank" if plan.notes.get("ranks", 1) > 1 else ""
    return f"{plan.threads} of {cpus} CPU{'s' if cpus > 1 else ''}{each}" + (f": {fewer}" if fewer else "")


def _rate(rate):
    if rate:
        yield (
            f"  {_time(rate['point_s'])} a point, {_time(rate['row_s'])} a row, {_time(rate['tile_s'])} a tile, on "
            "one lane "
            f"while all compute; {rate['note']}"
        )


def _ways(ways):
    if ways:
        yield from ("", "Ways in which loops and arrays may lie, each with its best plan")
        for way in ways:
            brought = (
                f", and {_time(way['bringing_s'])} to bring NumPy arrays into that order and back"
                if way["bringing_s"]
                else ""
            )
            alone, taken = ", rank 0 for all" if way["on_one_rank"] else "", ": taken" if way["taken"] else ""
            yield f"  {_time(way['time_s']):>10}  {_way(way['choices'])}{alone}{brought}{taken}"


def _way(choices):
    across = choices["storage"] == "skewed"
    text = (
        f"points of a row {tuple(choices['row'])} are neighbours in memory"
        if across and choices["row"]
        else "arrays are row-major"
    )
    skew = choices["skew"]
    return text + (f", tiles are cut along the sum of loops {skew[0]} and {skew[1]}" if skew else "")


def _turns(turns):
    if turns:
        yield from (
            "",
            "Layout of fields",
            f"  one for {', '.join(turns['nests'])}, which use the same fields in turn: {_time(turns['together_s'])} "
            "a turn of all so; "
            f"{_time(turns['moving_s'])} with plans of their own, as fields then move between them",
        )


def _machine(machine):
    for name in ("hand_over_s", "poll_s", "step_s"):
        if name in machine:
            yield f"  {MEANINGS[name]:34} {_time(machine[name])}"
    if "cache_bytes" in machine:
        yield f"  {'cache of a core':34} {_bytes(machine['cache_bytes'])}"
    for name, label in (("same_host", "on one host"), ("other_host", "between hosts")):
        if link := machine.get(name):
            rate = "unlimited" if link["bandwidth_bytes_s"] is None else f"{link['bandwidth_bytes_s'] / 1e6:.4g} MB/s"
            yield (
                f"  messages {label:25} {_time(link['latency_s'])} latency, {rate}, {_time(link['send_s'])} to post a "
                "send, "
                f"{_time(link['receive_s'])} a receive, {100 * link['hidden_polled']:.0f} % hidden behind computing"
            )


def _faces(plan):
    """The cost of each direction of the process grid."""
    faces = plan.predicted.faces if plan.predicted else []
    if faces:
        yield from ("", f"Faces of the process grid {_by(plan.grid)}: what a rank in the middle sends in a run")
    for face in faces:
        way = "(" + ", ".join(f"{step:+d}" if step else "0" for step in face.direction) + ")"
        how = f"{_time(face.copy_s)} to pack and unpack" if face.packed else "in place"
        yield (
            f"  to {way:12} {face.messages} message{'s' * (face.messages != 1)}, {_bytes(face.bytes)}, "
            f"{_bytes(face.run_bytes)} contiguous: {how}, {_time(face.transfer_s)} of messages"
        )


def _grids(plan):
    """The best that each process grid was predicted to take, where several were played."""
    best = {}
    for record in plan.ranked:
        grid = tuple(record["choices"]["grid"])
        best[grid] = min(best.get(grid, record["time_s"]), record["time_s"])
    if len(best) > 1:
        yield from ("", "Process grids, each with the best plan that was played")
    for grid, time_s in sorted(best.items(), key=lambda one: one[1]) if len(best) > 1 else ():
        yield f"  {_by(grid):12} {_time(time_s)}{': taken' if grid == tuple(plan.grid) else ''}"


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
            f"It was chosen for a run over {' x '.join(map(str, chosen_for))} points and stays for this one; no other "
            "was tried",
        )
        return
    yield from ("", f"{notes.get('considered')} plans estimated, {len(plan.ranked)} played; the best first")
    for number, record in enumerate(plan.ranked, 1):
        yield f"  {number:2}. {_time(record['time_s']):>10}  {_short(record['choices'])}"
        yield f"      {record['reason'] or 'taken: ' + _parts_of(record['parts'])}"


def _short(c):
    text = f"grid {_by(c['grid'])}, mapping dimension {c['mapping_dim']}, tile {_by(c['tile'])}, {c['schedule']}"
    lanes = 1
    for m in c["factors"]:
        lanes *= m
    if lanes > 1:
        text += f", lanes {_by(c['factors'])} {c['grouping']}"
    if c["slices"] > 1:
        text += f", {c['slices']} slices"
    if c["temporal_block"] > 1:
        text += f", temporal blocks of {c['temporal_block']} steps"
    if c["aggregate"] > 1:
        text += f", messages of {c['aggregate']} tiles together"
    if c["skew"]:
        text += f", cut along the sum of loops {c['skew'][0]} and {c['skew'][1]}"
    if c["helper"]:
        text += ", a helper"
    if c["synchronous"]:
        text += ", synchronous sends"
    if c["poll_period_s"] not in (POLL_PERIOD_S, 0 if c["helper"] else None):
        text += f", polls every {_time(c['poll_period_s'])}" if c["poll_period_s"] else ", no polls in tiles"
    return (
        text
        + (f", look-ahead {c['lookahead']}" if c["lookahead"] > 1 else "")
        + f", chunks of {_bytes(c['chunk_bytes'])}"
    )


def _not_tried(plan):
    notes, choices = plan.notes, plan
    if notes.get("sequential"):
        yield f"  any other order: only the order of the loops is certain to be right, because of {notes['sequential']}"
    if "storage" in notes.get("by_rule", {}) and "ways" not in notes:
        yield "  plain storage: rows without dependences become vectors only in skewed storage"
    elif "ways" not in notes and choices.storage == "plain" and "storage" not in notes.get("fixed", {}):
        yield (
            "  skewed storage: rows along the last dimension do, or no other rows have independent points "
            "for every array"
        )
    if notes.get("ranks", 1) == 1 and "schedule" not in notes.get("fixed", {}):
        yield "  blocking: one rank has no messages"
    if notes.get("threads", 1) == 1:
        yield "  more lanes, vertical groups: one thread a rank was allowed"
    if notes.get("ranks", 1) > 1 and notes.get("threads", 1) == 1 and "helper" not in notes.get("fixed", {}):
        yield "  a helper thread for progress: it would need a second thread a rank"
    yield "  rows of fewer than 12 points: the rate was measured with longer ones"


def _parts(parts):
    return ", ".join(
        f"{label} {_time(getattr(parts, name))}" for name, label in PARTS.items() if getattr(parts, name) > 0
    )


def _parts_of(record):
    return ", ".join(f"{label} {_time(record[name])}" for name, label in PARTS.items() if record[name] > 0)


def _by(entries):
    return "x".join(map(str, entries))


def _time(seconds):
    for scale, unit in ((1, "s"), (1e3, "ms"), (1e6, "us")):
        if seconds * scale >= ROUNDED_UP:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def _bytes(count):
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= ROUNDED_UP * size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"
