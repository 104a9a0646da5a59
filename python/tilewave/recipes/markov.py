"""Hidden Markov models in log space: the most likely path, forward and backward probabilities."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewave.context.collective import collective
from tilewave.errors import ConfigError
from tilewave.field.create import field
from tilewave.nest.nest import nest_from
from tilewave.nests.call.reduce_functions import argmax
from tilewave.nests.doors.run import run
from tilewave.recipes import given

if TYPE_CHECKING:
    from tilewave.annotations import Array, Collective
    from tilewave.context.context import Context
    from tilewave.recipes.given import Given


def _checked(call, likelihood, transition, start):
    """Return the arguments of a model, checked, and the text that ranks compare."""
    E = given.values(call, "log_likelihood", likelihood, "f", (2, 3))
    states = E.shape[-1]
    T = given.values(call, "log_transition", transition, "f", 2)
    if tuple(T.shape) != (states, states) or not all(E.shape):
        raise ConfigError(
            f"{call}: given log_likelihood of shape {tuple(E.shape)} and log_transition of {tuple(T.shape)}; allowed: "
            "(times, states) or (batch, times, states), none of them 0, and (states, states)"
        )
    S = given.values(call, "log_start", np.zeros(states) if start is None else start, "f", 1)
    if tuple(S.shape) != (states,):
        raise ConfigError(f"{call}: log_start: given shape {tuple(S.shape)}; allowed: {(states,)}")
    return (E, T, S), f"{given.text_of(E)}, {given.text_of(T)}, {given.text_of(S)}"


def _in_order(E, T, S):
    """Return doubles: E with times first, then the batch; collective."""
    E, T, S = (given.whole(each, "f8") for each in (E, T, S))
    return np.ascontiguousarray(np.moveaxis(E, -2, 0)), T, S


@functools.cache
def _made(name, batch):
    """Return the nest of a recursion over times t, batches b where there are any, and states s."""
    b = "b, " * batch
    arrays, terms, after = {
        "viterbi": ("V, P, T, E", f"V[t-1, {b}q] + T[q, s]", f" + E[t, {b}s]"),
        "forward": ("V, T, E", f"V[t-1, {b}q] + T[q, s]", f" + E[t, {b}s]"),
        "backward": ("V, T, E", f"V[t+1, {b}q] + (T[q, s] + E[t+1, {b}q])", ""),
    }[name]
    lines = [f"m = max({terms} for q in range(n))"]
    if name == "viterbi":
        lines += [f"V[t, {b}s] = m{after}", f"P[t, {b}s] = argmax({terms} for q in range(n))"]
    else:
        # Relative to the largest term; where all are impossible, to 0.
        lines += [
            "top = m if m > -np.inf else 0.0",
            f"V[t, {b}s] = top + np.log(sum(np.exp({terms} - top) for q in range(n))){after}",
        ]
    body = "\n    ".join(lines)
    return nest_from(f"def {name}({arrays}, t, {b}s, *, n):\n    {body}\n", {"argmax": argmax})


def _run(name, first, E, T, context, **more):
    """Return V, whose `first` row is given, as an array on every rank; collective."""
    at, row = first
    start = np.zeros_like(E)
    start[at] = row
    V = field(start, context=context)
    if len(E) > 1:
        reverse = ("t",) if name == "backward" else ()
        run(_made(name, E.ndim == 3), V=V, E=E, T=T, n=len(T), reverse=reverse, context=context, **more)
    return np.asarray(V[...])


@collective("tw.recipes.viterbi", whole=True)
def viterbi(
    log_likelihood: Given, log_transition: Given, log_start: Given | None = None, *, context: Context | None = None
) -> Collective[Any]:
    """Find the most likely states of a hidden Markov model, as ``hmmlearn``'s ``decode`` does; collective.

    Parameters
    ----------
    log_likelihood : array or field
        Of shape (times, states), or (batch, times, states): the logarithm of the chance of each observation in each
        state.
    log_transition : array or field
        (states, states): from the state of the row to that of the column. ``-numpy.inf`` is impossible.
    log_start : array or field, optional
        (states,). Default: 0 for each.
    context : Context, optional

    Returns
    -------
    path : numpy.ndarray
        int64, (times,) or (batch, times): of equally likely states the first. The same on every rank.
    log_probability : float or numpy.ndarray
        The path's, of each of a batch.

    Raises
    ------
    ConfigError
        On every rank, for shapes that do not fit.
    """
    (E, T, S), text = _checked("viterbi", log_likelihood, log_transition, log_start)
    yield text
    E, T, S = _in_order(E, T, S)
    P = field(E.shape, "i4", context=context)
    V = _run("viterbi", (0, S + E[0]), E, T, context, P=P)
    pointers, state = np.asarray(P[...]), V[-1].argmax(axis=-1)
    best, path = V[-1].max(axis=-1), [state]
    for t in range(len(E) - 1, 0, -1):
        state = np.take_along_axis(pointers[t], np.expand_dims(state, -1), -1)[..., 0]
        path.append(state)
    return np.stack(path[::-1], axis=-1).astype("i8"), best if E.ndim == 3 else float(best)


@collective("tw.recipes.forward", whole=True)
def forward(
    log_likelihood: Given, log_transition: Given, log_start: Given | None = None, *, context: Context | None = None
) -> Collective[Array]:
    """Compute the forward probabilities of a hidden Markov model; collective.

    Parameters
    ----------
    log_likelihood, log_transition, log_start : array or field
        As those of `viterbi`.
    context : Context, optional

    Returns
    -------
    numpy.ndarray
        Of the shape of `log_likelihood`: the logarithm of the chance of all observations up to a time, in a state then.
        ``scipy.special.logsumexp`` of the last row is that of all observations. The same on every rank.

    Raises
    ------
    ConfigError
        On every rank, for shapes that do not fit.
    """
    (E, T, S), text = _checked("forward", log_likelihood, log_transition, log_start)
    yield text
    E, T, S = _in_order(E, T, S)
    return np.moveaxis(_run("forward", (0, S + E[0]), E, T, context), 0, -2)


@collective("tw.recipes.backward", whole=True)
def backward(log_likelihood: Given, log_transition: Given, *, context: Context | None = None) -> Collective[Array]:
    """Compute the backward probabilities of a hidden Markov model; collective.

    Parameters
    ----------
    log_likelihood, log_transition : array or field
        As those of `viterbi`.
    context : Context, optional

    Returns
    -------
    numpy.ndarray
        Of the shape of `log_likelihood`: the logarithm of the chance of all observations behind a time, from a state
        then; 0 at the last time. The same on every rank.

    Raises
    ------
    ConfigError
        On every rank, for shapes that do not fit.
    """
    (E, T, S), text = _checked("backward", log_likelihood, log_transition, None)
    yield text
    E, T, _ = _in_order(E, T, S)
    found = _run("backward", (-1, 0.0), E, np.ascontiguousarray(T.T), context)
    return np.moveaxis(found, 0, -2)
