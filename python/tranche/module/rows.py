"""All rows of the table: importing them fills it."""

from tranche.module import (
    attention,
    elements,
    images,
    masks,
    moves,
    norms,
    products,
    tokens,
)
from tranche.module.table import find

ALL = (attention, elements, images, masks, moves, norms, products, tokens)
__all__ = ["ALL", "find"]
