"""What loops raise names the line of the function."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from test_loops import least_points, some  # noqa: F401

import tilewave as tw


@tw.loops
def roots(a, b):
    for i in range(len(a)):
        b[i] = 1.0
        a[i] = math.sqrt(a[i])  # this one


@tw.loops
def in_turns(a, b):
    for t in range(3):
        for i in range(1, len(a) - 1):
            b[i] = a[i-1] + a[i+1]
        for i in range(1, len(a) - 1):
            if a[i] < 5:  # this one, or the next
                a[i] = math.sqrt(b[i] - t)  # this one


@tw.loops
def in_chain(a, b):
    for _ in range(3):
        for i in range(1, len(a) - 1):
            b[i] = a[i-1] + a[i+1]
        for i in range(1, len(a) - 1):
            a[i] = math.sqrt(b[i])  # this one


@pytest.mark.parametrize("function", [roots, in_turns, in_chain])
def test_an_exception_names_the_line(function):
    a = 1 + some(30)
    a[17] = -9.0
    with pytest.raises(ValueError, match=r"math domain error.*test_lines_of_errors\.py:\d+\)$") as raised:
        function(a, np.zeros(30))
    line = int(re.search(r":(\d+)\)$", str(raised.value))[1])
    source = Path(__file__).read_text().split("\n")
    assert "this one" in source[line - 1], line
