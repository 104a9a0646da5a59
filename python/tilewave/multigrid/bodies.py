"""Nests of multigrid whose text follows from the grid: 1 to 3 dimensions, odd numbers of cells, axes that wrap."""

import functools
import itertools

import numpy as np

from tilewave.nest.nest import nest_from

INDICES = "ijk"


def units(dims):
    """Offsets to the next cell along each axis."""
    return tuple(tuple(int(d == axis) for d in range(dims)) for axis in range(dims))


def _at(dims, changed=None):
    """Subscripts of a point, those of some axes changed: {1: "j - 1"}."""
    return ", ".join((changed or {}).get(d, INDICES[d]) for d in range(dims))


def _made(name, arrays, dims, lines, scalars=()):
    """A nest of these statements; indices from 1 are cells, what is around them is 0."""
    parameters = [*arrays, *INDICES[:dims], *(["*", *scalars] if scalars else [])]
    return nest_from("\n    ".join([f"def {name}({', '.join(parameters)}):", *lines]) + "\n")


def link_name(offset):
    """The array of what couples a cell and the one `offset` below it: kx along the first axis, kxY for (1, -1)."""
    return "k" + "".join({0: "", 1: low, -1: low.upper()}[step] for step, low in zip(offset, "xyz", strict=False))


def _moved(offset, sign):
    return _at(len(offset), {d: f"{INDICES[d]} {'+' if sign * s > 0 else '-'} 1" for d, s in enumerate(offset) if s})


def _couplings(dims, links):
    """Arrays of what couples cells, with the element of u beyond it; the factor of a cell's value.

    `links`: offsets of the upper neighbours; None where what couples cells varies along its axis alone.
    """
    faces, names = [], []
    for offset in links or units(dims):
        names.append(link_name(offset) if links else "a" + link_name(offset)[1:])
        along = INDICES[offset.index(1)]
        for face, sign in ((along, -1), (f"{along} + 1", 1)):
            at = face if not links else _at(dims) if sign < 0 else _moved(offset, 1)
            faces.append((f"{names[-1]}[{at}]", f"u[{_moved(offset, sign)}]"))
    diagonal = f"d[{_at(dims)}]" if links else " + ".join([*(face for face, _ in faces), "sigma"])
    return names, " + ".join(f"{face} * {value}" for face, value in faces), diagonal


@functools.cache
def of_level(what, dims, links):
    """A "relax", "relax_colour", "residual" or "jacobi" of a grid; `links` as in `_couplings`."""
    at, (names, around, diagonal) = _at(dims), _couplings(dims, links)
    result, arrays = {"residual": ("r", ["r", "u", "f"]), "jacobi": ("u", ["u", "r"])}.get(what, ("u", ["u", "f"]))
    # A sweep waits for the value that it has just changed: all but two additions and a product come before that value.
    lines = [f"inverse = 1.0 / ({diagonal})"] if "relax" in what else []
    value = {
        "residual": f"= f[{at}] + ({around}) - ({diagonal}) * u[{at}]",
        "jacobi": f"+= weight * r[{at}] / ({diagonal})",
    }
    lines.append(f"{result}[{at}] {value.get(what, f'= (f[{at}] + {around}) * inverse')}")
    if what == "relax_colour":
        colour = f"({' + '.join(INDICES[:dims])}) % 2"
        if links and links != units(dims):
            colour = " + ".join(f"{2**d} * ({INDICES[d]} % 2)" for d in range(dims))
        lines = [f"if {colour} == colour:", *("    " + line for line in lines)]
    arrays += (["d"] if what == "jacobi" else [*names, "d"]) if links else names
    scalars = [] if links else ["sigma=0.0"]
    scalars += {"relax_colour": ["colour=0"], "jacobi": ["weight=0.8"]}.get(what, [])
    return _made(f"{what}_{'variable' if links else 'constant'}", arrays, dims, lines, scalars)


