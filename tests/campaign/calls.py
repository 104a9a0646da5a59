"""The public collective calls, each with arguments that work, and values that most parameters cannot take."""

import functools
import inspect
import os

import numpy as np

import tilewave as tw
from tilewave.plan.fixed import NAMES

SHAPE = (20, 30)
REDUCTIONS = ("max", "min", "sum", "argmax", "argmin")


@tw.nest
def relax(A, i, j, *, c=0.5):
    A[i, j] = c * (A[i-1, j] + A[i, j-1])


@tw.nest
def steps_of(u, t, i, j):
    u[t+1, i, j] = u[t, i-1, j] + u[t, i, j+1]


def add(before, value, out):
    out[...] = value + before.sum()


def ring_of(b, n=12, task=add):
    """Each rank adds the last value of the rank before it to its own."""
    S = b.array("S", n, storage=slice(None))
    lane, mine = b.lane(), S.owned
    before = S[mine.lo[0] - 1 : mine.lo[0]] if b.rank else S[0:0]
    if b.rank:
        m = b.receive(b.rank - 1, before)
        lane.post_recv(m)
        lane.wait(m)
    lane.task(task, [before, mine], [mine], number=b.rank)
    if b.rank + 1 < b.ranks:
        m = b.send(b.rank + 1, S[mine.hi[0] - 1 : mine.hi[0]])
        lane.post_send(m)
        lane.wait(m)


class Unprintable:
    """An object that nobody can turn into text."""

    def __repr__(self):
        raise RuntimeError("no text")


def fails(*arguments):
    raise ValueError("odd text \udc80")


