"""Texts of many lengths: a plan has one, and collators pad each batch to its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from tranche import _declarations as c
from tranche.error import Error, Status

_PADDING = {
    "attention_mask": 0,
    "position_ids": 0,
    "token_type_ids": 0,
    "labels": c.TR_NO_TARGET,
}


def longest(dataset: Any, collator: Any) -> int:
    """How long texts are after the collator; 0: that is not known before they are
    read."""
    try:
        count = len(dataset)
    except TypeError:
        return 0
    most = 0
    for i in range(count):
        sample = dataset[i]
        ids = sample.get("input_ids") if isinstance(sample, Mapping) else None
        if ids is None or not hasattr(ids, "__len__"):
            return 0
        most = max(most, len(ids))
    multiple = getattr(collator, "pad_to_multiple_of", None) or 1
    return -(-most // multiple) * multiple


class Lengths:
    """Brings batches with input_ids to one length."""

    def __init__(self, length: int, padding_id: int, says: str) -> None:
        """length: 0: that of the first batch. says: where the length is from."""
        self._length = length
        self._padding_id = padding_id
        self._says = says
        self._fixed = False

    @property
    def length(self) -> int:
        """Of all rows; 0: the first batch says it."""
        return self._length

    def padded(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        found = dict(batch)
        ids = found.get("input_ids")
        if not isinstance(ids, torch.Tensor) or ids.ndim != 2:
            return found
        have = ids.shape[1]
        if not self._fixed:
            self._length, self._fixed = max(self._length, have), True
        if have == self._length:
            return found
        if have > self._length:
            raise Error(
                Status.USAGE,
                f"a batch has texts of {have} tokens, and the plan is for "
                f"{self._length}, {self._says}: give Trainer(max_length=...)",
            )
        known = {"input_ids": self._padding_id, **_PADDING}
        for name, values in found.items():
            wide = isinstance(values, torch.Tensor) and values.ndim > 1
            if not wide or values.shape[1] != have:
                continue
            if name not in known or values.ndim != 2:
                raise Error(
                    Status.USAGE,
                    f"{name}: batches of many lengths have input_ids, "
                    f"{', '.join(_PADDING)}; pad others to one length in the collator",
                )
            more = self._length - have
            found[name] = torch.nn.functional.pad(values, (0, more), value=known[name])
        return found