@functools.cache
def take(dims, masked=False):
    """The cells of f are what was given; those without material 0."""
    inside = _at(dims, {d: f"{INDICES[d]} + 1" for d in range(dims)})
    value = f"given[{_at(dims)}] if m[{inside}] > 0 else 0.0" if masked else f"given[{_at(dims)}]"
    return _made("take", ["f", "given", *("m" * masked)], dims, [f"f[{inside}] = {value}"])


@functools.cache
def hand_over(dims):
    """x is the cells of u, less a shift."""
    inside = _at(dims, {d: f"{INDICES[d]} + 1" for d in range(dims)})
    return _made("hand_over", ["x", "u"], dims, [f"x[{_at(dims)}] = u[{inside}] - shift"], ["shift=0.0"])


@functools.cache
def wrap(dims, axis, cells):
    """u around the cells along a periodic axis: one point along it, whose element c*i is that below the cells.

    For one rank along the axis: of several, each would keep all of u along it.
    """
    distance = cells + 2

    def u(element):
        return f"u[{_at(dims, {axis: f'{distance} * {INDICES[axis]} + {element}'})}]"

    return _made("wrap", ["u"], dims, [f"{u(0)} = {u(cells)}", f"{u(cells + 1)} = {u(1)}"])


#: Elements along a periodic axis of what goes from end to end: half of them lie with those who have either end.
ENDS = 4


@functools.cache
def give_ends(dims, axis, cells):
    """Elements 1 and 2 of e are the outermost cells along a periodic axis."""
    index = INDICES[axis]
    end = f"u[{_at(dims, {axis: f'{cells - 1} * {index} + 1'})}]"
    return _made("give_ends", ["e", "u"], dims, [f"e[{_at(dims, {axis: f'{index} + 1'})}] = {end}"])


@functools.cache
def take_ends(dims, axis, cells):
    """u around the cells along a periodic axis: below them the last of e, above them the first."""
    index = INDICES[axis]
    around = f"u[{_at(dims, {axis: f'{cells + 1} * {index}'})}]"
    lines = [
        f"if {index} == 0:",
        f"    {around} = e[{_at(dims, {axis: f'{index} + 2'})}]",
        "else:",
        f"    {around} = e[{_at(dims)}]",
    ]
    return _made("take_ends", ["u", "e"], dims, lines)


def _children(transfers):
    """Return for each finer cell of a coarse one, along each axis "low", "high", or "" where the axis stays."""
    return itertools.product(*([""] if t == "same" else ["low", "high"] for t in transfers))


def _child(dims, sides):
    index = {"": "{0}", "low": "2 * {0} - 1", "high": "2 * {0}"}
    return _at(dims, {d: index[side].format(INDICES[d]) for d, side in enumerate(sides)})


@functools.cache
def restrict(transfers):
    """The mean of the finer cells; beyond an odd number of cells the finer residual is 0. The coarse u begins as 0."""
    dims = len(transfers)
    children = [f"r[{_child(dims, sides)}]" for sides in _children(transfers)]
    lines = [f"f[{_at(dims)}] = {1 / len(children)} * ({' + '.join(children)})", f"u[{_at(dims)}] = 0.0"]
    return _made("restrict", ["f", "u", "r"], dims, lines)


def follow_name(parity, step):
    """The array of weights of finer cells of a parity, for the coarse cell so many steps above."""
    return "w" + "".join(str(p + s) for p, s in zip(parity, step, strict=True))


def _finer(parity, step, halved):
    """A finer cell that is interpolated from a coarse one, which is `step` above its own."""
    move = {d: 2 * s + 1 - p for d, (p, s, h) in enumerate(zip(parity, step, halved, strict=True)) if h}
    return _at(len(parity), {d: f"2 * {INDICES[d]}" + (f" - {m}" if m else "") for d, m in move.items()})


@functools.cache
def restrict_following(halved, weights):
    """The transpose of `follow`; `weights`: its pairs of parity and step."""
    dims = len(halved)
    terms = [f"r[{_finer((0,) * dims, (0,) * dims, halved)}]"]
    for parity, step in weights:
        terms.append(f"{follow_name(parity, step)}[{_moved(step, -1)}] * r[{_finer(parity, step, halved)}]")
    lines = [f"f[{_at(dims)}] = {' + '.join(terms)}", f"u[{_at(dims)}] = 0.0"]
    return _made("restrict", ["f", "u", "r", *itertools.starmap(follow_name, weights)], dims, lines)


