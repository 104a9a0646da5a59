"""What a run of a nest means: its plain Python loops, slowly."""

import itertools

import numpy as np

from tilewave.errors import ConfigError
from tilewave.nest.reference import run_body


def plain_loops(nest, bounds, arrays, scalars=None, reverse=(), steps=None, history=None):
    """Run the body of a nest as plain nested loops, in place: slow, and the definition.

    Parameters
    ----------
    nest : Nest
    bounds : Bounds
        Of all loop indices; with `steps` the first one, time, runs from 0 to `steps`.
    arrays : dict
        NumPy arrays by name; the written ones are changed.
    scalars : dict, optional
    reverse : sequence of str
        Indices whose loops run downwards. The loops stay nested in the order of the indices.
    steps : int, optional
        Time steps. Arrays whose subscripts begin with ``nest.time`` are then given without that axis: they are time
        step 0. Time step t+1 starts as a copy of time step t, so that points which no statement writes keep their
        values; then the loops over the other indices run. The array ends as time step `steps`.
    history : dict, optional
        With `steps`: from names to the earlier time steps, step -1 first, as lists of arrays, which are changed to
        those before time step `steps`. Time steps that are read and not given are copies of time step 0.
    """
    with np.errstate(all="ignore"):
        if steps is None:
            run_body(nest, bounds.points(reverse), arrays, scalars)
        else:
            run_in_time(nest, bounds, arrays, scalars, reverse, steps, history or {})


class Times:
    """An array with all time buffers, those before time step 0 too, which a list would take for its last ones."""

    def __init__(self, all_times, zero):
        self.all_times, self.zero = all_times, zero

    def _at(self, subscripts):
        t, *space = subscripts if isinstance(subscripts, tuple) else (subscripts,)
        return t + self.zero, *space

    def __getitem__(self, subscripts):
        return self.all_times[self._at(subscripts)]

    def __setitem__(self, subscripts, value):
        self.all_times[self._at(subscripts)] = value


def run_in_time(nest, bounds, arrays, scalars, reverse, steps, history):
    if nest.time is None or nest.time in reverse or bounds.ranges[0] != from_zero(steps, len(bounds.indices)):
        raise ConfigError(
            f"steps={steps}: allowed for a nest whose first index is time; that loop runs "
            f"upwards over (0, {steps}); given {bounds.box[0]}, reverse {tuple(reverse)}"
        )
    in_time = list(
        dict.fromkeys(
            place.array
            for place in nest.places
            if place.axes[0] == nest.time and arrays[place.array].ndim == len(place.axes) - 1
        )
    )
    buffers = {}
    for name in in_time:
        given = history.get(name, [])
        zero = max(len(given), -min((place.offsets[0] for place in nest.places if place.array == name), default=0))
        buffers[name] = Times(np.empty((zero + steps + 1, *arrays[name].shape), arrays[name].dtype), zero)
        buffers[name].all_times[: zero + 1] = arrays[name]
        for back, level in enumerate(given, 1):
            buffers[name].all_times[zero - back] = level
    sweeps = itertools.groupby(bounds.points(reverse), key=lambda point: point[0])
    t, points = next(sweeps, (None, ()))
    for step in range(steps):
        for name in in_time:
            buffers[name][step + 1,] = buffers[name][step,]
        if t == step:  # a time step may have no points
            run_body(nest, points, {**arrays, **buffers}, scalars)
            t, points = next(sweeps, (None, ()))
    for name in in_time:
        arrays[name][...] = buffers[name][steps,]
        for back, level in enumerate(history.get(name, []), 1):
            level[...] = buffers[name].all_times[buffers[name].zero + steps - back]


def from_zero(steps, rank):
    zeros = (0,) * rank
    return ((zeros, 0, 1),), ((zeros, steps, 1),)
