"""Collective calls of all families, for tests of what happens when one of them is stopped."""

import os

import numpy as np

import tilewave as tw
from rings import ring
from tilewave import patterns

SHAPE = (12, 10)


@tw.nest
def relax(A, B, i, j):
    A[i, j] = 0.5 * A[i - 1, j] + B[i, j]


@tw.nest
def heat(u, t, i, j):
    u[t + 1, i, j] = u[t, i, j] + 0.1 * (u[t, i - 1, j] + u[t, i + 1, j])


@tw.nest
def sequential(A, i, j):
    A[i, j] = A[i, j - 1] + A[i - 1, j + 9]


def whole(made):
    """All values of a field, or this rank's of a matrix, or what was returned."""
    return made[...] if isinstance(made, tw.Field) else getattr(made, "local", made)


def calls(context, folder):
    """By name (call, value): `value` of what the call returns is the same each time, or None; made once, collective."""
    c, size = context, context.size
    g = np.random.default_rng(1).normal(size=(8, 8)) + 8 * np.eye(8)
    A, B, u = (tw.field(SHAPE, "f8", init=1.0, context=c) for _ in range(3))
    H = tw.field(SHAPE, "f8", init=1.0, halo=1, periodic=(0, 1), context=c)
    G, S = tw.linalg.matrix(g, context=c), tw.linalg.matrix(g @ g.T, context=c)
    L, Q, K = tw.linalg.lu(G), tw.linalg.qr(G), tw.linalg.cholesky(S)
    bound = tw.bind(relax, A=A, B=B)
    cycle = tw.chain([bound, tw.bind(relax, A=A, B=B)])
    stepping = tw.chain([bound, tw.bind(heat, u=u, steps=2)])
    built = tw.Schedule.build(ring, size)
    M, P = np.arange(12.0).reshape(3, 4) + c.rank, np.arange(3.0 * 2 * size).reshape(3, 2 * size)
    prepared, halos = patterns.spread(M, start=False, context=c), tw.exchange(H, start=False)
    summed = patterns.allreduce(M, start=False, context=c)
    solver = tw.multigrid.Poisson((8, 8), context=c)
    f = np.ones((8, 8))
    path = os.path.join(folder, "saved.npy")
    A.save(path)

    def steps():
        u.fill(1.0)
        return tw.run(heat, u=u, steps=4)

    def one_by_one():
        u.fill(1.0)
        return tw.run(heat, u=u, steps=2, record={"u": [(3, 4)]})

    def on_one_rank():
        B.fill(1.0)
        tw.run(sequential, A=B)
        B.fill(1.0)

    def of_A(_):
        return A[...]

    return {
        "Context": (lambda: tw.Context(threads=1).size, whole),
        "barrier": (lambda: tw.barrier(context=c), whole),
        "field": (lambda: tw.field(SHAPE, "i8", init=lambda i, j: i + j, context=c), whole),
        "gather": (lambda: A.gather(), whole),
        "copy": (lambda: H.copy(), whole),
        "fill": (lambda: H.fill(1.0), lambda _: H.local.copy()),
        "elements": (lambda: A[2:9, 3:], whole),
        "set elements": (lambda: H.__setitem__((slice(2), 3), 1.0), lambda _: H.local.copy()),
        "save": (lambda: A.save(path), lambda _: tw.load(path, context=c)[...]),
        "load": (lambda: tw.load(path, context=c), whole),
        "checkpoint": (
            lambda: tw.checkpoint(f"{folder}/c", 1, A=A, G=G),
            lambda _: tw.resume(f"{folder}/c", context=c)["A"][...],
        ),
        "sum": (lambda: tw.sum(A), whole),
        "norm": (lambda: tw.norm(A), whole),
        "exchange": (lambda: tw.exchange(H), lambda _: H.local.copy()),
        "exchange later": (lambda: tw.exchange(H, wait=False).wait(), lambda _: H.local.copy()),
        "exchange prepared": (lambda: halos.run(), lambda _: H.local.copy()),
        "exchange start": (lambda: tw.exchange(H, start=False).run(), lambda _: H.local.copy()),
        "run": (lambda: tw.run(relax, A=A, B=B), of_A),
        "run another": (lambda: tw.run(relax, A=A, B=B, over={"i": (1, 5)}), of_A),
        "run steps": (steps, lambda _: u[...]),
        "run one by one": (one_by_one, lambda _: u[...]),
        "run on one rank": (on_one_rank, lambda _: B[...]),
        "plan": (lambda: tw.plan(relax, A=A, B=B).grid, whole),
        "bind": (lambda: tw.bind(relax, A=A, B=B).run(), of_A),
        "bound": (lambda: bound.run(), of_A),
        "chain": (lambda: tw.chain([bound, bound]).run(times=2), of_A),
        "chain run": (lambda: cycle.run(times=3), of_A),
        "chain until": (lambda: stepping.run(times=2, until=lambda values: False), of_A),
        "schedule": (lambda: tw.schedule(relax, A=A, B=B).ranks, whole),
        "schedule run": (lambda: built.run(A=np.ones(12), context=c).parts is None, whole),
        "broadcast": (lambda: patterns.broadcast(P.copy(), context=c), whole),
        "broadcast of a number": (lambda: patterns.broadcast(3.0, context=c), whole),
        "reduce": (lambda: patterns.reduce(M, context=c), whole),
        "reduce by a function": (lambda: patterns.reduce(M, op=np.add, context=c), whole),
        "spread": (lambda: patterns.spread(M, context=c), whole),
        "multi_reduce": (lambda: patterns.multi_reduce(P, context=c), whole),
        "allreduce": (lambda: patterns.allreduce(M, context=c), whole),
        "allreduce by a ring": (lambda: patterns.allreduce(M, algorithm="ring", context=c), whole),
        "spread prepared": (lambda: prepared.run().copy(), whole),
        "spread later": (lambda: patterns.spread(M, wait=False, context=c).wait(), whole),
        "allreduce prepared": (lambda: summed.run().copy(), whole),
        "prepare": (lambda: patterns.spread(M, start=False, context=c).run(), whole),
        "matrix": (lambda: tw.linalg.matrix(g, context=c), whole),
        "matrix of a field": (lambda: tw.linalg.matrix(SHAPE, init=A, context=c), whole),
        "matrix gather": (lambda: G.gather(), whole),
        "redistribute": (lambda: G.redistribute("cyclic", 2), whole),
        "matmul": (lambda: tw.linalg.matmul(G, S), whole),
        "plan_matmul": (lambda: tw.linalg.plan_matmul(G, S).algorithm, whole),
        "lu": (lambda: tw.linalg.lu(G), whole),
        "lu solve": (lambda: L.solve(g[:, 0]), whole),
        "det": (lambda: L.det(), whole),
        "inv": (lambda: tw.linalg.inv(g, context=c), whole),
        "cholesky": (lambda: tw.linalg.cholesky(S), whole),
        "cholesky solve": (lambda: K.solve(G), whole),
        "qr": (lambda: tw.linalg.qr(G), whole),
        "q": (lambda: Q.q(), whole),
        "r": (lambda: Q.r(), whole),
        "apply": (lambda: Q.apply(G), whole),
        "qr solve": (lambda: Q.solve(g[:, 0]), whole),
        "lstsq": (lambda: tw.linalg.lstsq(G, g[:, 0])[0], whole),
        "solve_triangular": (lambda: tw.linalg.solve_triangular(G, S, lower=True), whole),
        "Poisson": (lambda: tw.multigrid.Poisson((4, 6), k=lambda i, j: 1.0 + i, context=c), lambda made: made.levels),
        "Poisson solve": (lambda: solver.solve(f), whole),
        "Poisson cg": (lambda: solver.solve(f, method="cg"), whole),
        "Poisson precondition": (lambda: solver.precondition(f), whole),
        "Poisson plan": (lambda: solver.plan()[:5], whole),
    }
