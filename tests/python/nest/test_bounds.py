"""Bounds of loops against brute force, and what is refused."""

import itertools
import random

import numpy as np
import pytest

from tilewave.nest.bounds import loop_bounds, loop_directions
from tilewave.errors import ConfigError

IJ, IJK = ("i", "j"), ("i", "j", "k")
WIDE = (-60, 60)


def plain(bounds):
    """Nested loops over evaluated bounds: a list of functions of outer indices, one an index."""

    def loops(outer, rest):
        if not rest:
            yield outer
            return
        for x in range(*rest[0](*outer)):
            yield from loops((*outer, x), rest[1:])

    return list(loops((), bounds))


def contains(bounds, point):
    """Whether box and constraints have a point."""
    return all(low <= x < high for x, (low, high) in zip(point, bounds.box)) and all(
        constant + sum(c * x for c, x in zip(coefficients, point)) >= 0 for coefficients, constant in bounds.constraints
    )


def random_bound(rng, outer, around):
    """(bound as a user gives it, function of a point of outer indices)."""
    if not outer or rng.random() < 0.3:
        value = around + rng.randint(-3, 3)
        return rng.choice((value, np.int64(value), str(value))), lambda *x: value
    factors, constant = [rng.choice((0, 0, 1, 1, -1, 2)) for _ in outer], around + rng.randint(-3, 3)
    text = " + ".join([*(f"{c}*{name}" for c, name in zip(factors, outer)), str(constant)])
    if rng.random() < 0.4:
        d, shift = rng.choice((1, 2, 3, 6)), rng.randint(-2, 2)
        text = rng.choice((f"({text})//{d} + {shift}", f"{shift} - ({text})//{d}", f"({text})//{d}//2 + {shift}"))
    by_function = rng.random() < 0.5
    given = eval(f"lambda {', '.join(outer)}: {text}") if by_function else text.replace("+ -", "- ")
    return given, eval(f"lambda {', '.join(outer)}: {text}")


def random_over(seed):
    rng = random.Random(seed)
    indices = "ijkl"[: rng.randint(1, 4)]
    over, plain_bounds = {}, []
    for k, name in enumerate(indices):
        lower, upper = (
            [random_bound(rng, indices[:k], around) for _ in range(rng.choice((1, 1, 2)))] for around in (-2, 3)
        )
        upper.append((6, lambda *x: 6))  # so that loops stay short
        lower.append((-6, lambda *x: -6))
        over[name] = tuple(tuple(given for given, _ in side) for side in (lower, upper))
        plain_bounds.append(
            lambda *x, lower=lower, upper=upper: (max(f(*x) for _, f in lower), min(f(*x) for _, f in upper))
        )
    return tuple(indices), over, plain_bounds


@pytest.mark.parametrize("seed", range(150))
def test_random_bounds_equal_plain_loops(seed):
    indices, over, plain_bounds = random_over(seed)
    bounds = loop_bounds(indices, [WIDE] * len(indices), over)
    expected = plain(plain_bounds)
    assert list(bounds.points()) == expected
    inside = {x for x in itertools.product(*(range(*pair) for pair in bounds.box)) if contains(bounds, x)}
    assert inside == set(expected)
    for x in expected:
        assert all(low <= v < high for v, (low, high) in zip(x, bounds.box))
    for coefficients, constant in bounds.constraints:
        least = constant + sum(c * (low if c > 0 else high - 1) for c, (low, high) in zip(coefficients, bounds.box))
        assert least < 0, "the box implies this constraint"
    assert hash(bounds) == hash(loop_bounds(indices, [WIDE] * len(indices), over))


@pytest.mark.parametrize("seed", range(150))
def test_refuses_exactly_when_a_point_is_outside(seed):
    indices, over, plain_bounds = random_over(seed)
    rng = random.Random(-seed)
    allowed = [(rng.randint(-6, 0), rng.randint(2, 6)) for _ in indices]
    outside = any(not low <= v < high for x in plain(plain_bounds) for v, (low, high) in zip(x, allowed))
    if outside:
        with pytest.raises(ConfigError, match="outside the points where every access is inside"):
            loop_bounds(indices, allowed, over)
    else:
        assert list(loop_bounds(indices, allowed, over).points()) == plain(plain_bounds)


def test_boxes_and_constraints():
    whole = loop_bounds(IJ, [(1, 5), (0, 7)])
    assert (whole.box, whole.constraints) == (((1, 5), (0, 7)), ())
    triangle = loop_bounds(IJ, [(0, 5), (0, 5)], {"j": ("i+1", 5)})
    assert triangle.box == ((0, 5), (1, 5)) and triangle.constraints == (((-1, 1), -1),)
    band = loop_bounds(IJ, [(0, 9), (0, 9)], {"j": (("i-1", 0), [lambda i: i + 2, 9])})
    assert band.box == ((0, 9), (0, 9))
    assert set(band.constraints) == {((-1, 1), 1), ((1, -1), 1)}
    assert loop_bounds(IJK, [(0, 4)] * 3, {"k": ("i+j", "i+j+1"), "j": (0, 1)}).box == ((0, 4), (0, 1), (0, 4))


