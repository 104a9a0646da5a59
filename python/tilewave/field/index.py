"""Which elements of a distributed array a subscript means: NumPy's basic indexing."""

import operator

import numpy as np

from tilewave.errors import ConfigError

#: How texts of all errors of subscripts begin.
SUBSCRIPT = "subscript: "


class SubscriptError(ConfigError, IndexError):
    """A subscript that a field does not have: a ConfigError and, as of NumPy's arrays, an IndexError."""


def is_of_subscript(text):
    """Return whether an error's text is that of a `SubscriptError`, perhaps of another rank."""
    return text.startswith(SUBSCRIPT)


class Selection:
    """The elements that a subscript means.

    Parameters
    ----------
    given : object
        Integers, slices and at most one Ellipsis, as they are or in a tuple.
    shape : tuple of int
        Of the whole array.

    Attributes
    ----------
    key : tuple
        Equal exactly where the same elements are meant in the same arrangement.
    counts : tuple of int
        Elements along each dimension of the array; 1 for an integer.
    shape : tuple of int
        Of the result: without the dimensions of integers.
    scalar : bool
        Whether NumPy gives a scalar: only integers, no Ellipsis.

    Raises
    ------
    SubscriptError
        For an index out of range, too many of them, or one of another kind.
    """

    def __init__(self, given, shape):
        given = given if isinstance(given, tuple) else (given,)
        dots = sum(entry is Ellipsis for entry in given)
        if dots > 1:
            raise SubscriptError(f"{SUBSCRIPT}a subscript with two Ellipsis was given; allowed: one")
        if len(given) - dots > len(shape):
            raise SubscriptError(f"{SUBSCRIPT}too many indices: {len(given) - dots} were given, the shape is {shape}")
        rest = [slice(None)] * (len(shape) - len(given) + dots)
        if dots:
            at = next(k for k, entry in enumerate(given) if entry is Ellipsis)
            given = [*given[:at], *rest, *given[at + 1 :]]
        else:
            given = [*given, *rest]
        self._runs, sliced = [], []
        for axis, (entry, extent) in enumerate(zip(given, shape, strict=True)):
            if isinstance(entry, slice):
                try:
                    first, last, step = entry.indices(extent)
                except (TypeError, ValueError) as problem:
                    raise SubscriptError(f"{SUBSCRIPT}{entry} was given for dimension {axis}: {problem}") from None
                self._runs.append((first, step, len(range(first, last, step))))
                sliced.append(True)
            else:
                self._runs.append((_whole(entry, axis, extent), 1, 1))
                sliced.append(False)
        self.counts = tuple(count for _, _, count in self._runs)
        self.shape = tuple(count for count, stays in zip(self.counts, sliced) if stays)
        self.key = tuple(self._runs), tuple(sliced)
        self.scalar = not any(sliced) and not dots

    def inside(self, owned):
        """Where a block has some of them.

        Parameters
        ----------
        owned : tuple of slice
            The global index ranges of the block.

        Returns
        -------
        (tuple of slice, tuple of slice)
            In an array of `counts` elements, and in the block.
        """
        there, here = [], []
        for (first, step, count), block in zip(self._runs, owned, strict=True):
            # The elements first + k step, 0 <= k < count, that lie in the block.
            low, high = (block.start, block.stop - 1) if step > 0 else (block.stop - 1, block.start)
            begin = max(0, -((first - low) // step))
            end = max(begin, min(count, (high - first) // step + 1))
            at = first + begin * step - block.start
            stop = at + (end - begin) * step
            there.append(slice(begin, end))
            here.append(slice(at, stop if stop >= 0 else None, step) if end > begin else slice(0, 0))
        return tuple(there), tuple(here)


def pack(selection, owned, local):
    """Return what one rank has of a selection, as bytes: where in the result (low and high of each dimension), then the
    elements.
    """
    there, here = selection.inside(owned)
    bounds = np.array([(part.start, part.stop) for part in there], np.int64)
    elements = np.ascontiguousarray(local[here])
    return np.concatenate([bounds.reshape(-1).view(np.uint8), elements.reshape(-1).view(np.uint8)])


def unpack(selection, result, data):
    """The elements of a selection, in `result`, from what all ranks packed, one after another."""
    dims, at = len(selection.counts), 0
    while at < len(data):
        bounds = data[at : at + 16 * dims].view(np.int64).reshape(dims, 2)
        at += 16 * dims
        part = result[tuple(slice(low, high) for low, high in bounds)]
        part[...] = data[at : at + part.nbytes].view(result.dtype).reshape(part.shape)
        at += part.nbytes
    return result.reshape(selection.shape)


def _whole(entry, axis, extent):
    if isinstance(entry, bool | np.bool_) or entry is None or isinstance(entry, np.ndarray) and entry.ndim:
        number = None
    else:
        try:
            number = operator.index(entry)
        except TypeError:
            number = None
    if number is None:
        raise SubscriptError(
            f"{SUBSCRIPT}{type(entry).__name__} was given for dimension {axis}; allowed: an integer, a slice, or "
            "Ellipsis; u[...] = tilewave.where(condition, x, u) for a condition"
        )
    if not -extent <= number < extent:
        raise SubscriptError(f"{SUBSCRIPT}index {number} is out of bounds for dimension {axis} with extent {extent}")
    return number % extent


def require_all(given):
    """Refuse subscripts of a part of a field, which expressions are not computed for."""
    parts = given if isinstance(given, tuple) else (given,)
    whole = lambda each: isinstance(each, slice) and each.start is each.stop is each.step is None
    if not all(each is Ellipsis or whole(each) for each in parts):
        raise ConfigError(
            "field[...] = : an expression of fields was given for a part of a field; allowed: field[...] = for all of "
            "it, or a nest with over="
        )
