"""Loops over matrices that are nests only in another order, or with other arrays: lines of a function."""

import numpy as np

from random_programs.choices import Choices

#: Of the arrays that these loops have for themselves: two matrices, and a row.
OWN = "MNV"


def own_arrays(c):
    """Values of arrays that a program has not, by name."""
    size, numbers = c.pick(5, 1, 2, 3, 4, 7, 8, 9, 16, 17, 24), np.random.default_rng(c.below(1000))
    shapes = [tuple(size + c.below(3) * c.chance(0.2) for _ in range(dims)) for dims in (2, 2, 1)]
    return {name: numbers.uniform(-1.5, 1.5, shape) for name, shape in zip(OWN, shapes, strict=True)}


def reordered_lines(seed, program, setting):
    """Lines of loops over matrices of float64 that a program writes, and over own arrays; the first is their size."""
    c, shapes = Choices(f"reordered {seed}"), {name: np.shape(value) for name, value in setting.values.items()}
    written = [*dict.fromkeys(name for nest in program.nests for name in nest.written()), *OWN]
    floats = [name for name in written if name in shapes and setting.values[name].dtype == "f8"]
    matrices, rows = ([name for name in floats if len(shapes[name]) == rank] for rank in (2, 1))
    others = [name for name, shape in shapes.items() if len(shape) == 2 and setting.values[name].dtype.kind in "fi"]
    if not matrices:
        return [""]
    made = _Made(c, c.pick(*matrices), c.pick(*matrices, *others), c.pick(*rows) if rows else "")
    q = min((*shapes[made.P], *shapes[made.Q], *(shapes[made.T] if made.T else ())))
    lines = [f"size = {q}"]
    for _ in range(c.pick(1, 1, 2)):
        lines += getattr(made, c.pick(*made.kinds()))()
    return lines


