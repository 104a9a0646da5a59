"""Subscripts of flat arrays, ``out[i*n + j]``: whether the elements of different turns are different ones."""

import ast
import itertools
import math
from dataclasses import dataclass

from tilewave.nest.subscript import subscripts_of
from tilewave.nest.walks import elements_in, is_stored, nodes_in

#: Terms of a subscript that is multiplied out.
MOST_TERMS = 32


@dataclass
class FlatAccesses:
    """The accesses of an array in a loop, each a polynomial: from products of names to their factors.

    Attributes
    ----------
    index : str
        Of the loop.
    polynomials : list of dict
        Of one subscript in all accesses.
    ranges : dict
        For the index of each inner loop the begins and ends of its ranges, as polynomials.
    """

    index: str
    polynomials: list
    ranges: dict

    def are_apart(self, turns, numbers):
        """Return whether turns have different elements, none of which counts from the end.

        Those of a turn lie within a distance that is less than from turn to turn.
        """
        ends = {name: (number, number) for name, number in numbers.items()}
        ends[self.index] = turns[0], turns[-1]
        for name, parts in self.ranges.items():  # outer ones first
            begins, stops = ([_bounds(each, ends) for each in each_end] for each_end in zip(*parts, strict=True))
            if None in begins or None in stops:
                return False
            ends[name] = min(low for low, _ in begins), max(high for _, high in stops) - 1
        strides, rests = set(), []
        for polynomial in self.polynomials:
            turning = {names: factor for names, factor in polynomial.items() if self.index in names}
            rest = _bounds({names: f for names, f in polynomial.items() if self.index not in names}, ends)
            others = [[name for name in names if name != self.index] for names in turning]
            if rest is None or any(len(left) != len(names) - 1 for left, names in zip(others, turning, strict=True)):
                return False
            if not all(name in numbers for left in others for name in left):
                return False
            products = (math.prod(numbers[name] for name in left) for left in others)
            strides.add(sum(f * product for f, product in zip(turning.values(), products, strict=True)))
            rests.append(rest)
        low, high = min(low for low, _ in rests), max(high for _, high in rests)
        (stride, *more) = strides
        return not more and stride > 0 and high - low < stride * turns.step and stride * turns[0] + low >= 0


def flat_accesses(loop, array, index):
    """Return the `FlatAccesses` for each subscript of an array of which they may differ."""
    elements = [node for node in elements_in(loop) if isinstance(node.value, ast.Name)]
    accesses = [subscripts_of(node) for node in elements if node.value.id == array]
    inner = [each for each in ast.walk(loop) if isinstance(each, ast.For) and each is not loop]
    targets = [each.target for each in (loop, *inner)]
    changing = {each.id for each in nodes_in(loop) if is_stored(each) and each not in targets}
    ranges = {}
    for each in inner:
        ends = each.iter.args if len(each.iter.args) > 1 else [ast.Constant(0), *each.iter.args]
        if len(ends) == 3 and not (isinstance(ends[2], ast.Constant) and ends[2].value > 0):
            return []
        ranges.setdefault(each.target.id, []).append([polynomial_of(end, changing) for end in ends[:2]])
    if any(None in ends for parts in ranges.values() for ends in parts):
        return []
    found = [[polynomial_of(part, changing) for part in parts] for parts in zip(*accesses, strict=True)]
    return [FlatAccesses(index, each, ranges) for each in found if None not in each]


def polynomial_of(node, changing):
    """An expression of integers multiplied out; None for another one, a long one, or one with names that change."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return {(): node.value}
    if isinstance(node, ast.Name):
        return None if node.id in changing else {(node.id,): 1}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _product(polynomial_of(node.operand, changing), {(): -1})
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
        return None
    left, right = (polynomial_of(each, changing) for each in (node.left, node.right))
    if isinstance(node.op, ast.Mult):
        return _product(left, right)
    right = _product(right, {(): -1 if isinstance(node.op, ast.Sub) else 1})
    return None if left is None or right is None else _sum([*left.items(), *right.items()])


def _product(one, other):
    if one is None or other is None or len(one) * len(other) > MOST_TERMS:
        return None
    pairs = itertools.product(one.items(), other.items())
    return _sum([(tuple(sorted((*a, *b))), f * g) for (a, f), (b, g) in pairs])


def _sum(terms):
    found = {}
    for names, factor in terms:
        found[names] = found.get(names, 0) + factor
    return {names: factor for names, factor in found.items() if factor}


def _bounds(polynomial, ends):
    """The least and the largest value where names have these; None where one has none."""
    low = high = 0
    for names, factor in polynomial.items():
        if any(name not in ends for name in names):
            return None
        values = [factor * math.prod(each) for each in itertools.product(*(ends[name] for name in names))]
        low, high = low + min(values), high + max(values)
    return low, high
