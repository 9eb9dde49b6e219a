"""What tranche.initialize returns: an engine with DeepSpeed's calls."""

from __future__ import annotations

import inspect
import os
import pickle
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch

from tranche import ranks
from tranche.engine import Engine, checkpoint_bytes
from tranche.error import Error, Status
from tranche.module import config as configs
from tranche.module import deepspeed, native, optimizers
from tranche.module.build import canonical, frozen
from tranche.module.config import log
from tranche.module.export import example
from tranche.module.feed import Feed
from tranche.module.lower import InTorch, module_dtypes
from tranche.module.make import Made, make
from tranche.module.parts import Parts
from tranche.module.queries import ABSENT, Queries
from tranche.module.weights import Weights
from tranche.plan import Plan
from tranche.run import Config, Run

_FOREVER = 1 << 31  # steps: the caller's loop ends the training


class ModuleEngine(Queries):
    """Trains a PyTorch module by a plan of the library's. Plan and memory are made when
    the first batch shows the shapes."""

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
        self.device = torch.device("cpu")
        self.loss = loss
        self.fallback = fallback
        self.global_steps = 0
        self.skipped_steps = 0
        self.batch = configs.batch_of(config)
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

    def _begin(
        self, batch: Mapping[str, Any], named: Sequence[str], parts: bool = False
    ) -> None:
        """Plan, memory and weights, as soon as a batch shows the shapes."""
        taken = native.find(self.module, self.loss, batch, parts)
        if taken is None or not self._begin_native(taken):
            self._begin_exported(batch, named, parts)
        assert self._engine is not None
        self._weights = Weights(self.module, self._engine, write=self._resume is None)
        self._take_states(self._engine)
        self._rates = [None] * len(self.optimizer.param_groups)
        self._first = (example(batch), list(named), parts)

    def _begin_native(self, taken: native.Native) -> bool:
        """With the library's own model; False: it is not the module's."""
        module_dtypes(self.module)
        settings = {**self._settings(), **taken.settings, "data.order": "sequential"}
        feed = Feed(taken.reader.fields, taken.reader.columns, self.batch.train)
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
        made = make(self.module, self.loss, batch, named, self.fallback, parts)
        settings = self._settings()
        feed = None
        if parts:
            settings.update(self._sizes())
        else:
            settings["data.order"] = "sequential"
            feed = Feed(made.fields(), made.columns, self.batch.train)
        run = Run(self._config, train=feed, settings=settings, model=made.model)
        for each in made.lowering.in_torch:
            log.warning("runs in PyTorch: %s (%s)", each.operators, each.line)
        engine = run.engine()
        self._made, self._run, self._engine, self._feed = made, run, engine, feed
        if parts:
            self._in_parts = Parts(engine, made.lowering, made.model.tensors)

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

    # ---- training

    def train_batch(self, data_iter: Iterator[Any]) -> Any:
        """One optimizer step on the next batches of an iterator: as many as make this
        rank's share of an effective batch. All ranks call it. Returns the mean loss
        over the targets of the whole batch."""
        if self._in_parts is not None:
            raise Error(
                Status.USAGE,
                "this engine trains by forward, backward and step, and train_batch "
                "makes another plan: use one of the two",
            )
        share = self._share()
        batch, named, count = self._gather(iter(data_iter), share)
        if self._engine is None:
            self._begin(batch, named)
        assert self._feed is not None
        if count < share and self._made and self._made.lowering.whole_batches:
            raise Error(
                Status.USAGE,
                f"{count} rows of {share}: batch norm would count the rows "
                f"that are missing; leave short batches out (drop_last=True), or call "
                f"forward, backward and step",
            )
        engine = self._working()
        self._feed.put(batch, count)
        self._set_rates(engine)
        result = engine.step()
        self._stepped(result)
        return torch.tensor(result.loss)

    def _share(self) -> int:
        """Rows of an effective batch that are this rank's."""
        train, micro, steps = self.batch
        count = ranks.count()
        if count > 1 and train != micro * steps * count:
            raise Error(
                Status.USAGE,
                f"train_batch gives {count} ranks equal shares: train_batch_size "
                f"{train} has to be train_micro_batch_size_per_gpu {micro} times "
                f"gradient_accumulation_steps {steps} times the ranks",
            )
        return train // count

    def _gather(
        self, batches: Iterator[Any], share: int
    ) -> tuple[dict[str, Any], list[str], int]:
        """The rows of the next batches, as many as the first one says. A short batch
        counts as a whole one."""
        parts: list[dict[str, Any]] = []
        named: list[str] = []
        count = 0
        while not parts or (count < share and len(parts) < self._parts):
            try:
                given = next(batches)
            except StopIteration:
                if not parts:
                    raise
                break
            part, named = self._named(given)
            rows = self._rows_of(part)
            if not self._parts:
                self._parts = -(-share // rows)
            count += rows
            parts.append(part)
        if count > share:
            raise Error(
                Status.USAGE,
                f"{count} rows in a batch of {share}: the batches of the "
                f"iterator have more rows than the config says",
            )
        batch = {n: torch.cat([part[n] for part in parts]) for n in parts[0]}
        return batch, named, count

    def _named(self, given: Any) -> tuple[dict[str, Any], list[str]]:
        """The tensors of a batch by the names of the module's arguments, and those that
        go there by keyword."""
        if isinstance(given, Mapping):
            return dict(given), list(given)
        if isinstance(given, torch.Tensor):
            given = (given,)
        if not isinstance(given, Sequence) or not given:
            raise Error(
                Status.USAGE,
                f"a batch is a tensor, a tuple or a dict of tensors, not "
                f"{type(given).__name__}",
            )
        names = list(self._arguments)
        if self.loss is not None:
            names = [*names[: len(given) - 1], "targets"]
        names += [f"input{i}" for i in range(len(names), len(given))]
        return dict(zip(names, given, strict=False)), []

    def _rows_of(self, part: Mapping[str, Any]) -> int:
        """How many rows a batch has, of tensors with the names that the first one
        had."""
        for name, given in part.items():
            if not isinstance(given, torch.Tensor) or given.ndim == 0:
                kind = type(given).__name__
                told = "a number" if isinstance(given, torch.Tensor) else kind
                raise Error(
                    Status.USAGE,
                    f"{name}: a batch has tensors [rows, ...], not {told}",
                )
        wanted = set(self._first[0]) if self._first and not self.native else set(part)
        if not part or set(part) != wanted:
            raise Error(
                Status.USAGE,
                f"a batch of {', '.join(part) or 'nothing'} in place of "
                f"{', '.join(sorted(wanted)) or 'tensors [rows, ...]'}",
            )
        counts = {name: len(tensor) for name, tensor in part.items()}
        if len(set(counts.values())) != 1:
            told = ", ".join(f"{name} {count}" for name, count in counts.items())
            raise Error(
                Status.USAGE, f"tensors of a batch have equally many rows: {told}"
            )
        return next(iter(counts.values()))

    def _set_rates(self, engine: Engine) -> None:
        """Rates that were written to the groups count from now on."""
        if not self.rates_are_given and self.lr_scheduler is None:
            return
        for i, group in enumerate(self.optimizer.param_groups):
            rate = float(group["lr"])
            if rate != self._rates[i]:
                engine.set_rate(rate, i)
                self._rates[i] = rate

    def _stepped(self, result: Any) -> None:
        self.global_steps += 1
        self.skipped = bool(result.skipped)
        self.skipped_steps += self.skipped
        self._norm = result.grad_norm
        if not self.rates_are_given and self.lr_scheduler is None:
            self._show_rates(result.lr)
        if self.lr_scheduler is not None and not self.skipped:
            with warnings.catch_warnings():
                # The update was the engine's: torch has seen no optimizer.step().
                warnings.filterwarnings("ignore", "Detected call of")
                self.lr_scheduler.step()

    def _show_rates(self, rate: float) -> None:
        """Groups follow the schedule of the last one, each by its own factor."""
        groups = self.optimizer.param_groups
        if not self._shares:
            last = float(groups[-1]["lr"]) or 1.0
            self._shares = [float(group["lr"]) / last for group in groups]
        for group, share in zip(groups, self._shares, strict=True):
            group["lr"] = rate * share

    # ---- a step in parts

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        return self.forward(*inputs, **named)

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """What the module returns: in training from the plan, and autograd leads back
        into it; after eval() from PyTorch, on the engine's weights."""
        if not self.training:
            return self._asked(*inputs, **named)
        if self.loss is not None or self._feed is not None:
            raise Error(
                Status.USAGE,
                "the plan has the loss: call train_batch, or leave loss= out to call "
                "forward, backward and step",
            )
        names = list(self._arguments)
        names += [f"input{i}" for i in range(len(names), len(inputs))]
        batch = {**dict(zip(names, inputs, strict=False)), **named}
        rows = self._rows_of(batch)
        if rows > self.batch.micro:
            raise Error(
                Status.USAGE,
                f"{rows} rows in a micro-batch of {self.batch.micro}: the config's "
                f"train_micro_batch_size_per_gpu, or train_batch_size divided by "
                f"gradient_accumulation_steps and ranks, says how many there may be",
            )
        if self._engine is None:
            self._begin(batch, list(named), parts=True)
        assert self._in_parts is not None
        return self._in_parts.forward(batch, rows)

    def _asked(self, *inputs: Any, **named: Any) -> Any:
        if self._weights is None and self._resume is not None:
            raise Error(
                Status.USAGE,
                "the checkpoint is read when the first training batch shows the shapes",
            )
        with torch.no_grad(), self.whole():
            return self.module(*inputs, **named)

    def backward(
        self, loss: Any, retain_graph: bool = False, scale_wrt_gas: bool = True
    ) -> Any:
        """Takes the gradient of the last forward's loss. Returns the loss divided by
        the accumulation steps. scale_wrt_gas=False: the caller has divided it, and the
        step takes the sum of its micro-batches, as many as there are."""
        if self._in_parts is None:
            raise Error(Status.USAGE, "backward: there is no forward that waits for it")
        steps = self.batch.accumulation
        self._divided = not scale_wrt_gas
        self._in_parts.backward(loss, retain_graph, steps if self._divided else 1)
        return loss if self._divided else loss / steps

    def step(self, lr_kwargs: Any = None) -> None:
        """Updates the weights where the last micro-batch of the step is done."""
        if lr_kwargs:
            raise Error(Status.USAGE, "lr_kwargs is not supported")
        if self._no_sync:
            raise Error(Status.USAGE, "step: call it outside of no_sync()")
        parts = self._in_parts
        if parts is None or parts.waiting or not parts.done:
            raise Error(
                Status.USAGE,
                "step: call backward first, with a loss of the last forward",
            )
        if self.is_gradient_accumulation_boundary():
            self._complete(parts)
            self._set_rates(self._working())
            self._stepped(parts.update())
            self._in_step = -1
        self.micro_steps += 1
        self._in_step += 1

    def _complete(self, parts: Parts) -> None:
        """The plan's step has as many micro-batches as the config says."""
        wanted = self.batch.accumulation
        if parts.done == wanted:
            return
        if not self._told_early:
            log.warning(
                "a step ends with %d of its %d micro-batches: they count as the whole "
                "step, and the others are computed for nothing",
                parts.done,
                wanted,
            )
        self._told_early = True
        parts.fill(wanted - parts.done, counted=self._divided)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Micro-batches inside end no step. When gradients are exchanged, the plan says
        in any case."""
        if self._no_sync:
            raise Error(Status.USAGE, "no_sync: it is entered already")
        self._no_sync = True
        try:
            yield
        finally:
            self._no_sync = False

    def is_gradient_accumulation_boundary(self) -> bool:
        """Is the micro-batch at work the last one of its step?"""
        if self._boundary is not None:
            return self._boundary
        return self._in_step + 1 >= self.batch.accumulation

    def set_gradient_accumulation_boundary(self, is_boundary: bool) -> None:
        """Says it in place of the count. A step may end with fewer micro-batches than
        the plan has, and not with more."""
        self._boundary = is_boundary

    def zero_grad(self) -> None:
        """Gradients are the engine's, which begins them anew with each step."""

    # ---- asking

    def eval_batch(self, data_iter: Iterator[Any]) -> Any:
        """The loss of the next batch of an iterator; nothing is trained."""
        part, named = self._named(next(iter(data_iter)))
        before = self.training
        self.eval()
        try:
            if named:
                found = self.forward(**part)
            elif self.loss is not None:
                *inputs, target = part.values()
                return self.loss(self.forward(*inputs), target)
            else:
                found = self.forward(*part.values())
        finally:
            self.train(before)
        return getattr(found, "loss", found)

    def train(self, mode: bool = True) -> ModuleEngine:
        self.training = mode
        self.module.train(mode)
        return self

    def eval(self) -> ModuleEngine:
        return self.train(False)

    def get_global_grad_norm(self) -> float | None:
        """Of the last step, before clipping."""
        return self._norm

    def gradient_clipping(self) -> float:
        return self.gradient_clipping_norm

    # ---- another batch

    def set_train_batch_size(self, train_batch_size: int) -> None:
        """From the next step on, by other accumulation steps. All ranks call it,
        between two steps; the plan is made anew, and goes on from the same state."""
        share = self.batch.micro * ranks.count()
        if train_batch_size < 1 or train_batch_size % share:
            raise Error(
                Status.USAGE,
                f"set_train_batch_size: {train_batch_size} is not a multiple of "
                f"train_micro_batch_size_per_gpu {self.batch.micro} times the ranks",
            )
        steps = train_batch_size // share
        self._change(configs.Batch(train_batch_size, self.batch.micro, steps))

    def set_train_micro_batch_size(self, micro_batch_size: int) -> None:
        """Likewise: the accumulation steps stay, and the effective batch changes."""
        if micro_batch_size < 1:
            raise Error(Status.USAGE, "set_train_micro_batch_size: 1 or more")
        steps = self.batch.accumulation
        train = micro_batch_size * steps * ranks.count()
        self._change(configs.Batch(train, micro_batch_size, steps))

    def _change(self, batch: configs.Batch) -> None:
        if self._in_parts is not None and self._in_parts.at_work:
            raise Error(Status.USAGE, "a step is at work: change the batch behind it")
        self.batch, self._parts, self._other_batch = batch, 0, True
        if self._first is None or self._engine is None:
            return
        mine = os.getpid() if ranks.rank() == 0 else 0
        number = ranks.most(mine) if ranks.count() > 1 else mine
        folder = os.path.join(tempfile.gettempdir(), f"tranche-batch-{number}")
        kept, first = self._resume, self._first
        try:
            self._engine.save(folder)
            self._end()
            self._resume = folder
            self._begin(*first)
        finally:
            self._resume = kept
            if ranks.count() > 1:
                ranks.most(0)  # all have read it
            if ranks.rank() == 0:
                shutil.rmtree(folder, ignore_errors=True)

    # ---- checkpoints

    def module_state_dict(self) -> dict[str, Any]:
        """The module's, whole and current. All ranks call it."""
        return dict(self.module.state_dict())

    def save_16bit_model(
        self,
        save_dir: str | os.PathLike[str],
        save_filename: str = "pytorch_model.bin",
        exclude_frozen_parameters: bool = False,
    ) -> bool:
        """The module's state_dict as a file of torch.save, its weights in the 16 bits
        of the config where it has some. All ranks call it."""
        state = self.module_state_dict()
        kinds = {"fp16": torch.float16, "bf16": torch.bfloat16}
        given = (self.fp16_enabled(), self.bfloat16_enabled())
        to = next((kinds[n] for n, on in zip(kinds, given, strict=True) if on), None)
        parameters = self.module.named_parameters()
        kept_still = {name for name, p in parameters if not p.requires_grad}
        if ranks.rank() == 0:
            os.makedirs(save_dir, exist_ok=True)
            kept = {
                name: values.to(to) if to and values.is_floating_point() else values
                for name, values in state.items()
                if not (exclude_frozen_parameters and name in kept_still)
            }
            torch.save(kept, os.path.join(save_dir, save_filename))
        return True

    save_fp16_model = save_16bit_model

    def save_checkpoint(
        self,
        save_dir: str | os.PathLike[str],
        tag: object = None,
        client_state: Mapping[str, Any] | None = None,
        save_latest: bool = True,
    ) -> bool:
        """A checkpoint in the folder save_dir/tag, with what the caller gives beside
        it."""
        engine = self._working()
        name = str(tag) if tag is not None else f"global_step{self.global_steps}"
        kept = {
            "client_state": dict(client_state or {}),
            "global_steps": self.global_steps,
            "skipped_steps": self.skipped_steps,
            "scheduler": self._scheduler_state(),
        }
        engine.save(os.path.join(save_dir, name), pickle.dumps(kept))
        if save_latest and ranks.rank() == 0:
            with open(os.path.join(save_dir, "latest"), "w") as file:
                file.write(name)
        return True

    def _scheduler_state(self) -> Any:
        state = getattr(self.lr_scheduler, "state_dict", None)
        return state() if state is not None else None

    def load_checkpoint(
        self, load_dir: str | os.PathLike[str], tag: object = None
    ) -> tuple[str | None, Any]:
        """Goes on from a checkpoint: weights, optimizer, steps and rates. Returns its
        path, and what the caller gave beside it; (None, None): there is none."""
        if tag is None:
            latest = os.path.join(load_dir, "latest")
            if not os.path.isfile(latest):
                log.warning("%s: there is no checkpoint", latest)
                return None, None
            with open(latest) as file:
                tag = file.read().strip()
        path = os.path.join(load_dir, str(tag))
        if not os.path.isdir(path):
            raise Error(Status.IO, f"{path}: there is no such checkpoint")
        if deepspeed.is_theirs(path):
            return path, self._take(deepspeed.read(path), path)
        kept = pickle.loads(checkpoint_bytes(path))
        self._end()
        self._resume, self._saved = path, None
        self.global_steps = kept["global_steps"]
        self.skipped_steps = kept["skipped_steps"]
        if kept["scheduler"] is not None and self.lr_scheduler is not None:
            self.lr_scheduler.load_state_dict(kept["scheduler"])
        if self._first is not None:
            self._begin(*self._first)
        return path, kept["client_state"]

    def _take(self, saved: deepspeed.Saved, path: str) -> Any:
        """Goes on from what DeepSpeed saved. The module has the weights until the
        engine takes them."""
        self._end()
        self._resume = None
        deepspeed.put(saved, self.module, self._names, path)
        self._saved = saved
        self.global_steps = saved.global_steps
        self.skipped_steps = saved.skipped_steps
        if saved.scheduler is not None and self.lr_scheduler is not None:
            self.lr_scheduler.load_state_dict(saved.scheduler)
        if self._first is not None:
            self._begin(*self._first)
        return saved.client_state

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
