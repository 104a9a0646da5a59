"""Sources and receivers of a run: how they are drawn, given, and what they mean."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

import tilewave as tw
from random_programs.boxes import box_of

#: Widths of the Kaiser window by the radius (Hicks 2002, table 1).
KAISER = {2: 2.94, 3: 4.53, 4: 4.14, 5: 5.26}


@dataclasses.dataclass
class Points:
    """Points of an array, on the grid (integers) or off it, which may move; `values` are added, or None: recorded."""

    at: np.ndarray
    values: np.ndarray | None = None
    sinc: int = 0  # the radius, else linear
    origin: float = 0.0
    spacing: float = 1.0
    order: str = "C"

    @property
    def on_grid(self):
        return self.at.dtype.kind == "i"

    def given(self):
        """What `inject` and `record` take."""
        at = np.array(self.at, order=self.order)
        if not self.on_grid:
            kind = ("sinc",) if self.sinc else ()
            more = {"radius": self.sinc} if self.sinc else {}
            at = tw.OffGrid(at * self.spacing + self.origin, *kind, **more, origin=self.origin, spacing=self.spacing)
        return at if self.values is None else (at, np.array(self.values, order=self.order))

    def text(self):
        at = f"np.array({self.at.tolist()}, order={self.order!r})"
        if not self.on_grid:
            kind = f", 'sinc', radius={self.sinc}" if self.sinc else ""
            scale = f"origin={self.origin}, spacing={self.spacing}"
            at = f"tw.OffGrid({at} * {self.spacing} + {self.origin}{kind}, {scale})"
        return at if self.values is None else f"({at}, np.array({self.values.tolist()}, {self.values.dtype.str!r}))"

    def neighbours(self, step, shape):
        """Of each point the list of (index, weight)."""
        for point in self.at[step] if self.at.ndim == 3 else self.at:
            yield [(tuple(point.tolist()), 1.0)] if self.on_grid else self._around(point, shape)

    def _around(self, point, shape):
        point = (point * self.spacing + self.origin - self.origin) / self.spacing
        axes = []
        for x in point:
            first = np.floor(x)
            fraction = x - first
            if not self.sinc:
                weights = [(0, 1.0 - fraction), (1, fraction)]
            else:
                b, ks = KAISER[self.sinc], np.arange(1 - self.sinc, self.sinc + 1)
                window = np.i0(b * np.sqrt(1 - ((ks - fraction) / self.sinc) ** 2))
                found = np.sinc(ks - fraction) * window / np.i0(b) if fraction else 1.0 * (ks == 0)
                weights = list(zip(ks.tolist(), found, strict=True))
            axes.append([(int(first) + k, weight) for k, weight in weights])
        for each in itertools.product(*axes):
            weight = np.float64(1)
            for _, factor in each:
                weight = weight * factor
            index = tuple(k for k, _ in each)
            if weight != 0 and all(0 <= k < n for k, n in zip(index, shape, strict=True)):
                yield index, weight


def visit(array, step, sources, receivers):
    """Add to an array after a time step, then record; the row of what is recorded."""
    wide = "c16" if array.dtype.kind == "c" else "f8"
    for k, around in enumerate(sources.neighbours(step, array.shape)) if sources is not None else ():
        value = sources.values[step, k]
        for index, weight in around:
            array[index] = array[index] + value if sources.on_grid else array[index].astype(wide) + times(weight, value)
    row = []
    for around in receivers.neighbours(step, array.shape) if receivers is not None else ():
        if receivers.on_grid:
            row.append(array[next(iter(around))[0]])
            continue
        total = np.zeros((), wide)[()]
        for index, weight in around:
            total = total + times(weight, array[index])
        row.append(total)
    return np.array(row, array.dtype) if row else np.zeros(0, array.dtype)


def times(weight, number):
    """Complex numbers by parts."""
    if number.dtype.kind != "c":
        return weight * np.float64(number)
    wide = np.complex128(number)
    return np.complex128(complex(weight * wide.real, weight * wide.imag))


def draw_points(c, program, setting):
    """Draw sources and receivers of some arrays into a setting."""
    writers = {name: nest for nest in reversed(program.nests) for name in nest.written()}
    for name, nest in sorted(writers.items()):
        array = program.arrays[name]
        if array.times not in ("steps", "axis") or 0 in setting.shapes[name] or array.dtype.kind == "b":
            continue
        off = array.dtype.kind in "fc" and array.times == "steps"
        if c.chance(0.6):
            setting.inject[name] = _drawn(c, (program, nest, setting), array, off and c.chance(0.6), True)
        if c.chance(0.6):
            setting.record[name] = _drawn(c, (program, nest, setting), array, off and c.chance(0.5), False)
    setting.kinds |= {f"{what} points" for what in ("inject", "record") if getattr(setting, what)}


def _drawn(c, place, array, off, adds):
    program, nest, setting = place
    shape, count, steps = setting.shapes[array.name], c.between(1, 6), setting.steps
    numbers = np.random.default_rng(c.below(1000))
    moving = (steps,) if off and c.chance(0.5) else ()
    low, high = np.zeros(len(shape), int), np.array(shape)
    older = adds and any("history" in each for each in program.kinds)  # values of elements that are written
    if array.times == "steps" and (older or c.chance(0.5)):
        off, moving, box = False, (), box_of(nest, program, setting)
        low, high = (np.array([box[index][side] for index in array.axes]) for side in (0, 1))
        if (high <= low).any():
            low, high = np.zeros(len(shape), int), np.zeros(len(shape), int)
            count = 0
    if off:
        at = numbers.random((*moving, count, len(shape))) * (high - 1)
        at = np.where(numbers.random(at.shape) < 0.3, np.round(at), at)
        setting.kinds.add("moving points" if moving else "points off the grid")
    else:
        at = numbers.integers(low, np.maximum(high, low + 1), (count, len(shape)))
        if older and array.times == "steps":
            target = next(target for target, written in nest.accesses() if written and target.array == array.name)
            at = at * [each.factor for each in target.at[1:]] + [each.offset for each in target.at[1:]]
    if count > 1 and c.chance(0.4):
        at[..., 1, :] = at[..., 0, :]
    points = Points(at, order=c.pick("C", "F"))
    if off and c.chance(0.4):
        points.sinc, points.origin, points.spacing = c.pick(2, 3, 4), c.pick(0.0, -3.0), c.pick(1.0, 0.25)
    if adds:
        whole = array.dtype.kind in "iu"
        values = numbers.integers(0, 5, (steps, count)) if whole else numbers.normal(size=(steps, count))
        points.values = values.astype(array.dtype)
    return points
