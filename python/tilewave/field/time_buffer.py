"""What a field was at time steps before the current one."""

from tilewave.runtime.collective import collective, holds_context


@holds_context
class TimeBuffer:
    """A field's values so many time steps before the current ones: what a nest reads at ``u[t-1]``; made by
    `Field.buffer`.

    Attributes
    ----------
    field : Field
    back : int
        So many steps; 0: the current values.
    shape, dtype, ndim, context, owned
        Those of the field.
    """

    def __init__(self, field, back):
        self.field, self.back = field, back
        self.shape, self.dtype, self.ndim, self.context = field.shape, field.dtype, field.ndim, field.context

    @property
    def owned(self):
        """The global index ranges of this rank's points, as a tuple of slices."""
        return self.field.owned

    @property
    def local(self):
        """This rank's points as a NumPy array: a view, as `Field.local` is."""
        return self._view(0)

    def _view(self, back):
        """As `Field._view`, so many steps further back: what gives a field its first values gives them to this, too."""
        return self.field._view(self.back + back)

    @collective("tw.TimeBuffer.gather")
    def gather(self):
        """The whole array on rank 0, None elsewhere.

        Returns
        -------
        numpy.ndarray or None

        Notes
        -----
        Collective, as `Field.gather`.
        """
        return (yield from self.field._gathered(self.back))

    def _scatter(self, whole):
        self.field.context._moves(self.field._storage.scatter, whole, self.back)

    def __repr__(self):
        return f"<tilewave.TimeBuffer {-self.back} of {self.field!r}>"