@functools.cache
def follow(halved, weights, masked):
    """Give the lower one of each pair of cells the coarse value, the other one what weights make of it and the next."""
    dims, lines = len(halved), []
    here = (0,) * dims
    for parity, pairs in itertools.groupby([(here, here), *weights], lambda pair: pair[0]):
        cell = _finer(parity, here, halved)
        terms = [(f"{follow_name(p, s)}[{_at(dims)}] * " if any(p) else "") + f"e[{_moved(s, 1)}]" for p, s in pairs]
        lines.append(f"u[{cell}] += {f'm[{cell}] * ' if masked else ''}({' + '.join(terms)})")
    return _made("correct", ["u", "e", *itertools.starmap(follow_name, weights), *("m" * masked)], dims, lines)


def weight_names(transfers):
    """Arrays of `correct` by axis: of the neighbours below and above, and what is 1 where there is an upper cell."""
    names = {"pairs": ("l", "h"), "odd": ("l", "h", "m"), "same": ()}
    return [[kind + "xyz"[d] for kind in names[t]] for d, t in enumerate(transfers)]


@functools.cache
def correct(transfers, masked, equal):
    """Linear along each axis from the coarse cell and its neighbour there.

    Equal: the coarse cell's value in all of its finer ones, the transpose of `restrict`, but for a factor. Masked: in
    cells with material, where m is 1.
    """
    dims, lines = len(transfers), []
    for sides in _children(transfers):
        parts, factor = [f"e[{_at(dims)}]"], ""
        for d, side in enumerate(sides):
            if not side:
                continue
            neighbour = f"{INDICES[d]} {'-' if side == 'low' else '+'} 1"
            if not equal:
                parts.append(f"{side[0]}{'xyz'[d]}[{INDICES[d]}] * (e[{_at(dims, {d: neighbour})}] - e[{_at(dims)}])")
            if side == "high" and transfers[d] == "odd":
                factor += f"m{'xyz'[d]}[{INDICES[d]}] * "
        factor += f"m[{_child(dims, sides)}] * " if masked else ""
        lines.append(f"u[{_child(dims, sides)}] += {factor}({' + '.join(parts)})")
    names = [name for along in weight_names(transfers) for name in along if name.startswith("m") or not equal]
    return _made("correct", ["u", "e", *names, *("m" * masked)], dims, lines)


@functools.cache
def correct_regularly(dims):
    """`correct` where each coarse cell is two equal ones along each axis: arrays have what is added to 3/4."""
    at, lines = _at(dims), []
    for sides in _children(("pairs",) * dims):
        factors = [str(1 - 0.25 * dims), *(f"{side[0]}{'xyz'[d]}[{INDICES[d]}]" for d, side in enumerate(sides))]
        steps = [f"{INDICES[d]} {'-' if side == 'low' else '+'} 1" for d, side in enumerate(sides)]
        neighbours = " + ".join(f"e[{_at(dims, {d: step})}]" for d, step in enumerate(steps))
        lines.append(f"u[{_child(dims, sides)}] += ({' + '.join(factors)}) * e[{at}] + 0.25 * ({neighbours})")
    return _made("correct", ["u", "e", *(side + axis for side in "lh" for axis in "xyz"[:dims])], dims, lines)


@functools.cache
def solve(shape):
    """u of the grid that is solved directly: all its cells are neighbours, so the inverse matrix is a stencil."""
    dims, steps = len(shape), list(_steps(shape))
    terms = []
    for number, step in enumerate(steps):
        f = _at(dims, {d: f"{INDICES[d]} + {s}" if s >= 0 else f"{INDICES[d]} - {-s}" for d, s in enumerate(step) if s})
        terms.append(f"w[{_at(dims, {0: f'{len(steps)} * i + {number}'})}] * f[{f}]")
    return _made("solve", ["u", "f", "w"], dims, [f"u[{_at(dims)}] = ({' + '.join(terms)})"])


