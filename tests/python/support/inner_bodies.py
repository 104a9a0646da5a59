"""Random nests with loops inside their bodies."""

import numpy as np

import tilewave as tw

KINDS = ("max", "min", "sum", "tw.max", "tw.min", "tw.sum", "tw.argmax", "tw.argmin")


class InnerNest:
    """A nest over i, j of `y`, or over t, s of `V`, `shape` "rows", "table" or "steps", with the arrays of one run."""

    def __init__(self, rng, shape):
        self.shape = shape
        self.n, self.m = int(rng.integers(1, 9)), int(rng.choice([rng.integers(1, 40), rng.integers(60, 150)]))
        self.last = "j" if shape == "rows" else "s"
        draw = lambda *of: of[rng.integers(len(of))]
        self.dtype = np.dtype(draw("f4", "f8", "i4", "i8", "i2"))
        self.size = int(rng.integers(1, 40)) if shape == "rows" else self.m
        first = "i" if shape == "rows" else "t"
        n, last = self.size, self.last
        reads = [f"B[q, {last}]", f"C[{last}, q]", "x[q]", f"B[q, {last}] * x[q]", f"max(C[{last}, q], x[q])"]
        if shape == "rows":
            reads.append("A[i, q]")
            reads.append("A[i, q] * B[q, j]")
        else:
            self.at = {"table": ("V[t-1, {}]", "V[t, s]"), "steps": ("V[t, {}]", "V[t+1, s]")}[shape]
            old = self.at[0].format("q")
            reads = [old, *(f"{old} {draw('+', '-')} {each}" for each in reads)]

        def loop():
            ranges = ["n", "len(x)", "B.shape[0]", f"min({last} + 1, n)", f"0, {n}", f"{n // 2}, n"]
            condition = draw("", "", "", f" if q != {last} or n == 1", f" if q <= {first} + {n}")
            return f"{draw(*KINDS)}({draw(*reads)} for q in range({draw(*ranges)}){condition})"

        value = f"{loop()} + D[{first}, {last}]" if rng.integers(2) else loop()
        if rng.integers(2):
            value = f"{value} - {loop()}" if rng.integers(2) else f"np.where(D[{first}, {last}] > 1, {value}, {loop()})"
        if shape != "rows" and rng.integers(2):
            value += f" + {self.at[0].format('s')}"
        uses = f"sum(x[q] * B[q, {last}] * C[{last}, q] for q in range(n)) * 0"  # so that all are parameters
        arrays = ["y" if shape == "rows" else "V", *(["A"] if shape == "rows" else []), "B", "C", "D", "x"]
        uses += " + sum(A[i, q] for q in range(n)) * 0" if shape == "rows" else ""
        target = "y[i, j]" if shape == "rows" else self.at[1]
        self.text = (
            f"def body({', '.join(arrays)}, {first}, {last}, *, n):\n    u = {uses} + D[{first}, {last}] * 0\n"
            f"    {target} = {value} + u\n"
        )
        self.nest = tw.nest_from(self.text, {"tw": tw})
        shapes = {"A": (self.n, n), "B": (n, self.m), "C": (self.m, n), "D": (self.n, self.m), "x": (n,)}
        shapes |= {"y": (self.n, self.m), "V": (self.m,) if shape == "steps" else (self.n, self.m)}
        self.arrays = {name: self._values(rng, shapes[name]) for name in arrays}
        self.steps = int(rng.integers(0, self.n + 1)) if shape == "steps" else None
        self.written = arrays[0]

    def _values(self, rng, shape):
        values = rng.integers(-3, 4, shape) + (rng.random(shape) if self.dtype.kind == "f" else 0)
        values = values.astype(self.dtype)
        if self.dtype.kind == "f" and rng.integers(4) == 0:
            values[rng.random(shape) < 0.1] = draw_of(rng, np.nan, -0.0, np.inf)
        return values

    def expected(self):
        """What plain loops make of the written array."""
        arrays = {name: value.copy() for name, value in self.arrays.items()}
        written = arrays[self.written]
        if self.shape == "steps":
            for t in range(self.steps):
                times = np.stack([written, written])
                one = {**arrays, "V": _Times(times, t)}
                self.nest.reference(((t, t + 1), (0, self.m)), one, {"n": self.size})
                written[...] = times[1]
        else:
            self.nest.reference(((int(self.shape == "table"), self.n), (0, self.m)), arrays, {"n": self.size})
        return written


class _Times:
    """Two time steps, t and t + 1."""

    def __init__(self, times, t):
        self.times, self.t = times, t

    def __getitem__(self, at):
        return self.times[at[0] - self.t, at[1]]

    def __setitem__(self, at, value):
        self.times[at[0] - self.t, at[1]] = value


def draw_of(rng, *of):
    """One of some values."""
    return of[rng.integers(len(of))]
