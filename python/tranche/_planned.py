"""What the strategies for Lightning's Trainer and for Fabric share: a module whose training
forward is an engine's, begun with the first batch, and torch's names of the optimizer's
states."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import torch

from tranche import ranks
from tranche.error import Error, Status
from tranche.module.build import canonical
from tranche.module.deepspeed import Saved
from tranche.module.engine import ModuleEngine


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


class Planned:
    """An engine behind a module's forward."""

    called = ""  # as messages name the strategy

    def refuse(self, why: str) -> Error:
        return Error(Status.USAGE, f"{self.called}: {why}")

    def _optimizer(self) -> Any:
        raise NotImplementedError

    def _sizes(self) -> tuple[int, float]:
        """Micro-batches of a step, and the norm to which gradients are clipped."""
        raise NotImplementedError

    def _trains(self) -> bool:
        """Is a call of the module one of training?"""
        raise NotImplementedError

    def _begin_with(self, config: Mapping[str, Any] | None, fallback: str) -> None:
        self.engine: ModuleEngine | None = None
        self._config = dict(config or {})
        self._fallback = fallback
        self._trained: Any = None  # the module whose forward is the plan's
        self._forwards: list[tuple[Any, Callable[..., Any]]] = []
        self._inside = False
        self._states: Mapping[str, Any] | None = None  # of a checkpoint, until begun

    def _beside(self) -> Any:
        """Around a call of the module that is not of training."""
        return nullcontext()

    def _hook_all(self, own: Any) -> None:
        for module in _places(own):
            self._forwards.append((module, module.forward))
            module.forward = self._hook(module, module.forward)

    def _hook(self, module: Any, forward: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(forward)
        def called(*inputs: Any, **named: Any) -> Any:
            if self._inside:
                return forward(*inputs, **named)
            if not self._trains():
                with self._beside():
                    return forward(*inputs, **named)
            return self._forward(module, *inputs, **named)

        return called

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
                raise self.refuse(
                    f"a step calls {type(self._trained).__name__} and "
                    f"{type(module).__name__}: the plan is of one of them"
                )
            return self.engine.forward(*inputs, **named)

    def _begin(self, module: Any, given: list[Any]) -> ModuleEngine:
        rows = next(
            (len(x) for x in given if isinstance(x, torch.Tensor) and x.ndim), 0
        )
        count, clipping = self._sizes()
        config = {
            **self._config,
            "train_micro_batch_size_per_gpu": rows,
            "gradient_accumulation_steps": count,
            "train_batch_size": rows * count * ranks.count(),
            "gradient_clipping": clipping,
        }
        engine = ModuleEngine(
            module, config, optimizer=self._optimizer(), fallback=self._fallback
        )
        if self._states is not None:
            engine._saved = self._saved(module, self._states)
        return engine

    def _check_precision(self, precision: Any) -> None:
        """Lightning's is full: the plan has its own."""
        if str(precision) != "32-true":
            raise self.refuse(
                f'precision="{precision}": leave it out, and say it in the config, as '
                f'{{"bf16": {{"enabled": True}}}}'
            )

    def _step(self, optimizer: Any) -> None:
        """Ends the step with the micro-batches that it has had."""
        assert self.engine is not None
        with self._at_work():
            self.engine.set_gradient_accumulation_boundary(True)
            self.engine.step()
        optimizer._opt_called = True  # schedulers of torch ask for it

    def _end(self) -> None:
        """Leaves the modules as they were, and lets the engine go."""
        for module, _ in self._forwards:
            del module.forward  # the class has it
        self._forwards = []
        if self.engine is not None:
            self.engine.destroy()
        self.engine = self._trained = None

    def _whole(self) -> Any:
        """The module's weights are whole and current inside."""
        return self.engine.whole() if self.engine is not None else nullcontext()

    def _copies(self, state_dict: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What state_dict returns of whole weights, in memory of its own."""
        with self._whole():
            return {name: values.clone() for name, values in state_dict().items()}

    def _take_over(self, optimizer: Any, found: Mapping[str, Any]) -> None:
        """The optimizer's state_dict goes on: its states in the engine."""
        optimizer.load_state_dict({**found, "state": {}})
        self._states = found

    def with_states(self, found: dict[str, Any]) -> dict[str, Any]:
        """An optimizer's state_dict with the engine's states, under torch's names."""
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
        optimizer = self._optimizer()
        return [names[id(p)] for g in optimizer.param_groups for p in g["params"]]

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
