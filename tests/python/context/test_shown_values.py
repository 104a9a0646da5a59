"""Values in errors' texts."""

import numpy as np
import pytest

import tilewave as tw
from tilewave.errors import LONGEST_VALUE, ConfigError, shown


def test_arrays_by_shape_others_in_one_short_line():
    assert shown(np.ones((3, 400), "f4")) == "ndarray of shape (3, 400), float32"
    assert shown(2) == "2" and shown("ring") == "'ring'"
    for value in ("x" * 1000, list(range(1000)), dict.fromkeys(range(100), "y" * 100), "a\nb" * 200):
        assert len(shown(value)) <= LONGEST_VALUE and "\n" not in shown(value)


def test_a_matrix_in_place_of_a_root():
    with pytest.raises(ConfigError, match=r"root ndarray of shape \(1, 64\), float64 was given"):
        tw.patterns.reduce(np.ones((1, 64)), np.ones((1, 64)))
