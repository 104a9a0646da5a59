"""What one rank gives wrong to a call on matrices is one error on all ranks."""

import numpy as np
import pytest
import tilewave as tw
from local_ranks import refused_on_all

# What each call is given where nothing is wrong; a tuple is the shape of a matrix.
GIVEN = {
    "cholesky": {"a": (4, 4)},
    "lu": {"a": (9, 9)},
    "qr": {"a": (4, 3)},
    "lstsq": {"a": (4, 3), "b": (4, 2)},
    "wide lstsq": {"a": (4, 7), "b": (4, 2)},
    "solve_triangular": {"a": (4, 4), "b": (4, 2)},
    "matmul": {"a": (4, 5), "b": (5, 6)},
    "apply": {"b": (4, 2)},
    "solve": {"b": (4, 2)},
    "q": {},
    "matrix": {"shape": (3, 3), "init": np.ones((3, 3))},
    "lu of an array": {"a": np.eye(3), "b": np.eye(3)},
}
CASES = {
    "cholesky": [
        ({"a": None}, "a: given NoneType; allowed: a tilewave.linalg.Matrix, or a NumPy array that"),
        ({"a": (3, 4)}, "a of shape (3, 4) was given; allowed: square matrices"),
        ({"block": 0}, "block: given 0; allowed: an integer >= 1"),
        ({"lookahead": -1}, "lookahead: given -1; allowed: an integer >= 0"),
        ({"tree": "star"}, "tree: given 'star'; allowed: ring, least_rounds"),
        ({"check": 3}, "check: given 3; allowed: True, False"),
    ],
    "lu": [
        ({"algorithm": "star"}, "lu: algorithm: given 'star'; allowed: auto, broadcast, wavefront"),
        ({"algorithm": None}, "lu: algorithm: given 'None'; allowed: auto, broadcast, wavefront"),
        ({"algorithm": "wavefront", "tree": "least_rounds"}, "lu: tree 'least_rounds' was given with algorithm"),
        ({"memory": -1}, "lu: memory: given -1; allowed: an integer >= 0"),
    ],
    "qr": [
        ({"mode": "raw"}, "qr: mode: given 'raw'; allowed: economic, full, r"),
        ({"mode": None}, "qr: mode: given 'None'; allowed: economic, full, r"),
        ({"block": 0}, "qr: block: given 0; allowed: an integer >= 1"),
        ({"lookahead": True}, "qr: lookahead: given True; allowed: an integer >= 0"),
    ],
    "lstsq": [
        ({"b": (5, 1)}, "lstsq: b of (5, 1) float64 was given for a matrix of (4, {columns}) float64; allowed: 4 rows"),
        ({"b": None}, "lstsq: b: given NoneType; allowed: a tilewave.linalg.Matrix, or a NumPy array that"),
        ({"cond": -1.0}, "lstsq: cond: given -1.0; allowed: a number >= 0, or None"),
        ({"cond": float("nan")}, "lstsq: cond: given nan; allowed: a number >= 0, or None"),
        ({"tree": "star"}, "lstsq: tree: given 'star'; allowed: ring, least_rounds"),
    ],
    "solve_triangular": [
        ({"a": (3, 4)}, "solve_triangular: a of shape (3, 4) was given; allowed: square matrices"),
        ({"b": (5, 1)}, "solve_triangular: b of (5, 1) float64 was given for a matrix of (4, 4) float64; allowed: 4 "
         "rows"),
        ({"trans": "X"}, "solve_triangular: trans: given 'X'; allowed: 'N', 'T', 'C', 0, 1, 2"),
        ({"trans": [1]}, "solve_triangular: trans: given [1]; allowed"),
        ({"lower": 1}, "solve_triangular: lower: given 1; allowed: True, False"),
        ({"unit_diagonal": None}, "solve_triangular: unit_diagonal: given None; allowed: True, False"),
        ({"block": -3}, "solve_triangular: block: given -3; allowed: an integer >= 1"),
    ],
    "matmul": [
        ({"algorithm": "fastest"}, "allowed: auto, broadcast, wavefront, summa"),
        ({"panel": 0}, "panel: given 0; allowed: an integer >= 1"),
        ({"lookahead": -1}, "lookahead: given -1"),
        ({"tree": "star"}, "allowed: ring, least_rounds"),
        ({"trans_a": "X"}, "trans_a: given 'X'"),
        ({"alpha": 1j}, "allowed: a real number"),
        ({"beta": 1.0}, "beta=1.0 was given without c"),
        ({"pending": True, "algorithm": "summa"}, "allowed: 'wavefront'"),
        ({"layout": "diagonal"}, "allowed: rows, columns, cyclic"),
        ({"b": (6, 5)}, "op(A) of 4 x 5 and op(B) of 6 x 5 were given"),
        ({"b": (5, 6), "trans_b": "T"}, "op(A) of 4 x 5 and op(B) of 6 x 5 were given"),
        ({"b": (5, 6, "f4")}, "b has dtype float32, a has float64"),
        ({"c": (4, 4)}, "c of shape (4, 4) was given for a product of 4 x 6"),
        ({"b": None}, "b: given NoneType; allowed: a tilewave.linalg.Matrix"),
    ],
    "apply": [
        ({"trans": "X"}, "apply: trans: given 'X'; allowed: 'N', 'T', 'C', 0, 1, 2"),
        ({"b": (3, 1)}, "apply: b of (3, 1) float64 was given for a matrix of (4, 3) float64; allowed: 4 rows"),
    ],
    "solve": [({"b": (3, 1)}, "solve: b of (3, 1) float64 was given for a matrix of (4, 3) float64; allowed: 4 rows")],
    "q": [({"mode": "raw"}, "q: mode: given 'raw'; allowed: economic, full, r")],
    "matrix": [
        ({"shape": (3, -1)}, "allowed: two integers >= 0"),
        ({"shape": (3,)}, "allowed: two integers >= 0"),
        ({"dtype": "i4"}, "dtype: given int32; allowed: float32, float64, complex64, complex128"),
        ({"layout": "diagonal"}, "layout: given 'diagonal'; allowed: rows, columns, cyclic"),
        ({"block": 0}, "block: given 0; allowed: an integer >= 1"),
        ({"block": (2, "a")}, "block: given (2, 'a')"),
        ({"layout": "cyclic", "grid": (3, 1)}, "allowed: at most 2 ranks"),
        ({"grid": (2, 1)}, "allowed: layout='cyclic'"),
        ({"init": np.zeros((2, 2))}, "init: given an array of shape (2, 2); allowed: (3, 3)"),
        ({"init": lambda i, j: 1 // 0}, "init raised ZeroDivisionError"),
        ({"init": 2.0}, "number 2.0"),
        ({"block": 1}, "rows, block (1, 3)"),
        ({"init": np.eye(3)}, "allowed: the same on every rank, or an array on rank 0"),
    ],
    "lu of an array": [
        ({"a": np.ones((3, 3))}, "of an array"),  # other values: the texts of both ranks are shown
        ({"a": np.eye(3).astype("f2")}, "a: given an array of float16; allowed: float32, float64"),
        ({"a": np.zeros(3)}, "a: given an array of shape (3,); allowed: two dimensions"),
        ({"a": "abc"}, "a: given str; allowed: a tilewave.linalg.Matrix, or a NumPy array that is the same on"),
        ({"b": np.eye(3) * 1j}, "b: given an array of complex128; allowed: what float64 can hold"),
        ({"b": np.zeros((1, 1, 3))}, "b: given an array of shape (1, 1, 3); allowed: one or two dimensions"),
        ({"b": np.eye(4)}, "allowed: 3 rows, the same dtype"),
        ({"b": np.full((3, 3), 2.0)}, "of an array"),
    ],
}
CASES["wide lstsq"] = CASES["lstsq"]  # which does more before it factors


@pytest.mark.parametrize("call, wrong, text", [(call, *case) for call, cases in CASES.items() for case in cases])
def test_bad_arguments_on_one_rank_are_errors_on_all(call, wrong, text):
    def body(context):
        def matrices(given):
            """Every rank makes those of both; only rank 1 gives the wrong ones."""
            shapes = {name: what for name, what in given.items() if name in "abc" and isinstance(what, tuple)}
            return given | {
                name: tw.linalg.matrix(shape[:2], *shape[2:], init=lambda i, j: 1.0 * (i == j), context=context)
                for name, shape in shapes.items()
            }

        given, other = matrices(GIVEN[call]), matrices(wrong)
        given |= other if context.rank == 1 else {}
        if call == "matrix":
            tw.linalg.matrix(context=context, **given)
        elif call == "lu of an array":
            tw.linalg.lu(given["a"], context=context).solve(given["b"])
        elif call in ("apply", "solve", "q"):
            getattr(tw.linalg.qr(tw.linalg.matrix((4, 3), init=lambda i, j: 1.0 * (i == j), context=context)), call)(
                **given
            )
        else:
            getattr(tw.linalg, call.split()[-1])(context=context, **given)

    refused_on_all(2, body, text.format(columns=7 if call == "wide lstsq" else 3))