def _steps(shape):
    """From a cell to each that may be another one."""
    return itertools.product(*(range(1 - n, n) for n in shape))


def inverse_as_stencil(shape, inverse):
    """The array w of `solve`."""
    steps = list(_steps(shape))
    w = np.zeros([(shape[0] + 2) * len(steps), *(n + 2 for n in shape[1:])], inverse.dtype)
    numbers = np.arange(len(inverse)).reshape(shape)
    for cell in np.ndindex(*shape):
        for number, step in enumerate(steps):
            other = tuple(c + s for c, s in zip(cell, step, strict=True))
            if all(0 <= o < n for o, n in zip(other, shape, strict=True)):
                at = (len(steps) * (cell[0] + 1) + number, *(c + 1 for c in cell[1:]))
                w[at] = inverse[numbers[cell], numbers[other]]
    return w


# Conjugate gradients.


@functools.cache
def begin(dims, residuals, zeros):
    """x is u; arrays for the residual are the one that is given; others begin as 0. Names of one letter."""
    at = _at(dims)
    lines = [f"x[{at}] = u[{at}]", *(f"{name}[{at}] = given[{at}]" for name in residuals)]
    lines += [f"{name}[{at}] = 0.0" for name in zeros]
    return _made("begin", ["x", *residuals, *zeros, "u", "given"], dims, lines)


@functools.cache
def hand_back(dims):
    """u is the solution so far."""
    at = _at(dims)
    return _made("hand_back", ["u", "x"], dims, [f"u[{at}] = x[{at}]"])


@functools.cache
def real_part(dims):
    """u without its imaginary part."""
    at = _at(dims)
    return _made("real_part", ["u"], dims, [f"u[{at}] = np.real(u[{at}])"])


@functools.cache
def advance(dims):
    """A step along p, the next direction; u begins as 0 for the preconditioner."""
    at = _at(dims)
    lines = [
        f"along = u[{at}] + beta * p[{at}]",
        f"image = w[{at}] + beta * s[{at}]",
        f"p[{at}] = along",
        f"s[{at}] = image",
        f"x[{at}] += alpha * along",
        f"f[{at}] -= alpha * image",
        f"u[{at}] = 0.0",
    ]
    return _made("advance", list("xfpsuw"), dims, lines, ["alpha", "beta"])


@functools.cache
def apply(dims, links, hermitian):
    """w = A u, and what is summed for the next step: products of u with the residual f, with w and with s."""
    at, (names, around, diagonal) = _at(dims), _couplings(dims, links)
    conjugate = f"np.conj(u[{at}])" if hermitian else f"u[{at}]"
    lines = [
        f"image = ({diagonal}) * u[{at}] - ({around})",
        f"w[{at}] = image",
        f"uf = {conjugate} * f[{at}]",
        f"uw = {conjugate} * image",
        f"us = {conjugate} * s[{at}]",
    ]
    return _made("apply", [*"wufs", *names, *(["d"] if links else [])], dims, lines, [] if links else ["sigma"])


# Minimal residuals.


@functools.cache
def step(dims):
    """The solution by the vector before, and the next vector of w = A u; u begins as 0 for the preconditioner."""
    at = _at(dims)
    lines = [
        f"direction = az * z[{at}] + ap * p[{at}] + aq * q[{at}]",
        f"following = cw * w[{at}] + cf * f[{at}] + cb * b[{at}]",
        f"q[{at}] = p[{at}]",
        f"p[{at}] = direction",
        f"x[{at}] += far * direction",
        f"r[{at}] = keep * r[{at}] + add * f[{at}]",
        f"b[{at}] = f[{at}]",
        f"f[{at}] = following",
        f"z[{at}] = u[{at}]",
        f"u[{at}] = 0.0",
    ]
    return _made("step", list("xpqrbfzuw"), dims, lines, "az ap aq far keep add cw cf cb".split())
