"""All rows of the table: importing them fills it."""

from tranche.module import (
    attention,
    elements,
    images,
    moves,
    norms,
    products,
    tokens,
)

__all__ = ["attention", "elements", "images", "moves", "norms", "products", "tokens"]
