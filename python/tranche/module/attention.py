"""Attention."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from tranche.module.heads import heads_of, is_exchange, same
from tranche.module.products import matmul, product
from tranche.module.scores import Mask, Scores, added_of, mask_of, scores_of
from tranche.module.steps import Value
from tranche.module.table import Native, argument, is_op, row, rows_in
from tranche.module.terms import Term

if TYPE_CHECKING:
    from tranche.module.lower import Lowering
    from tranche.module.read import Reading

_SPLITS = ("split.Tensor", "chunk.default", "split_with_sizes.default")


def _thirds(reading: Reading, parts: Sequence[Any]) -> Any:
    """The tensor whose last dimension holds these three in their order."""
    whole = None
    for i, part in enumerate(parts):
        if getattr(part, "target", None) is not operator.getitem:
            return None
        split, index = part.args
        if index != i or split.meta["val"][0].ndim != 3 or len(split.meta["val"]) != 3:
            return None
        if not any(is_op(split, name) for name in _SPLITS):
            return None
        if argument(split, 2, "dim", 0) % 3 != 2 or whole not in (None, split.args[0]):
            return None
        whole = split.args[0]
    return whole


def _shared(reading: Reading, part: Any) -> Any:
    """Keys or values before they are repeated for groups of queries."""
    part = same(reading, part)
    if not any(is_op(part, n) for n in ("reshape.default", "view.default")):
        return part
    repeated = same(reading, part.args[0])
    if not is_op(repeated, "expand.default") or repeated.meta["val"].ndim != 5:
        return part
    source = repeated.args[0]
    if source.meta["val"].shape[2] != 1:
        return part
    found = reading.base(source)
    good = found.meta["val"].ndim == 4 and rows_in(reading, found)
    return found if good and found.meta["val"].shape[1] == source.meta["val"].shape[1] else part


class Core(NamedTuple):
    """Attention that is an op of all heads."""

    operands: Sequence[Any]
    build: Callable[[Lowering], Value]  # [S, heads D] a sample


def _core(reading: Reading, scores: Scores) -> Core | None:
    given = [scores.queries, scores.keys, scores.values]
    shapes = [part.meta["val"].shape for part in given]
    if any(len(shape) != 4 for shape in shapes):
        return None
    if len({int(shape[-1]) for shape in shapes}) > 1 or shapes[0][2] != shapes[1][2]:
        return None
    mask = mask_of(reading, scores)
    if mask is None or mask.op is None:
        return None
    parts = [heads_of(reading, part) for part in _parts(reading, scores)]
    if any(part is None for part in parts):
        return None
    found = [part for part in parts if part is not None]
    heads, shared = found[0].heads, found[1].heads
    if found[2].heads != shared or heads % shared:
        return None
    length, depth, op = int(shapes[0][2]), int(shapes[0][3]), mask.op
    attributes = {"heads": heads, "dropout": scores.dropout}
    if shared != heads:
        attributes["kv_heads"] = shared
    if mask.window:
        attributes["window"] = mask.window
    factor = scores.factor * depth**0.5  # the op scales by depth^-1/2 itself
    usual = abs(factor - 1) < 1e-6
    thirds = _thirds(reading, [reading.base(part.operand) for part in found])
    whole = thirds if usual else None

    def build(to: Lowering) -> Value:
        if whole is not None:
            given = to.shaped(whole, (length, 3 * heads * depth))
        else:
            made = [part.build(to) for part in found]
            if not usual:
                scaled = to.op("pointwise", [made[0].index], function="linear", a=factor)
                made[0] = Value(scaled, made[0].shape)
            given = to.joined(made)
        return Value(to.op(op, [given.index], **attributes), (length, heads * depth))

    operands = [whole] if whole is not None else [part.operand for part in found]
    return Core(operands, build)


def _parts(reading: Reading, scores: Scores) -> list[Any]:
    keys, values = _shared(reading, scores.keys), _shared(reading, scores.values)
    return [scores.queries, keys, values]


@row("aten.view.default", "aten.reshape.default", "aten.flatten.using_ints")
def attention(reading: Reading, node: Any) -> Native | None:
    """softmax(q k^T) v, from heads back to [B, T, C]."""
    back = same(reading, node.args[0])
    if not is_exchange(back):
        return None
    core = same(reading, back.args[0])
    while is_op(core, "reshape.default") or is_op(core, "view.default"):
        if core.meta["val"].shape != core.args[0].meta["val"].shape:
            return None
        core = core.args[0]
    sample = reading.shapes.sample(node)
    if sample is None or len(sample) != 2 or sample[0] != core.meta["val"].shape[2]:
        return None
    scores = scores_of(reading, core)
    found = _core(reading, scores) if scores is not None else None
    return None if found is None else Native(found.operands, found.build)


def of_heads(reading: Reading, node: Any, scores: Scores) -> Native | None:
    """The op's result as heads, one behind the other."""
    found = _core(reading, scores)
    sample = reading.shapes.sample(node)
    if found is None or sample is None or len(sample) != 3:
        return None
    heads, length, depth = sample

    def build(to: Lowering) -> Value:
        made = to.permuted(found.build(to), (length, heads, depth), [1, 0, 2])
        return to.reshape(made, sample)

    return Native(found.operands, build)


