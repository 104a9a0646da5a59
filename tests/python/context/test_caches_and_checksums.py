"""What is kept for calls to come, and what stands for arrays when ranks compare: against plain definitions."""

import gc
import random

import numpy as np
import pytest

from tilewave.context import checksum as checksums
from tilewave.context.checksum import checksum
from tilewave.context.lru_cache import LruCache


def test_the_entries_that_were_used_last_are_kept(seed):
    """Against a list of keys in the order of their last use."""
    pick = random.Random(seed)
    for most in (1, 2, 5):
        kept, order, values = LruCache(most), [], {}
        for _ in range(300):
            key, action = pick.randrange(8), pick.choice(["get", "set", "setdefault"])
            if action == "get":
                assert kept.get(key, "none") == (values[key] if key in order else "none"), seed
                if key in order:
                    order.append(order.pop(order.index(key)))
            else:
                known = key in order
                if action == "set":
                    kept[key] = values[key] = pick.random()
                else:
                    new = pick.random()
                    values[key] = values[key] if known else new
                    assert kept.setdefault(key, new) == values[key], seed
                order = [each for each in order if each != key] + [key]
                order = order[-most:]
            assert list(kept) == order and list(kept.values()) == [values[each] for each in order], seed
            assert len(kept) == len(order) <= most
        kept.clear()
        assert len(kept) == 0 and kept.get(order[-1] if order else 0) is None


def test_bytes_are_bounded_but_for_the_last_entry():
    kept = LruCache(10, 100, len)
    for size in (40, 50, 30):
        kept[size] = "x" * size
    assert list(kept) == [50, 30]
    kept[500] = "x" * 500
    assert list(kept) == [500]  # whatever it takes
    kept[1] = "x"
    assert list(kept) == [1]
    kept[1] = "x" * 99
    kept[2] = "x"
    assert list(kept) == [1, 2]


def layouts(whole):
    """The same values, lying in memory in several ways."""
    wide = np.zeros((*whole.shape[:-1], 2 * whole.shape[-1]), whole.dtype)
    wide[..., ::2] = whole
    return [whole.copy(), np.asfortranarray(whole), wide[..., ::2], whole[::-1].copy()[::-1], whole.copy()[...]]


@pytest.mark.parametrize("piece_bytes", [checksums.PIECE_BYTES, 100, 1])
def test_it_is_of_the_values_wherever_they_lie(monkeypatch, piece_bytes):
    monkeypatch.setattr(checksums, "PIECE_BYTES", piece_bytes)
    whole = np.random.default_rng(3).random((6, 7))
    texts = {checksum(each) for each in layouts(whole)}
    assert len(texts) == 1 and len(texts.pop()) == 16
    assert checksum(np.zeros((0, 4))) == checksum(np.zeros((0, 9)))  # nothing is nothing


def test_every_change_of_a_bit_shows():
    whole = np.zeros((6, 7), "f4")
    seen = {checksum(whole.copy())}
    for at in np.ndindex(*whole.shape):
        for value in (1.0, -0.0):
            changed = whole.copy()
            changed[at] = value
            seen.add(checksum(changed))
    assert len(seen) == 1 + 2 * whole.size


def test_an_array_that_was_seen_is_not_read_again(monkeypatch):
    array = np.arange(10.0)
    before = checksum(array)
    array[3] = 99
    assert checksum(array) == before  # as it is documented: changes in place are not looked at
    array.shape = (2, 5)
    assert checksum(array) != before  # it lies otherwise: read again
    assert checksum(array.copy()) == checksum(array)
    key = id(array)
    assert key in checksums._known
    del array
    gc.collect()
    assert key not in checksums._known


def test_an_object_that_takes_the_place_of_a_dead_one_is_read():
    for value in range(50):  # many have the same id
        made = np.full(1000, float(value))
        assert checksum(made) == checksum(np.full(1000, float(value))) and checksum(made) != checksum(made + 1)
