"""Memory of a GPU's as PyTorch's tensors, and PyTorch's work among the engine's there."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils.dlpack import from_dlpack

from tranche import _dlpack, ranks
from tranche.module.config import log
from tranche.run import Run

_HOST = torch.device("cpu")
_CODES = {
    torch.float32: _dlpack.FLOAT,
    torch.float16: _dlpack.FLOAT,
    torch.bfloat16: _dlpack.BFLOAT,
    torch.int32: _dlpack.INT,
}


def tensor(
    address: int, kind: torch.dtype, shape: Sequence[int], device: torch.device
) -> Any:
    """What is there, as long as it is: nobody keeps it."""
    told = (_CODES[kind], kind.itemsize)
    on = (_dlpack.CUDA, device.index)
    return from_dlpack(_dlpack.capsule(None, address, tuple(shape), told, on))


@contextmanager
def stream(pointer: int | None) -> Iterator[torch.device]:
    """Inside, PyTorch puts its work on a stream of the engine's, on the device that the
    process computes on; None: it works on the host."""
    if not pointer:
        yield _HOST
        return
    device = torch.device("cuda", torch.cuda.current_device())
    with torch.cuda.stream(torch.cuda.ExternalStream(pointer, device=device)):
        yield device


def moved(module: Any, device: torch.device) -> Any:
    """A graph that was made on the host, for tensors of a device."""
    made = copy.deepcopy(module).to(device)

    def there(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(there(each) for each in value)
        if isinstance(value, list):
            return [there(each) for each in value]
        return device if isinstance(value, torch.device) else value

    for node in made.graph.nodes:
        node.args = there(node.args)
        node.kwargs = {name: there(value) for name, value in node.kwargs.items()}
    made.recompile()
    return made


def on_host(values: Any) -> Any:
    """A tensor where the engine reads a batch; the same if it is there."""
    return values.cpu() if isinstance(values, torch.Tensor) else values


def device_of(config: Any, module: torch.nn.Module) -> torch.device:
    """On which PyTorch's part of a step is computed: the GPU that the config says, or
    that the module is on; else the host."""
    run = Run(config)
    try:
        said = str(run.get("device"))
    finally:
        run.close()
    if said == "auto":
        kinds = {parameter.device for parameter in module.parameters()}
        gpus = [device for device in kinds if device.type == "cuda"]
        return gpus[0] if gpus else _HOST
    if not said.startswith("cuda"):
        return _HOST
    if not torch.cuda.is_available():
        log.warning(
            "this PyTorch has no GPU: outputs and gradients are copied by way of the host"
        )
        return _HOST
    if said.startswith("cuda:"):
        return torch.device("cuda", int(said[5:]))
    number = ranks.local(ranks.rank())  # as the library shares a machine's GPUs out
    return torch.device("cuda", number % torch.cuda.device_count())
