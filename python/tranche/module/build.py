"""Units of steps as a model of the library."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Sequence
from ctypes import byref, c_int32
from typing import Any

import torch

from tranche import _declarations as c
from tranche._calls import Raised
from tranche._handle import field_type, sized
from tranche._library import library
from tranche.error import Error, Status
from tranche.module.ending import Tensor
from tranche.module.lower import Lowering
from tranche.module.steps import Step, Unit

_ANY = (1 << 31) - 1
_zeros = c.tr_init(c.TR_INIT_CONSTANT, 0.0, 0.0)


def shape_of(sizes: Sequence[int]) -> Any:
    made = c.tr_shape()
    made.rank = len(sizes)
    for i, size in enumerate(sizes):
        made.dim[i] = size
    return made


def role(tensor: Tensor) -> int:
    return int(c.TR_ROLE_TARGET if tensor.target else c.TR_ROLE_INPUT)


class Model:
    """A tr_model of units. names: of the module's parameters and buffers, each the
    first of those that are one tensor."""

    def __init__(
        self, lowering: Lowering, names: dict[str, str], tensors: Sequence[Tensor]
    ) -> None:
        self.raised: Raised = lowering._raised
        self.lowering = lowering
        self.tensors = list(tensors)
        self._names = names
        self._users = self._count_users()
        self._table = sized(c.tr_model)
        self._units = (c.tr_model_unit * len(lowering.units))()
        kinds: dict[str, str] = {}
        for i, unit in enumerate(lowering.units):
            self._fill(self._units[i], unit, i, kinds)
        self._table.type = b"torch"
        self._table.unit_count = len(lowering.units)
        self._table.units = self._units
        self._fill_batch(self._table.batch)
        self._table.classes = self._classes()
        end = lowering.end
        self._table.classifier = end is not None and end.is_classes
        self._table.config_json = json.dumps({"model_type": "torch"}).encode()
        self.pointer = ctypes.pointer(self._table)

    def _classes(self) -> int:
        """What ids and classes are below; those that no op of the library reads may be
        any."""
        below = self.lowering.reading.ids_below
        free = any(t.whole and not t.target and t.name not in below for t in self.tensors)
        if free:
            return _ANY
        return max(2, self.lowering.classes, *below.values(), 2)

    def name_of(self, step: Step) -> str:
        return self._names.get(step.name, step.name)

    def _count_users(self) -> dict[str, int]:
        """How many units use a parameter."""
        users: dict[str, int] = {}
        for unit in self.lowering.units:
            for name in {self.name_of(s) for s in unit.steps if s.kind == "parameter"}:
                users[name] = users.get(name, 0) + 1
        return users

    def _prefix(self, unit: Unit) -> str:
        """What the names of all of a unit's own parameters begin with."""
        prefix = f"{unit.path}." if unit.path else ""
        own = [
            self.name_of(step)
            for step in unit.steps
            if step.kind == "state"
            or (step.kind == "parameter" and self._users[self.name_of(step)] == 1)
        ]
        return prefix if all(name.startswith(prefix) for name in own) else ""

    def _fill(self, to: Any, unit: Unit, index: int, kinds: dict[str, str]) -> None:
        prefix = self._prefix(unit)
        text = unit.text(prefix)
        if text not in kinds:
            kinds[text] = f"{len(kinds)}"
        to.name = (unit.path or f"part {index}").encode()
        to.kind = kinds[text].encode()
        to.prefix = prefix.encode()

        def build(graph: int, _: object) -> None:
            _Builder(self, unit, prefix, graph).build()

        to.build = field_type(c.tr_model_unit, "build")(self.raised.guard(build, None))

    def _fill_batch(self, batch: Any) -> None:
        if len(self.tensors) > c.TR_BATCH_TENSORS_MAX:
            raise Error(
                Status.USAGE,
                f"a batch has at most {c.TR_BATCH_TENSORS_MAX} tensors, and the module "
                f"takes {len(self.tensors)}",
            )
        batch.count = len(self.tensors)
        for to, tensor in zip(batch.tensor, self.tensors, strict=False):
            name = tensor.name.encode()
            if len(name) >= c.TR_BATCH_NAME_MAX:
                raise Error(
                    Status.USAGE,
                    f"{tensor.name}: names of tensors have up to "
                    f"{c.TR_BATCH_NAME_MAX - 1} bytes",
                )
            to.name = name
            to.role = role(tensor)
            to.desc.dtype = c.TR_I32 if tensor.whole else c.TR_F32
            to.desc.shape = shape_of(tensor.shape)


