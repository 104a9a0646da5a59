"""The last nests of a time step, where they are films: those before them take the time steps between in one block."""

from tilewave import _core
from tilewave.nest.films import film_of

#: The fast path.
PATH = "temporal_blocks"


def films_of(nests, points, off):
    """How many of the last nests do nothing but write rows that no other nest has, and no points; not all of them."""
    if _core.without(off, PATH):
        return 0
    visited = points.names() if points else set()
    count = 0
    for nest in reversed(nests[1:]):
        film = film_of(nest)
        others = {name for other in nests if other is not nest for name in other.arrays}
        if film is None or film.rest is not None or (visited | others) & {*nest.written}:
            break
        count += 1
    return count
