"""Random general problems on ranks as threads, beside what plain loops give."""

import numpy as np
from general_sweeps import environment, plain_loops
from local_ranks import on_ranks
from row_functions import row_function

import tilewave as tw
from tilewave import _core

@row_function
def mix_places(ptr, step, n, index, direction, env):
    """Each written place = a multiple of 1 + a weighted sum of all places and of the index, in wrapping int64.

    What it leaves there is also written to the table after the places: point after point, place after place.
    """
    places, dims = env[0], env[2]
    box = 3 + 2 * places  # low and extents of the loop indices
    for q in range(n):
        value = np.int64(1)
        for p in range(places):
            if env[3 + p]:
                value += (p + 2) * ptr[p][q * step[p] // 8]
        for k in range(env[2]):
            value += (index[k] + q * direction[k]) * (k + 3)
        for p in range(env[1]):
            if not env[3 + places + p] or (value >> p) % 4 != 0:
                ptr[p][q * step[p] // 8] = value * (2 * p + 1)
        at = 0
        for k in range(dims):
            at = at * env[box + dims + k] + index[k] + q * direction[k] - env[box + k]
        for p in range(env[1]):
            ptr[places][at * (env[1] + 1) + p] = ptr[p][q * step[p] // 8]
        ptr[places][at * (env[1] + 1) + env[1]] += 1
    return 0


class Records:
    """What the points of a rank have left at the places that they write, and how often each was computed."""

    def __init__(self, case):
        self.low, self.extents = np.array(case.space[0]), np.array(case.space[1]) - np.array(case.space[0])
        self.written = [p for p in case.accesses if p[2]]
        self.values = np.zeros(
            (max(0, self.extents.prod()) if (self.extents > 0).all() else 0, len(self.written) + 1), dtype=np.int64
        )

    def put(self, place, array, axes):
        """Write what was left at a place, an array's only one, to the array."""
        points = np.flatnonzero(self.values[:, -1])
        x = (
            np.stack(np.unravel_index(points, self.extents), axis=1).reshape(-1, len(self.low)) + self.low
            if len(points)
            else np.empty((0, len(self.low)), int)
        )
        array[tuple(x[:, k] + self.written[place][1][k] for k in axes)] = self.values[points, place]


def given_values(case):
    """What the arrays of a case hold before the run."""
    rng = np.random.default_rng(case.seed)
    shapes = [tuple(x + 3 if whole else x for x in own) for _, whole, own, *_ in case.arrays]
    return [rng.integers(-1000, 1000, shape) for shape in shapes]


def placed(case, context, given, in_place=False):
    """A case on one rank: its sweep, arrays, which of them are NumPy's and which are rolling windows, operands, their
    memory.
    """
    values = [
        a if whole or in_place else tw.field(a.shape, "i8", init=a, context=context)
        for a, (_, whole, *_) in zip([g.copy() for g in given], case.arrays)
    ]
    plain = [isinstance(v, np.ndarray) for v in values]
    sweep = _core.PreparedSweep(context._core, case.problem, case.plan)
    windows = [sweep.in_window(a) for a in range(len(values))]
    initial = [unset_values(sweep, a, given[a]) if rolls else None for a, rolls in enumerate(windows)]
    operands = [
        _core.RunArray.window(u.ctypes.data, False)
        if rolls
        else _core.RunArray(v.ctypes.data, v.strides)
        if p
        else _core.RunArray(v._storage)
        for v, p, rolls, u in zip(values, plain, windows, initial)
    ]
    return sweep, values, plain, windows, operands, initial


def run_case(case, lanes=None):
    """Run a case, perhaps with other lanes on some ranks (by rank), and compare all arrays with plain loops.

    Returns
    -------
    str
        What differs; empty if nothing does.
    """
    given = given_values(case)
    expected = plain_loops(case, given)
    low, high = (np.array(x) for x in case.space)
    env = np.concatenate([environment(case), low, high - low])
    history = any(offset[0] < 0 and case.arrays[a][4] for a, offset, *_ in case.accesses)
    in_place = case.ranks == 1 and case.seed % 3 == 0 and not history  # NumPy arrays have no earlier time steps

    def body(context):
        sweep, values, plain, windows, operands, _keep = placed(case, context, given, in_place)
        records = Records(case)
        if lanes:
            sweep.schedule.lanes = lanes[context.rank]
        sweep.run(
            operands,
            _core.Kernel(mix_places().address, env.ctypes.data, [records.values.ctypes.data]),
        )
        return [None if rolls else v if p else v.gather() for v, p, rolls in zip(values, plain, windows)], records

    results, errors = on_ranks(case.ranks, case.plan.lanes, body)
    if any(errors):
        return f"errors {errors}"
    found, records = results[0][0], results[0][1]
    for _, more in results[1:]:
        records.values += more.values  # a point is computed by one rank
    if _core.deep_halo(case.problem, case.plan)[0] < 0 and records.values.size and records.values[:, -1].max() > 1:
        return "points are computed twice"
    for a, array in enumerate(found):
        if array is None:
            found[a] = given[a].copy()
            records.put(
                next(p for p, place in enumerate(records.written) if place[0] == a), found[a], case.arrays[a][3]
            )
    wrong = [a for a, (array, wanted) in enumerate(zip(found, expected)) if not np.array_equal(array, wanted)]
    return f"arrays {wrong} differ from the plain loops" if wrong else ""


def unset_values(sweep, a, start):
    """What the elements hold that points read and none computes, of rolling-window arrays."""
    subscripts = np.frombuffer(sweep.initial(a), np.int64).reshape(-1, start.ndim)
    return np.ascontiguousarray(start[tuple(subscripts.T)])
