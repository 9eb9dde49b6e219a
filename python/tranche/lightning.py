"""Strategies for Lightning's Trainer: loops, callbacks, loggers, schedulers and
checkpoints are Lightning's, and the steps are the engine's.

    trainer = lightning.Trainer(strategy=tranche.lightning.Strategy(), accelerator="cpu")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from lightning.pytorch.strategies import DDPStrategy, SingleDeviceStrategy
from lightning.pytorch.utilities.model_helpers import is_overridden

from tranche import ranks
from tranche._planned import Planned

# Hooks of a LightningModule that would work on gradients, which are the engine's.
_HOOKS = ("backward", "configure_gradient_clipping", "optimizer_zero_grad")


class _Steps(Planned):
    """What a strategy of Lightning's does by an engine: all that is in its steps."""

    lightning_module: Any
    optimizers: Any
    precision_plugin: Any
    called = "tranche.lightning.Strategy"

    @property
    def _own(self) -> Any:
        """The LightningModule."""
        return self.lightning_module

    # ---- setting up

    def setup(self, trainer: Any) -> None:
        super().setup(trainer)  # type: ignore[misc]
        if trainer.state.fn != "fit":
            return
        self._check(trainer)
        self._hook_all(self._own)

    def _check(self, trainer: Any) -> None:
        module = self._own
        if not module.automatic_optimization or len(self.optimizers) != 1:
            raise self.refuse("one optimizer and automatic optimization are supported")
        self._check_precision(trainer.precision)
        if trainer.gradient_clip_val and trainer.gradient_clip_algorithm == "value":
            raise self.refuse('gradient_clip_algorithm="value" is not supported')
        for hook in _HOOKS:
            if is_overridden(hook, module):
                raise self.refuse(f"{hook} of the module would have no effect")

    def _trains(self) -> bool:
        module = self.lightning_module
        return module is not None and module.training and torch.is_grad_enabled()

    def _optimizer(self) -> Any:
        return self.optimizers[0]

    def _sizes(self) -> tuple[int, float]:
        trainer = self._own.trainer
        return trainer.accumulate_grad_batches, float(trainer.gradient_clip_val or 0)

    # ---- a step

    def backward(
        self, closure_loss: Any, optimizer: Any, *given: Any, **named: Any
    ) -> Any:
        if self.engine is None:
            raise self.refuse(
                "training_step has to call the module, or the one inside of it that "
                "has all of its parameters"
            )
        module = self._own
        loss = self.precision_plugin.pre_backward(closure_loss, module)
        with self._at_work():
            self.engine.backward(loss, scale_wrt_gas=False)
        return self.precision_plugin.post_backward(loss, module)

    def optimizer_step(
        self,
        optimizer: Any,
        closure: Callable[[], Any],
        model: Any = None,
        **named: Any,
    ) -> Any:
        loss = closure()
        if loss is None:  # training_step has skipped the batch
            return None
        self.precision_plugin._after_closure(self._own, optimizer)
        self._step(optimizer)
        return loss

    # ---- beside training

    def validation_step(self, *given: Any, **named: Any) -> Any:
        with self._whole():
            return super().validation_step(*given, **named)  # type: ignore[misc]

    def test_step(self, *given: Any, **named: Any) -> Any:
        with self._whole():
            return super().test_step(*given, **named)  # type: ignore[misc]

    def predict_step(self, *given: Any, **named: Any) -> Any:
        with self._whole():
            return super().predict_step(*given, **named)  # type: ignore[misc]

    def teardown(self) -> None:
        self._end()
        super().teardown()  # type: ignore[misc]

    # ---- checkpoints: Lightning's own, with torch's names of the states

    def lightning_module_state_dict(self) -> dict[str, Any]:
        return self._copies(super().lightning_module_state_dict)  # type: ignore[misc]

    def optimizer_state(self, optimizer: Any) -> dict[str, Any]:
        return self.with_states(super().optimizer_state(optimizer))  # type: ignore[misc]

    def load_optimizer_state_dict(self, checkpoint: Mapping[str, Any]) -> None:
        (found,) = checkpoint["optimizer_states"]
        (optimizer,) = self.optimizers
        self._take_over(optimizer, found)


class Strategy(_Steps, SingleDeviceStrategy):
    """Trains a LightningModule by a plan, in one process on the CPU. config: keys of run
    files (execution, memory, zero_optimization, bf16, ...); sizes of the batch,
    clipping, optimizer and rates are the Trainer's and the module's. fallback: as
    tranche.initialize has it."""

    strategy_name = "tranche"

    def __init__(
        self, config: Mapping[str, Any] | None = None, *, fallback: str = "torch"
    ) -> None:
        super().__init__("cpu")
        self._begin_with(config, fallback)

    def _check(self, trainer: Any) -> None:
        if ranks.count() > 1:
            raise self.refuse(
                "it is of one process: RanksStrategy trains on several ranks"
            )
        super()._check(trainer)


class RanksStrategy(_Steps, DDPStrategy):
    """The same on several ranks, which Lightning, torchrun or srun has started, over
    gloo: each has its share of the rows, as with Lightning's DDPStrategy."""

    strategy_name = "tranche_ranks"

    def __init__(
        self, config: Mapping[str, Any] | None = None, *, fallback: str = "torch"
    ) -> None:
        super().__init__(process_group_backend="gloo")
        self._begin_with(config, fallback)

    def configure_ddp(self) -> None:
        """The module stays as it is; all ranks begin with rank 0's values."""
        for values in self._own.state_dict().values():
            torch.distributed.broadcast(values, 0)

    def _check(self, trainer: Any) -> None:
        if self.root_device.type != "cpu":
            raise self.refuse('ranks compute on the CPU: say accelerator="cpu"')
        if ranks.count() != self.world_size:
            raise self.refuse(
                f"Lightning has {self.world_size} ranks, and {ranks.count()} have been "
                f"started"
            )
        super()._check(trainer)
