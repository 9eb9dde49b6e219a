"""Rows in shapes: which dimension of a tensor of the graph is made of rows."""

from __future__ import annotations

import math
from typing import Any

import torch


class Shapes:
    """symbol: the rows, as sympy has them."""

    def __init__(self, symbol: Any) -> None:
        self.symbol = symbol

    def _expression(self, size: Any) -> Any:
        return size.node.expr if isinstance(size, torch.SymInt) else size

    def factor(self, size: Any) -> int | None:
        """k of a size that is k * rows; None where it is another one."""
        found = self._expression(size)
        if isinstance(found, int):
            return None
        ratio = found / self.symbol
        return int(ratio) if ratio.is_Integer else None

    def has_rows(self, node: Any) -> bool:
        """Is any dimension of its tensor made of rows?"""
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor):
            return False
        return any(
            not isinstance(self._expression(size), int)
            and self.symbol in self._expression(size).free_symbols
            for size in value.shape
        )

    def sample(self, node: Any) -> tuple[int, ...] | None:
        """The shape of one sample, where a tensor has all of the first sample, then all
        of the second; None where it has not. [k * rows, ...] are k a sample."""
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or value.ndim == 0:
            return None
        each = self.factor(value.shape[0])
        rest = value.shape[1:]
        if each is None or not all(isinstance(size, int) for size in rest):
            return None
        return (each, *rest) if each > 1 else tuple(rest)

    def size_of(self, node: Any) -> list[int] | None:
        """A size of the graph as a polynomial of the rows, the highest power first;
        None where it is none."""
        import sympy

        found = self._expression(node.meta["val"])
        if isinstance(found, int | bool):
            return [int(found)]
        try:
            parts = sympy.Poly(found, self.symbol).all_coeffs()
        except sympy.PolynomialError:
            return None
        whole = all(part.is_Integer for part in parts)
        return [int(part) for part in parts] if whole else None


def count(shape: tuple[int, ...]) -> int:
    return math.prod(shape)


def is_float(node: Any) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def is_size(node: Any) -> bool:
    """A number, not a tensor."""
    return isinstance(
        node.meta.get("val"),
        torch.SymInt | torch.SymFloat | torch.SymBool | int | float | bool,
    )
