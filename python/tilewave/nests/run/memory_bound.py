"""The least time of a run that the memory allows: what its arrays move, over what the machine's memory moves."""

import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class MemoryBound:
    """What moving a run's arrays between memory and processor takes at least.

    An element of an array that is only read is moved once, of a written one twice: there and back. Each sweep over the
    arrays moves them once; the steps of a temporal block (``plan.temporal_block``) are one sweep. Tables and arrays
    that keep a rolling window only do not count.

    Attributes
    ----------
    bytes_per_point : float
        Bytes moved over the points computed.
    working_set_bytes : int
        Of all these elements.
    lanes : int
        Lanes that move them at the same time on the fullest host.
    byte_s : float
        Seconds a byte moved, all lanes of all ranks together, as the machine's memory was measured for as large a
        working set a lane and as many lanes a host. Where the set fits a cache, the cache is meant.
    time_s : float
        ``points * bytes_per_point * byte_s``.
    fraction : float
        ``time_s`` over what the run took, moving fields and NumPy arrays into another order included. Near 1 the memory
        bounds the run; where it is small computing does, or waiting.
    """

    bytes_per_point: float
    working_set_bytes: int
    lanes: int
    byte_s: float
    time_s: float
    fraction: float


def bound_of(moved, points, ranks, lanes_a_rank, machine, run_s):
    """The `MemoryBound` of a run of `run_s` seconds; None where nothing is known of the memory, or nothing was moved.

    Parameters
    ----------
    moved : (int, int)
        As `moved_by` gives it.
    points : int
        Computed over all ranks and steps.
    ranks, lanes_a_rank : int
    machine : the core's machine
    """
    bytes_, elements = moved
    if not machine.memory or bytes_ == 0 or run_s <= 0:
        return None
    hosts = list(machine.host_of[:ranks]) or [0] * ranks
    busy = max(hosts.count(host) for host in set(hosts)) * lanes_a_rank
    curve, lanes = machine.memory[min(busy, len(machine.memory)) - 1], ranks * lanes_a_rank
    within = min(max(elements / lanes, curve.x[0]), curve.x[-1])
    byte_s = curve.at(within) / 2 / lanes  # the curve is of bytes that are both read and written
    return MemoryBound(bytes_ / points, elements, busy, byte_s, bytes_ * byte_s, bytes_ * byte_s / run_s)


def moved_by(problem, plan, dtypes, windows, loops, points):
    """Bytes that a run of so many points moves at least, and the bytes of the elements that it touches: of arrays that
    are no rolling `windows`. It needs no arrays, which a report must not keep.
    """
    nest, extents = problem.nest, {index: len(range(*bounds)) for index, bounds in loops.items()}
    steps = max(extents[nest.time], 1) if problem.in_time else 1
    moved = elements = 0
    # By array: elements, and whether they are of one time step. Of several orders the one with most counts.
    touched = {}
    for view in nest.views:
        name = view.array
        if name in windows:
            continue
        one_buffer = name in problem.in_time or nest.time not in view.axes
        indices = [index for index in view.indices if not (problem.in_time and one_buffer and index == nest.time)]
        in_reach = math.prod(extents[index] for index in indices)  # more than points where bounds cut the box
        count = min(in_reach, points // steps if one_buffer else points)
        key = name, view.phases
        touched[key] = max(touched.get(key, (0, one_buffer)), (count, one_buffer))
    for (name, _), (count, one_buffer) in touched.items():
        bytes_ = count * dtypes[name].itemsize
        sweeps = math.ceil(steps / plan.temporal_block) if one_buffer else 1
        elements += bytes_
        moved += bytes_ * sweeps * (2 if name in nest.written else 1)
    return moved, elements
