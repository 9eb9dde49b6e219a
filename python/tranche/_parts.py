"""A step in parts: what goes into an engine and comes out of it in the step's middle."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Mapping, Sequence
from ctypes import byref
from typing import TYPE_CHECKING, Any

from tranche import _declarations as c
from tranche import _fill
from tranche._handle import sized
from tranche.error import Error, Status
from tranche.tensors import Array, view

if TYPE_CHECKING:
    from tranche.engine import Engine


class Lent:
    """Memory that a call of the library reads: that of an array where it is packed and
    of the right type, else a copy, whose memory serves again."""

    def __init__(self) -> None:
        self._buffers: dict[str, Any] = {}

    def address(
        self, values: Any, dtype: int, shape: tuple[int, ...], name: str
    ) -> int:
        own = _fill.address(values, dtype, shape)
        if own:  # that of no rows is nowhere
            return own
        size = max(1, _fill.size(dtype) * math.prod(shape))
        buffer = self._buffers.get(name)
        if buffer is None or ctypes.sizeof(buffer) < size:
            buffer = self._buffers[name] = ctypes.create_string_buffer(size)
        _fill.fill(values, ctypes.addressof(buffer), dtype, shape, name)
        return ctypes.addressof(buffer)


_TORCH = {
    c.TR_F32: "float32",
    c.TR_BF16: "bfloat16",
    c.TR_F16: "float16",
    c.TR_I32: "int32",
    c.TR_I64: "int64",
}


def is_there(values: Any) -> bool:
    """Is it a tensor in a GPU's memory?"""
    return _fill.torch_tensor(values) is not None and values.device.type == "cuda"


def wait_for_torch(number: int) -> None:
    """For what PyTorch still does on a GPU, in its current stream."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.current_stream(torch.device("cuda", number)).synchronize()


class OnDevice:
    """Memory of a GPU that a call of the library reads: PyTorch's, while this is
    there."""

    def __init__(self, number: int) -> None:
        import torch

        self._torch: Any = torch
        self.number = number
        self._on = torch.device("cuda", number)
        self._kept: list[Any] = []

    def type_of(self, given: Sequence[Any]) -> int:
        """That of gradients which are taken as they are; of others F32."""
        kinds = {getattr(values, "dtype", None) for values in given if values is not None}
        halves = {self._torch.bfloat16: c.TR_BF16, self._torch.float16: c.TR_F16}
        return halves.get(kinds.pop(), c.TR_F32) if len(kinds) == 1 else c.TR_F32

    def address(
        self, values: Any, dtype: int, shape: tuple[int, ...], name: str
    ) -> int:
        kind = getattr(self._torch, _TORCH[dtype])
        tensor = self._torch.as_tensor(values).detach()
        if tensor.is_floating_point() and not kind.is_floating_point:
            raise Error(Status.DATA, f"{name}: integers are needed, not fractions")
        _fill.need_shape(tuple(tensor.shape), shape, name)
        if not tensor.numel():  # which is nowhere
            tensor = self._torch.zeros(1)
        tensor = tensor.to(self._on, kind).contiguous()
        self._kept.append(tensor)
        return int(tensor.data_ptr())


class Parts:
    """The step at work of an engine whose model has no loss."""

    def __init__(self, engine: Engine) -> None:
        model = engine.run._ask("tr_run_model").contents
        self._tensors = {
            tensor.name.decode(): (
                tensor.desc.dtype,
                tuple(tensor.desc.shape.dim[: tensor.desc.shape.rank]),
            )
            for tensor in model.batch.tensor[: model.batch.count]
        }
        self._lent = Lent()
        # Rows may be in a GPU's memory, where all are the caller's.
        fed = not engine.run._ask("tr_run_data")
        self._takes_there = fed and engine.run.get("execution.parts_on_device") is True
        self._shapes: list[tuple[int, ...]] = []  # of the outputs before
        self._device = -1  # of them; the host

    def forward(
        self, engine: Engine, inputs: Any, evaluate: bool, counts: bool
    ) -> list[Array]:
        options, found = sized(c.tr_forward_options), sized(c.tr_outputs)
        options.evaluate, options.counts = evaluate, counts
        there = None  # the GPU's memory, which lives until the call is over
        if inputs is not None:
            given, options.rows = self._by_name(inputs), 0
            if self._takes_there and all(map(is_there, given.values())):
                there = OnDevice(next(iter(given.values())).device.index or 0)
            rows, options.rows = self._rows(given, there)
            place = "inputs" if there is None else "inputs_there"
            setattr(options, place, ctypes.cast(rows, type(options.inputs)))
        if there is not None:
            engine._lends(there.number)
        engine._call("tr_engine_forward", byref(options), byref(found))
        outputs = [
            view(output, engine._owner, found.device)
            for output in found.output[: found.count]
        ]
        if not evaluate:
            self._shapes = [output.shape for output in outputs]
            self._device = found.device
        engine._lends(found.device)
        return outputs

    def backward(self, engine: Engine, gradients: Any, loss: float) -> None:
        given = gradients if isinstance(gradients, list | tuple) else [gradients]
        zeros = len(given) == 1 and given[0] is None  # not one of the shape [1]
        alone = len(self._shapes) == 1 and not zeros
        if alone and _fill.shape_of(gradients) == self._shapes[0]:
            given = [gradients]  # nested lists, too
        if self._shapes and len(given) != len(self._shapes):
            raise Error(
                Status.USAGE,
                f"backward: {len(given)} gradients of {len(self._shapes)} outputs; "
                f"None stands for one of zeros",
            )
        pointers = (ctypes.c_void_p * max(1, len(given)))()
        options = sized(c.tr_backward_options)
        options.gradients = ctypes.cast(pointers, type(options.gradients))
        options.loss, options.dtype = float(loss), c.TR_F32
        there: OnDevice | Lent = self._lent
        if self._device >= 0:
            there = OnDevice(self._device)
            options.dtype = there.type_of(given)
        for i, (values, shape) in enumerate(zip(given, self._shapes, strict=False)):
            if values is not None:
                name = f"the gradient of output {i}"
                pointers[i] = there.address(values, options.dtype, shape, name)
        engine._call("tr_engine_backward_with", byref(options))

    def _rows(self, given: Mapping[str, Any], there: OnDevice | None) -> tuple[Any, int]:
        counts = {_fill.shape_of(values)[:1] for values in given.values()}
        if len(counts) != 1 or () in counts:
            raise Error(
                Status.USAGE, "inputs need equally many samples, [samples, ...]"
            )
        count = counts.pop()[0]
        rows = (ctypes.c_void_p * len(self._tensors))()
        for i, (name, (dtype, shape)) in enumerate(self._tensors.items()):
            to: Lent | OnDevice = self._lent if there is None else there
            rows[i] = to.address(given[name], dtype, (count, *shape), name)
        return rows, count

    def _by_name(self, inputs: Any) -> Mapping[str, Any]:
        names = list(self._tensors)
        given = inputs if isinstance(inputs, Mapping) else {names[0]: inputs}
        if sorted(given) != sorted(names):
            raise Error(
                Status.USAGE,
                f"the model takes {', '.join(names)}; given: {', '.join(given)}",
            )
        return given

