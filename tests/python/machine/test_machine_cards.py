"""How many cards of a host work at once: what is made of the times of streams."""

import itertools
import random
import types

import pytest

from tilewave import _core
from tilewave.machine import links


def session_of(ranks, rank, times):
    """A session of so many ranks, whose streams take `times(pairs at once)` seconds a byte."""
    session = types.SimpleNamespace(context=types.SimpleNamespace(rank=rank), now_s=0.0)

    def run(experiment, peer, first, size, count, turns):
        assert experiment is _core.measure.stream and turns == 1
        session.now_s += 0.1
        session.seats.append((peer, first))
        return [[[0.5 + count * size * times]]] * ranks

    session.run, session.seats = run, []
    return session


@pytest.mark.parametrize(
    "host_of, streams, working, found",
    [
        ([0, 1], 1, 4, 1),  # one rank a host
        ([0, 0, 1, 1], 2, 1, 1),
        ([0, 0, 1, 1], 2, 2, 2),
        ([0, 0, 1, 1], 2, 1.6, 1),
        ([0, 0, 1, 1], 2, 1.75, 2),
        ([0, 1, 0, 1, 0, 1], 3, 2, 2),
        ([0, 0, 0, 0, 1, 1, 1], 3, 8, 3),
    ],
)
def test_cards_are_streams_at_full_rate(host_of, streams, working, found):
    byte_s, first = 1e-8, host_of.index(1)
    for rank in range(len(host_of)):
        session = session_of(len(host_of), rank, byte_s * max(streams / working, 1))
        assert links.cards(session, 1.0, (0, first), host_of, byte_s) == found
        if streams == 1:
            assert session.seats == []
            continue
        one, other = ([r for r, host in enumerate(host_of) if host == h][:streams] for h in (0, 1))
        seat = (-1, False)
        if rank in one:
            seat = (other[one.index(rank)], True)
        elif rank in other:
            seat = (one[other.index(rank)], False)
        assert set(session.seats) == {seat}


def test_pairs_of_neighbours(seed):
    """The first two ranks of a kind, among all pairs; of many ranks, one a host, too."""
    rng = random.Random(seed)
    for _ in range(300):
        host_of = [rng.randrange(4) for _ in range(rng.randint(1, 6))]
        every = {"same_host": [], "other_host": []}
        for a, b in itertools.combinations(range(len(host_of)), 2):
            every["same_host" if host_of[a] == host_of[b] else "other_host"].append((a, b))
        assert links.pairs(host_of) == {kind: each[0] for kind, each in every.items() if each}, f"seed {seed}"
    assert links.pairs(range(200_000)) == {"other_host": (0, 1)}
