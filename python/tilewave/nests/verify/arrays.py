"""Whole NumPy arrays as a body sees them, with time steps, and with subscripts that wrap."""


class TimeSteps:
    """The time steps of an array without a dimension for time, by their number: those that can still be read.

    Parameters
    ----------
    levels : list of ndarray
        The current time step and those before it, the latest first. Earlier ones that are read are copies of the
        current one.
    first : int
        The number of the current time step.
    sign : int
        1, or -1 where time runs backwards.
    back : int
        How many time steps before the current one are read.
    written : bool
    """

    def __init__(self, levels, first, sign, back, written):
        self.now, self._sign, self.written = first, sign, written
        self._back = max(back, len(levels) - 1)
        self.at = {first - sign * k: levels[k] if k < len(levels) else levels[0].copy() for k in range(self._back + 1)}

    @property
    def next(self):
        """The time step that is computed."""
        return self.at[self.now + self._sign]

    def begin(self):
        """Begin a time step as a copy of the one before."""
        current = self.at[self.now]
        self.at[self.now + self._sign] = current.copy() if self.written else current
        self.at.pop(self.now - self._sign * (self._back + 1), None)

    def end(self):
        """Go on to the next time step."""
        self.now += self._sign

    def levels(self):
        """The current time step and those before it, the latest first."""
        return [self.at[self.now - self._sign * k] for k in range(self._back + 1)]


class Elements:
    """An array in a body: subscripts that begin with a time step, or wrap, and a note of what was assigned.

    Parameters
    ----------
    array : ndarray or TimeSteps
        With subscripts that have no time, these mean the array as it is: the time step that is computed.
    shape : tuple of int
        With the time steps as the first extent, if it has them.
    wraps : tuple of int
        For each subscript but that of time the extent that it wraps at, or 0. Empty: none wraps.
    """

    def __init__(self, array, shape, wraps=()):
        self.shape, self.assigned = shape, None
        self._array, self._wraps = array, wraps
        self._has_steps = isinstance(array, TimeSteps)
        self._in_time = self._has_steps and len(shape) > array.at[array.now].ndim

    def _place(self, given):
        array, at = self._array, given if isinstance(given, tuple) else (given,)
        if self._in_time:
            array, at = array.at[at[0]], at[1:]
        elif self._has_steps:
            array = array.next
        if self._wraps:
            at = tuple(x % extent if extent else x for x, extent in zip(at, self._wraps, strict=True))
        return array, at

    def __getitem__(self, given):
        array, at = self._place(given)
        return array[at]

    def __setitem__(self, given, value):
        array, at = self._place(given)
        array[at] = value
        if self.assigned is not None:
            self.assigned.add(given if isinstance(given, tuple) else (given,))

    def __len__(self):
        return self.shape[0]
