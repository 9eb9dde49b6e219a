"""transformers' Trainer: its loop, arguments, callbacks, collators, evaluations and
folders are its own; the steps are the engine's."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import Any

import torch
import transformers

from tranche import ranks
from tranche.error import Error, Status
from tranche.hf import arguments, mesh, packed
from tranche.hf.lengths import Lengths, longest
from tranche.hf.losses import Called, ElsewhereError
from tranche.module.engine import ModuleEngine
from tranche.module.optimizers import Optimizer

_FOLDER = "tranche"  # of the engine's state, in a checkpoint of the Trainer's


class _OfEngine(Optimizer):
    """The config's optimizer, as the Trainer sees it: the engine has made its step."""

    def step(self, closure: Any = None) -> Any:
        return None


class _OfConfig:
    """The config's scheduler, as the Trainer sees it."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer

    def step(self) -> None:
        """The engine has made it."""

    def get_last_lr(self) -> list[float]:
        return [group["lr"] for group in self._optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The engine's checkpoint has it."""


class Trainer(transformers.Trainer):
    """transformers.Trainer, which trains by a plan. max_length: tokens that all texts
    are padded to; None: the longest text of the training data. fallback: as
    tranche.initialize has it."""

    # Of transformers' Trainer, and typed there for what its own loop may find.
    args: Any
    model: Any
    optimizer: Any
    lr_scheduler: Any

    def __init__(
        self,
        *given: Any,
        max_length: int | None = None,
        fallback: str = "torch",
        **named: Any,
    ) -> None:
        self.engine: ModuleEngine | None = None  # while train() is at work
        self._max_length = max_length
        self._fallback = fallback
        self._lengths: Lengths | None = None
        self._kept: list[Any] = []  # micro-batches of the step so far
        super().__init__(*given, **named)

    def create_accelerator_and_postprocess(self) -> None:
        arguments.check(self.args)
        self._mesh = mesh.of(arguments.given_config(self.args), self.args)
        super().create_accelerator_and_postprocess()

    def _build_accelerator_args(self, **named: Any) -> dict[str, Any]:
        """Types of numbers are the plan's."""
        return {**super()._build_accelerator_args(**named), "mixed_precision": "no"}

    def get_tp_size(self) -> int:
        """Ranks that train on the same rows, by which transformers divides counts."""
        return self._mesh.parts

    def _track_num_input_tokens(self, inputs: Any) -> None:
        before = self.state.num_input_tokens_seen
        super()._track_num_input_tokens(inputs)
        more = self.state.num_input_tokens_seen - before
        self.state.num_input_tokens_seen = before + more // self._mesh.parts

    def floating_point_ops(self, inputs: Any) -> Any:
        return super().floating_point_ops(inputs) / self._mesh.parts

    # ---- training

    def train(self, *given: Any, **named: Any) -> Any:
        arguments.leave_out(self.args)
        try:
            found = super().train(*given, **named)
        except BaseException:
            if ranks.count() == 1:  # else the others are not here
                self._end()
            raise
        self._end()
        return found

    def _end(self) -> None:
        """The module has its weights again."""
        self._kept = []
        if self.engine is not None:
            self.engine.destroy()
        self.engine = None

    def get_train_dataloader(self) -> Any:
        loader = self._mesh.share_out(super().get_train_dataloader())
        length, says = self._max_length, "which max_length says"
        if length is None:
            length, says = self._longest()
        self._lengths = Lengths(length, self._padding_id(), says)
        return loader

    def _longest(self) -> tuple[int, str]:
        """How long texts of the training data are, and what says so; 0: as the first."""
        length = longest(self.train_dataset, self.data_collator)
        return length, "the longest of train_dataset" if length else "that of the first"

    def _padding_id(self) -> int:
        places = (self.processing_class, getattr(self.model, "config", None))
        found = [getattr(place, "pad_token_id", None) for place in places]
        return next((int(each) for each in found if isinstance(each, int)), 0)

    def create_optimizer(self, model: Any = None) -> Any:
        if "optimizer" in arguments.given_config(self.args):
            if self.optimizer is not None and not isinstance(self.optimizer, _OfEngine):
                raise Error(
                    Status.USAGE, "optimizers= and the config both have an optimizer"
                )
            self.optimizer = _OfEngine(self._made().optimizer.param_groups)
            return self.optimizer
        return super().create_optimizer(model)

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        if "scheduler" in arguments.given_config(self.args):
            if self.lr_scheduler is not None:
                raise Error(
                    Status.USAGE, "optimizers= and the config both have a scheduler"
                )
            self.lr_scheduler = _OfConfig(self.optimizer)
            self._created_lr_scheduler = True
            return self.lr_scheduler
        return super().create_scheduler(num_training_steps, optimizer)

    def _made(self) -> ModuleEngine:
        """The engine of this training."""
        if self.engine is None:
            config = arguments.config_of(self.args, self.state.max_steps)
            own = "optimizer" in config
            self.engine = ModuleEngine(
                self.model,
                config,
                optimizer=None if own else self.optimizer,
                fallback=self._fallback,
            )
            self.engine.rates_are_given = "scheduler" not in config
        return self.engine

    def _wrap_model(
        self, model: Any, training: bool = True, dataloader: Any = None
    ) -> Any:
        if training:
            return self._made()
        begun = self.engine is not None and self.engine.begun
        return self.engine if begun else self.model

    def training_step(
        self, model: Any, inputs: Any, num_items_in_batch: Any = None
    ) -> Any:
        engine = self._made()
        engine.train()
        engine.optimizer.param_groups = self.optimizer.param_groups
        batch = self._rows_of(self._prepare_inputs(inputs))
        if self._mean_is_the_plan_s(num_items_in_batch):
            loss = self._whole_step(engine, batch)
        else:
            loss = self._micro_step(engine, batch, num_items_in_batch)
        self.optimizer._is_overflow = engine.skipped  # which holds the scheduler back
        return loss.to(self.args.device)

    def _rows_of(self, batch: Any) -> Any:
        """Of the one length that the plan has."""
        assert self._lengths is not None
        if self._lengths.length and packed.is_joined(batch):
            batch = packed.rows(batch, self._lengths.length)
        return self._lengths.padded(batch)

    def _mean_is_the_plan_s(self, count: Any) -> bool:
        """Does the module compute the loss, and does the Trainer take the mean over all
        targets of the effective batch? count: of its targets; None: the mean is that of
        the micro-batches."""
        own = self._loss_is_the_module_s()
        if not own or self.compute_loss_func or self.label_smoother:
            return False
        ranks_count, g = self._mesh.data_ranks, self.args.gradient_accumulation_steps
        if count is None or not self.model_accepts_loss_kwargs:
            return bool(ranks_count * g == 1)
        return bool(ranks_count == 1 or self.args.average_tokens_across_devices)

    def _loss_is_the_module_s(self) -> bool:
        return type(self).compute_loss is transformers.Trainer.compute_loss

    def _whole_step(self, engine: ModuleEngine, batch: Any) -> Any:
        """The last micro-batch makes the whole step, whose mean loss it returns; the
        others return 0."""
        self._kept.append(batch)
        if not self.accelerator.gradient_state.sync_gradients:
            return torch.zeros(())
        batches, self._kept = self._kept, []
        return engine.train_batch(iter(batches))

    def _micro_step(self, engine: ModuleEngine, batch: Any, count: Any) -> Any:
        """The loss is the Trainer's, and the plan hands outputs out."""
        loss = self._loss_of(engine, batch, count)
        last = self.accelerator.gradient_state.sync_gradients
        engine.backward(loss, scale_wrt_gas=False)
        if last:
            engine.set_gradient_accumulation_boundary(True)
            engine.step()
        return self._mesh.in_the_mean(loss, self.args.device)

    def _loss_of(self, engine: ModuleEngine, batch: Any, count: Any) -> Any:
        """None: another stage of a pipeline has the outputs."""
        batch = {
            name: values.to(engine.device) if torch.is_tensor(values) else values
            for name, values in batch.items()
        }
        if count is not None and not self.args.average_tokens_across_devices:
            count = count * self._mesh.parts  # which are no devices that it is taken over
        model: Any = Called(engine, self._loss_shifts_labels)
        try:
            loss: Any = self.compute_loss(model, batch, num_items_in_batch=count)
        except ElsewhereError:
            return None
        scaled = (self.model_accepts_loss_kwargs and count is not None) or bool(
            self.compute_loss_func
        )
        if self.loss_is_scaled_for_ga is not None:
            scaled = self.loss_is_scaled_for_ga
        return loss if scaled else loss / self.current_gradient_accumulation_steps

    def _clip_grad_norm(self, model: Any) -> Any:
        return self._made().get_global_grad_norm()

    def _get_grad_norm(self, model: Any, grad_norm: Any = None) -> Any:
        return self._made().get_global_grad_norm()

    # ---- evaluation

    def evaluation_loop(self, *given: Any, **named: Any) -> Any:
        begun = self.engine is not None and self.engine.begun
        with self.engine.whole() if begun and self.engine else nullcontext():
            return super().evaluation_loop(*given, **named)

    # ---- folders

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        if state_dict is None and self.engine is not None:
            state_dict = self.model.state_dict()  # all ranks bring their parts
        super()._save(output_dir, state_dict)

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        self._made().save_checkpoint(output_dir, tag=_FOLDER, save_latest=False)
        if self.args.should_save:
            path = os.path.join(output_dir, "scheduler.pt")
            torch.save(self.lr_scheduler.state_dict(), path)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is None:
            return
        if not os.path.isdir(os.path.join(checkpoint, _FOLDER)):
            if os.path.exists(os.path.join(checkpoint, "optimizer.pt")):
                raise Error(
                    Status.IO,
                    f"{checkpoint} has an optimizer that transformers' own Trainer "
                    f"saved, which is not read: load the model from there, and train "
                    f"without resume_from_checkpoint",
                )
            return
        self._made().load_checkpoint(checkpoint, tag=_FOLDER)
        path = os.path.join(checkpoint, "scheduler.pt")
        self.lr_scheduler.load_state_dict(torch.load(path, weights_only=True))
        rates = self.lr_scheduler.get_last_lr()
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate

    def _load_best_model(self) -> None:
        self._end()  # the module takes the weights
        super()._load_best_model()
