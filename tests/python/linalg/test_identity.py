"""Ranks that give different matrices of one shape to a call are told so."""

import numpy as np
import pytest
import tilewave as tw
from local_ranks import results_of


def matrices(context, count, n=8):
    values = [np.eye(n) * (k + 2) + 0.1 for k in range(count)]
    return [tw.linalg.matrix((n, n), init=each, context=context) for each in values]


@pytest.mark.parametrize("ranks", [2, 3])
def test_every_call_compares_its_matrices_over_the_ranks(ranks):
    def body(context):
        a, b, c = matrices(context, 3)
        mine = a if context.rank % 2 else b
        lu, ch, qr = ([f(each) for each in (a, b)] for f in (tw.linalg.lu, tw.linalg.cholesky, tw.linalg.qr))
        k = context.rank % 2
        calls = {
            "gather": mine.gather,
            "redistribute": lambda: mine.redistribute("cyclic", 2),
            "left": lambda: tw.linalg.matmul(mine, c),
            "right": lambda: tw.linalg.matmul(c, mine),
            "c": lambda: tw.linalg.matmul(a, b, c=results[k]),
            "lu": lambda: tw.linalg.lu(mine),
            "cholesky": lambda: tw.linalg.cholesky(mine),
            "qr": lambda: tw.linalg.qr(mine),
            "lstsq": lambda: tw.linalg.lstsq(mine, c),
            "sides": lambda: lu[0].solve(mine),
            "factor": lambda: lu[k].solve(c),
            "det": lambda: lu[k].det(),
            "cholesky factor": lambda: ch[k].solve(c),
            "qr factor": lambda: qr[k].solve(c),
            "triangular": lambda: tw.linalg.solve_triangular(mine, c),
        }
        results = matrices(context, 2)
        outcomes = {}
        for name, call in calls.items():
            try:
                call()
                outcomes[name] = "nothing was raised"
            except tw.ConfigError as error:
                assert error.agreed
                outcomes[name] = "different arguments" if "different arguments" in str(error) else str(error)
        product = tw.linalg.matmul(a, b).gather()  # the ranks are where they were
        assert product is None or np.allclose(product, (np.eye(8) * 2 + 0.1) @ (np.eye(8) * 3 + 0.1))
        return outcomes

    results = results_of(ranks, 1, body)
    for outcomes in results:
        assert set(outcomes.values()) == {"different arguments"}, outcomes


def test_ranks_number_alike_after_one_could_not_make_its_matrix():
    def body(context):
        a, b = matrices(context, 2)
        with pytest.raises(tw.ConfigError):
            tw.linalg.matmul(a, b, panel=0 if context.rank else 4)
        made = tw.linalg.matmul(a, b)
        return made._number, made.gather() is None or True

    results = results_of(3, 1, body)
    assert len(set(results)) == 1
