"""What tranche.initialize returns: an engine with DeepSpeed's calls."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from tranche import ranks
from tranche.engine import Engine
from tranche.error import Error, Status
from tranche.module.batches import Batches
from tranche.module.config import log
from tranche.module.parts import Parts
from tranche.module.saving import Saving


class ModuleEngine(Batches, Saving):
    """Trains a PyTorch module by a plan of the library's. Plan and memory are made when
    the first batch shows the shapes."""

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
        count = self.data_ranks
        if ranks.count() > 1 and train != micro * steps * count:
            raise Error(
                Status.USAGE,
                f"train_batch gives {ranks.count()} ranks equal shares: train_batch_size "
                f"{train} has to be train_micro_batch_size_per_gpu {micro} times "
                f"gradient_accumulation_steps {steps} times the data ranks, {count}",
            )
        return train // count

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
        into it; after eval() from PyTorch, on the engine's weights. With stages of a
        pipeline, None on ranks of stages without the module's end: they call backward(None)."""
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
        if self._in_parts.done == self.batch.accumulation:
            raise Error(
                Status.USAGE,
                f"the step has had all of its {self.batch.accumulation} micro-batches, as "
                f"gradient_accumulation_steps says: call step before the next forward",
            )
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
        whole = self._divided or steps == 1 or loss is None
        return loss if whole else loss / steps

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
                "step",
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
