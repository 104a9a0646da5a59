"""Arguments at the ends of their ranges and beyond; what cannot be replaced; plans that were made by hand."""

import dataclasses
import re

import numpy as np
import pytest
import tilewave as tw
from local_ranks import on_ranks


WHOLE = np.array([[4.0, 1, 2], [1, 5, 3], [2, 3, 6]])


@pytest.mark.parametrize("ranks", [1, 3])
def test_more_panels_ahead_than_there_are(ranks):
    """The largest look-ahead and panel: as many as there are, in every way of travelling."""
    ways = [{"algorithm": "broadcast"}, {"algorithm": "wavefront"}, {"algorithm": "wavefront", "pending": True}]

    def body(context):
        a = tw.linalg.matrix(WHOLE, context=context)
        b = tw.linalg.matrix(WHOLE, layout="columns", block=1, context=context)
        for way in [*ways, {"algorithm": "summa"}]:
            c = tw.linalg.matmul(a, b, lookahead=2**31 - 1, panel=2**63 - 1, **way).gather()
            assert c is None or np.allclose(c, WHOLE @ WHOLE), way
        for factor in (tw.linalg.lu, tw.linalg.cholesky, tw.linalg.qr):
            for algorithm in ("broadcast", "wavefront"):
                x = factor(a, lookahead=2**31 - 1, block=1, algorithm=algorithm).solve(np.ones(3))
                assert np.allclose(WHOLE @ x, 1), (factor, algorithm)
        return tw.linalg.lu(a, block=2**63 - 1).report.plan.block

    found, errors = on_ranks(ranks, 1, body)
    assert not any(errors) and found == [3] * ranks, errors


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda a: tw.linalg.matmul(a, a, lookahead=2**31), "lookahead: given 2147483648; allowed: an integer from 0"),
        (lambda a: tw.linalg.matmul(a, a, panel=2**63), "panel: given 9223372036854775808; allowed: an integer from 1"),
        (lambda a: tw.linalg.matmul(a, a, memory=2**63), "memory: given 9223372036854775808; allowed: an integer from"),
        (lambda a: tw.linalg.lu(a, lookahead=2**40), "lookahead: given 1099511627776; allowed: an integer from 0"),
        (lambda a: tw.linalg.qr(a, block=2**64), "block: given 18446744073709551616; allowed: an integer from 1 to"),
        (lambda a: a.redistribute(block=2**62), "block: given 4611686018427387904; allowed: integers from 1"),
        (lambda a: a.to_scalapack(2**40), "the context 1099511627776; allowed: integers of 32 bits, as ScaLAPACK's"),
        (lambda a: a.to_scalapack("x"), "the context 'x'; allowed: integers of 32 bits"),
    ],
)
def test_integers_that_are_too_large(call, words):
    with pytest.raises(tw.ConfigError, match=re.escape(words)):
        call(tw.linalg.matrix(WHOLE))


def test_the_part_of_a_rank_is_written_to_and_not_replaced():
    a = tw.linalg.matrix(WHOLE)
    a.local *= 2
    assert np.array_equal(a.gather(), 2 * WHOLE)
    with pytest.raises(tw.ConfigError, match=re.escape("allowed: A.local[...] = values")):
        a.local = np.zeros((1, 1))
    assert np.array_equal(a.gather(), 2 * WHOLE)


@pytest.mark.parametrize("init", [WHOLE * 1j, lambda i, j: i + 1j * j, [[1j, 0, 0]] * 3, "field"])
def test_imaginary_parts_are_not_left_out(init):
    init = tw.field((3, 3), "c16") if isinstance(init, str) else init
    with pytest.raises(tw.ConfigError, match="init: given complex128 for float64; allowed: real numbers, or a complex"):
        tw.linalg.matrix((3, 3), "f8", init)


def test_masks_are_not_ignored():
    masked = np.ma.array(WHOLE, mask=WHOLE > 3)
    a = tw.linalg.matrix(WHOLE)
    for call in (lambda: tw.linalg.matrix(masked), lambda: tw.linalg.lu(masked), lambda: tw.linalg.qr(a).solve(masked)):
        with pytest.raises(tw.ConfigError, match="given a masked array; allowed: arrays without a mask"):
            call()


@pytest.mark.parametrize(
    "change, words",
    [
        ({"algorithm": "cannon"}, "algorithm: given 'cannon'"),
        ({"panel": 0}, "panel: given 0"),
        ({"lookahead": -1}, "lookahead: given -1"),
        ({"tree": "star"}, "tree: given 'star'"),
        ({"task_flops": 0.0}, "task_flops: given 0; allowed: a number >= 1"),
        ({"task_flops": float("nan")}, "task_flops: given nan; allowed"),
        ({"pending": True, "algorithm": "summa"}, "pending was given with algorithm 'summa'"),
    ],
)
def test_plans_by_hand_are_checked(change, words):
    a = tw.linalg.matrix(WHOLE)
    plan = dataclasses.replace(tw.linalg.plan_matmul(a, a), **change)
    with pytest.raises(tw.ConfigError, match=re.escape(words)):
        tw.linalg.matmul(a, a, plan=plan)


def test_a_plan_stands_alone():
    a = tw.linalg.matrix(WHOLE)
    plan = tw.linalg.plan_matmul(a, a)
    with pytest.raises(tw.ConfigError, match="plan was given with algorithm, panel; allowed: one of them"):
        tw.linalg.matmul(a, a, plan=plan, algorithm="broadcast", panel=3)
    assert np.allclose(tw.linalg.matmul(a, a, plan=plan, memory=10**6).gather(), WHOLE @ WHOLE)


def test_a_plan_is_kept_for_any_scalars():
    """What multiplies the product changes no plan, but for a C that is added to."""

    def body(context):
        a, c = (tw.linalg.matrix(WHOLE, context=context) for _ in range(2))
        plans = [tw.linalg.matmul(a, a, alpha=alpha).report.plan for alpha in (1.0, 2.0, np.float64(3))]
        plans += [tw.linalg.matmul(a, a, c, beta=beta).report.plan for beta in (1.0, 2.0)]
        return plans[0] is plans[1] is plans[2] and plans[3] is plans[4] and plans[0] is not plans[3]

    found, errors = on_ranks(2, 1, body)
    assert not any(errors) and found == [True, True], errors


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda a, other: tw.linalg.cholesky(a, check=not other), "check=True"),
        (lambda a, other: tw.linalg.lu(a).solve(np.ones(3) if other else np.ones((3, 1))), "of 1 dimensions"),
        (lambda a, other: tw.linalg.lu(a, block=2 if other else 3), "block (3, 3), grid (1, 1); block=2"),
    ],
)
def test_ranks_that_ask_for_something_else(call, words):
    """Said in what was chosen; a check on one rank alone and results of other dimensions are differences, too."""

    def body(context):
        call(tw.linalg.matrix(WHOLE, layout="cyclic", block=3, grid=(1, 1), context=context), context.rank == 1)

    _, errors = on_ranks(2, 1, body)
    assert all(isinstance(error, tw.ConfigError) for error in errors) and str(errors[0]) == str(errors[1]), errors
    assert words in str(errors[0]) and "None" not in str(errors[0]), errors
