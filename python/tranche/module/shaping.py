"""Tensors of a unit in other shapes and layouts: what the rows of the table ask for."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from tranche.module.export import refuse
from tranche.module.shapes import Shapes, count
from tranche.module.steps import Unit, Value
from tranche.module.terms import Term

if TYPE_CHECKING:
    from tranche.module.read import Reading

_JOINED = 4  # tensors that one op puts side by side


def _as_float(values: Any) -> Any:
    return values.float()


class Shaping:
    """The part of a lowering that knows shapes."""

    reading: Reading
    shapes: Shapes
    _unit: Unit
    _constants: dict[str, Any]

    def value(self, node: Any) -> Value:
        raise NotImplementedError

    def parameter(self, node: Any) -> int:
        raise NotImplementedError

    def op(self, name: str, inputs: Sequence[int], **attributes: Any) -> int:
        return self._unit.op(name, inputs, **attributes)

    # ---- shapes

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        shape = tuple(shape)
        if value.shape == shape and not value.channels_last:
            return value
        sizes = {f"dim{i + 1}": size for i, size in enumerate(shape)}
        return Value(self._unit.op("reshape", [value.index], **sizes), shape)

    def copy(self, value: Value) -> Value:
        sizes = {f"dim{i + 1}": size for i, size in enumerate(value.shape)}
        return replace(value, index=self._unit.op("reshape", [value.index], **sizes))

    def rows_of(self, node: Any, width: int) -> Value:
        """The tensor as rows of this width."""
        value = self.plain(node)
        if value.shape and value.shape[-1] == width:
            return value
        rows = count(value.shape) // width
        return self.reshape(value, (rows, width) if rows > 1 else (width,))

    def shaped(self, node: Any, shape: Sequence[int]) -> Value:
        return self.reshape(self.plain(node), shape)

    def whole(self, node: Any) -> Value:
        """The tensor in the shape of the graph, or as few dimensions as there may be."""
        shape = self.shapes.sample(node) or ()
        return self.shaped(node, shape if len(shape) < 4 else (count(shape),))

    # ---- layouts

    def transposed(
        self, value: Value, outer: int, rows: int, columns: int, inner: int = 1
    ) -> Value:
        """[outer, rows, columns, inner] as [outer, columns, rows, inner]."""
        if rows == 1 or columns == 1:
            return value
        given = self.reshape(value, (outer * rows, columns, inner))
        made = self.op("transpose", [given.index], rows=rows)
        return Value(made, (outer * columns, rows, inner))

    def permuted(self, value: Value, shape: Sequence[int], order: Sequence[int]) -> Value:
        """Dimensions of a sample in another order, by exchanges of neighbours."""
        now = list(range(len(shape)))
        sizes = dict(enumerate(shape))
        made = value
        for at, wanted in enumerate(order):
            begin = now.index(wanted)
            if begin == at:
                continue
            end = begin + 1
            while end < len(now) and end - begin < len(order) - at:
                if now[end] != order[at + end - begin]:
                    break
                end += 1
            before, first, second = now[:at], now[at:begin], now[begin:end]
            outer, rows, columns, inner = (
                count(tuple(sizes[d] for d in dims))
                for dims in (before, first, second, now[end:])
            )
            made = self.transposed(made, outer, rows, columns, inner)
            now = [*before, *second, *first, *now[end:]]
        return made

    def image(self, node: Any) -> Value:
        """[H, W, C] of a tensor that is [C, H, W] a sample."""
        value = self.value(node)
        sample = self.shapes.sample(node) or ()
        if len(sample) != 3:
            raise refuse(node, "an image has channels, a height and a width")
        if value.channels_last:
            if sample == self.shapes.sample(self.reading.base(node)):
                return value
            value = self.plain(node)
        channels, height, width = sample
        made = self.transposed(value, 1, channels, height * width)
        return replace(self.reshape(made, (height, width, channels)), channels_last=True)

    def plain(self, node: Any) -> Value:
        """The tensor in PyTorch's order."""
        value = self.value(node)
        if not value.channels_last:
            return value
        height, width, channels = value.shape
        made = self.transposed(
            replace(value, channels_last=False), 1, height * width, channels
        )
        return self.reshape(made, (channels, height, width))

    # ---- parts

    def taken(self, value: Value, first: int, size: int) -> Value:
        """Columns of the last dimension."""
        made = self.op("take_columns", [value.index], first=first, count=size)
        return Value(made, (*value.shape[:-1], size))

    def joined(self, values: Sequence[Value]) -> Value:
        """Side by side in the last dimension."""
        found = list(values)
        while len(found) > 1:
            some, found = found[:_JOINED], found[_JOINED:]
            made = self.op("join_columns", [value.index for value in some])
            wide = sum(value.shape[-1] for value in some)
            found.insert(0, Value(made, (*some[0].shape[:-1], wide)))
        return found[0]

    # ---- tensors that others are repeated to match

    def constant(self, values: Any) -> Value:
        """Values of a sample, the same for each."""
        kind = torch.float32 if values.is_floating_point() else torch.int32
        packed = values.detach().to(kind).contiguous()
        shape = tuple(packed.shape)
        if len(shape) > 3:
            packed, shape = packed.reshape(-1), (packed.numel(),)
        told = hashlib.blake2b(repr((shape, kind)).encode(), digest_size=16)
        told.update(packed.numpy().tobytes())
        kept = self._constants.setdefault(told.hexdigest(), packed)
        known = self._unit.once("constant", told.hexdigest(), shape)
        self._unit.steps[known] = self._unit.steps[known]._replace(values=kept)
        return Value(known, shape)

    def vector(self, size: int, number: float) -> int:
        """A constant [size] in a parameter's place."""
        return self._in_place(f"{number} {size}", torch.full((size,), number))

    def numbers(self, values: Any) -> int:
        """The same of these numbers."""
        told = hashlib.blake2b(values.numpy().tobytes(), digest_size=16).hexdigest()
        return self._in_place(told, values.clone())

    def _in_place(self, name: str, values: Any) -> int:
        kept = self._constants.setdefault(name, values)
        known = self._unit.once("vector", name, tuple(values.shape))
        self._unit.steps[known] = self._unit.steps[known]._replace(values=kept)
        return known

    def together(self, terms: Sequence[Term], sample: Sequence[int]) -> list[Value]:
        """Terms in one shape and one layout."""
        last = len(sample) == 3 and any(self._is_image(t, sample) for t in terms)
        if last and all(self._may_be_last(t, sample) for t in terms):
            return [self._as_image(t, sample) for t in terms]
        return [self.spread(t, sample) for t in terms]

    def _is_image(self, term: Term, sample: Sequence[int]) -> bool:
        rows = term.kind == "rows" and term.shape == tuple(sample)
        return rows and self.value(term.node).channels_last

    def _may_be_last(self, term: Term, sample: Sequence[int]) -> bool:
        few = sum(size > 1 for size in term.shape) <= 1
        return term.kind == "constant" or few or (
            term.kind == "rows" and term.shape == tuple(sample)
        )

    def _as_image(self, term: Term, sample: Sequence[int]) -> Value:
        channels, height, width = sample
        if term.kind == "rows" and term.shape == tuple(sample):
            return self.image(term.node)
        one = (1,) * (3 - len(term.shape)) + term.shape
        values = term.values.permute(1, 2, 0) if term.kind == "constant" else None
        moved = term._replace(shape=(one[1], one[2], one[0]), values=values)
        made = self.spread(moved, (height, width, channels))
        return replace(made, channels_last=True)

    def spread(self, term: Term, sample: Sequence[int]) -> Value:
        """A term repeated along the dimensions of a sample that it lacks."""
        sample = tuple(sample)
        shape = (1,) * (len(sample) - len(term.shape)) + term.shape
        if term.kind == "constant":
            return self.constant(term.values.expand(sample))
        if term.kind == "batch":
            term = term._replace(node=self.prepared("batch", term.node, _as_float))
        if term.kind in ("value", "batch"):
            value = self.reshape(term.node, shape)
        elif term.kind == "rows":
            value = self.plain(term.node)
        else:
            value, shape = self._repeated(term, shape, sample)
        at = 0
        while shape != sample:
            end = next(i for i in range(at, len(sample)) if shape[i] != sample[i])
            at = end
            while end < len(sample) and shape[end] == 1:
                end += 1
            times = count(sample[at:end])
            outer, inner = count(shape[:at]), count(shape[end:])
            given = self.reshape(value, (outer, inner))
            made = self.op("expand", [given.index], times=times)
            value = Value(made, (outer, times, inner))
            shape = shape[:at] + sample[at:end] + shape[end:]
        return self.reshape(value, sample if len(sample) < 4 else (count(sample),))

    def _repeated(
        self, term: Term, shape: tuple[int, ...], sample: tuple[int, ...]
    ) -> tuple[Value, tuple[int, ...]]:
        """A parameter for each sample, and along the first dimensions that it lacks."""
        own = next((i for i, size in enumerate(shape) if size > 1), len(shape))
        times, wide = count(sample[:own]), count(shape)
        inputs = [self.parameter(term.node), self._any_rows()]
        made = self.op("repeat", inputs, times=times)
        return Value(made, (times, wide)), sample[:own] + shape[own:]

    def _any_rows(self) -> int:
        raise NotImplementedError

    def prepared(self, name: str, node: Any, finish: Any) -> Value:
        raise NotImplementedError

