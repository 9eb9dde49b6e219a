"""transformers' Trainer and TRL's SFTTrainer, with the engine of tranche.initialize
inside.

from tranche.hf import Trainer, TrainingArguments
from tranche.hf import SFTConfig, SFTTrainer

arguments  what TrainingArguments and a DeepSpeed config come to together
lengths    batches of texts come to the one length that a plan has
mesh       which ranks train on the same rows
packed     rows in which texts lie side by side
losses     the engine as compute_loss calls it
trainer    the Trainer
sft        the SFTTrainer, which is read where it is asked for: TRL takes seconds
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tranche.error import Error, Status

try:
    from tranche.hf.arguments import TrainingArguments
    from tranche.hf.trainer import Trainer
except ImportError as error:
    raise Error(
        Status.USAGE,
        f"tranche.hf needs PyTorch, transformers and accelerate: {error}",
    ) from error

if TYPE_CHECKING:
    from tranche.hf.sft import SFTConfig as SFTConfig
    from tranche.hf.sft import SFTTrainer as SFTTrainer

__all__ = ["Trainer", "TrainingArguments"]


def __getattr__(name: str) -> Any:
    if name not in ("SFTConfig", "SFTTrainer"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from tranche.hf import sft
    except ImportError as error:
        raise Error(Status.USAGE, f"tranche.hf.{name} needs TRL: {error}") from error
    return getattr(sft, name)
