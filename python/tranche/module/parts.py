"""A step in parts: the engine hands the outputs of a micro-batch to PyTorch's autograd
and takes their gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils.dlpack import from_dlpack

from tranche.callbacks import StepResult
from tranche.engine import Engine
from tranche.error import Error, Status
from tranche.module.feed import columns
from tranche.module.ending import Tensor
from tranche.module.lower import Lowering


class _Bridge(torch.autograd.Function):
    """Gives outputs out, and takes their gradients when autograd comes back."""

    @staticmethod
    def forward(ctx: Any, parts: Parts, _: Any, kinds: Any, *outputs: Any) -> Any:
        """kinds: of the module's own outputs, whose gradients the engine rounds where it
        has scaled them. What is made are copies, which outlive the step."""
        ctx.parts = parts
        ctx.number = parts.number
        made = zip(outputs, kinds, strict=True)
        return tuple(output.to(kind, copy=True) for output, kind in made)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        if ctx.number != ctx.parts.number:
            raise Error(
                Status.USAGE,
                "these outputs are of a forward before the last one, and their memory "
                "is gone",
            )
        ctx.parts.came = list(gradients)
        return (None, None, None, *(None for _ in gradients))


class Parts:
    """The calls of an engine whose model hands outputs out."""

    def __init__(
        self,
        engine: Engine,
        lowering: Lowering,
        tensors: Sequence[Tensor],
        device: torch.device,
    ) -> None:
        self._engine = engine
        self._lowering = lowering
        self._tensors = tensors
        self._device = device
        self._leaf = torch.zeros((), requires_grad=True)
        self.number = 0  # of the forward
        self.waiting = False  # for the gradients of the last one
        self._hands_out = True  # has this rank outputs? Else another stage's have them
        self.done = 0  # micro-batches of the step
        self.came: list[Any] | None = None
        self._given: dict[str, Any] = {}  # to the last forward

    def forward(self, batch: Mapping[str, Any], rows: int) -> Any:
        """What the module returns for these rows; None on ranks of a pipeline's stages
        without the module's end, where there is no loss to compute."""
        if self.waiting:
            raise Error(
                Status.USAGE,
                "the forward before waits for its backward; eval() is for outputs that "
                "are not trained on",
            )
        there = {name: values.to(self._device) for name, values in batch.items()}
        given = columns(self._lowering, self._tensors, there, rows)
        names = [tensor.name for tensor in self._tensors]
        self._given = dict(zip(names, given, strict=True))
        found = self._engine.forward(self._given)
        self.number += 1
        self.waiting, self.came = True, None
        self._hands_out = bool(found)
        if not self._hands_out:
            return None
        outputs = [from_dlpack(output) for output in found]
        kinds = [node.meta["val"].dtype for node, _ in self._lowering.handed]
        made = _Bridge.apply(self, self._leaf, kinds, *outputs)
        return self._as_returned(there, rows, made)

    def _as_returned(self, batch: Mapping[str, Any], rows: int, made: Any) -> Any:
        lowering = self._lowering
        returned = lowering.traced.returned
        if lowering.outside is None:
            found = []
            for (node, _), values in zip(lowering.handed, made, strict=True):
                meta = node.meta["val"]
                each = lowering.shapes.factor(meta.shape[0]) or 1
                shape = (each * rows, *meta.shape[1:])
                if values.shape != shape:  # each op costs autograd's time twice
                    values = values.reshape(shape)
                found.append(values)
            return returned.made(found)
        values = dict(zip([node for node, _ in lowering.handed], made, strict=True))
        names = lowering.traced.inputs
        operands = [
            values[o.node] if o.node in values else self._of_batch(o, batch, names)
            for o in lowering.outside.operands
        ]
        return returned.made([lowering.outside.run(rows, operands)])

    def _of_batch(self, operand: Any, batch: Mapping[str, Any], names: Any) -> Any:
        given = batch[names[operand.node]]
        return given.permute(0, 2, 3, 1) if operand.channels_last else given

    def backward(self, loss: Any, retain_graph: bool = False, times: float = 1) -> None:
        """times: what the loss is taken by, where the caller has divided it."""
        if not self.waiting:
            raise Error(Status.USAGE, "backward: there is no forward that waits for it")
        if not self._hands_out:
            self._come_back([None], 0.0)
            return
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
            raise Error(Status.USAGE, "backward takes a loss, a tensor of one number")
        self.came = None
        if loss.requires_grad:
            taken = loss if times == 1 else loss * times
            taken.backward(retain_graph=retain_graph)
        if self.came is None:
            raise Error(
                Status.USAGE,
                "no output of the last forward leads to this loss; the forward still "
                "waits for its backward",
            )
        self._come_back(self.came, float(loss.detach()) * times)

    def _come_back(self, gradients: list[Any], loss: float) -> None:
        self._engine.backward(gradients, loss)
        self.waiting, self.came = False, None
        self.done += 1

    def fill(self, count: int, counted: bool) -> None:
        """The next micro-batches have no rows. counted: they count in the mean."""
        none = {name: values[:0] for name, values in self._given.items()}
        for _ in range(count):
            outputs = self._engine.forward(none, counts=counted)
            self._engine.backward([None] * len(outputs))
            self.done += 1

    def update(self) -> StepResult:
        result = self._engine.update()
        self.done = 0
        return result

    @property
    def at_work(self) -> bool:
        """Is a step begun and not ended?"""
        return self.waiting or self.done > 0

    def drop(self) -> None:
        """The micro-batches of a step so far are forgotten."""
        self._engine.drop()
        self.done, self.waiting, self.came = 0, False, None
