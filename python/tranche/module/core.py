"""An engine's plan, memory and weights: what they are made of, and their end."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch

from tranche.data import Field
from tranche.engine import Engine
from tranche.error import Error, Status
from tranche.module import config as configs
from tranche.module import deepspeed, deferred, gpu, memory, native, optimizers
from tranche.module.build import canonical, frozen
from tranche.module.config import log
from tranche.module.export import example
from tranche.module.feed import Columns, Feed
from tranche.module.lower import InTorch, module_dtypes
from tranche.module.make import Made, make
from tranche.module.parts import Parts
from tranche.module.queries import ABSENT, Queries
from tranche.module.weights import Weights
from tranche.plan import Plan
from tranche.run import Config, Run

_FOREVER = 1 << 31  # steps: the caller's loop ends the training


class Core(Queries):
    """Plan and memory are made when the first batch shows the shapes."""

    def __init__(
        self,
        module: torch.nn.Module,
        config: Config,
        *,
        optimizer: Any = None,
        scheduler: Any = None,
        loss: Any = None,
        fallback: str = "torch",
    ) -> None:
        self.module = module
        self.device = gpu.device_of(config, module)
        self.loss = loss
        self.fallback = fallback
        self.global_steps = 0
        self.skipped_steps = 0
        self.data_ranks = configs.data_ranks(config)
        self.batch = configs.batch_of(config, self.data_ranks)
        self.gradient_clipping_norm = configs.clipping(config)
        self.lr_scheduler = scheduler
        self.training = True
        self._config = config
        self._client = optimizer
        self._names = canonical(module)
        self._arguments = list(inspect.signature(module.forward).parameters)
        self._resume: str | None = None
        self._saved: deepspeed.Saved | None = None  # until the engine takes it
        self._made: Made | None = None
        self.native: native.Native | None = None  # the library's model, if it is taken
        self._feed: Feed | None = None
        self._run: Run | None = None
        self._engine: Engine | None = None
        self._weights: Weights | None = None
        self._in_parts: Parts | None = None
        # What the plan was made of, to make it again.
        self._first: tuple[dict[str, Any], list[str], bool] | None = None
        self._boundary: bool | None = None
        self._other_batch = False  # than the config's
        self._in_step = 0  # calls of step() since the last update
        self._no_sync = False
        self._told_early = False
        self._divided = False  # the losses of the step at work, by the caller
        self.micro_steps = 0
        self._norm: float | None = None
        self._parts = 0  # batches of the iterator that make an effective batch
        self._rates: list[float | None] = []
        self._shares: list[float] = []  # of the config's rate, of each group
        self.skipped = False  # the last step's update
        self.optimizer = self._optimizer()
        # Do the optimizer's groups say the rates, and not the config's scheduler?
        self.rates_are_given = optimizer is not None

    def __getattr__(self, name: str) -> Any:
        if name in ABSENT:
            raise Error(
                Status.USAGE,
                f"DeepSpeed's engine.{name} is not supported: {ABSENT[name]}",
            )
        module = self.__dict__.get("module")
        if module is not None and hasattr(module, name):
            return getattr(module, name)
        raise AttributeError(f"a tranche engine has no attribute {name!r}")

    # ---- what it is made of

    def _optimizer(self) -> optimizers.Optimizer:
        if self._client is not None:
            return optimizers.Optimizer(self._client.param_groups)
        run = Run(self._config)
        try:
            rate = run.get("optimizer.params.lr")
        finally:
            run.close()
        lr = float(rate) if isinstance(rate, int | float) else 1e-3
        parameters = [p for p in self.module.parameters() if p.requires_grad]
        return optimizers.Optimizer([{"params": parameters, "lr": lr}])

    def _settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "steps": _FOREVER,
            "resume": self._resume or "never",
            "gradient_clipping": self.gradient_clipping_norm,
        }
        if self._other_batch:
            settings.update(self._sizes())
        if self._on_gpu:
            settings["device"] = str(self.device)
        if self._key("memory.process", said=True) is None:
            beside = memory.beside(self.module)
            settings.update({} if beside is None else {"memory.process": beside})
        kept = frozen(self.module)
        if self._client is not None:
            names = {id(p): n for n, p in self.module.named_parameters()}
            settings["optimizer"] = optimizers.taken_over(self._client, names)
            kept += optimizers.left_out(self._client, self.module)
        if kept:
            settings["freeze"] = kept
        return settings

    def _sizes(self) -> dict[str, int]:
        return {
            "train_batch_size": self.batch.train,
            "train_micro_batch_size_per_gpu": self.batch.micro,
            "gradient_accumulation_steps": self.batch.accumulation,
        }

    @property
    def _on_gpu(self) -> bool:
        return self.device.type == "cuda"

    def _move(self, device: Any) -> None:
        for each in (self.module, self.loss):
            if isinstance(each, torch.nn.Module):
                each.to(device)

    def _begin(
        self, batch: Mapping[str, Any], named: Sequence[str], parts: bool = False
    ) -> None:
        """Plan, memory and weights, as soon as a batch shows the shapes. The graph is
        made on the host."""
        if self._on_gpu:
            torch.cuda.set_device(self.device)
            self._move("cpu")
        batch = {name: gpu.on_host(values) for name, values in batch.items()}
        deferred.take(self.module)
        taken = native.find(self.module, self.loss, batch, parts)
        if taken is None or not self._begin_native(taken):
            self._begin_exported(batch, named, parts)
        assert self._engine is not None
        self._weights = Weights(
            self.module, self._engine, self.device, write=self._resume is None
        )
        if self._on_gpu and isinstance(self.loss, torch.nn.Module):
            self.loss.to(self.device)
        self._take_states(self._engine)
        self._rates = [None] * len(self.optimizer.param_groups)
        self._first = (example(batch), list(named), parts)

    def _begin_native(self, taken: native.Native) -> bool:
        """With the library's own model; False: it is not the module's."""
        module_dtypes(self.module)
        settings = {**self._settings(), **taken.settings, "data.order": "sequential"}
        feed = self._feed_of(taken.reader.fields, taken.reader.columns)
        run = None
        try:
            run = Run(self._config, train=feed, settings=settings)
            engine = run.engine()
        except Error as error:
            log.info("the library's own model is not taken: %s", error)
            if run is not None:
                run.close()
            return False
        if not taken.fits(self.module, engine.tensors):
            engine.close()
            run.close()
            return False
        self.native, self._run, self._engine, self._feed = taken, run, engine, feed
        return True

    def _begin_exported(
        self, batch: Mapping[str, Any], named: Sequence[str], parts: bool
    ) -> None:
        made = make(
            self.module, self.loss, batch, named, self.fallback, self.batch.micro, parts
        )
        settings = self._settings()
        feed = None
        if parts:
            settings.update(self._sizes())
            if self._key("execution.parts_on_device", said=True) is None:
                settings["execution.parts_on_device"] = self._on_gpu
        else:
            settings["data.order"] = "sequential"
            feed = self._feed_of(made.fields(), made.columns)
        run = Run(self._config, train=feed, settings=settings, model=made.model)
        for each in made.lowering.in_torch:
            beside = f", with {each.outside:,} bytes beside the plan" if each.outside else ""
            log.warning("runs in PyTorch: %s (%s)%s", each.operators, each.line, beside)
        engine = run.engine()
        self._made, self._run, self._engine, self._feed = made, run, engine, feed
        if parts:
            tensors = made.model.tensors
            self._in_parts = Parts(engine, made.lowering, tensors, self.device)

    def _feed_of(self, fields: list[Field], columns: Columns) -> Feed:
        rows = self.batch.train
        return Feed(fields, columns, rows, rows // self.data_ranks)

    @property
    def in_torch(self) -> list[InTorch]:
        """Operators that run in PyTorch, with the lines of Python that wrote them."""
        self._working()
        return self._made.lowering.in_torch if self._made is not None else []

    @property
    def begun(self) -> bool:
        """Has the engine taken the module's weights? It does with the first batch."""
        return self._engine is not None

    @contextmanager
    def whole(self) -> Iterator[None]:
        """The module's parameters are whole and current inside, to be read in PyTorch.
        All ranks enter it."""
        with self._weights.whole() if self._weights is not None else nullcontext():
            yield

    @property
    def plan(self) -> Plan:
        """The plan of a step."""
        return self._working().plan

    def _working(self) -> Engine:
        if self._engine is None:
            raise Error(
                Status.USAGE,
                "the plan is made of the first batch, and there was none yet",
            )
        return self._engine

    def _take_states(self, engine: Engine) -> None:
        """What DeepSpeed saved of the optimizer."""
        if self._saved is None:
            return
        for state, values in self._saved.states.items():
            for name in values:
                if name in self._names.values():
                    engine.tensors[name].write(values[name].contiguous(), state)
        engine._call("tr_engine_set_updates", self._saved.updates)
        self._saved = None

    # ---- the end

    def _end(self) -> None:
        """Ends the engine that is there; the next batch makes another."""
        if self._in_parts is not None and self._in_parts.at_work:
            self._in_parts.drop()
        if self._weights is not None:
            self._weights.give_back()
        for each in (self._engine, self._run):
            if each is not None:
                each.close()
        self._engine = self._run = self._weights = self._made = self.native = None
        self._in_parts = self._feed = None

    def destroy(self) -> None:
        """Gives all memory back; the module has its weights again."""
        self._end()
        if self._on_gpu:
            self._move(self.device)
