"""Embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from tranche.module.elements import total
from tranche.module.steps import Value
from tranche.module.table import Native, argument, is_op, row

if TYPE_CHECKING:
    from tranche.module.lower import Lowering
    from tranche.module.read import Reading


_SAME = (
    *("to.dtype", "to.dtype_layout", "clone.default", "contiguous.default"),
    *("expand.default", "unsqueeze.default"),
)


class Lookup(NamedTuple):
    """Rows of a table. data: the tensor of the batch with their numbers; None: `ids`
    [length] are the same for each sample. padding: an id whose row has no gradient of
    its look-ups; -1: none."""

    table: Any
    data: Any
    ids: Any
    padding: int


def _part_of_table(reading: Reading, node: Any) -> Lookup | None:
    """A table, or some of its rows in their order, without an op that looks them up."""
    rows = slice(None)
    if is_op(node, "slice.Tensor"):
        names = ("start", "end", "step")
        ends = [argument(node, 2 + i, name, None) for i, name in enumerate(names)]
        if argument(node, 1, "dim", 0) != 0 or any(
            not isinstance(end, int | None) for end in ends
        ):
            return None
        node, rows = node.args[0], slice(*ends)
    if not reading.is_parameter(node) or node.meta["val"].ndim != 2:
        return None
    return Lookup(node, None, torch.arange(int(node.meta["val"].shape[0]))[rows], -1)


def _lookup(reading: Reading, node: Any) -> Lookup | None:
    node = reading.base(node)
    while any(is_op(node, name) for name in _SAME):
        node = node.args[0]
    part = _part_of_table(reading, node)
    if part is not None:
        return part
    if not is_op(node, "embedding.default") or any(node.args[3:]):
        return None
    table, ids = node.args[:2]
    if not reading.is_parameter(table):
        return None
    padding = int(argument(node, 2, "padding_idx", -1))
    base = reading.base(ids)
    if base in reading.traced.inputs:
        if len(reading.shapes.sample(base) or ()) != 1:
            return None
        return Lookup(table, base, None, padding)
    if reading.has_rows(ids) and reading.is_of_batch_alone(ids):
        # Such as places that are counted where the text is.
        plain = ids.meta["val"].ndim == 2 and len(reading.shapes.sample(ids) or ()) == 1
        return Lookup(table, ids, None, padding) if plain else None
    values = reading.constant(ids)
    if values is None:
        return None
    rows = values.reshape(-1, values.shape[-1])
    if not bool((rows == rows[:1]).all()):
        return None
    return Lookup(table, None, rows[0], padding)


def _terms(reading: Reading, node: Any) -> list[Lookup] | None:
    """The embeddings that a node is the sum of."""
    found = _lookup(reading, node)
    if found is not None:
        return [found]
    node = reading.base(node)
    if not is_op(node, "add.Tensor") or argument(node, 2, "alpha", 1) != 1:
        return None
    if not all(isinstance(part, torch.fx.Node) for part in node.args[:2]):
        return None
    first, second = (_terms(reading, part) for part in node.args[:2])
    return first + second if first and second else None


def _sum(reading: Reading, node: Any, lookups: list[Lookup]) -> Native | None:
    sample = reading.shapes.sample(node)
    of_data = [each for each in lookups if each.data is not None]
    if not of_data or sample is None or len(sample) != 2:
        return None
    length, width = sample
    for each in lookups:
        size = length if each.data is not None else len(each.ids)
        if size != length or int(each.table.meta["val"].shape[1]) != width:
            return None
    for each in of_data:
        if each.data in reading.traced.inputs:
            reading.limit_ids(each.data, int(each.table.meta["val"].shape[0]))
    rest = [each for each in lookups if each.data is None]
    places = [
        each
        for each in rest
        if each.padding < 0 and torch.equal(each.ids, torch.arange(length))
    ]

    def build(to: Lowering) -> Value:
        made = -1
        for each in [*of_data, *rest]:
            if places and each is places[0]:
                continue
            ids = to.constant(each.ids) if each.data is None else to.ids(each)
            first = made < 0 and places
            positions = to.parameter(places[0].table) if first else -1
            inputs = [ids.index, to.parameter(each.table), positions, made]
            while inputs[-1] < 0:
                inputs.pop()
            padding = {"padding": each.padding} if each.padding >= 0 else {}
            made = to.op("embedding", inputs, **padding)
        return Value(made, (length, width))

    return Native([], build)


@row("aten.embedding.default")
def embedding(reading: Reading, node: Any) -> Native | None:
    found = _lookup(reading, node)
    return _sum(reading, node, [found]) if found else None


@row("aten.add.Tensor", "aten.add.Scalar")
def add(reading: Reading, node: Any) -> Native | None:
    from tranche.module.heads import rotated

    terms = _terms(reading, node)
    found = _sum(reading, node, terms) if terms else rotated(reading, node)
    factor = argument(node, 2, "alpha", 1)
    if found is not None or not isinstance(factor, int | float):
        return found
    a, b = node.args[:2]
    return total(reading, node, a, b, float(factor))
