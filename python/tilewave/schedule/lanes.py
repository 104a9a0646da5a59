"""The lanes that a generator writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewave import _core
from tilewave.errors import ConfigError, is_integer, shown
from tilewave.schedule.nests import NestOfSchedule
from tilewave.schedule.regions import MessageOfSchedule, Region, Signal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tilewave.schedule.regions import ArrayOfSchedule

#: The count of a combine step whose other operand is the message's region (schedule.hpp).
ARRAY_RIGHT, ARRAY_LEFT = -1, -2


class LaneOfSchedule:
    """A lane of a `ScheduleBuilder`: its steps, one after another.

    Attributes
    ----------
    number : int
    """

    number: int

    def __init__(self, builder: Any, number: int) -> None:
        self.number, self._builder, self._steps, self._count = number, builder, [], 0
        self._growth = 0  # what a repetition of the block adds to the count

    def task(
        self,
        function: Callable[..., Any],
        reads: Sequence[Region] = (),
        writes: Sequence[Region] = (),
        amount: float = 0.0,
        *,
        number: int,
    ) -> None:
        """Call ``function(*reads, *writes)`` with NumPy views of these regions.

        Parameters
        ----------
        function : function
            Views of what it reads are read-only. It writes all of what it writes, and touches nothing else. What it
            raises ends the run on every rank.
        reads, writes : sequence of Region
            A region in both lists is updated: it is handed over in both places.
        amount : float
            Of computing, for the prediction; in any unit.
        number : int
            Its place in the sequential program that all ranks' schedules stand for. A task has the same number on every
            rank that calls it.
        """
        self._steps.append(("compute", self._builder._work(number, function, list(reads), list(writes), amount), 0))

    def compute(self, nest: NestOfSchedule, *box: tuple[int, int]) -> None:
        """Compute points of a nest, in loop order.

        Parameters
        ----------
        nest : NestOfSchedule
        *box : slice or int
            For each loop index the values; default: all of them.
        """
        if not isinstance(nest, NestOfSchedule) or nest.builder is not self._builder:
            raise ConfigError(f"compute: given {shown(nest)}; allowed: what b.nest of this rank gave")
        tile = _core.Tile()
        tile.box = nest.box(box)
        tile.coord = tile.box[0]
        self._steps.append(("compute", self._builder._tile(nest.number, tile), 0))

    def post_send(self, message: MessageOfSchedule) -> None:
        """Start sending: until its wait the region, or its buffer, must not change."""
        self._on("post_send", message, True)

    def post_recv(self, message: MessageOfSchedule) -> None:
        """Start receiving: until its wait nobody may read or write the region, or its buffer."""
        self._on("post_recv", message, False)

    def wait(self, message: MessageOfSchedule) -> None:
        """Until the message is complete."""
        self._on("wait", message)

    def pack(self, message: MessageOfSchedule) -> None:
        """Copy the region into the message's buffer; nothing for a message without one."""
        if message.packed:
            self._on("pack", message, True)

    def unpack(self, message: MessageOfSchedule, into: Region | ArrayOfSchedule | None = None) -> None:
        """Copy the message's buffer into the region; nothing for a message without one.

        Parameters
        ----------
        message : MessageOfSchedule
            One that was received.
        into : ArrayOfSchedule, optional
            Into the same region of this array in place of the message's.
        """
        if into is None:
            if message.packed:
                self._on("unpack", message, False)
            return
        m = self._staged("unpack", message)
        self._into("unpack", into, self._builder._arrays[m.array])
        self._steps.append(("unpack", self._builder._local(m, into, m.region, m.buffer), 0))

    def copy(self, region: Region, into: Region | ArrayOfSchedule) -> None:
        """Copy a region to the same region of another array of equal dtype, by a buffer."""
        b = self._builder
        b._check_region("copy", region)
        self._into("copy", into, region.array)
        box, buffer = (region.lo, region.hi), b.buffer()
        out = b._local(None, region.array, box, buffer, send=True)
        b._buffers[buffer] = b._messages[out].bytes
        self._steps += [("pack", out, 0), ("unpack", b._local(None, into, box, buffer), 0)]

    def combine(self, left: Any, right: Any) -> None:
        """Combine two values of each element, as their array's `combine` says; the result is in a message's buffer.

        Parameters
        ----------
        left, right : MessageOfSchedule or Region
            Two received messages of one region: the buffer of the right one has the result. Or one of them and its
            region. What the buffer then holds can be sent on by another message that has the buffer
            (`ScheduleBuilder.send`, without a pack), or be unpacked.
        """
        b = self._builder
        into, other = (right, left) if isinstance(right, MessageOfSchedule) else (left, right)
        m = self._staged("combine", into)
        array = b._arrays[m.array]
        if array.combine is None:
            raise ConfigError(f"combine: array {array.name!r} has no operation; allowed: b.array(..., combine='sum')")
        if isinstance(other, Region):
            if other != Region(array, *m.region):
                raise ConfigError(f"combine: given {other}; allowed: the message's {Region(array, *m.region)}")
            count = ARRAY_LEFT if other is left else ARRAY_RIGHT
        else:
            theirs = self._staged("combine", other)
            if (b._arrays[theirs.array].combine, theirs.region) != (array.combine, m.region) or b._arrays[
                theirs.array
            ].dtype != array.dtype:
                raise ConfigError(
                    "combine: given messages of other regions, operations or dtypes; allowed: of equal ones"
                )
            count = other.number
        self._steps.append(("combine", into.number, count))

    def _staged(self, what, message):
        """The core's message, one that was received through a buffer."""
        b = self._builder
        known = isinstance(message, MessageOfSchedule) and message.builder is b
        if not known or message.send or not message.packed:
            allowed = "a message of b.receive(..., buffer=b.buffer())"
            raise ConfigError(f"{what}: given {shown(message)}; allowed: {allowed}")
        return b._messages[message.number]

    def _into(self, what, into, array):
        if into not in self._builder._arrays or into.dtype != array.dtype or len(into.shape) != len(array.shape):
            raise ConfigError(
                f"{what}: into: given {shown(into)}; allowed: an array of this builder, of the dtype and number of "
                f"dimensions of {array.name!r}"
            )

    def signal(self) -> Signal:
        """Count one further: what this lane has done so far is done for who awaits it.

        Returns
        -------
        Signal
        """
        self._count += 1
        self._steps.append(("signal", 0, self._count))
        return Signal(self, self._count)

    def await_signal(self, signal: Signal, before: int = 0) -> None:
        """Until another lane of this rank has counted that far.

        Parameters
        ----------
        signal : Signal
            Of the block and awaited in it, it is that of the same repetition; awaited behind it, that of the last one.
        before : int
            Awaited in the block: the signal of so many repetitions before; nothing to wait for in the first ones.
        """
        if not is_integer(before, 0):
            raise ConfigError(f"await_signal: before: given {shown(before)}; allowed: an integer >= 0")
        if not isinstance(signal, Signal) or signal.lane._builder is not self._builder:
            raise ConfigError(f"await_signal: given {shown(signal)}; allowed: what lane.signal() of this rank gave")
        self._steps.append(("await", signal.lane.number, (signal.count, int(before)) if before else signal.count))

    def _on(self, op, message, send=None):
        if not isinstance(message, MessageOfSchedule) or message.builder is not self._builder:
            raise ConfigError(
                f"{op}: given {shown(message)}; allowed: a message of this rank, from b.send or b.receive"
            )
        if send is not None and message.send != send:
            what = "send" if message.send else "receive"
            raise ConfigError(f"{op}: message {message.number} of rank {self._builder.rank} is a {what}")
        self._steps.append((op, message.number, 0))
