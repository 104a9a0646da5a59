"""Run on every rank: ``memory.py SEED COUNT FOLDER``: calls of all families, and a limit of memory on one rank in each.

Before a call one rank gets no more than some bytes beyond what it has. All ranks raise MemoryError then, or all return,
and the same call works right after it. A line of JSON a case says what happened.
"""

import ctypes
import json
import os
import random
import resource
import sys

import numpy as np

import tilewave as tw
from calls import ring_of
from tilewave.patterns import broadcast, multi_reduce, reduce, spread

seed, count, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
rng = random.Random(seed)  # the same on every rank
n = 500


@tw.nest
def relax(A, i, j):
    A[i, j] = 0.5 * (A[i-1, j] + A[i, j-1])


@tw.nest
def heat(u, t, i, j):
    u[t+1, i, j] = u[t, i, j] + 0.1 * (u[t, i-1, j] + u[t, i+1, j])


def add(before, value, out):
    np.add(value, before.sum(), out=out)  # a task that lacks memory itself raises KernelError


def calls():
    """By family and name; made once, before anything lacks. Without MPI's own patterns, which fail for good."""
    g = np.random.default_rng(1).normal(size=(n, n)) + n * np.eye(n)
    G, B = tw.linalg.matrix(g), tw.linalg.matrix(g[:, :20])
    R, S = tw.linalg.matrix(g, layout="rows"), tw.linalg.matrix(g, layout="columns", block=32)
    P, T = tw.linalg.matrix(g @ g.T), tw.linalg.matrix(g[:, :200])
    L, Q = tw.linalg.lu(S), tw.linalg.qr(T)
    A, u = tw.field((n, n), "f8", init=1.0), tw.field((n, n), "f8", init=1.0)
    H, K = (tw.field((n, n), "f8", init=1.0, halo=2) for _ in range(2))
    rows, columns = (tw.field((n, n), "f8", init=1.0, grid=grid, halo=1) for grid in ((tw.size, 1), (1, tw.size)))
    M, ring = np.ones((n, 2 * n))[:, :n], tw.Schedule.build(ring_of, tw.size, 60_000, add)
    V = np.ones(60_000)
    path = os.path.join(folder, "saved.npy")
    tw.linalg.matrix(g).gather()
    bound = tw.bind(relax, A=A)
    cycle = tw.chain([tw.bind(relax, A=A), tw.bind(relax, A=u)])
    solver = tw.multigrid.Poisson((64, 64), spacing=1 / 65)
    f = tw.field((64, 64), "f8", init=1.0)
    A.save(path)
    return {
        "lu": lambda: tw.linalg.lu(G),
        "lu of an array": lambda: tw.linalg.lu(g),
        "lu solve": lambda: L.solve(B),
        "lu solve an array": lambda: L.solve(g[:, 0]),
        "inv": lambda: tw.linalg.inv(S),
        "cholesky": lambda: tw.linalg.cholesky(P),
        "qr": lambda: tw.linalg.qr(T),
        "qr q": lambda: Q.q(),
        "lstsq": lambda: tw.linalg.lstsq(T, B),
        "solve_triangular": lambda: tw.linalg.solve_triangular(G, B, lower=True),
        "matmul": lambda: tw.linalg.matmul(G, S),
        "matmul summa": lambda: tw.linalg.matmul(R, R, algorithm="summa"),
        "matrix": lambda: tw.linalg.matrix(g),
        "matrix of a field": lambda: tw.linalg.matrix((n, n), init=A),
        "matrix on rank 0": lambda: tw.linalg.matrix((n, n), init=g if tw.rank == 0 else None),
        "matrix gather": lambda: G.gather(),
        "redistribute": lambda: G.redistribute("cyclic", 16),
        "field": lambda: tw.field((n, n), "f8", init=1.0),
        "field gather": lambda: A.gather(),
        "field copy": lambda: A.copy(),
        "field indexed": lambda: A[10:200, 3:],
        "field save": lambda: A.save(path),
        "field save zarr": lambda: A.save(os.path.join(folder, "saved.zarr")),
        "load": lambda: tw.load(path),
        "checkpoint": lambda: tw.checkpoint(os.path.join(folder, "checkpoints"), 1, A=A, G=G, g=g),
        "sum": lambda: tw.sum(A),
        "dot": lambda: tw.dot(rows, columns),
        "exchange": lambda: tw.exchange(H, K),
        "run": lambda: tw.run(relax, A=A),
        "run steps": lambda: tw.run(heat, u=u, steps=7),
        "bound": lambda: bound.run(),
        "chain": lambda: cycle.run(times=3),
        "broadcast": lambda: broadcast(M),
        "reduce": lambda: reduce(M),
        "spread": lambda: spread(M[:, :100]),
        "multi_reduce": lambda: multi_reduce(M),
        "reduce by a function": lambda: reduce(M, op=np.add),
        "schedule": lambda: ring.run(S=V),
        "poisson": lambda: solver.solve(f, tol=1e-4),
    }


def limited(more, call):
    """call() with so many bytes beyond those in use; what it raised, as text."""
    ctypes.CDLL(None).malloc_trim(0)
    now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + more, -1))
    try:
        return attempt(call)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (-1, -1))


def attempt(call):
    """'ok', 'memory' where all ranks are to raise it, or the error as text."""
    try:
        call()
    except MemoryError as error:
        return "memory" if getattr(error, "agreed", False) else f"MemoryError of this rank alone: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "ok"


table = calls()
names = list(table)
first = rng.randrange(len(names))
with open(os.path.join(folder, f"rank-{tw.rank}.jsonl"), "a") as log:

    def write(**record):
        log.write(json.dumps(record) + "\n")
        log.flush()

    for number in range(count):
        name = names[(first + number) % len(names)]  # every family, also of few cases
        victim, more = rng.randrange(tw.size), int(2 ** rng.uniform(12, 23.5))
        write(case=number, name=f"{name}, {more} bytes on rank {victim}", begins=True)
        attempt(table[name])  # what is made at the first call is there
        outcome = limited(more, table[name]) if tw.rank == victim else attempt(table[name])
        write(case=number, outcome=outcome)
        write(case=number, works=attempt(table[name]))
    write(end=True)
