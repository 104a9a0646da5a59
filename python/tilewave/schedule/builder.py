"""Building schedules step by step: the generators that users write."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewave import _core
from tilewave.errors import ConfigError, shown
from tilewave.schedule import embed
from tilewave.schedule.lanes import LaneOfSchedule
from tilewave.schedule.nests import NestOfSchedule, work_of
from tilewave.schedule.regions import ArrayOfSchedule, MessageOfSchedule, Region, integer, one_run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from tilewave.nest.nest import Nest
    from tilewave.schedule.schedule import Schedule

#: Of the messages of `_core.pattern_schedule`.
PATTERN_TAG = 8
#: Names that an array cannot have: `Schedule.run` has parameters of these names.
TAKEN = ("self", "context", "check", "functions", "times")


class ScheduleBuilder:
    """Writes the schedule of one rank; `tilewave.Schedule.build` hands it to a generator.

    Attributes
    ----------
    rank, ranks : int
    """

    rank: int
    ranks: int

    def __init__(self, rank: int, ranks: int, functions: list[Any], kernels: list[Any]) -> None:
        self.rank, self.ranks = rank, ranks
        self._functions, self._kernels, self._arrays, self._storages = functions, kernels, [], []
        self._messages, self._buffers, self._lanes, self._works = [], [], [], {}
        self._tiles, self._results = [], []  # tiles with the numbers of their works
        self._repeated = None  # of the repeated block: by lane where it begins and ends

    def array(
        self,
        name: str,
        shape: int | Sequence[int],
        dtype: npt.DTypeLike = "f8",
        owned: slice | Sequence[slice] | None = None,
        storage: slice | Sequence[slice] | None = None,
        separate: bool = False,
        combine: str | None = None,
    ) -> ArrayOfSchedule:
        """Declare an array, the same on every rank and in the same order.

        Parameters
        ----------
        name : str
            The keyword by which `tilewave.Schedule.run` is given this rank's memory of it.
        shape : int or tuple of int
            Of the whole array: subscripts are global.
        dtype : numpy dtype
        owned : slice or tuple of slice, optional
            What this rank has at the begin, and must have at the end. Default: blocks of dimension 0, as even as can
            be, in the order of the ranks; of a separate array, all.
        storage : slice or tuple of slice, optional
            What this rank stores: what it owns, and what it receives of others. Default: what it owns.
        separate : bool
            Each rank has a whole array by this name, not a part of one.
        combine : {"sum", "prod", "min", "max"}, optional
            What combine steps do with two values of it, with the bits of NumPy.

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
        if combine is not None and not (isinstance(combine, str) and _core.combines(combine, dtype.name)):
            raise ConfigError(
                f"array {name!r}: combine: given {shown(combine)} for {dtype}; allowed: sum, prod, min, max as far "
                "as reductions have them for the dtype"
            )
        made.combine, made.separate = combine, bool(separate)
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

    def lane(self) -> LaneOfSchedule:
        """One more lane: a thread's list of steps. Lanes run at the same time.

        Returns
        -------
        LaneOfSchedule
        """
        self._lanes.append(LaneOfSchedule(self, len(self._lanes)))
        return self._lanes[-1]

    @contextlib.contextmanager
    def repeat(self) -> Iterator[None]:
        """Make a block of what lanes are given inside ``with b.repeat():``; it runs as often as a run asks for.

        A schedule has one block at most; each lane has its part of it, between what it does before and behind. Lanes do
        not meet between two repetitions, and messages, tags and buffers are used again, in order. Tasks of the block
        stand together in the program: their numbers, of all ranks, are between those of the tasks before and behind.
        """
        if self._repeated is not None:
            raise ConfigError("repeat: one block was written before, or is being written; allowed: one")
        begins = {lane.number: (len(lane._steps), lane._count) for lane in self._lanes}
        self._repeated = {}
        yield
        for lane in self._lanes:
            begin, count = begins.get(lane.number, (0, 0))
            self._repeated[lane.number] = begin, len(lane._steps)
            lane._growth = lane._count - count

    def buffer(self) -> int:
        """A staging buffer that several messages use in turn; it is as long as the longest of them needs.

        Returns
        -------
        int
        """
        self._buffers.append(0)
        return len(self._buffers) - 1

    def send(
        self, peer: int, region: Region, tag: int = 0, buffer: int | None = None, synchronous: bool = False
    ) -> MessageOfSchedule:
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
            region is one run of memory, else through another buffer.
        synchronous : bool
            The wait ends only when the receiver has matched the message.

        Returns
        -------
        MessageOfSchedule
        """
        return self._message(True, peer, region, tag, buffer, synchronous)

    def receive(self, peer: int, region: Region, tag: int = 0, buffer: int | None = None) -> MessageOfSchedule:
        """A message from rank `peer`, as `send`: to post, wait for and unpack in a lane."""
        return self._message(False, peer, region, tag, buffer, False)

    def _message(self, send, peer, region, tag, buffer, synchronous):
        name = "send" if send else "receive"
        peer, tag = integer(f"{name}: peer", peer), integer(f"{name}: tag", tag)
        if not 0 <= peer < self.ranks or peer == self.rank:
            raise ConfigError(f"{name}: rank {self.rank} gave peer {peer}; allowed: another of the {self.ranks} ranks")
        if not 0 <= tag < 1 << 30:
            raise ConfigError(f"{name}: tag {tag} was given; allowed: 0 to {(1 << 30) - 1}")
        self._check_region(name, region)
        m = _core.Message()
        m.peer, m.tag, m.send, m.synchronous = peer, tag, send, bool(synchronous)
        m.array, m.region = region.array.number, (region.lo, region.hi)
        m.bytes = region.array.dtype.itemsize * math.prod(h - l for l, h in zip(region.lo, region.hi, strict=True))
        if buffer is None and not one_run(region):
            buffer = self.buffer()
        if buffer is not None:
            if buffer not in range(len(self._buffers)):
                raise ConfigError(f"{name}: buffer {shown(buffer)} was given; allowed: what b.buffer() gave")
            self._buffers[buffer] = max(self._buffers[buffer], m.bytes)
            m.buffer = buffer
        self._messages.append(m)
        return MessageOfSchedule(self, len(self._messages) - 1, send, buffer is not None)

    def result(self, region: Region, source: int, ranks: Sequence[int], *, number: int) -> None:
        """State what messages and combine steps bring about: between two works `region` becomes the values of `source`
        on some ranks, combined from left to right; of one rank, a copy.

        Parameters
        ----------
        region : Region
            Of an array that this rank stores.
        source : ArrayOfSchedule
            Of several ranks: a separate one that has `combine`.
        ranks : sequence of int
            In the order in which their values are combined.
        number : int
            It stands before the works of this number and above, and behind those below.
        """
        self._check_region("result", region)
        if source not in self._arrays:
            raise ConfigError(f"result: source: given {shown(source)}; allowed: an array of this builder")
        ranks = [integer("result: ranks", rank) for rank in ranks]
        if not ranks or not all(0 <= rank < self.ranks for rank in ranks):
            raise ConfigError(f"result: ranks: given {ranks}; allowed: one or more of 0 to {self.ranks - 1}")
        if len(ranks) > 1 and not (source.separate and source.combine):
            raise ConfigError(
                f"result: values of array {source.name!r} on {len(ranks)} ranks; "
                "allowed: of an array with separate=True and combine="
            )
        box = region.lo, region.hi
        number = integer("result: number", number)
        self._results.append(_core.Result(region.array.number, box, source.number, ranks, number))

    def nest(
        self,
        nest: Nest,
        arrays: Mapping[str, ArrayOfSchedule],
        over: Mapping[str, Any] | None = None,
        *,
        number: int,
        **scalars: Any,
    ) -> NestOfSchedule:
        """A nest among the works: its loops, over this box, are one entry of the program; compiled when it runs.

        Every rank that computes points of it declares it, with the same arguments. Of all ranks' tiles
        (`LaneOfSchedule.compute`) each point must be in one, and what points read must be there: messages for halos
        are the generator's to write.

        Parameters
        ----------
        nest : Nest
            All arrays have all loop indices as subscripts, in the order of the loops.
        arrays : dict
            By name in the body an array of this builder.
        over
            As in `tilewave.run`; loops go upwards.
        number : int
            Its place in the program.
        **scalars
            Of the nest.

        Returns
        -------
        NestOfSchedule
        """
        number = integer("nest: number", number)
        work, kernel, ranges = work_of(nest, arrays, over, scalars)
        if any(array not in self._arrays for array in arrays.values()):
            raise ConfigError(f"nest {nest.name!r}: an array of another builder was given; allowed: of this one")
        work.kernel = self._kernel(kernel)
        if number in self._works:
            raise ConfigError(f"nest: work {number} is given twice")
        self._works[number] = None, _core.Work(number, work)
        return NestOfSchedule(self, number, nest.indices, tuple(ranges))

    def pattern(
        self,
        kind: str,
        region: Region,
        into: ArrayOfSchedule | None = None,
        *,
        number: int,
        root: int = 0,
        columns: Sequence[int] | None = None,
        ranks: Sequence[int] | None = None,
        lane: LaneOfSchedule | None = None,
        tag: int = 0,
        algorithm: str | None = None,
        chunk_bytes: int = 32 << 10,
        buffers: int = 4,
    ) -> None:
        """A communication pattern, behind what the lanes have done so far: its messages and steps, and its results.

        Steps wait for those of this rank's other lanes that touch the same elements. `region` and what comes of it lie
        at the same place of their arrays; rows are dimension 0, and an array of one dimension is one row.

        Parameters
        ----------
        kind : {"broadcast", "reduce", "spread", "multi_reduce"}
            As the functions of these names (``tilewave.patterns``).
        region : Region
            broadcast: the root's values of it go to the others. reduce, multi_reduce: of a separate array that has
            `combine`. spread: each rank has its columns of it.
        into : ArrayOfSchedule, optional
            Of the result; none for broadcast.
        number : int
            The results stand before the works of this number and above.
        root : int
            Of broadcast and reduce: the root's place in `ranks`.
        columns : sequence of int, optional
            Of spread and multi_reduce: of each rank's part, side by side.
        ranks : sequence of int, optional
            That take part, in this order. Default: all.
        lane : LaneOfSchedule, optional
            Default: the first one.
        tag : int
            Of all its messages.
        algorithm : str, optional
            broadcast: "tree", "ring", "rounds", "direct"; reduce: "tree", "ring"; spread, multi_reduce: "ring",
            "direct". It decides the order of the combination (docs/guide/patterns.md).
        chunk_bytes, buffers : int
            As of the functions.
        """
        number, tag = integer("pattern: number", number), integer("pattern: tag", tag)
        ranks = embed.ranks_of(self, ranks)
        plan = algorithm, chunk_bytes, buffers
        made = embed.pattern_of(self, kind, region, into, root, columns, ranks, plan)
        if made is None:
            return
        core, regions = made
        part = embed.moved(self, core, regions, ranks, number, tag - PATTERN_TAG)
        embed.append(self, part, [r.array for r in regions], None if lane is None else [lane])

    def append(
        self,
        schedule: Schedule,
        arrays: Mapping[str, Any] | None = None,
        *,
        number: int,
        ranks: Sequence[int] | None = None,
        lanes: Sequence[LaneOfSchedule] | None = None,
        tag: int = 0,
    ) -> None:
        """Another schedule, built by `tilewave.Schedule.build`, behind what the lanes have done so far.

        Steps wait for those of this rank's other lanes that touch the same elements. Its buffers stay separate.

        Parameters
        ----------
        schedule : Schedule
            Of all ranks, or of this one. Those of `tilewave.schedule` are refused, as their halos belong to fields:
            `nest` adds their nest.
        arrays : dict, optional
            By name in the schedule: an array of this builder, or a region of one, which is the whole array there.
            Default: the array of the same name.
        number, tag : int
            Added to the numbers of its works and results, and to its tags.
        ranks : sequence of int, optional
            Its rank r is rank ranks[r]. Default: the same numbers.
        lanes : sequence of LaneOfSchedule, optional
            That go on with its lanes. Default: those of the same numbers, made where there are none.
        """
        number, tag = integer("append: number", number), integer("append: tag", tag)
        embed.require_schedule(schedule)
        ranks = embed.ranks_of(self, ranks, schedule.ranks)
        regions = embed.regions_of(self, schedule, arrays)
        if (core := embed.part_of_this_rank(self, schedule, ranks)) is None:
            return
        operations = [self._operation(function) for function in schedule._functions()]
        kernels = [self._kernel(kernel) for kernel in schedule._kernels]
        part = embed.moved(self, core, regions, ranks, number, tag, operations, kernels)
        embed.append(self, part, [r.array for r in regions], lanes)

    def _operation(self, function):
        """The number of a function among those of all ranks."""
        if function not in self._functions:
            self._functions.append(function)
        return self._functions.index(function)

    def _kernel(self, kernel):
        """The number of what a nest calls, as `_operation`."""
        for position, known in enumerate(self._kernels):
            if known.key() == kernel.key():
                return position
        self._kernels.append(kernel)
        return len(self._kernels) - 1

    def _check_region(self, what, region):
        if not isinstance(region, Region) or region.array not in self._arrays:
            raise ConfigError(
                f"{what}: region: given {shown(region)}; allowed: a region of this builder's arrays, as A[0:4]"
            )

    def _work(self, number, function, reads, writes, amount):
        """Number among the works of this rank, in the order of their first mention."""
        number = integer("task: number", number)
        if not callable(function):
            raise ConfigError(f"task {number}: function: given {shown(function)}; allowed: what can be called")
        for region in (*reads, *writes):
            self._check_region(f"task {number}", region)
        operation = self._operation(function)
        key = (operation, tuple(map(repr, reads)), tuple(map(repr, writes)), float(amount))
        known, work = self._works.setdefault(number, (key, None)), None
        if known[0] != key:
            raise ConfigError(f"task {number} is given twice, with other functions or regions")
        if known[1] is None:
            work = _core.TaskWork(operation, [r._core() for r in reads], [w._core() for w in writes], float(amount))
            self._works[number] = key, _core.Work(number, work)
        return self._tile(number)

    def _tile(self, number, tile=None):
        self._tiles.append((number, _core.Tile() if tile is None else tile))
        return len(self._tiles) - 1

    def _local(self, other, array, region, buffer, send=False):
        """A message from this rank to itself: what a buffer holds, as a region of an array."""
        m = _core.Message()
        m.peer, m.tag, m.send, m.buffer = self.rank, other.tag if other else 0, send, buffer
        m.array, m.region = array.number, region
        m.bytes = array.dtype.itemsize * math.prod(h - l for l, h in zip(*region, strict=True))
        self._messages.append(m)
        return len(self._messages) - 1

    def _made(self):
        core = _core.Schedule()
        core.rank, core.ranks, core.arrays, core.messages = self.rank, self.ranks, self._storages, self._messages
        core.buffers = self._buffers
        numbers = sorted(self._works)
        place = {number: position for position, number in enumerate(numbers)}
        core.works = [self._works[number][1] for number in numbers]
        for number, tile in self._tiles:
            tile.work = place[number]
        lanes = []
        for lane in self._lanes:
            steps = []
            for op, item, count in lane._steps:
                if op == "await" and isinstance(count, tuple):  # of a repetition before
                    count = count[0] - count[1] * self._lanes[item]._growth
                steps.append(_core.Step(op, item, count))
            lanes.append(steps)
        core.tiles, core.lanes = [tile for _, tile in self._tiles], lanes
        core.results = sorted(self._results, key=lambda result: result.number)
        if self._repeated is not None:
            core.repeated = [self._repeated.get(lane.number, (len(lane._steps),) * 2) for lane in self._lanes]
        return core
