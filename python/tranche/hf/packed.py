"""Batches without padding, TRL's and those of DataCollatorWithFlattening: one row of all
texts, whose positions begin anew with each. A plan has rows of one length, in which whole
texts lie side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from tranche import _declarations as c

_KNOWN = {"input_ids": 0, "labels": c.TR_NO_TARGET, "position_ids": 0}
# What kernels on GPUs are told beside the positions, which say the same.
_OF_KERNELS = {"cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k", "seq_idx"}


def is_joined(batch: Mapping[str, Any]) -> bool:
    """Is it one row of texts, and nothing else?"""
    if set(batch) - _OF_KERNELS != set(_KNOWN):
        return False
    if any(batch[name].ndim != 2 or len(batch[name]) != 1 for name in _KNOWN):
        return False
    places = batch["position_ids"][0]
    follows = places.diff() == 1
    whole = (follows | (places[1:] == 0)).all() and (places[:1] == 0).all()
    return bool(whole and follows.any())


def rows(batch: Mapping[str, Any], length: int) -> dict[str, Any]:
    """Texts in their order, each into the row of the one before where there is room:
    these are no more rows than the collator has joined. length: of a row. A token of
    padding is a text of its own, and a text of one token has no targets: neither
    counts."""
    starts = (batch["position_ids"][0] == 0).nonzero().flatten().tolist()
    ends = [*starts[1:], batch["position_ids"].shape[1]]
    parts: list[list[slice]] = []
    room = 0
    for first, end in zip(starts, ends, strict=True):
        if end - first < 2:
            continue
        if not parts or end - first > room:
            parts.append([])
            room = length
        parts[-1].append(slice(first, end))
        room -= end - first
    return {
        name: torch.stack([_row(batch[name][0], part, length, fill) for part in parts])
        for name, fill in _KNOWN.items()
    }


def _row(values: Any, parts: list[slice], length: int, fill: int) -> Any:
    found = torch.cat([values[part] for part in parts])
    return torch.nn.functional.pad(found, (0, max(0, length - len(found))), value=fill)
