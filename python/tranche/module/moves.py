"""Elements in other places: transpositions, parts, tensors side by side, repetitions and
sums."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from tranche.module.shapes import count
from tranche.module.steps import Value
from tranche.module.table import Native, argument, row, rows_in
from tranche.module.terms import Term, rows_of, term

if TYPE_CHECKING:
    from tranche.module.lower import Lowering
    from tranche.module.read import Reading


def _sample(reading: Reading, node: Any) -> tuple[int, ...] | None:
    """The shape of a sample where rows are the first dimension, and that alone."""
    shape = reading.shapes.sample(node)
    value = node.meta["val"]
    if not isinstance(value, torch.Tensor) or shape is None:
        return None
    return shape if value.ndim == len(shape) + 1 else None


def _flat(to: Lowering, value: Value, shape: Sequence[int]) -> Value:
    """In this shape, or in as few dimensions as there may be."""
    return to.reshape(value, shape if len(shape) < 4 else (count(tuple(shape)),))


# ---- transpositions


@row("aten.permute.default")
def permute(reading: Reading, node: Any) -> Native | None:
    x, dims = node.args[:2]
    return _permuted(reading, node, x, [d % len(dims) for d in dims])


@row("aten.transpose.int")
def transpose(reading: Reading, node: Any) -> Native | None:
    x, first, second = node.args[:3]
    ndim = x.meta["val"].ndim
    order = list(range(ndim))
    first, second = first % ndim, second % ndim
    order[first], order[second] = second, first
    return _permuted(reading, node, x, order)


def _permuted(reading: Reading, node: Any, x: Any, order: list[int]) -> Native | None:
    if not rows_in(reading, x) or order[0] != 0:
        return None
    sample = reading.shapes.sample(x)
    if sample is None:
        return None
    several = x.meta["val"].ndim == len(sample)  # [k * rows, ...]
    inner = [0, *order[1:]] if several else [d - 1 for d in order[1:]]
    out = [sample[d] for d in inner]

    def build(to: Lowering) -> Value:
        given = to.value(x)
        if given.channels_last:
            height, width, channels = given.shape
            # An image is there already with its channels last.
            if sample == (channels, height * width) and inner == [1, 0]:
                return to.reshape(replace(given, channels_last=False), out)
            if sample == (channels, height, width) and inner == [1, 2, 0]:
                return replace(given, channels_last=False)
        if inner == [2, 0, 1] and not given.channels_last:
            # [H, W, C] becomes an image: it stays where it is.
            return replace(to.shaped(x, sample), channels_last=True)
        return _flat(to, to.permuted(to.plain(x), sample, inner), out)

    return Native([x], build)


# ---- parts


def _part(
    reading: Reading, node: Any, x: Any, dim: int, first: int, size: int
) -> Native | None:
    """`size` of what there is along a dimension, from `first` on."""
    if not rows_in(reading, x):
        return None
    sample = _sample(reading, x)
    out = reading.shapes.sample(node)
    dim = dim % x.meta["val"].ndim
    if sample is None or dim == 0 or out is None:
        return None
    if first == 0 and size == sample[dim - 1]:
        return None  # it is x
    outer, inner = count(sample[: dim - 1]), count(sample[dim:])

    def build(to: Lowering) -> Value:
        value = to.value(x)
        if value.channels_last and dim == 1 and sample == _image_sample(value):
            height, width, _ = value.shape
            made = to.taken(replace(value, channels_last=False), first, size)
            return replace(made, channels_last=True) if len(out) == 3 else _flat(
                to, made, (height, width)
            )
        given = to.shaped(x, (outer, sample[dim - 1] * inner))
        return _flat(to, to.taken(given, first * inner, size * inner), out)

    return Native([x], build)


def _image_sample(value: Value) -> tuple[int, ...]:
    height, width, channels = value.shape
    return (channels, height, width)


@row("aten.slice.Tensor")
def slice_of(reading: Reading, node: Any) -> Native | None:
    x, dim = node.args[0], argument(node, 1, "dim", 0)
    if argument(node, 4, "step", 1) != 1:
        return None
    size = node.meta["val"].shape[dim]
    whole = x.meta["val"].shape[dim]
    start = argument(node, 2, "start", 0) or 0
    if not all(isinstance(each, int) for each in (size, whole, start)):
        return None
    first = max(0, start + whole if start < 0 else start)
    return _part(reading, node, x, dim, first, size)


@row("aten.select.int")
def select(reading: Reading, node: Any) -> Native | None:
    x, dim, index = node.args[:3]
    whole = x.meta["val"].shape[dim]
    if not isinstance(whole, int) or not isinstance(index, int):
        return None
    return _part(reading, node, x, dim, index % whole, 1)


@row(str(operator.getitem))
def piece(reading: Reading, node: Any) -> Native | None:
    """One of what split, chunk or unbind give."""
    split, index = node.args
    name = str(getattr(split, "target", "")).removeprefix("aten.")
    pieces = split.meta.get("val")
    if not isinstance(index, int) or not isinstance(pieces, list | tuple):
        return None
    if name in ("split.Tensor", "chunk.default", "split_with_sizes.default"):
        dim = argument(split, 2, "dim", 0)
        sizes = [each.shape[dim] for each in pieces]
    elif name == "unbind.int":
        dim, sizes = argument(split, 1, "dim", 0), [1] * len(pieces)
    else:
        return None
    if not all(isinstance(size, int) for size in sizes):
        return None
    return _part(reading, node, split.args[0], dim, sum(sizes[:index]), sizes[index])


# ---- side by side


def not_empty(parts: Sequence[Any]) -> list[Any]:
    """Tensors that cat puts side by side: it takes [0] to be nothing."""
    return [part for part in parts if tuple(part.meta["val"].shape) != (0,)]


@row("aten.cat.default")
def cat(reading: Reading, node: Any) -> Native | None:
    parts, dim = not_empty(node.args[0]), argument(node, 1, "dim", 0)
    sample = _sample(reading, node) if len(parts) > 1 else None
    dim = dim % node.meta["val"].ndim
    if sample is None or dim == 0:
        return None
    terms: list[Term] = []
    for part in parts:
        size = part.meta["val"].shape[dim]
        found = term(reading, part, (*sample[: dim - 1], int(size), *sample[dim:]))
        if found is None:
            return None
        terms.append(found)
    rows = rows_of(list(terms))
    if not rows:
        return None
    sizes = [int(part.meta["val"].shape[dim]) for part in parts]

    def build(to: Lowering) -> Value:
        if dim == 1 and len(sample) == 3:
            images = [to.value(t.node) for t in terms if t.kind == "rows"]
            if len(images) == len(terms) and any(v.channels_last for v in images):
                return replace(
                    to.joined([to.image(t.node) for t in terms]), channels_last=True
                )
        return _joined(to, terms, sizes, sample, dim)

    return Native(rows, build)


def _joined(
    to: Lowering, terms: list[Term], sizes: list[int], sample: tuple[int, ...], dim: int
) -> Value:
    outer, inner = count(sample[: dim - 1]), count(sample[dim:])
    values = []
    for each, size in zip(terms, sizes, strict=True):
        whole = to.spread(each, (*sample[: dim - 1], size, *sample[dim:]))
        values.append(to.reshape(whole, (outer, size * inner)))
    return _flat(to, to.joined(values), sample)


@row("aten.pad.default", "aten.constant_pad_nd.default")
def pad(reading: Reading, node: Any) -> Native | None:
    """Zeros, or another number, around the last dimensions."""
    x, sizes = node.args[:2]
    named = str(node.target) == "aten.pad.default"
    number = argument(node, 3 if named else 2, "value", 0.0) or 0.0
    if named and argument(node, 2, "mode", "constant") != "constant":
        return None
    if not rows_in(reading, x):
        return None
    sample = _sample(reading, x)
    if sample is None or min(sizes) < 0 or len(sizes) > 2 * len(sample):
        return None

    def build(to: Lowering) -> Value:
        last = to.value(x).channels_last and len(sizes) <= 4
        value = to.image(x) if last else to.plain(x)
        shape = list(value.shape) if last else list(sample)
        for i in range(0, len(sizes), 2):
            dim = (1 if last else len(sample) - 1) - i // 2
            value = _padded(to, value, shape, dim, sizes[i : i + 2], number)
            shape[dim] += sum(sizes[i : i + 2])
        return replace(_flat(to, value, shape), channels_last=last)

    return Native([x], build)


def _padded(
    to: Lowering, value: Value, shape: list[int], dim: int, sizes: Any, number: float
) -> Value:
    outer, inner = count(tuple(shape[:dim])), count(tuple(shape[dim + 1 :]))
    plain = replace(value, channels_last=False)
    parts = [to.reshape(plain, (outer, shape[dim] * inner))]
    for at, size in zip((0, len(parts)), sizes, strict=True):
        if size:
            filled = torch.full((outer, size * inner), float(number))
            parts.insert(at if at == 0 else len(parts), to.constant(filled))
    return to.joined(parts)


# ---- repetitions and sums


@row("aten.expand.default", "aten.repeat.default")
def expand(reading: Reading, node: Any) -> Native | None:
    x = node.args[0]
    sample = _sample(reading, node)
    if sample is None or not rows_in(reading, x):
        return None
    found = term(reading, x, sample)
    if found is None or found.kind != "rows" or found.shape == sample:
        return None
    if str(node.target) == "aten.repeat.default":
        times = node.args[1]
        if any(one != 1 and n != 1 for one, n in zip(found.shape, times[1:], strict=True)):
            return None
    return Native([x], lambda to: to.spread(found, sample))


@row("aten.mean.dim", "aten.sum.dim_IntList")
def mean(reading: Reading, node: Any) -> Native | None:
    from tranche.module.images import whole_image

    x, dims = node.args[0], argument(node, 1, "dim")
    if not rows_in(reading, x) or argument(node, 3, "dtype") is not None:
        return None
    sample = _sample(reading, x)
    ndim = x.meta["val"].ndim
    over = sorted(d % ndim for d in dims or [])
    if sample is None or not over or over[0] == 0:
        return None
    if over != list(range(over[0], over[-1] + 1)):
        return None
    first, end = over[0] - 1, over[-1]
    times = count(sample[first:end])
    is_mean = str(node.target) == "aten.mean.dim"
    scale = 1 / times if is_mean else 1.0
    out = reading.shapes.sample(node)
    outer, inner = count(sample[:first]), count(sample[end:])

    def build(to: Lowering) -> Value:
        value = to.value(x)
        if value.channels_last and over == [2, 3] and is_mean:
            return to.reshape(whole_image(x).build(to), out or ())
        given = to.shaped(x, (outer, times, inner))
        made = Value(to.op("sum", [given.index], times=times, scale=scale), (outer, inner))
        return _flat(to, made, out or ())

    return None if out is None else Native([x], build)
