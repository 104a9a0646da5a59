"""What one rank alone is given wrongly is one ConfigError of all ranks, and the next call works."""

import numpy as np
import pytest
from local_ranks import results_of

import tilewave as tw


def raises(*_):
    raise ValueError("no value there")


CALLS = {
    "sum(axis=9)": lambda u, M, r: u.sum(axis=9 if r else 0),
    "max(axis='x')": lambda u, M, r: u.max(axis="x" if r else 0),
    "min(axis=(0, 0))": lambda u, M, r: u.min(axis=(0, 0) if r else 0),
    "argmin(axis=(0, 1))": lambda u, M, r: u.argmin(axis=(0, 1) if r else 0),
    "mean(axis=nan)": lambda u, M, r: u.mean(axis=float("nan") if r else None),
    "(u > 0).any(axis=5)": lambda u, M, r: (u > 0).any(axis=5 if r else None),
    "all(axis=u)": lambda u, M, r: u.all(axis=u if r else 0),
    "max(axis=0) and 1": lambda u, M, r: u.max(axis=r),
    "u[:, 3] = field": lambda u, M, r: u.__setitem__((slice(None), 3), u if r else 1.0),
    "u[u:] = field": lambda u, M, r: u.__setitem__(slice(u, None) if r else ..., u + 1),
    "u[:u]": lambda u, M, r: u[: u if r else 3],
    "u[M]": lambda u, M, r: u[M if r else 3],
    "u[...] = expression": lambda u, M, r: u.__setitem__(..., u * 1j if r else u + 1),
    "u += text": lambda u, M, r: u.__iadd__("x" if r else 1),
    "u += complex": lambda u, M, r: u.__iadd__(1j if r else 1),
    "u += other shape": lambda u, M, r: u.__iadd__(np.ones(7) if r else 1),
    "u.fill": lambda u, M, r: u.fill(raises if r else 1),
    "field(matrix)": lambda u, M, r: tw.field(M if r else (4, 4), context=u.context),
    "field(u + 1)": lambda u, M, r: tw.field(u + 1 if r else (4, 4), context=u.context),
    "field(floats)": lambda u, M, r: tw.field([4.0, 4.0] if r else (4, 4), context=u.context),
    "dtype=": lambda u, M, r: tw.field((4, 4), "f3" if r else "f8", context=u.context),
    "init= raises": lambda u, M, r: tw.field((4, 4), init=raises if r else 1, context=u.context),
    "init=matrix": lambda u, M, r: tw.field((4, 4), init=M if r else 1, context=u.context),
    "periodic=": lambda u, M, r: tw.field((4, 4), halo=1, periodic=M if r else (0,), context=u.context),
    "halo=": lambda u, M, r: tw.field((4, 4), halo=M if r else 1, context=u.context),
    "history=": lambda u, M, r: tw.field((4, 4), history=M if r else 1, context=u.context),
    "matrix(matrix)": lambda u, M, r: tw.linalg.matrix(M if r else (4, 4), context=u.context),
    "matrix block=": lambda u, M, r: tw.linalg.matrix((4, 4), block=M if r else 2, context=u.context),
    "matrix init=": lambda u, M, r: tw.linalg.matrix((4, 4), init=raises if r else 1, context=u.context),
    "matrix dtype=": lambda u, M, r: tw.linalg.matrix((4, 4), "i8" if r else None, context=u.context),
    "M + text": lambda u, M, r: M + ("x" if r else 1),
    "M.T + M": lambda u, M, r: M.T + (np.ones(7) if r else M),
    "M ** huge": lambda u, M, r: M ** (10**400 if r else 2),
    "M @= ": lambda u, M, r: M.__imatmul__(np.ones((4, 7)) if r else np.ones((4, 4))),
    "M[:2] = ": lambda u, M, r: M.__setitem__(slice(0, 2), M if r else np.ones((2, 4))),
    "M[u]": lambda u, M, r: M[u if r else 1],
    "M.diagonal": lambda u, M, r: M.diagonal(M if r else 0),
    "astype": lambda u, M, r: M.astype("i8" if r else "f4"),
    "solve": lambda u, M, r: tw.linalg.solve(M, "b" if r else np.ones(4)),
    "norm": lambda u, M, r: tw.norm(u, M if r else 2),
}


@pytest.mark.parametrize("name", CALLS)
def test_one_error_of_all_and_the_next_call_works(name):
    def body(context):
        u = tw.field((4, 5), init=2.0, context=context)
        M = tw.linalg.matrix(np.eye(4) + 1, context=context)
        with pytest.raises(tw.ConfigError) as error:
            CALLS[name](u, M, context.rank)
        u.fill(1)
        return str(error.value), float(u.sum()), float(tw.linalg.norm(M))

    one, other = results_of(2, 1, body)
    assert one == other and one[1] == 20 and one[2] > 0 and "called different functions" not in one[0], one
