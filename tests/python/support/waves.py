"""Waves with random sources, saved at each step: for programs that are killed."""

import hashlib

import numpy as np

import tilewave as tw


@tw.nest
def wave(u, f, t, i, j):
    u[t+1, i, j] = 2*u[t, i, j] - u[t-1, i, j] + 0.2*(u[t, i-1, j] + u[t, i+1, j] - 2*u[t, i, j]) + f[i, j]


def begin(context=None):
    u = tw.field((40, 30), init=lambda i, j: np.sin(i + 0.3 * j), history=1, context=context)
    return {"step": 0, "u": u, "rng": np.random.default_rng(5)}


def steps(state, until, path=None, saved=lambda: None):
    """Go on until a step; on rank 0 a checksum of both time steps."""
    u, rng = state["u"], state["rng"]
    for step in range(state["step"], until):
        tw.run(wave, u=u, f=0.01 * rng.normal(size=u.shape), steps=1)
        if path:
            tw.checkpoint(path, step + 1, u=u, rng=rng)
            saved()
    both = u.gather(), u.buffer(-1).gather()
    return None if both[0] is None else hashlib.sha256(both[0].tobytes() + both[1].tobytes()).hexdigest()
