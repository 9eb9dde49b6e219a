"""Strategies for Lightning's Trainer: loops, callbacks, loggers, schedulers and
checkpoints are Lightning's, and the steps are the engine's.

    trainer = lightning.Trainer(strategy=tranche.lightning.Strategy(), accelerator="cpu")
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from lightning.pytorch.strategies import DDPStrategy, SingleDeviceStrategy
from lightning.pytorch.utilities.model_helpers import is_overridden

from tranche import ranks
from tranche.error import Error, Status
from tranche.module.build import canonical
from tranche.module.deepspeed import Saved
from tranche.module.engine import ModuleEngine

# Hooks of a LightningModule that would work on gradients, which are the engine's.
_HOOKS = ("backward", "configure_gradient_clipping", "optimizer_zero_grad")


def _usage(why: str) -> Error:
    return Error(Status.USAGE, f"tranche.lightning.Strategy: {why}")


def _places(module: Any) -> list[Any]:
    """The module, and those inside of it that have all of its parameters: what a
    training_step may call."""
    found = [module]
    everything = {id(p) for p in module.parameters()}
    while True:
        inner = [
            child
            for child in found[-1].children()
            if everything and everything == {id(p) for p in child.parameters()}
        ]
        if len(inner) != 1:
            return found
        found.append(inner[0])


class _Steps:
    """What a strategy of Lightning's does by an engine: all that is in its steps."""

    lightning_module: Any
    optimizers: Any
    precision_plugin: Any

    def _begin_with(self, config: Mapping[str, Any] | None, fallback: str) -> None:
        self.engine: ModuleEngine | None = None
        self._config = dict(config or {})
        self._fallback = fallback
        self._trained: Any = None  # the module whose forward is the plan's
        self._forwards: list[tuple[Any, Callable[..., Any]]] = []
        self._inside = False
        self._states: Mapping[str, Any] | None = None  # of a checkpoint, until begun

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
        for module in _places(self._own):
            self._forwards.append((module, module.forward))
            module.forward = self._hook(module, module.forward)

    def _check(self, trainer: Any) -> None:
        module = self._own
        if not module.automatic_optimization or len(self.optimizers) != 1:
            raise _usage("one optimizer and automatic optimization are supported")
        if str(trainer.precision) != "32-true":
            raise _usage(
                f'precision="{trainer.precision}": leave it out, and say it in the '
                f'config, as {{"bf16": {{"enabled": True}}}}'
            )
        if trainer.gradient_clip_val and trainer.gradient_clip_algorithm == "value":
            raise _usage('gradient_clip_algorithm="value" is not supported')
        for hook in _HOOKS:
            if is_overridden(hook, module):
                raise _usage(f"{hook} of the module would have no effect")

    def _hook(self, module: Any, forward: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(forward)
        def called(*inputs: Any, **named: Any) -> Any:
            if self._inside or not self._trains():
                return forward(*inputs, **named)
            return self._forward(module, *inputs, **named)

        return called

    def _trains(self) -> bool:
        module = self.lightning_module
        return module is not None and module.training and torch.is_grad_enabled()

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """Calls of the module inside are the engine's own."""
        self._inside = True
        try:
            yield
        finally:
            self._inside = False

    def _forward(self, module: Any, *inputs: Any, **named: Any) -> Any:
        with self._at_work():
            if self.engine is None:
                self.engine = self._begin(module, [*inputs, *named.values()])
                self._trained = module
            if self._trained is not module:
                raise _usage(
                    f"training_step calls {type(self._trained).__name__} and "
                    f"{type(module).__name__}: the plan is of one of them"
                )
            return self.engine.forward(*inputs, **named)

    def _begin(self, module: Any, given: list[Any]) -> ModuleEngine:
        trainer = self._own.trainer
        rows = next(
            (len(x) for x in given if isinstance(x, torch.Tensor) and x.ndim), 0
        )
        count = trainer.accumulate_grad_batches
        config = {
            **self._config,
            "train_micro_batch_size_per_gpu": rows,
            "gradient_accumulation_steps": count,
            "train_batch_size": rows * count * ranks.count(),
            "gradient_clipping": float(trainer.gradient_clip_val or 0),
        }
        (optimizer,) = self.optimizers
        engine = ModuleEngine(
            module, config, optimizer=optimizer, fallback=self._fallback
        )
        if self._states is not None:
            engine._saved = self._saved(module, self._states)
        return engine

    # ---- a step

    def backward(
        self, closure_loss: Any, optimizer: Any, *given: Any, **named: Any
    ) -> Any:
        if self.engine is None:
            raise _usage(
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
        assert self.engine is not None
        self.precision_plugin._after_closure(self._own, optimizer)
        with self._at_work():
            self.engine.set_gradient_accumulation_boundary(True)
            self.engine.step()
        optimizer._opt_called = True  # schedulers of torch ask for it
        return loss

    # ---- beside training

    def _whole(self) -> Any:
        """The module's weights are whole and current inside."""
        return self.engine.whole() if self.engine is not None else nullcontext()

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
        for module, _ in self._forwards:
            del module.forward  # the class has it
        self._forwards = []
        if self.engine is not None:
            self.engine.destroy()
        self.engine = self._trained = None
        super().teardown()  # type: ignore[misc]

    # ---- checkpoints: Lightning's own, with torch's names of the states

    def lightning_module_state_dict(self) -> dict[str, Any]:
        with self._whole():
            state = super().lightning_module_state_dict()  # type: ignore[misc]
            return {name: values.clone() for name, values in state.items()}

    def optimizer_state(self, optimizer: Any) -> dict[str, Any]:
        found: dict[str, Any] = super().optimizer_state(optimizer)  # type: ignore[misc]
        engine = self.engine
        if engine is None or not engine.begun:
            return found
        tensors = engine._working().tensors
        updates = torch.tensor(float(engine.global_steps - engine.skipped_steps))
        names, number = self._names(), 0
        for group in found["param_groups"]:
            for place in group["params"]:
                tensor = tensors[names[number]]
                number += 1
                if not tensor.trained:
                    continue
                states = [p for p in tensors.parts if p not in ("values", "gradient")]
                found["state"][place] = {"step": updates.clone()} | {
                    part: torch.from_numpy(tensor.read(part).numpy().copy())
                    for part in states
                }
        return found

    def _names(self) -> list[str]:
        """The engine's names of the optimizer's parameters, in their order."""
        known = canonical(self._trained)
        names = {id(p): known.get(n, n) for n, p in self._trained.named_parameters()}
        (optimizer,) = self.optimizers
        return [names[id(p)] for g in optimizer.param_groups for p in g["params"]]

    def load_optimizer_state_dict(self, checkpoint: Mapping[str, Any]) -> None:
        (found,) = checkpoint["optimizer_states"]
        (optimizer,) = self.optimizers
        optimizer.load_state_dict({**found, "state": {}})
        self._states = found

    def _saved(self, module: Any, found: Mapping[str, Any]) -> Saved:
        self._trained = module
        states: dict[str, dict[str, Any]] = {}
        updates, places = 0, [p for g in found["param_groups"] for p in g["params"]]
        for name, place in zip(self._names(), places, strict=True):
            for part, values in found["state"].get(place, {}).items():
                if part == "step":
                    updates = int(values)
                elif isinstance(values, torch.Tensor):
                    states.setdefault(part, {})[name] = values
        self._states = None
        return Saved({}, states, updates, 0, 0, None, {})


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
            raise _usage("it is of one process: RanksStrategy trains on several ranks")
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
            raise _usage('ranks compute on the CPU: say accelerator="cpu"')
        if ranks.count() != self.world_size:
            raise _usage(
                f"Lightning has {self.world_size} ranks, and {ranks.count()} have been "
                f"started"
            )
        super()._check(trainer)
