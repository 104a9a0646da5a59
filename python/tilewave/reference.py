"""What a run of a nest means: its plain Python loops, slowly."""
import inspect
import itertools

import numpy as np

from .errors import ConfigError


def plain_loops(nest, bounds, arrays, scalars=None, reverse=(), steps=None):
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
        Time steps. Arrays whose subscripts begin with ``nest.time`` are then given without that
        axis: they are level 0. Level t+1 starts as a copy of level t, so that points which no
        statement writes keep their values; then the loops over the other indices run. The array
        ends as level `steps`.
    """
    with np.errstate(all="ignore"):
        if steps is None:
            _run(nest, bounds.points(reverse), arrays, scalars)
        else:
            _run_in_time(nest, bounds, arrays, scalars, reverse, steps)


def _run_in_time(nest, bounds, arrays, scalars, reverse, steps):
    if nest.time is None or nest.time in reverse or bounds.ranges[0] != _from_zero(steps, len(bounds.indices)):
        raise ConfigError(f"steps={steps}: allowed for a nest whose first index is time; that loop runs "
                          f"upwards over (0, {steps}); given {bounds.box[0]}, reverse {tuple(reverse)}")
    in_time = [name for name, axes in nest.axes.items()
               if axes[0] == nest.time and arrays[name].ndim == len(axes) - 1]
    levels = {name: np.empty((steps + 1, *arrays[name].shape), arrays[name].dtype) for name in in_time}
    for name in in_time:
        levels[name][0] = arrays[name]
    sweeps = itertools.groupby(bounds.points(reverse), key=lambda point: point[0])
    t, points = next(sweeps, (None, ()))
    for step in range(steps):
        for name in in_time:
            levels[name][step + 1] = levels[name][step]
        if t == step:  # a time step may have no points
            _run(nest, points, {**arrays, **levels}, scalars)
            t, points = next(sweeps, (None, ()))
    for name in in_time:
        arrays[name][...] = levels[name][steps]


def _from_zero(steps, rank):
    zeros = (0,) * rank
    return ((zeros, 0),), ((zeros, steps),)


def _run(nest, points, arrays, scalars):
    """The body at each point, in the order given."""
    scalars = dict(scalars or {})
    order = [name for name in inspect.signature(nest.function).parameters if name not in nest.scalars]
    arguments = [arrays.get(name) for name in order]
    positions = [order.index(name) for name in nest.indices]
    for point in points:
        for position, value in zip(positions, point):
            arguments[position] = value
        nest.function(*arguments, **scalars)
