"""Random general problems on ranks as threads, beside what plain loops give."""
import ctypes

import numba
import numpy as np
from general_sweeps import environment, plain_loops
from local_ranks import on_ranks
from numba import types

import tilewave as tw
from tilewave import _core

INTS = types.CPointer(types.int64)


@numba.cfunc(types.int64(types.CPointer(INTS), INTS, types.int64, INTS, INTS, INTS))
def mix_places(ptr, step, n, index, direction, env):
    """Each written place = a multiple of 1 + a weighted sum of all places and of the index, in wrapping int64."""
    places = env[0]
    for q in range(n):
        value = numba.int64(1)
        for p in range(places):
            if env[3 + p]:
                value += (p + 2) * ptr[p][q * step[p] // 8]
        for k in range(env[2]):
            value += (index[k] + q * direction[k]) * (k + 3)
        for p in range(env[1]):
            if not env[3 + places + p] or (value >> p) % 4 != 0:
                ptr[p][q * step[p] // 8] = value * (2 * p + 1)
    return 0


def run_case(case, lanes=None):
    """Run a case, perhaps with other lanes on some ranks (by rank), and compare all arrays with plain loops.

    Returns
    -------
    str
        What differs; empty if nothing does.
    """
    rng = np.random.default_rng(case.seed)
    shapes = [tuple(x + 3 if whole else x for x in own) for _, whole, own, *_ in case.arrays]
    given = [rng.integers(-1000, 1000, shape) for shape in shapes]
    expected = plain_loops(case, given)
    env = environment(case)
    in_place = case.ranks == 1 and case.seed % 3 == 0

    def body(context):
        values = [a if whole or in_place else tw.field(a.shape, "i8", init=a, context=context)
                  for a, (_, whole, *_) in zip([g.copy() for g in given], case.arrays)]
        plain = [isinstance(v, np.ndarray) for v in values]
        operands = [_core.RunArray(v.ctypes.data, v.strides) if p else _core.RunArray(v._storage) for v, p in zip(values, plain)]
        sweep = _core.PreparedSweep(context._core, case.problem, case.plan)
        if lanes:
            sweep.schedule.lanes = lanes[context.rank]
        sweep.run(operands, ctypes.cast(mix_places.ctypes, ctypes.c_void_p).value, env.ctypes.data, None)
        return [v if p else v.gather() for v, p in zip(values, plain)]

    results, errors = on_ranks(case.ranks, case.plan.lanes, body)
    if any(errors):
        return f"errors {errors}"
    wrong = [a for a, (found, wanted) in enumerate(zip(results[0], expected)) if not np.array_equal(found, wanted)]
    return f"arrays {wrong} differ from the plain loops" if wrong else ""
