"""Nests whose steps are gathered, over MPI: plain loops, bit for bit."""

import pytest
from gathered import random_problem

CASES = 12


@pytest.mark.mpi(ranks=[2, 3, 4])
def test_random_nests(context):
    for number in range(CASES):
        problem = random_problem(1000 + number)
        result = problem.run(context, 1, number)
        if result is not None:
            problem.check(result[0])
