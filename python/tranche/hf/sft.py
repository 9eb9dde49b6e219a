"""TRL's SFTTrainer, whose steps are the engine's: TRL prepares data, collates, evaluates
and logs."""

from __future__ import annotations

from contextlib import contextmanager
from collections.abc import Iterator
from typing import Any

import torch
import transformers
import trl

from tranche import _declarations as c
from tranche.hf import arguments
from tranche.hf.arguments import TrainingArguments
from tranche.hf.trainer import Trainer


class SFTConfig(TrainingArguments, trl.SFTConfig):
    """TRL's own. `deepspeed` is the engine's config, and DeepSpeed is neither needed nor
    started."""


class SFTTrainer(Trainer, trl.SFTTrainer):
    """trl.SFTTrainer, which trains by a plan. max_length and fallback: as Trainer has
    them."""

    def __init__(self, model: Any, args: Any = None, *given: Any, **named: Any) -> None:
        if isinstance(args, TrainingArguments) and not isinstance(args, trl.SFTConfig):
            args = SFTConfig(**{**args.to_dict(), "hub_token": args.hub_token})
        if args is not None:
            arguments.leave_out(args)  # TRL changes the module for some of these
        before = None if isinstance(model, str) else vars(_base(model)).get("forward")
        super().__init__(model, args, *given, **named)
        self._forward = before
        if self.args.loss_type == "dft":
            self.compute_loss_func = _dynamic

    # ---- training

    def training_step(
        self, model: Any, inputs: Any, num_items_in_batch: Any = None
    ) -> Any:
        self._count_tokens(inputs)
        with self._as_written():
            return super().training_step(model, inputs, num_items_in_batch)

    def _count_tokens(self, inputs: Any) -> None:
        there = inputs.get("attention_mask", inputs.get("input_ids"))
        tokens = there.sum() if "attention_mask" in inputs else torch.tensor(there.numel())
        count = self.accelerator.gather_for_metrics(tokens).sum()
        self._total_train_tokens += int(count) // self._mesh.parts
        self._metrics["train"]["num_tokens"] = [self._total_train_tokens]

    @contextmanager
    def _as_written(self) -> Iterator[None]:
        """TRL gives the module a forward of its own, which evaluations call."""
        module = vars(_base(self.model))
        fused = module.pop("forward", None)
        if self._forward is not None:
            module["forward"] = self._forward
        try:
            yield
        finally:
            if fused is not None:
                module["forward"] = fused

    def compute_loss(self, model: Any, inputs: Any, *given: Any, **named: Any) -> Any:
        """TRL's own hands no outputs out that lead back into the plan; transformers' is
        the same mean."""
        if self.model.training:
            return transformers.Trainer.compute_loss(self, model, inputs, *given, **named)
        return super().compute_loss(model, inputs, *given, **named)

    def _loss_is_the_module_s(self) -> bool:
        return type(self).compute_loss is SFTTrainer.compute_loss

    def _longest(self) -> tuple[int, str]:
        """TRL cuts texts to max_length, of which it knows where it cannot read all."""
        length, says = super()._longest()
        if length or not self.args.max_length:
            return length, says
        multiple = self.args.pad_to_multiple_of or 1
        whole = -(-self.args.max_length // multiple) * multiple
        return whole, "the max_length of SFTConfig"


def _base(model: Any) -> Any:
    """The module that TRL changes."""
    inner = getattr(model, "get_base_model", None)
    return inner() if callable(inner) else model


def _dynamic(outputs: Any, labels: Any, num_items_in_batch: Any = None) -> Any:
    """loss_type "dft": each token's loss times its probability, which is no variable."""
    labels = labels[:, 1:]
    there = labels != c.TR_NO_TARGET
    scores = outputs["logits"][:, :-1][there].float()
    each = torch.nn.functional.cross_entropy(scores, labels[there], reduction="none")
    count = there.sum() if num_items_in_batch is None else num_items_in_batch
    return (each * (-each.detach()).exp()).sum() / torch.as_tensor(count).clamp(min=1)
