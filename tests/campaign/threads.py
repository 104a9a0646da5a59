"""Run on every rank: ``threads.py SEED COUNT FOLDER``: two threads call on two contexts at the same time.

Each thread draws its calls by itself, the same on every rank. Results name the context that they belong to. A line of
JSON a case, which is a few calls of both threads, says what happened.
"""

import json
import os
import random
import sys
import threading
import warnings

import numpy as np

import tilewave as tw
from tilewave import patterns

seed, count, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
CALLS = 12  # of a thread in a case
n = 24


@tw.nest
def prefix(A, i, j):
    A[i, j] = A[i-1, j] + 1.0


@tw.nest
def steps_of(u, t, i, j):
    u[t+1, i, j] = u[t, i, j] + 1.0


class Side:
    """One context's calls; each returns whether its result is right. `salt` is in all values."""

    def __init__(self, context, salt):
        self.context, self.salt, self.steps = context, float(salt), 0
        self.size, self.rank = context.size, context.rank
        self.A = tw.field((n, n), "f8", init=self.salt, context=context)
        self.u = tw.field((n, n), "f8", init=self.salt, context=context)
        self.halos = tw.field((n, n), "f8", init=self.salt, halo=1, periodic=(0, 1), context=context)
        self.prepared = tw.exchange(self.halos, start=False)
        self.M = np.full((5, 7), self.salt if self.rank == 0 else -1.0)
        self.spread = patterns.broadcast(self.M, start=False, context=context)
        self.G = tw.linalg.matrix((2 + salt) * np.eye(n), context=context)
        self.bound = tw.bind(prefix, A=self.A)

    def run(self):
        tw.run(prefix, A=self.A)
        return self.gather()

    def bound_run(self):
        self.bound.run()
        return self.gather()

    def gather(self):
        tw.run(prefix, A=self.A)
        whole = self.A.gather()
        return whole is None or (whole[:, 0] == self.salt + np.arange(n)).all()

    def run_steps(self):
        tw.run(steps_of, u=self.u, steps=3)
        self.steps += 3
        return tw.max(self.u) == self.salt + self.steps

    def exchange(self):
        self.prepared.run()
        return (self.halos.local == self.salt).all()

    def broadcast(self):
        self.M[:] = self.salt if self.rank == 0 else -1.0
        self.spread.run()
        return (self.M == self.salt).all()

    def own_broadcast(self):
        self.M[:] = self.salt if self.rank == 0 else -1.0
        patterns.broadcast(self.M, algorithm="mpi", context=self.context)
        return (self.M == self.salt).all()

    def messages(self):
        patterns.send(np.full((1, 3000), self.salt + self.rank), (self.rank + 1) % self.size, context=self.context)
        got = patterns.receive(np.zeros((1, 3000)), (self.rank - 1) % self.size, context=self.context)
        return (got == self.salt + (self.rank - 1) % self.size).all()

    def product(self):
        whole = tw.linalg.matmul(self.G, self.G).gather()
        return whole is None or np.allclose(whole, (2 + self.salt) ** 2 * np.eye(n))

    def factor(self):
        return bool(np.isclose(tw.linalg.lu(self.G).det(), (2 + self.salt) ** n))

    def field_and_sum(self):
        return tw.sum(tw.field((4,), "f8", init=self.salt, context=self.context)) == 4 * self.salt


NAMES = [name for name in vars(Side) if not name.startswith("_")]


def work(side, case, said):
    """A thread's part of a case; appends what was wrong."""
    rng = random.Random(f"{seed} {case} {side.salt}")
    try:
        for name in rng.choices(NAMES, k=CALLS):
            if not getattr(side, name)():
                said.append(f"{name}: wrong values")
    except BaseException as error:
        said.append(f"{name}: {type(error).__name__}: {error}")


warnings.simplefilter("ignore")
sides = [Side(tw.Context(threads=1), salt) for salt in (1, 2)]
with open(os.path.join(folder, f"rank-{tw.rank}.jsonl"), "a") as log:

    def write(**record):
        log.write(json.dumps(record) + "\n")
        log.flush()

    for case in range(count):
        write(case=case, name=f"case {case}", begins=True)
        said = []
        threads = [threading.Thread(target=work, args=(side, case, said)) for side in sides]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        write(case=case, outcome="; ".join(sorted(said)) or "ok")
        write(case=case, works="ok" if all(side.messages() for side in sides) else "wrong values")
    write(end=True)
