"""A strategy for Lightning's Fabric: the loop stays the script's, and the steps are the
engine's.

    fabric = lightning.Fabric(strategy=tranche.fabric.Strategy(), accelerator="cpu")
    model, optimizer = fabric.setup(model, optimizer)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from lightning.fabric.strategies.single_device import SingleDeviceStrategy

from tranche import ranks
from tranche._planned import Planned
from tranche.error import Error


class Strategy(Planned, SingleDeviceStrategy):
    """Trains the module that fabric.setup is given with its optimizer by a plan, in one
    process on the CPU. The first training batch says how many rows a micro-batch has.
    config: keys of run files (execution, memory, zero_optimization, bf16, ...); of them
    gradient_accumulation_steps says how many calls of fabric.backward a step has at most,
    and gradient_clipping clips. fallback: as tranche.initialize has it.

    As with PyTorch, a step takes the sum of the gradients of its backward calls."""

    called = "tranche.fabric.Strategy"

    def __init__(
        self, config: Mapping[str, Any] | None = None, *, fallback: str = "torch"
    ) -> None:
        super().__init__("cpu")
        self._begin_with(config, fallback)
        self._module: Any = None
        self._torchs: Any = None  # the optimizer that the script made

    # ---- setting up

    def setup_module_and_optimizers(
        self, module: Any, optimizers: Any, scheduler: Any = None
    ) -> Any:
        self._check(optimizers)
        self._module, self._torchs = module, optimizers[0]
        self._hook_all(module)
        return module, optimizers, scheduler

    def _check(self, optimizers: Any) -> None:
        if self._module is not None or len(optimizers) != 1:
            raise self.refuse("one module with one optimizer is supported")
        if ranks.count() > 1:
            raise self.refuse("it is of one process")
        self._check_precision(self.precision.precision)

    def _alone(self) -> Error:
        return self.refuse(
            "call fabric.setup(module, optimizer), which takes both together"
        )

    def setup_module(self, module: Any) -> Any:
        raise self._alone()

    def setup_optimizer(self, optimizer: Any) -> Any:
        raise self._alone()

    def _optimizer(self) -> Any:
        return self._torchs

    def _sizes(self) -> tuple[int, float]:
        count = self._config.get("gradient_accumulation_steps", 1)
        return int(count), float(self._config.get("gradient_clipping", 0))

    def _trains(self) -> bool:
        return bool(self._module.training) and torch.is_grad_enabled()

    def _begin(self, module: Any, given: list[Any]) -> Any:
        # States that fabric.load has put into the optimizer: the engine takes them over.
        found = self._torchs.state_dict()
        if found["state"]:
            self._take_over(self._torchs, found)
        return super()._begin(module, given)

    # ---- a step

    def backward(self, tensor: Any, module: Any, *given: Any, **named: Any) -> None:
        if self.engine is None:
            raise self.refuse(
                "backward: call the module that fabric.setup has returned first"
            )
        if given or set(named) - {"retain_graph"}:
            raise self.refuse("backward takes a loss, and retain_graph alone beside it")
        retain = bool(named.get("retain_graph"))
        with self._at_work():
            self.engine.backward(tensor, retain, scale_wrt_gas=False)

    def optimizer_step(self, optimizer: Any, **kwargs: Any) -> Any:
        closure = kwargs.pop("closure", None)
        loss = closure() if closure else None
        if self.engine is None:
            raise self.refuse("optimizer.step: call fabric.backward first")
        self._step(self._torchs)
        return loss

    def clip_gradients_norm(self, *given: Any, **named: Any) -> Any:
        raise self.refuse(
            "clip_gradients: gradients are clipped inside of the step; leave the call "
            'out, and say {"gradient_clipping": NORM} in the config'
        )

    def clip_gradients_value(self, *given: Any, **named: Any) -> Any:
        raise self.refuse("clip_gradients by value is not supported")

    # ---- beside training

    @contextmanager
    def _beside(self) -> Iterator[None]:
        with self._at_work(), self._whole():
            yield

    def get_module_state_dict(self, module: Any) -> dict[str, Any]:
        whole = super().get_module_state_dict
        return self._copies(lambda: whole(module))

    def load_module_state_dict(
        self, module: Any, state_dict: Any, strict: bool = True
    ) -> None:
        if self.engine is not None:
            raise self.refuse("load a checkpoint before the first training batch")
        super().load_module_state_dict(module, state_dict, strict)

    def get_optimizer_state(self, optimizer: Any) -> dict[str, Any]:
        return self.with_states(super().get_optimizer_state(optimizer))

    def teardown(self) -> None:
        self._end()
        super().teardown()
