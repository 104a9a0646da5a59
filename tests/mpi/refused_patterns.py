"""Calls of patterns that are refused: one clear error on every rank, and the next call is fine."""

import re

import numpy as np
import pytest

import tilewave as tw

patterns = tw.patterns


def works():
    M = np.full((2, 3), 7.0 if tw.rank == 0 else 0.0)
    assert (patterns.broadcast(M, 0) == 7).all()
    assert (patterns.multi_reduce(M, op=lambda a, b: a + b) == 7 * tw.size).all()


def agreed(words, error, call):
    with pytest.raises(error, match=words) as caught:
        call()
    assert caught.value.agreed and caught.value.quiet == (tw.rank != 0)
    tw.context().agree(None, str(caught.value))  # the same text on every rank
    return re.sub(r", \w+\.py:\d+", "", str(caught.value))  # where each rank calls from


def refused(words, pattern, *arguments, error=tw.ConfigError, **keywords):
    """Blocking, as a handle (where only `wait` may raise), and as a handle to run later."""
    call = getattr(patterns, pattern)
    text = agreed(words, error, lambda: call(*arguments, **keywords))
    handle = call(*arguments, wait=False, **keywords)
    assert agreed(words, error, handle.wait) == text
    with pytest.raises(error):
        handle.wait()  # again, and no more than that
    if error is tw.ConfigError:
        kept = agreed(words, error, lambda: call(*arguments, start=False, **keywords))
        assert _without_arguments(kept) == _without_arguments(text)
    works()
    return text


def _without_arguments(text):
    """A short call is shown with its arguments; start=False makes it longer."""
    return re.sub(r"\(\w+ of [^)]*\)", "", text.replace(", start=False", ""))


def on_each_rank(words, pattern, good, bad, *arguments, ranks=None, **keywords):
    """`bad` in place of the matrix `good` on one rank alone, on each in turn."""
    for r in range(tw.size) if ranks is None else ranks:
        refused(words, pattern, bad if tw.rank == r else good, *arguments, **keywords)


A = np.zeros((4, 6))
