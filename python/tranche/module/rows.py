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

ALL = (attention, elements, images, masks, moves, norms, products, tokens)