class Calls:
    """Made on every rank alike; `table` has (function, arguments) by name."""

    def __init__(self, folder):
        self.folder = folder
        self.A = tw.field(SHAPE, "f8", init=1.0)
        self.B = tw.field(SHAPE, "f8", init=2.0)
        self.u = tw.field(SHAPE, "f8", init=1.0)
        self.check = tw.field((6, 5), "f8", init=7.0)
        M = np.ones((4, 4))
        self.table = {
            "run": (tw.run, {"nest": relax, "A": self.A}),
            "run steps": (tw.run, {"nest": steps_of, "u": self.u, "steps": 3}),
            "plan": (tw.plan, {"nest": relax, "A": self.A}),
            "field": (tw.field, {"shape": (5, 4), "dtype": "f8", "init": 1.0}),
            "Context": (tw.Context, {}),
            "gather": (self.A.gather, {}),
            "broadcast": (tw.patterns.broadcast, {"M": M}),
            "reduce": (tw.patterns.reduce, {"M": M}),
            "spread": (tw.patterns.spread, {"M": M}),
            "multi_reduce": (tw.patterns.multi_reduce, {"M": M}),
        }
        if hasattr(tw, "Schedule"):
            ring = tw.Schedule.build(ring_of, tw.size)
            self.table["schedule"] = (tw.schedule, {"nest": relax, "A": self.A})
            self.table["schedule run"] = (ring.run, {"S": np.ones(12)})
        for name in REDUCTIONS:
            self.table[name] = (getattr(tw, name), {"array": self.A})
        if hasattr(tw, "exchange"):
            halos = tw.field(SHAPE, "f8", init=1.0, halo=1, periodic=(0,))
            self.table["exchange"] = (functools.partial(tw.exchange, halos), {})
            self.table["field halo"] = (tw.field, {"shape": (5, 4), "halo": 1, "periodic": (0,)})
        if hasattr(tw, "barrier"):
            self.table["barrier"] = (tw.barrier, {})
        if hasattr(tw.patterns, "allreduce"):
            self.table["allreduce"] = (tw.patterns.allreduce, {"M": M})
        if hasattr(tw.Field, "copy"):
            self.table["copy"] = (self.A.copy, {})
        if hasattr(tw.Field, "fill"):
            self.table["fill"] = (self.B.fill, {"value": 3.0})
        if hasattr(tw.Field, "__getitem__"):
            self.table["get item"] = (_named(self.A.__getitem__, "key"), {"key": (3, 4)})
            self.table["set item"] = (_named(self.B.__setitem__, "key", "value"), {"key": (slice(2), 3), "value": 5.0})
        if hasattr(tw.Field, "save"):
            path = os.path.join(folder, "saved.npy")
            self.table["save"] = (self.A.save, {"path": path})
            self.table["load"] = (tw.load, {"path": path})
            self.A.save(path)
        if hasattr(tw, "checkpoint"):
            path = os.path.join(folder, "checkpoints")
            self.table["save zarr"] = (self.A.save, {"path": os.path.join(folder, "saved.zarr")})
            self.table["checkpoint"] = (tw.checkpoint, {"path": path, "step": 3, "A": self.A, "k": 1})
            self.table["resume"] = (tw.resume, {"path": path})
            tw.checkpoint(path, 3, A=self.A)

    def others(self):
        """By name (function, two objects of one shape): no rank may be given one of them and another rank the other."""
        g = np.eye(12) + 0.1
        fields = [tw.field((12, 12), "f8", init=1.0) for _ in range(2)]
        halos = [tw.field((12, 12), "f8", init=1.0, halo=1) for _ in range(2)]
        matrices = [tw.linalg.matrix(g) for _ in range(3)]
        third, both = matrices[2], matrices[:2]
        lu, cholesky, qr = ([f(m) for m in both] for f in (tw.linalg.lu, tw.linalg.cholesky, tw.linalg.qr))
        bound = [tw.bind(relax, A=each) for each in fields]
        chains = [tw.chain([each]) for each in bound]
        solvers = [tw.multigrid.Poisson((12, 12), spacing=1 / 13) for _ in range(2)]
        where = os.path.join(self.folder, "other.npy")
        return {
            "run": (lambda A: tw.run(relax, A=A), fields),
            "run steps": (lambda u: tw.run(steps_of, u=u, steps=2), fields),
            "bind": (lambda A: tw.bind(relax, A=A), fields),
            "bound run": (lambda step: step.run(), bound),
            "chain": (lambda step: tw.chain([step]), bound),
            "chain run": (lambda cycle: cycle.run(times=2), chains),
            "gather": (lambda A: A.gather(), fields),
            "copy": (lambda A: A.copy(), fields),
            "fill": (lambda A: A.fill(1.0), fields),
            "get item": (lambda A: A[3, 4], fields),
            "save": (lambda A: A.save(where), fields),
            "checkpoint": (lambda A: tw.checkpoint(os.path.join(self.folder, "other"), 1, A=A), fields),
            "checkpoint of a matrix": (lambda a: tw.checkpoint(os.path.join(self.folder, "other"), 1, a=a), both),
            "sum": (tw.sum, fields),
            "dot": (lambda A: tw.dot(fields[0], A), fields),
            "exchange": (tw.exchange, halos),
            "prepare an exchange": (lambda u: tw.exchange(u, start=False), halos),
            "poisson": (lambda solver: solver.solve(fields[0], tol=1e-2), solvers),
            "poisson of": (lambda f: solvers[0].solve(f, tol=1e-2), fields),
            "matrix of a field": (lambda A: tw.linalg.matrix((12, 12), init=A), fields),
            "matrix gather": (lambda a: a.gather(), both),
            "redistribute": (lambda a: a.redistribute("cyclic", 2), both),
            "matmul left": (lambda a: tw.linalg.matmul(a, third), both),
            "matmul right": (lambda b: tw.linalg.matmul(third, b), both),
            "matmul c": (lambda c: tw.linalg.matmul(third, third, c=c), both),
            "lu": (tw.linalg.lu, both),
            "cholesky": (tw.linalg.cholesky, both),
            "qr": (tw.linalg.qr, both),
            "inv": (tw.linalg.inv, both),
            "lstsq": (lambda a: tw.linalg.lstsq(a, third), both),
            "solve_triangular": (lambda a: tw.linalg.solve_triangular(a, third), both),
            "lu solve": (lambda f: f.solve(third), lu),
            "lu solve of": (lambda b: lu[0].solve(b), both),
            "lu det": (lambda f: f.det(), lu),
            "cholesky solve": (lambda f: f.solve(third), cholesky),
            "qr solve": (lambda f: f.solve(third), qr),
            "qr q": (lambda f: f.q(), qr),
        }

    def parameters(self, name):
        """Those of a call, and for a nest its choices of a plan."""
        function, good = self.table[name]
        kinds = inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL
        names = [
            p.name
            for p in inspect.signature(function).parameters.values()
            if p.kind not in kinds and not p.name.startswith("_")
        ]
        names += [given for given in good if given not in names]
        if function in (tw.run, tw.plan, getattr(tw, "schedule", None)):
            names += [*(f"plan {choice}" for choice in NAMES), "tile", "c", "unknown_name"]
        return names

    def with_value(self, good, parameter, label):
        """The arguments of a call, with that value of a parameter or of a choice of its plan."""
        parameter, _, choice = parameter.partition(" ")
        value = self.values()[label]
        return {**good, parameter: {choice: value} if choice else value}

    def values(self):
        """Each by name: what a parameter may be given on one rank alone."""
        return {
            "None": None, "True": True, "-1": -1, "0": 0, "3": 3, "2**31": 2**31, "2**64": 2**64, "1.5": 1.5,
            "nan": float("nan"), "text": "nonsense", "empty text": "", "bytes": b"x", "object": object(),
            "list": [], "dict": {}, "tuple": (1,), "large tuple": (2**70, 1), "array": np.ones(2),
            "empty array": np.zeros((0, 3)), "objects": np.array([None, "x"], object), "unaligned": _unaligned(),
            "read-only": _read_only(), "function": fails, "type": int, "unprintable": Unprintable(),
            "field": self.B, "nest": steps_of,
        }


def _named(method, *names):
    """A method whose parameters are given by keyword, as those of the others are."""

    def call(**given):
        return method(*(given[name] for name in names))

    call.__signature__ = inspect.Signature([inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in names])
    return call


def _unaligned():
    return np.zeros(4 * 4 * 8 + 1, "u1")[1:].view("f8").reshape(4, 4)


def _read_only():
    array = np.ones((4, 4))
    array.flags.writeable = False
    return array
