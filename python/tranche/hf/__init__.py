"""transformers' Trainer, with the engine of tranche.initialize inside.

from tranche.hf import Trainer, TrainingArguments

arguments  what TrainingArguments and a DeepSpeed config come to together
lengths    batches of texts come to the one length that a plan has
losses     the engine as compute_loss calls it
trainer    the Trainer
"""

from __future__ import annotations

from tranche.error import Error, Status

try:
    from tranche.hf.arguments import TrainingArguments
    from tranche.hf.trainer import Trainer
except ImportError as error:
    raise Error(
        Status.USAGE,
        f"tranche.hf needs PyTorch, transformers and accelerate: {error}",
    ) from error

__all__ = ["Trainer", "TrainingArguments"]
