"""Which row functions a nest has: of one row, of several, of batches, and what they are made for."""

from dataclasses import dataclass
from typing import NamedTuple

from tilewave._core import without
from tilewave.kernel.batch_rows import BatchRows
from tilewave.kernel.row_frame import ROW, ROWS, Frame, Row
from tilewave.kernel.rows.rows_in_place import can_stay, in_place_function
from tilewave.kernel.rows.several_rows import several_rows_function, takes_any_order
from tilewave.kernel.rows.simd_rows import least_points, rows_of, simd_rows_function
from tilewave.kernel.rows.streams import Staggered, streams_of
from tilewave.kernel.rows.wide_rows import rows_function, vector_points
from tilewave.nest.batch import BatchNest


@dataclass(frozen=True)
class Choices:
    """Hold what a row function is made for, in addition to the body and its types.

    ``steps`` has for each place the elements from point to point, None where that is known at run
    time only. ``long_rows``: rows have hundreds of points, so that those left over after whole vectors do not count.
    ``same_row`` has for each place None, or another one before it and the elements from that to it.
    ``staggered``: how rows whose points depend on each other may be computed at once; None: they may not.
    ``bests``: of which places a row's largest or smallest value is returned.
    ``layouts``: of each table how its byte tables lie, None for one that has none.
    ``off``: the fast paths that are switched off. ``separate``: no written array shares memory with another one.
    ``in_place``: what is written is in one place in all rows of a call, which compute it one after another,
    in vectors of so many bytes; 0: it is not. ``apart``: points of a row are independent, though rows depend on each
    other in ways that are no vectors, as where loops inside the body read along a whole axis.
    """

    fastmath: bool
    steps: tuple
    independent: bool
    long_rows: bool = False
    same_row: tuple = ()
    bests: tuple = ()
    staggered: Staggered | None = None
    layouts: tuple = ()
    off: int = 0
    separate: bool = False
    in_place: int = 0
    apart: bool = False


class Vectors(NamedTuple):
    """Hold what the processor has: vectors, and those whose lanes are rows; how far ahead these ask for memory to
    write."""

    vector_bytes: int
    lane_bytes: int
    ahead_bytes: int = 0
    permutation: object = None  # of bytes


def build_row(recipe, vectors):
    """The LLVM module of a nest's row function, and where points are independent that of several rows.

    Of a `BatchNest` the row function has the inner loops.

    Parameters
    ----------
    recipe : Recipe
        What `tilewave.kernel.compile` makes a kernel from: nest, dtypes, slots, constants, choices.
    vectors : Vectors
    """
    nest, dtypes, slots, choices = recipe.nest, recipe.dtypes, recipe.slots, recipe.choices
    if isinstance(nest, BatchNest):
        batch = BatchRows(recipe, ROW)
        batch.emit()
        return Row(batch.module, batch.e.sites, not batch.hard_exits and not batch.e.calls, False, batch)
    row = Frame(recipe, permutation=vectors.permutation).build()
    if choices.in_place:
        _add_rows_in_place(row, recipe)
        return row
    steps = dict(zip((place.key for place in nest.places), choices.steps, strict=True))
    together = all(steps[place.key] == 1 for place in nest.places if place.written)
    if any(dtype.kind == "c" for dtype in dtypes.values()) or any(slot.type.is_complex for slot in slots):
        return row  # LLVM makes vectors of the parts
    width = vector_points(dtypes.values(), vectors.vector_bytes)
    wide = together and width > 1 and not choices.long_rows and not without(choices.off, "wide_rows")
    if (
        choices.independent
        and row.vectors
        and wide
        and not nest.inner
        and not row.frame.strips
        and not row.frame.updates
    ):
        return Frame(recipe, width, permutation=vectors.permutation).build()
    several = choices.staggered and not choices.independent and not nest.inner
    if several and takes_any_order(row.frame) and not without(choices.off, "simd_rows"):
        _add_several_rows(row, recipe, vectors)
    return row


def _add_rows_in_place(row, recipe):
    """To the module of one row, the function of several that compute the same elements one after another."""
    usual = without(recipe.choices.off, "wide_rows") or not row.vectors or not can_stay(row.frame)
    if usual or any(dtype.kind == "c" for dtype in recipe.dtypes.values()):
        rows_function(row.frame, ROWS)
        return
    frame = Frame(recipe, into=row.module, name="tilewave_in_place")
    in_place_function(frame, recipe.choices.in_place)
    pointed = len(recipe.nest.places), 0
    several_rows_function(row.module, ROWS, pointed, row.module.get_global(ROW), frame.row, 1, 2**30, 1)


def _add_several_rows(row, recipe, vectors):
    """To the module of one row whose points depend on each other, the function of several."""
    lane_bytes = vectors.lane_bytes
    rows = rows_of(lane_bytes)
    streams = streams_of(row.frame, recipe.choices.staggered, row.frame.unused(), rows)
    if not streams:
        return
    lanes = Frame(recipe, into=row.module, name="tilewave_lanes")
    simd_rows_function(lanes, streams, lane_bytes, vectors.ahead_bytes)
    row.several, row.simd_rows_from = True, least_points(streams, lane_bytes)
    one = row.module.get_global(ROW)
    pointed = len(recipe.nest.places), len(recipe.choices.bests)
    several_rows_function(row.module, ROWS, pointed, one, lanes.row, 2, rows, row.simd_rows_from)
