"""Building schedules step by step: the generators that users write."""

import contextlib
import dataclasses
import math

import numpy as np

from tilewave import _core
from tilewave.errors import ConfigError, shown
from tilewave.schedule.schedule import Schedule

#: Names that an array cannot have: `run_schedule` takes keywords of these names.
TAKEN = ("schedule", "context", "check", "functions", "times")


def build_schedule(generator, ranks, *arguments, rank=None):
    """Make a schedule by a function that writes the steps of one rank.

    Parameters
    ----------
    generator : function
        Called as ``generator(b, *arguments)`` with a `ScheduleBuilder` for each rank. It communicates nothing, and
        what it writes follows from its arguments, ``b.rank`` and ``b.ranks``.
    ranks : int
    *arguments
        Handed to the generator.
    rank : int, optional
        Only the part of this rank: for many ranks, where no process should make the parts of all. Such a part can be
        run, but neither proved nor predicted.

    Returns
    -------
    Schedule

    Raises
    ------
    ConfigError
        For regions outside their arrays, messages to ranks that there are none of, numbers that are given twice.
    """
    if isinstance(ranks, bool) or not isinstance(ranks, (int, np.integer)) or ranks < 1:
        raise ConfigError(f"build_schedule: ranks: given {shown(ranks)}; allowed: an integer >= 1")
    if rank is not None and rank not in range(ranks):
        raise ConfigError(f"build_schedule: rank: given {shown(rank)}; allowed: 0 to {ranks - 1}")
    functions, builders = [], []
    for number in range(ranks) if rank is None else [rank]:
        builders.append(ScheduleBuilder(number, int(ranks), functions))
        generator(builders[-1], *arguments)
    arrays = [[(a.name, a.shape, a.dtype) for a in b._arrays] for b in builders]
    for b, declared in zip(builders, arrays, strict=True):
        if declared != arrays[0]:
            raise ConfigError(
                f"build_schedule: rank {b.rank} declares other arrays than rank 0: {declared}, {arrays[0]}"
            )
    return Schedule({b.rank: b._made() for b in builders}, arrays[0], _names(functions), tuple(functions))


def _names(functions):
    """A name for each function, no two alike."""
    names = []
    for function in functions:
        name = getattr(function, "__name__", type(function).__name__)
        same = sum(other.split("#")[0] == name for other in names)
        names.append(f"{name}#{same + 1}" if same else name)
    return names


@dataclasses.dataclass(frozen=True)
class Region:
    """A box of an array: ``A[0:4, 2]``; an integer stands for a slice of one."""

    array: object
    lo: tuple
    hi: tuple

    def _core(self):
        return _core.Region(self.array.number, (self.lo, self.hi))

    def __repr__(self):
        return f"{self.array.name}[{', '.join(f'{l}:{h}' for l, h in zip(self.lo, self.hi, strict=True))}]"


class ArrayOfSchedule:
    """An array that a builder has declared; subscripts give regions of it, in global indices.

    Attributes
    ----------
    name : str
    shape : tuple of int
    dtype : numpy.dtype
    storage, owned : Region
        What this rank stores of it, and what it owns.
    """

    def __init__(self, number, name, shape, dtype):
        self.number, self.name, self.shape, self.dtype = number, name, shape, dtype
        self.storage = self.owned = None

    def __getitem__(self, subscripts):
        given = subscripts if isinstance(subscripts, tuple) else (subscripts,)
        if len(given) > len(self.shape):
            raise ConfigError(f"array {self.name!r}: {len(given)} subscripts were given; it has {len(self.shape)}")
        pairs = [self._range(s, extent) for s, extent in zip(given, self.shape, strict=False)]
        pairs += [(0, extent) for extent in self.shape[len(given) :]]
        return Region(self, tuple(lo for lo, _ in pairs), tuple(hi for _, hi in pairs))

    def _range(self, subscript, extent):
        try:
            if isinstance(subscript, slice):
                if subscript.step not in (None, 1):
                    raise TypeError
                lo = 0 if subscript.start is None else int(subscript.start.__index__())
                hi = extent if subscript.stop is None else int(subscript.stop.__index__())
            else:
                lo = int(subscript.__index__())
                hi = lo + 1
        except (TypeError, AttributeError):
            raise ConfigError(
                f"array {self.name!r}: subscript {shown(subscript)} was given; "
                "allowed: integers, and slices without a step"
            ) from None
        if not 0 <= lo <= hi <= extent:
            raise ConfigError(
                f"array {self.name!r}: region [{lo}:{hi}] was given; allowed: within [0:{extent}], from low to high"
            )
        return lo, hi


