"""Nests with a pivot: what a call must have, and what each place is."""

from tilewave.errors import ConfigError
from tilewave.field.field import Field
from tilewave.nest.periodic import read_periodic

#: How the core numbers what a place of the kernel is.
POINT, ROW, COLUMN, CORNER, OPERAND = range(5)


def check_pivot(nest, arrays, loops):
    """Refuse what a nest with a pivot cannot be run with.

    Raises
    ------
    ConfigError
    """
    given = {"steps": loops.steps, "periodic": loops.periodic or None}
    read_periodic(nest, loops.periodic, False)
    if wrong := next((name for name, value in given.items() if value is not None), None):
        raise ConfigError(
            f"{wrong}= was given, and nest {nest.name!r} reads row {nest.pivot} and column {nest.pivot} of what it "
            "writes; allowed with such a pivot: over=, reverse=, reduce=, plan=, planning=, fastmath="
        )
    if windows := [n for n, value in arrays.items() if isinstance(value, Field) and value.keep == "window"]:
        raise ConfigError(f"array {windows[0]!r} keeps a rolling window only; allowed with a pivot: keep='all'")


def check_shapes(nest, shapes, bounds):
    """Refuse arrays of which the pivot is no part of both axes.

    Raises
    ------
    ConfigError
    """
    several = {tuple(shapes[name]) for name in nest.written}
    if len(several) > 1:
        raise ConfigError(
            f"nest {nest.name!r} with the pivot {nest.pivot!r} writes arrays of shapes "
            f"{', '.join(map(str, sorted(several)))}; allowed: one shape"
        )
    ((rows, columns),) = several
    if bounds.box[0][1] > min(rows, columns):
        raise ConfigError(
            f"nest {nest.name!r}: pivot {nest.pivot!r} runs over {bounds.box[0]}, and arrays of shape "
            f"{(rows, columns)} are written; allowed: part of both axes, over={{{nest.pivot!r}: (0, "
            f"{min(rows, columns)})}}"
        )


def reads_of(nest):
    """What each place is, in the order of ``nest.places``; nothing where no loop is a pivot."""
    if not nest.pivot:
        return []
    k, i, j = nest.indices
    kinds = {(i, j): POINT, (k, j): ROW, (i, k): COLUMN, (k, k): CORNER}
    return [kinds[place.axes] if place.array in nest.written else OPERAND for place in nest.places]
