"""Nodes become steps of units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import torch

from tranche import _declarations as c
from tranche._calls import Raised
from tranche.error import Error, Status
from tranche.module import losses
from tranche.module.ending import Ending, Tensor
from tranche.module.export import operator, refuse, where
from tranche.module.read import Emitted, Reading
from tranche.module.rehearsal import outside_bytes
from tranche.module.regions import Function, MeanOfRows, Operand, Region, check_rows
from tranche.module.shapes import count, is_float, is_size
from tranche.module.steps import Step, Unit, Value

_IMAGES = ("conv2d", "max_pool2d", "avg_pool2d", "adaptive_avg_pool2d", "batch_norm")


class InTorch(NamedTuple):
    """Operators that run in PyTorch, the lines that wrote them, and the bytes that a call
    takes beside the plan's ledger (0: not known)."""

    operators: str
    line: str
    outside: int = 0


class Lowering(Ending):
    """The units of a graph. fallback: "refuse" makes operators that the library lacks
    an error, and "torch" runs them there. rows: of a micro-batch. parts: the caller computes the loss, of what
    the units hand out."""

    def __init__(
        self,
        reading: Reading,
        examples: Mapping[Any, Any],
        raised: Raised,
        fallback: str,
        rows: int,
        parts: bool = False,
    ) -> None:
        self.reading = reading
        self.traced, self.shapes = reading.traced, reading.shapes
        self.in_torch: list[InTorch] = []
        self.batch: dict[str, Tensor] = {}
        self._examples, self._raised, self._fallback = examples, raised, fallback
        self._rows = rows
        self._rehearsed: dict[tuple[Any, ...], int] = {}
        self._values: dict[Any, Value] = {}
        self._constants: dict[str, Any] = {}
        self._prepared: dict[Any, str] = {}
        self._parameter_units: dict[Any, set[int]] = {}
        self.handed: list[tuple[Any, Value]] = []  # to the caller, and how they lie
        self.outside: Region | MeanOfRows | None = None  # a loss that the module returns
        self.end = None if parts else losses.find(reading)
        self.rows_end = self._find_rows_end() if parts else None
        self.classes = self.end.classes if self.end else 0
        self._emitted = reading.emitted(*self._ends())
        self._images = self._read_as_images()
        self.units = self._build()
        self._examples = {}  # they may be large, and are not asked for any more

    def _read_as_images(self) -> set[Any]:
        """Tensors of the batch that ops for images read: they come channels last."""
        found = set()
        for made in self._emitted:
            name = str(made.node.target).removeprefix("aten.").split(".")[0]
            if made.native is not None and name in _IMAGES:
                base = self.reading.base(made.native.operands[0])
                if base in self.traced.inputs and base.meta["val"].ndim == 4:
                    found.add(base)
        return found

    # ---- units

    def _build(self) -> list[Unit]:
        numbers = sorted({made.unit for made in self._emitted}) or [0]
        at = {number: i for i, number in enumerate(numbers)}
        last = len(numbers) - 1
        until = self._last_uses(at, last)
        units = []
        for number, i in at.items():
            self._unit = Unit(self.reading.paths[number] if self.reading.paths else "")
            mine = [made for made in self._emitted if at[made.unit] == i]
            before = [m for m in self._emitted if at[m.unit] < i <= until[m.node]]
            for number, made in enumerate(before):
                index = self._unit.once("input", str(number))
                self._values[made.node] = replace(self._values[made.node], index=index)
            for made in mine:
                self._values[made.node] = self._emit(made)
            if i == last:
                self._finish()
            else:
                self._hand_on([m for m in [*before, *mine] if until[m.node] > i], mine)
            units.append(self._unit)
        return units

    def _last_uses(self, at: Mapping[int, int], last: int) -> dict[Any, int]:
        until = {made.node: at[made.unit] for made in self._emitted}
        for made in self._emitted:
            for operand in made.operands:
                if operand in until:
                    until[operand] = max(until[operand], at[made.unit])
        for node in self._needed_by_the_end():
            if node in until:
                until[node] = last
        return until

    def _needed_by_the_end(self) -> list[Any]:
        loss, direct = self._ends()
        if loss is None:
            return [self.reading.base(each) for each in direct]
        lies = {made.node for made in self._emitted}
        return self.reading.operands_of(loss, lies)

    def _hand_on(self, nodes: list[Emitted], mine: list[Emitted]) -> None:
        """What comes from a unit before is handed on by an op of this one."""
        own = {made.node for made in mine}
        for made in nodes:
            value = self._values[made.node]
            if made.node not in own or value.index in self._unit.outputs:
                value = self.copy(value)
                self._values[made.node] = value
            self._unit.outputs.append(value.index)

    def _emit(self, made: Emitted) -> Value:
        if made.native is not None:
            return made.native.build(self)
        operands = [self._operand(node) for node in made.operands]
        region = Region(self.traced, self.shapes, made.node, operands)
        check_rows(self.traced, self.shapes, region, self._examples)
        outside = self._tell(region)
        shape = self.shapes.sample(made.node) or ()
        shape = shape if len(shape) < c.TR_RANK_MAX else (count(shape),)
        return self._function(region, shape, outside)

    def _tell(self, region: Region) -> int:
        """Keeps for the user what runs in PyTorch, and gives what that takes of memory
        beside the plan."""
        ends = {operand.node for operand in region.operands}
        inside = set(region.nodes) - ends
        nodes = [n for n in self.traced.nodes if n in inside and not is_size(n)]
        names = dict.fromkeys(operator(n) for n in nodes if "aten" in str(n.target))
        told = InTorch(", ".join(names), where(region.output))
        if self._fallback == "refuse":
            raise refuse(
                region.output,
                f'the library has no op for {told.operators}; fallback="torch" runs '
                f"them in PyTorch",
            )
        told = told._replace(outside=self._rehearse(region))
        if told not in self.in_torch:
            self.in_torch.append(told)
        return told.outside

    def _rehearse(self, region: Region) -> int:
        shapes = [tuple(operand.node.meta["val"].shape) for operand in region.operands]
        key = (region.text, *map(str, shapes))
        if key not in self._rehearsed:
            self._rehearsed[key] = outside_bytes(region, self._examples, self._rows)
        return self._rehearsed[key]

    def _operand(self, node: Any) -> Operand:
        if node in self.traced.parameters:
            return Operand(node, False, False)
        if node in self.traced.inputs:
            return Operand(node, node in self._images, True)
        return Operand(node, self._values[node].channels_last, True)

    def _function(
        self, region: Region, shape: tuple[int, ...], outside: int
    ) -> Value:
        name = operator(region.output)
        function = Function(region, self._raised, f"{name} ({where(region.output)})", outside)
        step = Step(
            "function", name, self._inputs(region), shape=shape, function=function
        )
        return Value(self._unit.add(step), shape)

    def _inputs(self, region: Region) -> tuple[int, ...]:
        return tuple(
            self.value(operand.node).index
            if operand.rows
            else self.parameter(operand.node)
            for operand in region.operands
        )

    @property
    def whole_batches(self) -> bool:
        """Does an op look at all rows of the effective batch?"""
        steps = [step for unit in self.units for step in unit.steps]
        return any(step.name == "batch_norm" for step in steps)

    # ---- asked by the rows of the table

    def value(self, node: Any) -> Value:
        base = self.reading.base(node)
        return self.data(base) if base in self.traced.inputs else self._values[base]

    def data(self, node: Any, target: bool = False) -> Value:
        name = self.traced.inputs[node]
        shape = self.shapes.sample(node)
        if shape is None or len(shape) >= c.TR_RANK_MAX:
            raise Error(
                Status.USAGE,
                f"{name}: a tensor of a batch has rows first, and a sample at most "
                f"{c.TR_RANK_MAX - 1} dimensions",
            )
        last = node in self._images
        if last:
            shape = (*shape[1:], shape[0])
        known = self.batch.get(name)
        target = target or (known is not None and known.target)
        self.batch[name] = Tensor(name, node, shape, not is_float(node), last, target)
        return Value(self._unit.once("data", name), shape, last)

    def parameter(self, node: Any) -> int:
        name = self.traced.parameters[node]
        return self._unit.once("parameter", name, tuple(node.meta["val"].shape))

    def state(self, name: str, shape: tuple[int, ...], value: float) -> int:
        key = self._unit.once("state", name, shape)
        self._unit.steps[key] = self._unit.steps[key]._replace(attributes=str(value))
        return key

    def ids(self, lookup: Any) -> Value:
        """Numbers of rows of a table."""
        if lookup.data in self.traced.inputs:
            return self.data(lookup.data)
        rows = int(lookup.table.meta["val"].shape[0])
        return self.prepared("ids", lookup.data, lambda ids: ids, below=rows)

    def prepared(
        self, name: str, node: Any, finish: Any, below: int | None = None
    ) -> Value:
        """A tensor that is made of the batch before it comes to the library."""
        known = self._prepared.get((name, node, below))
        if known is None:
            known = f"tranche.{name.split()[0]}{len(self._prepared)}"
            self._prepared[(name, node, below)] = known
            operands = [
                Operand(each, False, True)
                for each in ([node] if node in self.traced.inputs else [])
                or self.reading.operands_of(node, set())
            ]
            region = Region(self.traced, self.shapes, node, operands, finish)
            check_rows(self.traced, self.shapes, region, self._examples)
            self.reading.prepared[known] = region
            if below is not None:
                self.reading.ids_below[known] = below
            shape = self.shapes.sample(node) or ()
            whole = below is not None
            self.batch[known] = Tensor(known, node, shape, whole, False, False)
        return Value(self._unit.once("data", known), self.batch[known].shape)

    def _any_rows(self) -> int:
        """A value with as many samples as there are."""
        if any(step.kind == "input" for step in self._unit.steps):
            return self._unit.once("input", "0")
        for index, step in enumerate(self._unit.steps):
            if step.kind == "data":
                return index
        return self.data(next(iter(self.traced.inputs))).index


def module_dtypes(module: torch.nn.Module) -> None:
    """The engine keeps values in f32."""
    for name, parameter in module.named_parameters():
        if parameter.dtype not in (torch.float32, torch.bfloat16, torch.float16):
            raise Error(
                Status.USAGE,
                f"{name} is {parameter.dtype}: parameters are float32, bfloat16 or "
                f"float16",
            )