@dataclasses.dataclass(frozen=True)
class MessageOfSchedule:
    """One message as its rank sees it; a builder's `send` and `receive` make it."""

    builder: object
    number: int
    send: bool
    packed: bool


@dataclasses.dataclass(frozen=True)
class Signal:
    """A lane's counter has this value; another lane can wait for it."""

    lane: object
    count: int


class ScheduleBuilder:
    """Writes the schedule of one rank; `tilewave.build_schedule` hands it to a generator.

    Attributes
    ----------
    rank, ranks : int
    """

    def __init__(self, rank, ranks, functions):
        self.rank, self.ranks = rank, ranks
        self._functions, self._arrays, self._storages = functions, [], []
        self._messages, self._buffers, self._lanes, self._works = [], [], [], {}
        self._repeated = None  # of the repeated block: by lane where it begins and ends

    def array(self, name, shape, dtype="f8", owned=None, storage=None, separate=False):
        """Declare an array, the same on every rank and in the same order.

        Parameters
        ----------
        name : str
            The keyword by which `tilewave.run_schedule` is given this rank's memory of it.
        shape : int or tuple of int
            Of the whole array: subscripts are global.
        dtype : numpy dtype
        owned : slice or tuple of slice, optional
            What this rank has at the begin, and must have at the end. Default: blocks of dimension 0, as even as can
            be, in the order of the ranks; of a separate array, all.
        storage : slice or tuple of slice, optional
            What this rank stores: what it owns, and what it receives of others. Default: what it owns.
        separate : bool
            Each rank has an array of its own by this name, not a part of one.

        Returns
        -------
        ArrayOfSchedule
        """
        shape = tuple(int(n) for n in (shape if isinstance(shape, tuple | list) else (shape,)))
        if not isinstance(name, str) or not name.isidentifier() or name in TAKEN:
            raise ConfigError(f"array: name: given {shown(name)}; allowed: an identifier other than {', '.join(TAKEN)}")
        if any(a.name == name for a in self._arrays):
            raise ConfigError(f"array {name!r} is declared twice")
        if not 1 <= len(shape) <= _core.limits["dims"] or min(shape) < 0:
            raise ConfigError(
                f"array {name!r}: shape {shape} was given; allowed: 1 to {_core.limits['dims']} extents >= 0"
            )
        dtype = np.dtype(dtype)
        if dtype.hasobject or not dtype.itemsize:
            raise ConfigError(f"array {name!r}: dtype {dtype} was given; allowed: those of plain numbers")
        made = ArrayOfSchedule(len(self._arrays), name, shape, dtype)
        made.owned = made[:] if separate else made[self._block(shape[0])]
        if owned is not None:
            made.owned = made[owned]
        made.storage = made.owned if storage is None else made[storage]
        core = _core.Array()
        core.item_bytes, core.separate = dtype.itemsize, bool(separate)
        core.storage, core.owned = (made.storage.lo, made.storage.hi), (made.owned.lo, made.owned.hi)
        self._arrays.append(made)
        self._storages.append(core)
        return made

    def _block(self, extent):
        return slice(extent * self.rank // self.ranks, extent * (self.rank + 1) // self.ranks)

    def lane(self):
        """One more lane: a thread's list of steps. Lanes run at the same time.

        Returns
        -------
        LaneOfSchedule
        """
        self._lanes.append(LaneOfSchedule(self, len(self._lanes)))
        return self._lanes[-1]

    @contextlib.contextmanager
    def repeat(self):
        """What lanes are written inside ``with b.repeat():`` is a block, which runs as often as a run asks for.

        A schedule has one block at most; each lane has its part of it, between what it does before and behind. Lanes do
        not meet between two repetitions, and messages, tags and buffers are used again, in order. Tasks of the block
        stand together in the program: their numbers, of all ranks, are between those of the tasks before and behind.
        """
        if self._repeated is not None:
            raise ConfigError("repeat: one block was written before, or is under way; allowed: one")
        begins = {lane.number: (len(lane._steps), lane._count) for lane in self._lanes}
        self._repeated = {}
        yield
        for lane in self._lanes:
            begin, count = begins.get(lane.number, (0, 0))
            self._repeated[lane.number] = begin, len(lane._steps)
            lane._growth = lane._count - count

    def buffer(self):
        """A staging buffer that several messages use in turn; it is as long as the longest of them needs.

        Returns
        -------
        int
        """
        self._buffers.append(0)
        return len(self._buffers) - 1

    def send(self, peer, region, tag=0, buffer=None, synchronous=False):
        """A message to rank `peer`: to pack, post and wait for in a lane.

        Parameters
        ----------
        peer : int
        region : Region
            The receiver's must be equal.
        tag : int
            Messages of one tag between two ranks meet in the order of their posts.
        buffer : int, optional
            The message goes through this staging buffer, from `buffer`. Default: straight from the array where the
            region is one run of memory, else through a buffer of its own.
        synchronous : bool
            The wait ends only when the receiver has matched the message.

        Returns
        -------
        MessageOfSchedule
        """
        return self._message(True, peer, region, tag, buffer, synchronous)

    def receive(self, peer, region, tag=0, buffer=None):
        """A message from rank `peer`, as `send`: to post, wait for and unpack in a lane."""
        return self._message(False, peer, region, tag, buffer, False)

    def _message(self, send, peer, region, tag, buffer, synchronous):
        name = "send" if send else "receive"
        peer, tag = _integer(f"{name}: peer", peer), _integer(f"{name}: tag", tag)
        if not 0 <= peer < self.ranks or peer == self.rank:
            raise ConfigError(f"{name}: rank {self.rank} gave peer {peer}; allowed: another of the {self.ranks} ranks")
        if not 0 <= tag < 1 << 30:
            raise ConfigError(f"{name}: tag {tag} was given; allowed: 0 to {(1 << 30) - 1}")
        self._mine(name, region)
        m = _core.Message()
        m.peer, m.tag, m.send, m.synchronous = peer, tag, send, bool(synchronous)
        m.array, m.region = region.array.number, (region.lo, region.hi)
        m.bytes = region.array.dtype.itemsize * math.prod(h - l for l, h in zip(region.lo, region.hi, strict=True))
        if buffer is None and not _one_run(region):
            buffer = self.buffer()
        if buffer is not None:
            if buffer not in range(len(self._buffers)):
                raise ConfigError(f"{name}: buffer {shown(buffer)} was given; allowed: what b.buffer() gave")
            self._buffers[buffer] = max(self._buffers[buffer], m.bytes)
            m.buffer = buffer
        self._messages.append(m)
        return MessageOfSchedule(self, len(self._messages) - 1, send, buffer is not None)

    def _mine(self, what, region):
        if not isinstance(region, Region) or region.array not in self._arrays:
            raise ConfigError(
                f"{what}: region: given {shown(region)}; allowed: a region of this builder's arrays, as A[0:4]"
            )

    def _work(self, number, function, reads, writes, amount):
        """Number among the works of this rank, in the order of their first mention."""
        number = _integer("task: number", number)
        if not callable(function):
            raise ConfigError(f"task {number}: function: given {shown(function)}; allowed: what can be called")
        for region in (*reads, *writes):
            self._mine(f"task {number}", region)
        if function not in self._functions:
            self._functions.append(function)
        operation = self._functions.index(function)
        key = (operation, tuple(map(repr, reads)), tuple(map(repr, writes)), float(amount))
        known, work = self._works.setdefault(number, (key, None)), None
        if known[0] != key:
            raise ConfigError(f"task {number} is given twice, with other functions or regions")
        if known[1] is None:
            work = _core.TaskWork(operation, [r._core() for r in reads], [w._core() for w in writes], float(amount))
            self._works[number] = key, _core.Work(number, work)
        return number

    def _made(self):
        core = _core.Schedule()
        core.rank, core.ranks, core.arrays, core.messages = self.rank, self.ranks, self._storages, self._messages
        core.buffers = self._buffers
        numbers = sorted(self._works)
        place = {number: position for position, number in enumerate(numbers)}
        core.works = [self._works[number][1] for number in numbers]
        tiles, lanes = [], []
        for lane in self._lanes:
            steps = []
            for op, item, count in lane._steps:
                if op == "await" and isinstance(count, tuple):  # of a repetition before
                    count = count[0] - count[1] * self._lanes[item]._growth
                if op == "compute":
                    tile = _core.Tile()
                    tile.work = place[item]
                    tiles.append(tile)
                    item = len(tiles) - 1
                steps.append(_core.Step(op, item, count))
            lanes.append(steps)
        core.tiles, core.lanes = tiles, lanes
        if self._repeated is not None:
            core.repeated = [self._repeated.get(lane.number, (len(lane._steps),) * 2) for lane in self._lanes]
        return core


class LaneOfSchedule:
    """A lane of a `ScheduleBuilder`: its steps, one after another.

    Attributes
    ----------
    number : int
    """

    def __init__(self, builder, number):
        self.number, self._builder, self._steps, self._count = number, builder, [], 0
        self._growth = 0  # what a repetition of the block adds to the count

    def task(self, function, reads=(), writes=(), amount=0.0, *, number):
        """Call ``function(*reads, *writes)`` with NumPy views of these regions.

        Parameters
        ----------
        function : function
            Views of what it reads are read-only. It writes all of what it writes, and touches nothing else. What it
            raises ends the run on every rank.
        reads, writes : sequence of Region
            A region in both lists is updated: it is handed over in both places.
        amount : float
            Of computing, for the prediction; in a unit of your own.
        number : int
            Its place in the sequential program that all ranks' schedules stand for. A task has the same number on every
            rank that calls it.
        """
        self._steps.append(("compute", self._builder._work(number, function, list(reads), list(writes), amount), 0))

    def post_send(self, message):
        """Start sending: until its wait the region, or its buffer, must not change."""
        self._on("post_send", message, True)

    def post_recv(self, message):
        """Start receiving: until its wait nobody may read or write the region, or its buffer."""
        self._on("post_recv", message, False)

    def wait(self, message):
        """Until the message is complete."""
        self._on("wait", message)

    def pack(self, message):
        """Copy the region into the message's buffer; nothing for a message without one."""
        if message.packed:
            self._on("pack", message, True)

    def unpack(self, message):
        """Copy the message's buffer into the region; nothing for a message without one."""
        if message.packed:
            self._on("unpack", message, False)

    def signal(self):
        """Count one further: what this lane has done so far is done for who awaits it.

        Returns
        -------
        Signal
        """
        self._count += 1
        self._steps.append(("signal", 0, self._count))
        return Signal(self, self._count)

    def await_signal(self, signal, before=0):
        """Until another lane of this rank has counted that far.

        Parameters
        ----------
        signal : Signal
            Of the block and awaited in it, it is that of the same repetition; awaited behind it, that of the last one.
        before : int
            Awaited in the block: the signal of so many repetitions before; nothing to wait for in the first ones.
        """
        if isinstance(before, bool) or not isinstance(before, (int, np.integer)) or before < 0:
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


def _integer(what, value):
    try:
        return int(value.__index__())
    except (AttributeError, TypeError):
        raise ConfigError(f"{what}: given {shown(value)}; allowed: an integer") from None


def _one_run(region):
    """Whether the region is one run of memory in what the rank stores, row by row."""
    partial = False  # a dimension further in is not whole
    storage = region.array.storage
    for lo, hi, first, end in reversed(list(zip(region.lo, region.hi, storage.lo, storage.hi, strict=True))):
        if partial and hi - lo > 1:
            return False
        partial = partial or (lo, hi) != (first, end)
    return True