class _Builder:
    """Builds the graph of a unit from its steps."""

    def __init__(self, model: Model, unit: Unit, prefix: str, graph: int) -> None:
        self._model, self._unit, self._prefix = model, unit, prefix
        self._graph = graph
        self._values: list[int] = []

    def build(self) -> None:
        for step in self._unit.steps:
            self._values.append(self._make(step))
        for index in self._unit.outputs:
            library().tr_graph_output(self._graph, self._values[index])

    def _make(self, step: Step) -> int:
        lib, graph = library(), self._graph
        inputs = [self._values[i] if i >= 0 else c.TR_NO_VALUE for i in step.inputs]
        given = (c_int32 * len(inputs))(*inputs)
        if step.kind == "input":
            made = lib.tr_graph_input(graph, int(step.name))
        elif step.kind == "data":
            made = lib.tr_graph_data(graph, step.name.encode())
        elif step.kind == "parameter":
            made = self._parameter(step)
        elif step.kind == "state":
            made = self._state(step)
        elif step.kind == "op":
            text = step.attributes.encode() if step.attributes else None
            name = step.name.encode()
            made = lib.tr_graph_call(graph, name, text, given, len(inputs), None, 0)
        elif step.kind in ("constant", "vector"):
            made = self._constant(step)
        else:
            made = self._function(step, given)
        return int(made)

    def _constant(self, step: Step) -> int:
        desc = c.tr_tensor_desc()
        desc.dtype = c.TR_F32 if step.values.is_floating_point() else c.TR_I32
        each = (c.TR_BATCH, *step.shape) if step.kind == "constant" else step.shape
        desc.shape = shape_of(each)
        address = ctypes.c_void_p(step.values.data_ptr())
        return int(library().tr_graph_constant(self._graph, desc, address))

    def _parameter(self, step: Step) -> int:
        name = self._model.name_of(step)
        shape = shape_of(step.shape)
        if self._model._users[name] > 1:
            made = library().tr_graph_shared(self._graph, name.encode(), shape, _zeros)
        else:
            local = name.removeprefix(self._prefix).encode()
            made = library().tr_graph_param(self._graph, local, shape, _zeros)
        return int(made)

    def _state(self, step: Step) -> int:
        desc = c.tr_tensor_desc()
        desc.dtype = c.TR_F32 if step.shape else c.TR_I64
        desc.shape = shape_of(step.shape)
        local = step.name.removeprefix(self._prefix).encode()
        value = float(step.attributes)
        return int(library().tr_graph_state(self._graph, local, desc, value))

    def _function(self, step: Step, given: Any) -> int:
        assert step.function is not None
        table = step.function.table
        if not table.loss:
            table.output.dtype = c.TR_F32
            table.output.shape = shape_of((c.TR_BATCH, *step.shape))
        made = library().tr_graph_function(
            self._graph, byref(table), given, len(step.inputs)
        )
        return int(made)


def pattern(name: str) -> str:
    """What matches this name alone."""
    marks: dict[str, str | int | None] = {mark: f"\\{mark}" for mark in "*?[\\"}
    return name.translate(str.maketrans(marks))


def frozen(module: torch.nn.Module) -> list[str]:
    """Patterns of the parameters that are not trained."""
    return [
        pattern(name)
        for name, parameter in module.named_parameters()
        if not parameter.requires_grad
    ]


def canonical(module: torch.nn.Module) -> dict[str, str]:
    """Of each name of a parameter the first one that its tensor has."""
    first: dict[int, str] = {}
    found = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        found[name] = first.setdefault(id(parameter), name)
    return found
