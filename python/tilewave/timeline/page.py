"""A timeline as one page of HTML that needs nothing else: it zooms, and names what the pointer is on."""

import base64
import html
import json
from pathlib import Path

import numpy as np

MOST_EVENTS = 100_000  # about 8 MB of page; of longer runs, steps that follow each other are shown together
MOST_MESSAGES = 50_000
TEMPLATE = Path(__file__).with_name("page.html")


def page(title, lanes, messages, parts, ops, table):
    """The page, as text.

    Parameters
    ----------
    title : str
    lanes : list of (str, numpy structured array)
        What each bar is called, and its events in the order of time.
    messages : numpy.ndarray
        (count, 4): lane and time of the send, of the receive.
    parts : list of (str, str, set of int)
        Name and colour of each kind of time, and the numbers of its ops.
    ops : sequence of str
    table : str
        HTML, below the picture.
    """
    total = sum(len(events) for _, events in lanes)
    together = -(-total // MOST_EVENTS)
    part_of = np.zeros(len(ops), np.uint8)
    for number, (_, _, members) in enumerate(parts):
        part_of[list(members)] = number
    rows = [_merged(events, part_of, together) for _, events in lanes]
    numbers, details = _details([merged for merged, _ in rows])
    notes = []
    if together > 1:
        notes.append(
            f"{total} steps: {together} that follow each other are shown together, as what most of their time went to."
        )
    if len(messages) > MOST_MESSAGES:
        notes.append(f"The first {MOST_MESSAGES} of {len(messages)} messages are shown.")
        messages = messages[np.argsort(messages[:, 1], kind="stable")[:MOST_MESSAGES]]
    ends = [float(events["end_s"].max()) for _, events in lanes if len(events)]
    data = {
        "lanes": [name for name, _ in lanes],
        "parts": [part[:2] for part in parts],
        "ops": list(ops),
        "numbers": numbers,
        "starts": np.cumsum([0, *(len(merged) for merged, _ in rows)]).tolist(),
        "longest_s": max(ends, default=0.0),
        "begin_s": _text(np.concatenate([merged["begin_s"] for merged, _ in rows]), "<f8"),
        "end_s": _text(np.concatenate([merged["end_s"] for merged, _ in rows]), "<f8"),
        "part": _text(np.concatenate([part for _, part in rows]), "u1"),
        "detail": _text(details, "<i4"),
        "messages": _text(messages, "<f8"),
    }
    filled = {
        "TITLE": html.escape(title),
        "NOTE": "".join(f" {html.escape(note)}" for note in notes),
        "TABLE": table,
        "DATA": json.dumps(data).replace("<", "\\u003c"),
    }
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, value in filled.items():
        text = text.replace(f"@{name}@", value)
    return text


def _merged(events, part_of, together):
    """Every so many events as one, and the part that most of its time went to."""
    if together == 1 or len(events) == 0:
        return events, part_of[events["op"]]
    first = np.arange(0, len(events), together)
    merged = events[first]
    merged["end_s"] = np.maximum.reduceat(events["end_s"], first)
    merged["op"] = -1
    spent = np.zeros((len(first), int(part_of.max()) + 1))
    np.add.at(spent, (np.arange(len(events)) // together, part_of[events["op"]]), events["end_s"] - events["begin_s"])
    return merged, spent.argmax(axis=1).astype(np.uint8)


def _details(lanes):
    """Names of numbers, and for each event its op and those numbers; -1 where one says nothing."""
    events = np.concatenate(lanes)
    columns = {
        "step": events["step"],
        "tile": None,
        "wave": events["wave"],
        "slice": np.where(events["wave"] < 0, -1, events["slice"]),
        "other rank": events["peer"],
        "tag": events["tag"],
        "bytes": np.where(events["bytes"] > 0, events["bytes"], -1),
    }
    used = {}
    for name, column in columns.items():
        if name == "tile":
            used.update(
                (f"tile[{k}]", events["tile"][:, k])
                for k in range(events["tile"].shape[1])
                if (events["tile"][:, k] >= 0).any()
            )
        elif (column >= 0).any():
            used[name] = column
    most = np.iinfo(np.int32).max
    table = np.stack([events["op"], *(np.minimum(column, most) for column in used.values())], axis=1)
    return list(used), table


def _text(array, kind):
    return base64.b64encode(np.ascontiguousarray(array).astype(kind).tobytes()).decode()
