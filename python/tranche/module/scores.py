"""Attention as people write it: scaled_dot_product_attention, or products, masks and a
softmax by hand."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from tranche.module.heads import same
from tranche.module.shapes import is_float
from tranche.module.table import argument, is_op

if TYPE_CHECKING:
    from tranche.module.read import Reading

_HIDDEN = -1e9  # a score from which on nothing is left of a key


class Masking(NamedTuple):
    """What is done to scores before their softmax. added: the node's values, times a
    factor; hidden and seen: the factor is added where the node is true, and false."""

    kind: str
    node: Any
    factor: float


class Scores(NamedTuple):
    """softmax(factor q k^T + masks) v"""

    queries: Any
    keys: Any
    values: Any
    factor: float
    causal: bool
    dropout: float
    masks: list[Masking]
    by_hand: bool


def scores_of(reading: Reading, node: Any) -> Scores | None:
    """What a node computes, where it is attention."""
    if is_op(node, "scaled_dot_product_attention.default"):
        queries, keys, values = node.args[:3]
        scale, mask = argument(node, 6, "scale"), argument(node, 3, "attn_mask")
        depth = int(queries.meta["val"].shape[-1])
        factor = depth**-0.5 if scale is None else float(scale)
        masks = [] if mask is None else [_of_mask(mask)]
        causal = bool(argument(node, 5, "is_causal", False))
        dropout = float(argument(node, 4, "dropout_p", 0.0))
        return Scores(queries, keys, values, factor, causal, dropout, masks, False)
    return _by_hand(reading, node) if _is_product(node) else None


def _of_mask(node: Any) -> Masking:
    if is_float(node):
        return Masking("added", node, 1.0)
    return Masking("seen", node, -math.inf)


def _is_product(node: Any) -> bool:
    return is_op(node, "matmul.default") or is_op(node, "bmm.default")


def _plain(reading: Reading, node: Any) -> Any:
    """Without views that leave the shape, and casts that leave the type."""
    views = ("expand.default", "view.default", "reshape.default", "_unsafe_view.default")
    while True:
        inner = same(reading, node)
        if any(is_op(inner, name) for name in views):
            if inner.meta["val"].shape == inner.args[0].meta["val"].shape:
                inner = inner.args[0]
        if inner is node:
            return node
        node = inner


def _by_hand(reading: Reading, node: Any) -> Scores | None:
    shares, values = _plain(reading, node.args[0]), node.args[1]
    dropout = 0.0
    if is_op(shares, "dropout.default"):
        shares, rate, training = shares.args[:3]
        dropout = float(rate) if training else 0.0
        shares = _plain(reading, shares)
    if not is_op(shares, "softmax.int") or shares.meta["val"].dtype != torch.float32:
        return None
    if shares.args[1] % shares.meta["val"].ndim != shares.meta["val"].ndim - 1:
        return None
    return _of_scores(reading, shares.args[0], values, dropout)


def _of_scores(
    reading: Reading, node: Any, values: Any, dropout: float
) -> Scores | None:
    """Walks from the softmax back to the product."""
    factor, masks = 1.0, []
    node = _plain(reading, node)
    while not _is_product(node):
        scaled, masking = _scaled(node), _masked(reading, node)
        if scaled is not None:
            factor, node = factor * scaled[0], scaled[1]
        elif masking is not None:
            masks.append(masking[0]._replace(factor=masking[0].factor * factor))
            node = masking[1]
        else:
            return None
        node = _plain(reading, node)
    queries, keys = node.args[:2]
    before = _scaled(queries)
    if before is not None:
        factor, queries = factor * before[0], before[1]
    turned = _turned(_plain(reading, keys))
    if turned is None:
        return None
    return Scores(queries, turned, values, factor, False, dropout, masks, True)


def _scaled(node: Any) -> tuple[float, Any] | None:
    for name in ("mul.Tensor", "mul.Scalar", "div.Tensor", "div.Scalar"):
        if is_op(node, name) and isinstance(node.args[1], int | float):
            number = float(node.args[1])
            return (1 / number if name.startswith("div") else number), node.args[0]
    return None


def _turned(node: Any) -> Any:
    """Of what a node is the transpose, in its last two dimensions."""
    count = node.meta["val"].ndim
    if is_op(node, "transpose.int"):
        exchanged = {d % count for d in node.args[1:3]}
        return node.args[0] if exchanged == {count - 2, count - 1} else None
    if is_op(node, "permute.default"):
        order = [int(d) % count for d in node.args[1]]
        if order == [*range(count - 2), count - 1, count - 2]:
            return node.args[0]
    return None


def _masked(reading: Reading, node: Any) -> tuple[Masking, Any] | None:
    """A mask, and the scores that it is laid on."""
    if is_op(node, "add.Tensor") and argument(node, 2, "alpha", 1) == 1:
        for scores, mask in (node.args[:2], node.args[1::-1]):
            if isinstance(mask, torch.fx.Node) and reading.constant(mask) is not None:
                return Masking("added", mask, 1.0), scores
    if is_op(node, "masked_fill.Scalar") or is_op(node, "masked_fill.Tensor"):
        scores, mask, number = node.args[:3]
        fill = number_of(reading, number)
        return None if fill is None else (Masking("hidden", mask, fill), scores)
    if any(is_op(node, f"where.{name}") for name in ("self", "ScalarOther")):
        mask, scores, number = node.args[:3]
        fill = number_of(reading, number)
        return None if fill is None else (Masking("seen", mask, fill), scores)
    return None


def number_of(reading: Reading, given: Any) -> float | None:
    """A number, or a constant of one."""
    if isinstance(given, int | float):
        return float(given)
    if not isinstance(given, torch.fx.Node):
        return None
    values = reading.constant(given)
    return float(values) if values is not None and values.numel() == 1 else None


# ---- masks


class Mask(NamedTuple):
    """What queries see. op: of all heads, where there is one; values: a constant that is
    added to products; data: likewise, made of the batch."""

    op: str | None
    window: int = 0
    values: Any = None
    data: Any = None


def mask_of(reading: Reading, scores: Scores) -> Mask | None:
    length = int(scores.queries.meta["val"].shape[-2])
    keys = int(scores.keys.meta["val"].shape[-2])
    if scores.causal:
        return None if scores.masks or length != keys else Mask("attention")
    if not scores.masks:
        return Mask("bidirectional_attention" if length == keys else None)
    added = None
    for each in scores.masks:
        values = _values(reading, each)
        if values is None:
            return _mask_of_batch(reading, scores)
        added = values if added is None else added + values
    return _of_values(added, length, keys)


def _values(reading: Reading, masking: Masking) -> Any:
    """What is added to the scores of a sample; None: it is no constant."""
    values = reading.constant(masking.node)
    if values is None:
        return None
    if values.ndim == 4:
        if not bool((values == values[:1]).all()):
            return None
        values = values[0]
    if masking.kind == "added":
        return values.float() * masking.factor if masking.factor != 1 else values.float()
    where = ~values if masking.kind == "seen" else values
    return torch.zeros(where.shape).masked_fill(where, masking.factor)


def _of_values(added: Any, length: int, keys: int) -> Mask:
    seen = added > _HIDDEN
    if length == keys and bool(((added == 0) | ~seen).all()):
        flat = seen.expand(*seen.shape[:-2], length, length).reshape(-1, length, length)
        found = _pattern(flat, length)
        if found is not None:
            return found
    return Mask(None, values=added)


def _pattern(seen: Any, length: int) -> Mask | None:
    if bool(seen.all()):
        return Mask("bidirectional_attention")
    below = torch.ones(length, length, dtype=torch.bool).tril()
    if bool((seen == below).all()):
        return Mask("attention")
    window = int(seen[0, -1].sum())
    near = below & torch.ones(length, length, dtype=torch.bool).triu(1 - window)
    return Mask("attention", window) if bool((seen == near).all()) else None


def _mask_of_batch(reading: Reading, scores: Scores) -> Mask | None:
    """A mask that is made of the batch, before it comes to the library."""
    if len(scores.masks) != 1 or scores.by_hand:
        return None
    mask = scores.masks[0].node
    sample = reading.shapes.sample(mask)
    alone = sample is not None and mask.meta["val"].ndim == len(sample) + 1
    if not alone or not reading.is_of_batch_alone(mask):
        return None
    return Mask(None, data=mask)


def added_of(values: Any) -> Any:
    """What a mask adds to scores."""
    if values.dtype == torch.bool:
        least = torch.finfo(torch.float32).min
        return torch.zeros(values.shape).masked_fill(~values, least)
    return values.float()
