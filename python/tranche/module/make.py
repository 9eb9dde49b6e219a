"""A module and a batch become a model of the library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch

from tranche._calls import Raised
from tranche.data import Field
from tranche.module import export, feed, read
from tranche.module.build import Model, canonical
from tranche.module.lower import Lowering, module_dtypes


class Made(NamedTuple):
    lowering: Lowering
    model: Model

    def fields(self) -> list[Field]:
        return feed.fields(self.lowering)

    def columns(self, batch: Mapping[str, Any], count: int) -> list[Any]:
        tensors = feed.targets_first(self.lowering)
        return feed.columns(self.lowering, tensors, batch, count)


def make(
    module: torch.nn.Module,
    loss: Any,
    batch: Mapping[str, Any],
    named: Sequence[str],
    fallback: str,
    rows: int,
    parts: bool = False,
) -> Made:
    """batch: tensors [rows, ...], in the order of the module's arguments; named: those
    that go to it by keyword. rows: of a micro-batch. parts: the caller computes the
    loss."""
    module_dtypes(module)
    training = module.training
    module.train()
    try:
        traced = export.export(module, loss, batch, named)
        reading = read.Reading(traced, module)
        examples = read.Examples(traced, export.example(batch))
        lowering = Lowering(reading, examples, Raised(), fallback, rows, parts)
    finally:
        module.train(training)
    tensors = list(lowering.batch.values()) if parts else feed.targets_first(lowering)
    return Made(lowering, Model(lowering, canonical(module), tensors))