def test_points_run_down():
    bounds = loop_bounds(IJ, [(0, 3), (0, 3)], {"j": (0, "i+1")})
    assert list(bounds.points(("i",))) == [(2, 0), (2, 1), (2, 2), (1, 0), (1, 1), (0, 0)]
    assert list(bounds.points(["j"])) == [(0, 0), (1, 1), (1, 0), (2, 2), (2, 1), (2, 0)]
    assert list(bounds.points(("j", "i"))) == [(2, 2), (2, 1), (2, 0), (1, 1), (1, 0), (0, 0)]


def test_forms_that_are_affine():
    n = 4
    for text, function in (
        ("i+1", lambda i: i + 1), ("-(i-5)", lambda i: 5 - i), ("3*(i-1)+2*i", lambda i: 5 * i - 3),
        ("i*2-i-i", lambda: 0), ("+i", lambda i, n=0: n + i), ("4-i", lambda i: np.int64(n) - i),
        ("7*i//3-2", lambda i: (7 * i - 6) // 3), ("(4*i+3)//6", lambda i: (2 * i + 1) // np.int64(3)),
        ("-(i//2)", lambda i: (1 - i) // 2), ("i//2//4", lambda i: i // 8), ("7//2+i", lambda i: i + 3),
        ("0*(i//2)", lambda: 0), ("(-i)//1", lambda i: -i),
    ):
        given = [loop_bounds(IJ, [(0, 4), (-50, 50)], {"j": (-50, bound)}) for bound in (text, function)]
        assert given[0] == given[1]


def test_an_empty_set_is_fine_and_may_lie_anywhere():
    for over in (
        {"j": ("i+4", 4)}, {"i": (2, 2), "j": ("i+90", "i+99")}, {"j": ("i+100", "i+99")},
        {"j": ("i+50", "i+60"), "k": (1, 1)}, {"i": ("5", "2")},
    ):
        bounds = loop_bounds(IJK, [(0, 4)] * 3, over)
        assert list(bounds.points()) == [] and not contains(bounds, (1, 1, 1))
        assert all(0 <= low <= high <= 4 for low, high in bounds.box)


def test_the_exact_check_looks_at_real_points_only():
    # The interval of i+j over the box is (0, 7), but no point of the triangle is beyond 4.
    loop_bounds(IJK, [(0, 4)] * 3, {"j": (0, "4-i"), "k": (0, "i+j+1")})
    with pytest.raises(ConfigError, match=r"'k' runs over \(0, 5\) at i=0, j=4.*within \(0, 4\)"):
        loop_bounds(IJK, [(0, 5), (0, 5), (0, 4)], {"j": (0, "5-i"), "k": (0, "i+j+1")})


def huge(rng):
    return rng.choice((1, -1)) * (
        rng.choice((2**53, 2**61, 2**62, 3 * 2**61, 2**63, 2**64 + 2, 10**30)) * rng.choice((1, 2, 3))
        + rng.choice((0, 0, 1))
    )


@pytest.mark.parametrize("seed", range(200))
def test_huge_coefficients_mean_what_plain_integers_do(seed):
    """Or are refused: a constraint is exact, and computing with it takes 64 bits."""
    rng = random.Random(seed)
    extents = [rng.randint(2, 7) for _ in IJK]
    at = rng.randint(0, 4)
    factors = [rng.choice((0, 1, -2, huge(rng))), huge(rng)]
    if rng.random() < 0.4:
        factors[0] = factors[1] * rng.choice((1, -1, 2, 2**40))
    constant = rng.choice((0, 1, -2, huge(rng))) - at * factors[1]
    upper = rng.random() < 0.5
    text = f"{factors[0]}*i + {factors[1]}*j + {constant}"
    over = {"k": (0, [text, extents[2]]) if upper else ([text, 0], extents[2])}
    try:
        bounds = loop_bounds(IJK, [(0, extent) for extent in extents], over)
    except ConfigError as error:
        assert "bounds" in str(error) and "'k' reach numbers beyond 64 bits" in str(error)
        assert factors[0] % factors[1], seed  # a common factor is never too large
        return
    expected = [
        (i, j, k)
        for i, j, k in itertools.product(*map(range, extents))
        if (k < factors[0] * i + factors[1] * j + constant) == upper
        or not upper
        and k >= factors[0] * i + factors[1] * j + constant
    ]
    assert [x for x in itertools.product(*(range(*pair) for pair in bounds.box)) if contains(bounds, x)] == expected
    for coefficients, number in bounds.constraints:
        assert abs(number) + sum(abs(c) * 8 for c in coefficients) < 2**60


def test_long_outer_loops_go_by_intervals():
    n = 10**7
    wide = [(0, n), (0, n)]
    assert loop_bounds(IJ, wide, {"j": (0, "i+1")}).box == ((0, n), (0, n))
    assert loop_bounds(IJ, wide, {"j": (("i-9", 0), ("i+9", n))}).box == ((0, n), (0, n))
    with pytest.raises(ConfigError, match=r"may reach \(0, 10000008\).*too long to look at.*a list with ints"):
        loop_bounds(IJ, wide, {"j": (0, "i+9")})
    with pytest.raises(ConfigError, match="may reach"):
        loop_bounds(IJ, [(0, 5), (0, 5)], {"j": (0, f"{2**70}*i")})
    # A long loop that no bound mentions does not count.
    loop_bounds(IJK, [(0, n), (0, 5), (0, 4)], {"k": ("j-1", "j-1")})
    with pytest.raises(ConfigError, match="'k' runs over"):
        loop_bounds(IJK, [(0, n), (0, 5), (0, 4)], {"k": (0, "j+1")})


@pytest.mark.parametrize(
    "bound, reason",
    [
        ("n-i", "'n' is no outer loop index"),
        ("j", "'j' is no outer"),
        ("k", "'k' is no outer"),
        ("i*i", "a product of loop indices"),
        ("i//0", "a divisor that is no positive integer"),
        ("i//-2", "a divisor that is no positive integer"),
        ("5//i", "a divisor that is no positive integer"),
        ("i//2.0", "2.0 is no int"),
        ("2*(i//3)", "a multiple of a quotient"),
        ("i//2 + i//3", "a sum of two quotients"),
        ("i%2", "is more than + - * //"),
        ("1.5*i", "1.5 is no int"),
        ("i+", "SyntaxError"),
        ("", "SyntaxError"),
        ("min(i, 3)", "is more than"),
        ("i if i else 1", "is more than"),
        ("True", "True is no int"),
        (True, "True is no int"),
        (1.0, "1.0 is no int"),
        (None, "None is no int"),
        (lambda i: i * i, "a product"),
        (lambda i: i % 2, "more than"),
        (lambda i: i // 0, "a divisor"),
        (lambda i: 7 // i, "a divisor"),
        (lambda i: i // 2 * 4, "a multiple of a quotient"),
        (lambda i: i // 2 - i // 2, "a sum of two quotients"),
        (lambda i: min(i, 3), "more than"),
        (lambda i: np.minimum(i, 3), ""),
        (lambda i: 2.0 * i, "2.0 is no int"),
        (lambda i: int(i), "more than"),
        (lambda i: i if i == 2 else 0, "more than"),
        (lambda i: [i, 1], "is no int"),
        (lambda i: {}[i], "TypeError"),
        (lambda i: i + 1 if isinstance(i, int) else i, "else for ints than for symbols"),
        (lambda n: n, "'n' is no outer"),
        (lambda j: j, "'j' is no outer"),
        (lambda *i: i[0], "'i' is no outer"),
        (lambda i: None, "None is no int"),
        (np.array([1, 2]), "is no int"),
    ],
)
def test_refuses_what_is_not_affine(bound, reason):
    for over in ({"j": (bound, 5)}, {"j": (0, bound)}, {"j": (0, (bound, 3))}):
        with pytest.raises(ConfigError, match="of index 'j' is not supported.*outer indices here: i") as caught:
            loop_bounds(IJK, [(0, 9)] * 3, over)
        assert reason in str(caught.value)


@pytest.mark.parametrize(
    "over, message",
    [
        ([("i", (0, 1))], "given list; allowed: a dict"),
        ({"x": (0, 1)}, "no index 'x'; allowed: i, j"),
        ({"i": 3}, "allowed: a pair"),
        ({"i": (1, 2, 3)}, "allowed: a pair"),
        ({"i": "i+1"}, "allowed: a pair"),
        ({"i": (0, [])}, "empty list"),
        ({"i": ("j", 3)}, "there is no outer index here"),
        ({"i": (-1, 3)}, r"bounds \(-1, 3\) of index 'i' reach outside.*within \(0, 4\)"),
        ({"i": (0, 5)}, r"within \(0, 4\)"),
        ({"i": (3, 2)}, "reach outside"),
        ({"j": ("i", 9)}, r"bounds \('i', 9\) of index 'j' reach outside"),
        ({"j": (("i", 0), ("9", 8))}, r"'j' runs over \(0, 8\) at i=0"),
    ],
)
def test_refuses(over, message):
    with pytest.raises(ConfigError, match=message):
        loop_bounds(IJ, [(0, 4), (0, 6)], over)


def test_loop_directions():
    assert loop_directions(IJK, ("i", "k")) == (-1, 1, -1) and loop_directions(IJ) == (1, 1)
    for wrong, message in (("i", "given 'i'"), (("x",), "no index 'x'; allowed: i, j"), ((1,), "tuple of index names")):
        with pytest.raises(ConfigError, match=message):
            loop_directions(IJ, wrong)
