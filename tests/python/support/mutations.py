"""Small changes of valid files: of their bytes, and of what JSON they are."""

import copy
import json
import math

#: In place of an entry of JSON.
ODD = (
    None, True, False, -1, 0, 1, 2, 7, 255, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**30, 2**200,
    -(2**31), -(2**63), -(2**64), 0.5, -0.0, 1e-320, 1e18, 1e308, math.inf, -math.inf, math.nan, "", "x", "0", "-1",
    "nan", "²", "\0", "\ud800", "a\nb", "../../x", "/", ".", "c.0", "é" * 300, [], [[]], [0], [None], [-1], [1, 2, 3],
    {}, {"": 0}, {"a": {"b": [1]}}, [0] * 1000,
)  # fmt: skip


def changed_bytes(pick, data):
    """Bits turned, bytes cut, doubled, moved or replaced."""
    data = bytearray(data)
    for _ in range(pick.choice((1, 1, 1, 2, 5))):
        at = pick.randrange(len(data) + 1)
        end = min(len(data), at + pick.choice((1, 1, 2, 4, 8, 100)))
        kind = pick.randrange(7)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << pick.randrange(8)
        elif kind == 1:
            del data[at:]
        elif kind == 2:
            del data[at:end]
        elif kind == 3:
            data[at:at] = data[at:end]
        elif kind == 4:
            data[at:end] = bytes(pick.randrange(256) for _ in range(end - at))
        elif kind == 5:
            data[at:end] = pick.choice((b"\0", b"\xff", b"-", b"9", b"[", b'"', b"{")) * pick.choice((1, 20, 5000))
        else:
            value = pick.choice((-1, 2**15, 2**31 - 1, 2**31, 2**62, 2**63 - 1))
            data[at:end] = (value % 2**64).to_bytes(8, "little")[: max(1, end - at)]
    return bytes(data)


def _places(tree):
    """Each list or object with a key of it, in any depth."""
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield tree, key
        yield from _places(value)


def _near(pick, value):
    """Something like it: another number, a longer list, a text with more or less."""
    if isinstance(value, bool) or value is None:
        return pick.choice(ODD)
    if isinstance(value, int | float):
        return pick.choice((value + 1, value - 1, -value, value * 2, value * 1000, value / 3 if value else 0.1))
    if isinstance(value, str):
        return pick.choice((value + "x", value[:-1], value.upper(), value + "\0", value * 50))
    if isinstance(value, list):
        more = value[:1] or [0]
        return pick.choice((value[:-1], value + more, value[::-1], value * 20, [value]))
    return pick.choice(({**value, "more": 1}, dict(list(value.items())[1:]), {}, [value]))


def changed_tree(pick, tree):
    """A copy of plain data with some entries that are odd, others, missing, or deep."""
    tree = copy.deepcopy(tree)
    for _ in range(pick.choice((1, 1, 1, 2, 4))):
        places = list(_places(tree))
        if not places:
            return pick.choice(ODD)
        holder, key = pick.choice(places)
        kind = pick.randrange(7)
        if kind < 3:
            holder[key] = copy.deepcopy(pick.choice(ODD))
        elif kind < 5:
            holder[key] = _near(pick, holder[key])
        elif kind == 5:
            del holder[key]
        else:
            other, name = pick.choice(places)
            holder[key] = copy.deepcopy(other[name])
    if places and pick.random() < 0.1:
        deep = holder.get(key) if isinstance(holder, dict) else 0
        for _ in range(pick.choice((3, 300, 900))):
            deep = [deep] if pick.random() < 0.5 else {"a": deep}
        tree = {**tree, pick.choice(list(tree)): deep} if isinstance(tree, dict) and tree else [deep]
    return tree


def changed_json(pick, data):
    """The bytes of JSON, changed as such or as bytes."""
    if pick.random() < 0.15:
        return changed_bytes(pick, data)
    try:
        return json.dumps(changed_tree(pick, json.loads(data))).encode()
    except RecursionError:
        return data
