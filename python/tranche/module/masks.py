"""Elements that a mask chooses, of a tensor, of another, or of a number. Masks are
constants, or made of the batch before it comes to the library."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from tranche.module.scores import number_of
from tranche.module.steps import Value
from tranche.module.table import Native, row
from tranche.module.terms import Term, constant_term, rows_of, term

if TYPE_CHECKING:
    from tranche.module.lower import Lowering
    from tranche.module.read import Reading

Made = Callable[[Any], Any]


@row("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(reading: Reading, node: Any) -> Native | None:
    x, mask, number = node.args[:3]
    return _chosen(reading, node, mask, number, x)


@row("aten.where.self", "aten.where.ScalarOther", "aten.where.ScalarSelf")
def where(reading: Reading, node: Any) -> Native | None:
    return _chosen(reading, node, *node.args[:3])


def _chosen(
    reading: Reading, node: Any, mask: Any, first: Any, second: Any
) -> Native | None:
    """first where the mask is true, else second."""
    sample = reading.shapes.sample(node)
    if sample is None or node.meta["val"].ndim != len(sample) + 1:
        return None
    parts: list[Callable[[Lowering], Value]] = []
    rows: list[Any] = []
    for given, when in ((first, True), (second, False)):
        number = number_of(reading, given)
        if number == 0:
            continue
        made = _filling(number, when) if number is not None else _keeping(when)
        mask_of = _mask(reading, mask, sample, made, f"{when} {number}")
        found = term(reading, given, sample) if number is None else None
        if mask_of is None or (number is None and found is None):
            return None
        rows += rows_of([found])
        parts.append(_part(found, mask_of, sample))
    if not rows:
        return None

    def build(to: Lowering) -> Value:
        values = [part(to) for part in parts]
        made = values[0]
        for value in values[1:]:
            made = Value(to.op("residual", [made.index, value.index]), made.shape)
        return made

    return Native(rows, build)


def _keeping(when: bool) -> Made:
    return lambda mask: (mask.bool() == when).float()


def _filling(number: float, when: bool) -> Made:
    def fill(mask: Any) -> Any:
        return torch.zeros(mask.shape).masked_fill(mask.bool() == when, number)

    return fill


def _part(
    found: Term | None, mask_of: Callable[[Lowering], Term], sample: tuple[int, ...]
) -> Callable[[Lowering], Value]:
    """What is chosen of one side, and zeros elsewhere."""

    def build(to: Lowering) -> Value:
        mask = to.spread(mask_of(to), sample)
        if found is None:
            return mask
        kept = to.spread(found, sample)
        return Value(to.op("multiply", [kept.index, mask.index]), kept.shape)

    return build


def _mask(
    reading: Reading, node: Any, sample: tuple[int, ...], made: Made, name: str
) -> Callable[[Lowering], Term] | None:
    """What is made of a mask, as a term of a result of this shape."""
    values = reading.constant(node)
    if values is not None:
        found = constant_term(node, made(values), sample)
        return None if found is None else lambda to: found
    own = reading.shapes.sample(node)
    if own is None or len(own) != len(sample) or not reading.is_of_batch_alone(node):
        return None
    if any(mine not in (1, theirs) for mine, theirs in zip(own, sample, strict=True)):
        return None
    return lambda to: Term("value", to.prepared(f"mask {name}", node, made), own)