@row("aten.matmul.default", "aten.bmm.default", "aten.mm.default")
def by_hand(reading: Reading, node: Any) -> Native | None:
    """A product: the last one of attention, or any other."""
    scores = scores_of(reading, node)
    found = of_heads(reading, node, scores) if scores is not None else None
    return found or matmul(reading, node)


@row("aten.scaled_dot_product_attention.default")
def of_matrices(reading: Reading, node: Any) -> Native | None:
    """The same of products and a softmax, for any mask, scale and length."""
    scores = scores_of(reading, node)
    assert scores is not None
    found = of_heads(reading, node, scores)
    if found is not None:
        return found
    sample = reading.shapes.sample(node)
    if sample is None or len(sample) != 3 or not rows_in(reading, *node.args[:3]):
        return None
    mask = mask_of(reading, scores)
    keys = reading.shapes.sample(node.args[1])
    if mask is None or keys is None or len(keys) != 3 or keys[0] != sample[0]:
        return None
    if mask.window:
        return None
    return Native(list(node.args[:3]), lambda to: _by_products(to, scores, mask))


def _by_products(to: Lowering, told: Scores, mask: Mask) -> Value:
    given = (told.queries, told.keys, told.values)
    queries, keys, values = (to.whole(part) for part in given)
    (heads, length, _), (_, many, depth) = queries.shape, values.shape
    scale, shape = told.factor, (heads, length, many)
    scores = product(to, queries, keys, shape, b_transposed=True)
    added = _to_add(to, mask, shape)
    if added is not None:
        scores = Value(to.op("pointwise", [scores.index], function="linear", a=scale), shape)
        scores = Value(to.op("residual", [scores.index, added.index]), shape)
        scale = 1.0
    shares = Value(to.op("softmax", [scores.index], scale=scale), shape)
    if told.dropout > 0:
        shares = Value(to.op("dropout", [shares.index], p=told.dropout), shape)
    return product(to, shares, values, (heads, length, depth))


def _to_add(to: Lowering, mask: Mask, shape: tuple[int, ...]) -> Value | None:
    if mask.op == "attention":
        seen = torch.ones(shape[1:], dtype=torch.bool).tril()
        return to.constant(added_of(seen).expand(shape))
    if mask.values is not None:
        return to.constant(mask.values.float().expand(shape))
    if mask.data is None:
        return None
    given = to.prepared("mask", mask.data, added_of)
    own = to.shapes.sample(mask.data) or ()
    filled = (1,) * (3 - len(own)) + own
    return to.spread(Term("value", given, filled), shape)
