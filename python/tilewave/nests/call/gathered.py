"""Nests whose time steps may be gathered: a step reads what earlier steps have written, along whole axes, too."""


def steps_to_gather(nest, loops, bounds, downwards):
    """The number of the loop whose steps all ranks may compute and gather; -1 where the nest has none.

    Parameters
    ----------
    nest : Nest
    loops : Loops
    bounds : Bounds
    downwards : tuple of bool
    """
    if not nest.parameters.wholes or loops.periodic:
        return -1
    if any(low >= high for low, high in bounds.box) or any(name not in nest.axes for name in nest.written):
        return -1
    vectors = [each.vector for each in nest.dependences]
    firsts = {next(d for d, entry in enumerate(vector) if entry != 0) for vector in vectors}
    if len(firsts) != 1 or any(vector[min(firsts)] is None for vector in vectors):
        return -1  # a dependence within a step, or between all
    (time,) = firsts
    if loops.steps is not None and time > 0:
        return -1  # within each time step
    if any(place.phases for place in nest.places if place.array in nest.written):
        return -1
    for name in nest.written:
        places, index = [place for place in nest.places if place.array == name], nest.indices[time]
        written, *more = [place for place in places if place.written]
        sign = -1 if downwards[time] else 1
        back = {p: sign * (written.along.get(index, 0) - p.along.get(index, 0)) for p in places}
        if more or min(back.values()) < 0 or any(b == 0 and p is not written for p, b in back.items()):
            return -1
    return time
