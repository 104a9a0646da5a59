"""Kinds of entries of files: what each takes as it is, and what it refuses by name."""

import pytest

from tilewave import entries

NAN = float("nan")


@pytest.mark.parametrize(
    "kind, right, wrong",
    [
        (entries.integer(-2, 3), [-2, 0, 3], [-3, 4, True, False, 1.0, "1", None]),
        (entries.flag, [True, False], [0, 1, None, "true"]),
        (entries.text, ["", "a", "\n"], [None, 1, b"a", "\ud800"]),
        (entries.number, [0, -1.5, 1e300], [NAN, float("inf"), 1e301, True, "1", None]),
        (entries.one_of(("a", "b")), ["a", "b"], ["c", None, 1]),
        (entries.or_null(entries.flag), [None, True], [0]),
        (entries.of_list(entries.flag, least=1, most=2), [[True], [True, False]], [[], [True] * 3, [1], None, (True,)]),
        (entries.of_list([entries.flag, entries.text]), [[True, "a"]], [[True], ["a", True], [True, "a", "b"]]),
        (entries.of_object({"a": entries.flag}), [{"a": True}], [{"a": 1}, {"a": True, "b": 1}, [], None]),
    ],
)
def test_kinds(kind, right, wrong):
    for value in right:
        assert kind(value, "x") == value
    for value in wrong:
        with pytest.raises(entries.Damaged, match=r"^x[.\[\]\w]*: given .*; allowed: "):
            kind(value, "x")


def test_an_object_names_the_field_that_it_lacks():
    with pytest.raises(ValueError, match=r"x\.b is missing; allowed: the fields a, b"):
        entries.of_object({"a": entries.flag, "b": entries.flag})({"a": True}, "x")
