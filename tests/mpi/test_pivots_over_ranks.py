"""Nests with a pivot over MPI: plain loops, bit for bit."""

import pytest
from pivots import random_problem

CASES = 12


@pytest.mark.mpi(ranks=[2, 3, 4])
def test_random_pivots(context):
    for number in range(CASES):
        problem = random_problem(number)
        result = problem.run(context)
        if result is not None:
            problem.check(result[0])
