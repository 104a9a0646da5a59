"""The text by which ranks compare a user's function: the same in every process, another for another function."""

import functools

import numpy as np
import pytest
from launches import PYTHON, ended

from tilewave.patterns.function_text import function_text

PROGRAM = """
import functools, numpy as np
from tilewave.patterns.function_text import function_text

class Op:
    def __init__(self):
        self.names, self.table, self.other = {"x", "y", "z"}, {"a": 1, "b": np.ones(3)}, object()
    def __call__(self, a, b):
        return a + b if a[0] in {1, 2, 3} else b

def made(names):
    return lambda a, b: a + b + len(names)

for f in (Op(), Op().__call__, made(frozenset(("p", "q", "r"))), functools.partial(made, object()), np.add, max):
    print(function_text(f))
"""


def test_every_process_has_the_same_text():
    texts = {ended(PYTHON, "-c", PROGRAM, env={"PYTHONHASHSEED": seed}, check=True).stdout for seed in "123"}
    (text,) = texts
    assert len(set(text.split("\n"))) == 7  # and an empty one


def test_functions_that_refer_to_themselves_have_a_text():
    def even(n):
        return n == 0 or odd(n - 1)

    def odd(n):
        return n != 0 and even(n - 1)

    cycle = []
    cycle.append(cycle)
    assert function_text(even) != function_text(odd)
    assert function_text(lambda a, b: cycle) and function_text(np.array)


def test_of_objects_that_a_function_carries_the_type_counts():
    class Counter:
        def __init__(self, number):
            self.number = number

        def add(self, a, b):
            return a + b

    def made(counter):
        return lambda a, b: counter.add(a, b)

    assert function_text(made(Counter(1))) == function_text(made(Counter(2)))
    assert function_text(made(Counter(1).add)) == function_text(made(Counter(2).add))
    assert function_text(Counter(1).add) != function_text(Counter(2).add)


@pytest.mark.parametrize(
    "made",
    [
        lambda value: lambda a, b: a + b * value,
        lambda value: lambda a, b, c=value: a + b * c,
        lambda value: lambda a, b, *, c=value: a + b * c,
        lambda value: functools.partial(np.add, value),
        lambda value: functools.partial(np.add, where=value),
        lambda value: lambda a, b: [a, {"k": (value,)}],
    ],
)
def test_values_that_a_function_carries_tell_it_from_others(made):
    assert function_text(made(1)) == function_text(made(1))
    for other in (2, 1.0, "1", np.int64(1), np.ones(2)):
        assert function_text(made(1)) != function_text(made(other))
