"""Queries, keys and values by heads, and rotary embeddings of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from tranche.module.steps import Value
from tranche.module.table import Native, argument, is_op, rows_in
from tranche.module.terms import term

if TYPE_CHECKING:
    from tranche.module.lower import Lowering
    from tranche.module.read import Reading

class Heads(NamedTuple):
    """A tensor [B, heads, S, D] of queries, keys or values, and how it comes as [S, heads
    D] a sample."""

    operand: Any  # the tensor with rows that it is made of
    heads: int
    build: Callable[[Lowering], Value]


def is_exchange(node: Any) -> bool:
    """Does it exchange the second and third of four dimensions?"""
    if is_op(node, "transpose.int"):
        return {d % 4 for d in node.args[1:3]} == {1, 2} and node.meta["val"].ndim == 4
    return is_op(node, "permute.default") and list(node.args[1]) == [0, 2, 1, 3]


def same(reading: Reading, node: Any) -> Any:
    """Without what leaves the tensor as it is."""
    known = ("contiguous.default", "clone.default", "to.dtype", "to.dtype_layout")
    while any(is_op(node, name) for name in known):
        if node.meta["val"].dtype != node.args[0].meta["val"].dtype:
            break
        node = node.args[0]
    return node


def heads_of(reading: Reading, part: Any) -> Heads | None:
    part = same(reading, part)
    if not rows_in(reading, part) or part.meta["val"].ndim != 4:
        return None
    sample = reading.shapes.sample(part)
    if sample is None or len(sample) != 3:
        return None
    heads, length, depth = sample
    shape = (length, heads * depth)
    if is_exchange(part):
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
    inner = heads_of(reading, x)
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
