"""The engine as a Trainer's compute_loss calls it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tranche import _declarations as c
from tranche.module.engine import ModuleEngine


class ElsewhereError(Exception):
    """Another stage of the pipeline has the outputs: there is no loss to compute here."""


class Called:
    """Models of transformers divide the sum of their losses by num_items_in_batch, the
    targets of the whole step; the engine's module gives the mean of a micro-batch."""

    def __init__(self, engine: ModuleEngine, shifts_labels: bool) -> None:
        self._engine = engine
        self._shifts_labels = shifts_labels

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        count = named.pop("num_items_in_batch", None)
        found = self._engine(*inputs, **named)
        if found is None:
            raise ElsewhereError
        loss = found.get("loss") if isinstance(found, Mapping) else None
        if count is None or loss is None or "labels" not in named:
            return found
        labels = named["labels"]
        if self._shifts_labels:
            labels = labels[..., 1:]
        share = (labels != c.TR_NO_TARGET).sum() / count
        return type(found)({**found, "loss": loss * share})