class _Made:
    def __init__(self, choices, P, Q, T):
        self.c, self.P, self.Q, self.T = choices, P, Q, T

    def kinds(self):
        kinds = "elimination triangle mirror diagonal carried split".split() + ["each"] * bool(self.T)
        return kinds + ["swap"] * ({self.P, self.Q} == {*OWN[:2]})

    def _range(self, *more):
        return self.c.pick("range(i)", "range(i + 1)", "range(i, size)", "range(i + 1, size)", "range(size)", *more)

    def _outer(self):
        return self.c.pick("range(size)", "range(size)", "range(size - 1, -1, -1)", "range(1, size)")

    def elimination(self):
        c, P, w = self.c, self.P, self.c.chance(0.5)
        op, last = c.pick("-=", "+="), c.pick("{} / (3 + abs({}))", "{} * 0.5 + {}", "{} / {}")
        row = c.often(kj=5, jk=1, ik=1)
        row = f"{P}[{row[0]}, {row[1]}]"
        sizes = [c.pick("range(j)", "range(j)", "range(j)", "range(j + 1)"), c.pick("range(i)", "range(i)", "range(j)")]
        low = c.pick("range(i)", "range(i)", "range(i + 1)")
        high = c.pick("range(i, size)", "range(i, size)", "range(i + 1, size)")
        ends = [f"{P}[i, j] = {last}", f"{P}[i, j] = {{}}" if c.chance(0.8) else f"{P}[i, j] = {last}"]
        lines = [f"for i in {c.pick('range(size)', 'range(size)', 'range(1, size)')}:"]
        for js, ks, end in zip((low, high), sizes, ends, strict=True):
            name = "w" if w else f"{P}[i, j]"
            lines += [f"    for j in {js}:"] + [f"        w = {P}[i, j]"] * w
            lines += [f"        for k in {ks}:", f"            {name} {op} 0.25 * {P}[i, k] * {row}"]
            end = end.format(name, f"{P}{c.pick('[j, j]', '[j, j]', '[i, i]', '[j, i]')}")
            lines += [f"        {end}"] * (end != f"{P}[i, j] = {P}[i, j]")
        return lines

    def triangle(self):
        c, P, Q = self.c, self.P, self.Q
        read = c.pick(f"{Q}[k, i] * {P}[k, j]", f"{Q}[i, k] * {P}[k, j]", f"{P}[k, i]", f"{P}[j, k] * {Q}[k, i]")
        lines = [f"for i in {self._outer()}:", "    for j in range(size):", f"        for k in {self._range()}:"]
        lines.append(f"            {P}[i, j] {c.pick('+=', '-=')} 0.1 * {read}")
        return lines + [f"        {P}[i, j] *= 0.5"] * c.chance(0.5)

    def mirror(self):
        c, P = self.c, self.P
        value = c.pick(f"{P}[i, j]", f"0.5 * {P}[i, j]", f"{P}[i, j] + {self.Q}[j, i]")
        return [f"for i in {self._outer()}:", f"    for j in {self._range()}:", f"        {P}[j, i] = {value}"]

    def diagonal(self):
        c, P, Q = self.c, self.P, self.Q
        value = c.pick("1.0", f"{P}[i, i] + {Q}[i, i]", f"{P}[i, 0]", f"{Q}[i, i]")
        return [f"for i in {self._outer()}:", f"    {P}[i, i] = {value}"]

    def carried(self):
        c, P, Q = self.c, self.P, self.Q
        at = c.pick("i, j", "i, j", "j, i")
        values = c.pick("b", "b", "2.5", f"{Q}[{at}]"), c.pick(f"{P}[{at}]", f"{Q}[{at}]", "a")
        ends = c.order([f"{name} = {value}" for name, value in zip("ab", values, strict=True)])
        lines = [f"for i in {self._outer()}:", "    a = b = 0.5", f"    for j in {self._outer()}:"]
        body = [f"{P}[{at}] = 0.5 * {P}[{at}] + 0.25 * a {c.pick('+', '-')} 0.125 * b", *ends]
        body += [f"{P}[i, size - 1 - j] *= 0.5"] * c.chance(0.2)
        body = c.order(body) if c.chance(0.3) else body
        return lines + [f"        {each}" for each in body]

    def split(self):
        c, P, Q = self.c, self.P, self.Q
        lines = [f"for i in {self._outer()}:", "    for j in range(size):", f"        t = {c.pick(0.0, 0.0, 1.5)}"]
        lines.append(f"        for k in {self._range()}:")
        parts = [f"            {P}[k, j] += 0.1 * {c.pick(f'{Q}[i, j]', f'{Q}[i, k]', f'{P}[i, j]')}"]
        parts.append(f"            t += 0.1 * {c.pick(f'{Q}[k, j]', f'{Q}[i, k]', f'{P}[k, j]', 't')}")
        return [*lines, *c.order(parts), f"        {P}[i, j] = 0.5 * {P}[i, j] + t"]

    def swap(self):
        c, P, Q = self.c, self.P, self.Q
        lines = [f"for t in {c.pick('range({})', 'range(1, {})', 'range({}, 0, -1)').format(c.between(2, 7))}:"]
        lines += ["    for i in range(1, size - 1):", "        for j in range(1, size - 1):"]
        lines.append(f"            {Q}[i, j] = {P}[i, j] + 0.1 * ({P}[i - 1, j] - {P}[i, j + 1]){c.pick('', ' * t')}")
        return [*lines, f"    {P}, {Q} = {Q}, {P}"]

    def each(self):
        c, P, Q, T = self.c, self.P, self.Q, self.T
        begin = c.pick("range(size)", "range(size)", "range(1, size)")
        first = [f"for i in {c.pick('range(size)', 'range(1, size)')}:"]
        lines = [f"    for p in {begin}:"]
        lines.append(f"        {T}[p] = {c.pick('0.0', f'{Q}[i, p]', f'0.5 * {P}[i, p]')}")
        if c.chance(0.7):
            lines += [f"        for s in {c.pick('range(size)', 'range(p)')}:"]
            lines += [f"            {T}[p] += 0.1 * {c.pick(f'{P}[i, s]', f'{Q}[s, p]')}"]
        read = [f"    for p in {c.pick(begin, begin, 'range(size)')}:"]
        read.append(f"        {P}[i, p] = {T}[{c.pick('p', 'p', 'size - 1 - p')}]")
        return [*first, *c.pick(lines + read, lines + read, read + lines)]
