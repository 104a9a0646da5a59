"""The plain Python loops that a nest means, at points in an order."""

import inspect


def run_body(nest, points, arrays, scalars, function=None):
    """The body, or another function in its place, at each point, in the order given."""
    scalars, function = dict(scalars or {}), function or nest.function
    order = [name for name in inspect.signature(nest.function).parameters if name not in nest.scalars]
    arguments = [arrays.get(name) for name in order]
    positions = [order.index(name) for name in nest.indices]
    for point in points:
        for position, value in zip(positions, point):
            arguments[position] = value
        function(*arguments, **scalars)
