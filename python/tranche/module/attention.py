"""Attention."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from tranche.module.products import product
from tranche.module.steps import Value
from tranche.module.table import Native, argument, is_op, row, rows_in
from tranche.module.terms import Term, term

if TYPE_CHECKING:
    from tranche.module.lower import Lowering
    from tranche.module.read import Reading

_SPLITS = ("split.Tensor", "chunk.default", "split_with_sizes.default")


class Heads(NamedTuple):
    """A tensor [B, heads, S, D] of queries, keys or values, and how it comes as [S, heads
    D] a sample."""

    operand: Any  # the tensor with rows that it is made of
    heads: int
    build: Callable[[Lowering], Value]


def _is_exchange(node: Any) -> bool:
    """Does it exchange the second and third of four dimensions?"""
    if is_op(node, "transpose.int"):
        return {d % 4 for d in node.args[1:3]} == {1, 2} and node.meta["val"].ndim == 4
    return is_op(node, "permute.default") and list(node.args[1]) == [0, 2, 1, 3]


def _same(reading: Reading, node: Any) -> Any:
    """Without what leaves the tensor as it is."""
    known = ("contiguous.default", "clone.default", "to.dtype", "to.dtype_layout")
    while any(is_op(node, name) for name in known):
        if node.meta["val"].dtype != node.args[0].meta["val"].dtype:
            break
        node = node.args[0]
    return node


def _heads(reading: Reading, part: Any) -> Heads | None:
    part = _same(reading, part)
    if not rows_in(reading, part) or part.meta["val"].ndim != 4:
        return None
    sample = reading.shapes.sample(part)
    if sample is None or len(sample) != 3:
        return None
    heads, length, depth = sample
    shape = (length, heads * depth)
    if _is_exchange(part):
        inner = part.args[0]
        return Heads(inner, heads, lambda to: to.shaped(inner, shape))
    turned = _rotation(reading, part)
    if turned is not None:
        return turned
    return Heads(
        part,
        heads,
        lambda to: to.reshape(to.permuted(to.plain(part), sample, [1, 0, 2]), shape),
    )


# ---- rotary embeddings


def rotated(reading: Reading, node: Any) -> Native | None:
    """x cos + (x's halves exchanged, the first negative) sin."""
    found = _rotation(reading, node)
    if found is None:
        return None
    sample = reading.shapes.sample(node) or ()
    heads, length, depth = sample

    def build(to: Lowering) -> Value:
        given = found.build(to)
        return to.permuted(given, (length, heads, depth), [1, 0, 2])

    def shaped(to: Lowering) -> Value:
        return to.reshape(build(to), sample)

    return Native([found.operand], shaped)


def _rotation(reading: Reading, node: Any) -> Heads | None:
    if not is_op(node, "add.Tensor") or node.meta["val"].ndim != 4:
        return None
    first, second = node.args[:2]
    if not (is_op(first, "mul.Tensor") and is_op(second, "mul.Tensor")):
        return None
    x, cosine = first.args[:2]
    turned, sine = second.args[:2]
    if not _is_half_turn(reading, turned, x):
        return None
    inner = _heads(reading, x)
    sample = reading.shapes.sample(node)
    if inner is None or sample is None or len(sample) != 3:
        return None
    _, length, depth = sample
    theta = _theta(reading, cosine, sine, length, depth)
    if theta is None:
        return None

    def build(to: Lowering) -> Value:
        given = inner.build(to)
        made = to.op(
            "rope", [given.index], heads=inner.heads, head_dim=depth, theta=theta
        )
        return Value(made, given.shape)

    return Heads(inner.operand, inner.heads, build)


def _is_half_turn(reading: Reading, node: Any, x: Any) -> bool:
    """cat(-x[..., half:], x[..., :half])"""
    if not is_op(node, "cat.default") or argument(node, 1, "dim", 0) not in (-1, 3):
        return False
    if len(node.args[0]) != 2:
        return False
    back, front = node.args[0]
    if not is_op(back, "neg.default"):
        return False
    half = int(x.meta["val"].shape[-1]) // 2
    for part, first in ((back.args[0], half), (front, 0)):
        start = (argument(part, 2, "start", 0) or 0) if is_op(part, "slice.Tensor") else -1
        if start != first or part.args[0] is not x or part.args[1] not in (3, -1):
            return False
        if int(part.meta["val"].shape[-1]) != half:
            return False
    return True


def _theta(
    reading: Reading, cosine: Any, sine: Any, length: int, depth: int
) -> float | None:
    """The base of the frequencies where these are the tables of rotary embeddings."""
    tables = []
    for node in (cosine, sine):
        found = term(reading, node, (1, length, depth))
        if found is None or found.kind != "constant":
            return None
        tables.append(found.values.expand(1, length, depth)[0].double())
    if depth < 4 or depth % 2 or length < 2:
        return None
    slow = torch.atan2(tables[1][1], tables[0][1])[: depth // 2]
    if float(slow.min()) <= 0:
        return None
    # The last frequency is theta^(-(depth - 2) / depth); tables are in f32, and the last
    # position tells it best.
    theta = float(slow[1]) ** (-depth / 2)
    for digits in (0, 1, 2, 4):
        near = round(theta, digits - int(math.log10(theta))) if theta > 0 else theta
        if near > 0 and _matches(tables, near, length, depth):
            return near
    return theta if _matches(tables, theta, length, depth) else None


def _matches(tables: Sequence[Any], theta: float, length: int, depth: int) -> bool:
    places = torch.arange(length, dtype=torch.float64)[:, None]
    powers = torch.arange(0, depth, 2, dtype=torch.float64) / depth
    angle = places * theta**-powers
    angle = torch.cat([angle, angle], 1)
    # Angles of f32 are off by up to 6e-8 of themselves.
    near = 1e-6 + 2e-7 * length
    return all(
        bool(((wanted - table).abs() < near).all())
        for wanted, table in zip((angle.cos(), angle.sin()), tables, strict=True)
    )


# ---- masks


class Mask(NamedTuple):
    """What queries see. op: of all heads, where there is one; values: a constant that is
    added to products; data: likewise, made of the batch."""

    op: str | None
    window: int = 0
    values: Any = None
    data: Any = None


def _mask(reading: Reading, core: Any) -> Mask | None:
    mask = argument(core, 3, "attn_mask")
    length = int(core.args[0].meta["val"].shape[-2])
    keys = int(core.args[1].meta["val"].shape[-2])
    if argument(core, 5, "is_causal", False):
        if mask is not None or length != keys:
            return None
        return Mask("attention")
    if mask is None:
        return Mask("bidirectional_attention" if length == keys else None)
    values = reading.constant(mask)
    if values is None:
        return _mask_of_batch(reading, mask)
    if values.ndim == 4:
        if not bool((values == values[:1]).all()):
            return None
        values = values[0]
    added = values
    if values.dtype == torch.bool:
        added = torch.zeros(values.shape).masked_fill(~values, -math.inf)
    seen = added > torch.finfo(added.dtype).min / 2
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


def _mask_of_batch(reading: Reading, mask: Any) -> Mask | None:
    """A mask that is made of the batch, before it comes to the library."""
    sample = reading.shapes.sample(mask)
    alone = sample is not None and mask.meta["val"].ndim == len(sample) + 1
    if not alone or not reading.is_of_batch_alone(mask):
        return None
    return Mask(None, data=mask)


def _added(values: Any) -> Any:
    if values.dtype == torch.bool:
        least = torch.finfo(torch.float32).min
        return torch.zeros(values.shape).masked_fill(~values, least)
    return values.float()


# ---- the op of all heads


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
    part = _same(reading, part)
    if not any(is_op(part, n) for n in ("reshape.default", "view.default")):
        return part
    repeated = _same(reading, part.args[0])
    if not is_op(repeated, "expand.default") or repeated.meta["val"].ndim != 5:
        return part
    source = repeated.args[0]
    if source.meta["val"].shape[2] != 1:
        return part
    found = reading.base(source)
    good = found.meta["val"].ndim == 4 and rows_in(reading, found)
    return found if good and found.meta["val"].shape[1] == source.meta["val"].shape[1] else part


class Core(NamedTuple):
    """A node of scaled_dot_product_attention that is an op of all heads."""

    operands: Sequence[Any]
    build: Callable[[Lowering], Value]  # [S, heads D] a sample


def _core(reading: Reading, core: Any) -> Core | None:
    shapes = [part.meta["val"].shape for part in core.args[:3]]
    if any(len(shape) != 4 for shape in shapes):
        return None
    mask = _mask(reading, core)
    depth = int(shapes[0][-1])
    scale = argument(core, 6, "scale")
    usual = scale is None or abs(scale - depth**-0.5) < 1e-6
    if mask is None or mask.op is None or not usual:
        return None
    if len({int(shape[-1]) for shape in shapes}) > 1 or shapes[0][2] != shapes[1][2]:
        return None
    parts = [_heads(reading, part) for part in _parts(reading, core)]
    if any(part is None for part in parts):
        return None
    found = [part for part in parts if part is not None]
    heads, shared = found[0].heads, found[1].heads
    if found[2].heads != shared or heads % shared:
        return None
    length, op = int(shapes[0][2]), mask.op
    attributes = {"heads": heads, "dropout": float(argument(core, 4, "dropout_p", 0.0))}
    if shared != heads:
        attributes["kv_heads"] = shared
    if mask.window:
        attributes["window"] = mask.window
    whole = _thirds(reading, [reading.base(part.operand) for part in found])

    def build(to: Lowering) -> Value:
        if whole is not None:
            given = to.shaped(whole, (length, 3 * heads * depth))
        else:
            given = to.joined([part.build(to) for part in found])
        return Value(to.op(op, [given.index], **attributes), (length, heads * depth))

    operands = [whole] if whole is not None else [part.operand for part in found]
    return Core(operands, build)


def _parts(reading: Reading, core: Any) -> list[Any]:
    queries, keys, values = core.args[:3]
    return [queries, _shared(reading, keys), _shared(reading, values)]


@row("aten.view.default", "aten.reshape.default", "aten.flatten.using_ints")
def attention(reading: Reading, node: Any) -> Native | None:
    """softmax(q k^T) v, from heads back to [B, T, C]."""
    back = _same(reading, node.args[0])
    if not _is_exchange(back):
        return None
    core = back.args[0]
    while is_op(core, "reshape.default") or is_op(core, "view.default"):
        if core.meta["val"].shape != core.args[0].meta["val"].shape:
            return None
        core = core.args[0]
    if not is_op(core, "scaled_dot_product_attention.default"):
        return None
    sample = reading.shapes.sample(node)
    if sample is None or len(sample) != 2 or sample[0] != core.meta["val"].shape[2]:
        return None
    found = _core(reading, core)
    return None if found is None else Native(found.operands, found.build)


@row("aten.scaled_dot_product_attention.default")
def of_matrices(reading: Reading, node: Any) -> Native | None:
    """The same of products and a softmax, for any mask, scale and length."""
    found = _core(reading, node)
    sample = reading.shapes.sample(node)
    if sample is None or len(sample) != 3 or not rows_in(reading, *node.args[:3]):
        return None
    heads, length, depth = sample
    if found is not None:
        core = found

        def from_heads(to: Lowering) -> Value:
            made = to.permuted(core.build(to), (length, heads, depth), [1, 0, 2])
            return to.reshape(made, sample)

        return Native(found.operands, from_heads)
    mask = _mask(reading, node)
    keys = reading.shapes.sample(node.args[1])
    if mask is None or keys is None or len(keys) != 3 or keys[0] != heads:
        return None
    causal = mask.op == "attention"
    if mask.window:
        return None
    return Native(list(node.args[:3]), lambda to: _by_products(to, node, mask, causal))


def _by_products(to: Lowering, node: Any, mask: Mask, causal: bool) -> Value:
    queries, keys, values = (to.whole(part) for part in node.args[:3])
    (heads, length, _), (_, many, depth) = queries.shape, values.shape
    scale = argument(node, 6, "scale")
    scale = queries.shape[-1] ** -0.5 if scale is None else float(scale)
    drop = float(argument(node, 4, "dropout_p", 0.0))
    shape = (heads, length, many)
    scores = product(to, queries, keys, shape, b_transposed=True)
    added = _to_add(to, mask, causal, shape)
    if added is not None:
        scores = Value(to.op("pointwise", [scores.index], function="linear", a=scale), shape)
        scores = Value(to.op("residual", [scores.index, added.index]), shape)
        scale = 1.0
    shares = Value(to.op("softmax", [scores.index], scale=scale), shape)
    if drop > 0:
        shares = Value(to.op("dropout", [shares.index], p=drop), shape)
    return product(to, shares, values, (heads, length, depth))


def _to_add(
    to: Lowering, mask: Mask, causal: bool, shape: tuple[int, ...]
) -> Value | None:
    if causal:
        seen = torch.ones(shape[1:], dtype=torch.bool).tril()
        return to.constant(_added(seen).expand(shape))
    if mask.values is not None:
        return to.constant(mask.values.float().expand(shape))
    if mask.data is None:
        return None
    given = to.prepared("mask", mask.data, _added)
    own = to.shapes.sample(mask.data) or ()
    filled = (1,) * (3 - len(own)) + own
    return to.spread(Term("value", given, filled), shape)

