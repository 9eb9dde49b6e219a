"""What an engine saves, and what it goes on from: checkpoints, and another batch."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
from collections.abc import Mapping
from typing import Any

import torch

from tranche import ranks
from tranche.comm import barrier
from tranche.engine import checkpoint_bytes
from tranche.error import Error, Status
from tranche.module import config as configs
from tranche.module import deepspeed
from tranche.module.config import log
from tranche.module.core import Core


class Saving(Core):
    """DeepSpeed's calls for checkpoints and for the sizes of the batch."""

    # ---- another batch

    def set_train_batch_size(self, train_batch_size: int) -> None:
        """From the next step on, by other accumulation steps. All ranks call it,
        between two steps; the plan is made anew, and goes on from the same state."""
        share = self.batch.micro * self.data_ranks
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
        train = micro_batch_size * steps * self.data_ranks
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
        barrier()
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
            # Under another name first: a reader finds the old one or the new one.
            latest = os.path.join(save_dir, "latest")
            with open(f"{latest}.new", "w") as file:
                file.write(name)
            os.replace(f"{latest}.new", latest)
        barrier()  # so that each rank finds what it saved
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
