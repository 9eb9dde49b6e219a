"""Batches as an engine takes them: tensors by name, with rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from tranche.error import Error, Status
from tranche.module.core import Core


class Batches(Core):
    """Names and rows of what the caller's loop gives."""

    def _gather(
        self, batches: Iterator[Any], share: int
    ) -> tuple[dict[str, Any], list[str], int]:
        """The rows of the next batches, as many as the first one says. A short batch
        counts as a whole one."""
        parts: list[dict[str, Any]] = []
        named: list[str] = []
        count = 0
        while not parts or (count < share and len(parts) < self._parts):
            try:
                given = next(batches)
            except StopIteration:
                if not parts:
                    raise
                break
            part, named = self._named(given)
            rows = self._rows_of(part)
            if not self._parts:
                self._parts = -(-share // rows)
            count += rows
            parts.append(part)
        if count > share:
            raise Error(
                Status.USAGE,
                f"{count} rows in a batch of {share}: the batches of the "
                f"iterator have more rows than the config says",
            )
        batch = {n: torch.cat([part[n] for part in parts]) for n in parts[0]}
        return batch, named, count

    def _named(self, given: Any) -> tuple[dict[str, Any], list[str]]:
        """The tensors of a batch by the names of the module's arguments, and those that
        go there by keyword."""
        if isinstance(given, Mapping):
            return dict(given), list(given)
        if isinstance(given, torch.Tensor):
            given = (given,)
        if not isinstance(given, Sequence) or not given:
            raise Error(
                Status.USAGE,
                f"a batch is a tensor, a tuple or a dict of tensors, not "
                f"{type(given).__name__}",
            )
        names = list(self._arguments)
        if self.loss is not None:
            names = [*names[: len(given) - 1], "targets"]
        names += [f"input{i}" for i in range(len(names), len(given))]
        return dict(zip(names, given, strict=False)), []

    def _rows_of(self, part: Mapping[str, Any]) -> int:
        """How many rows a batch has, of tensors with the names that the first one
        had."""
        for name, given in part.items():
            if not isinstance(given, torch.Tensor) or given.ndim == 0:
                kind = type(given).__name__
                told = "a number" if isinstance(given, torch.Tensor) else kind
                raise Error(
                    Status.USAGE,
                    f"{name}: a batch has tensors [rows, ...], not {told}",
                )
        wanted = set(self._first[0]) if self._first and not self.native else set(part)
        if not part or set(part) != wanted:
            raise Error(
                Status.USAGE,
                f"a batch of {', '.join(part) or 'nothing'} in place of "
                f"{', '.join(sorted(wanted)) or 'tensors [rows, ...]'}",
            )
        counts = {name: len(tensor) for name, tensor in part.items()}
        if len(set(counts.values())) != 1:
            told = ", ".join(f"{name} {count}" for name, count in counts.items())
            raise Error(
                Status.USAGE, f"tensors of a batch have equally many rows: {told}"
            )
        return next(iter(counts.values()))
