"""Calls of patterns that are refused: one clear error on every rank, and the next call is fine."""

import re

import numpy as np
import pytest

import tilewave as tw

patterns = tw.patterns


def works(context):
    M = np.full((2, 3), 7.0 if context.rank == 0 else 0.0)
    assert (patterns.broadcast(M, 0, context=context) == 7).all()
    assert (patterns.multi_reduce(M, op=lambda a, b: a + b, context=context) == 7 * context.size).all()


def agreed(context, words, error, call):
    with pytest.raises(error, match=words) as caught:
        call()
    assert caught.value.agreed and caught.value.quiet == (context.rank != 0)
    context.agree(None, str(caught.value))  # the same text on every rank
    return re.sub(r", \w+\.py:\d+", "", str(caught.value))  # where each rank calls from


def refused(context, words, pattern, *arguments, error=tw.ConfigError, **keywords):
    """Blocking, as a handle (where only `wait` may raise), and as a handle to run later."""
    call = getattr(patterns, pattern)
    text = agreed(context, words, error, lambda: call(*arguments, context=context, **keywords))
    handle = call(*arguments, wait=False, context=context, **keywords)
    assert agreed(context, words, error, handle.wait) == text
    with pytest.raises(error):
        handle.wait()  # again, and no more than that
    if error is tw.ConfigError:
        kept = agreed(context, words, error, lambda: call(*arguments, start=False, context=context, **keywords))
        assert _without_arguments(kept) == _without_arguments(text)
    works(context)
    return text


def _without_arguments(text):
    """A short call is shown with its arguments; start=False makes it longer."""
    return re.sub(r"\(\w+ of [^)]*\)", "", text.replace(", start=False", ""))


def on_each_rank(context, words, pattern, good, bad, *arguments, ranks=None, **keywords):
    """`bad` in place of the matrix `good` on one rank alone, on each in turn."""
    for r in range(context.size) if ranks is None else ranks:
        refused(context, words, pattern, bad if context.rank == r else good, *arguments, **keywords)


A = np.zeros((4, 6))
