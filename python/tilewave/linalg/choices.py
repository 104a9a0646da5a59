"""Choices of products, factorizations and solutions, which callers may leave to be predicted."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tilewave.linalg.layout import Layout


class SolveChoices(TypedDict, total=False):
    """Choices of a triangular solution, as `lu` describes them."""

    block: int | None
    lookahead: int | None
    tree: str | None
    memory: int | None


class SquareChoices(SolveChoices, total=False):
    """Choices of what is done by factors."""

    grid: Sequence[int] | None
    algorithm: str


class FactorChoices(SquareChoices, total=False):
    """Choices of a factorization."""

    weights: Sequence[int] | None


class ProductChoices(TypedDict, total=False):
    """Choices of a product, as `matmul` describes them, and what of its operands is multiplied."""

    trans_a: str
    trans_b: str
    algorithm: str
    lookahead: int | None
    panel: int | None
    tree: str | None
    pending: bool | None
    weights: Sequence[int] | None
    memory: int | None
    layout: str | Layout | None
