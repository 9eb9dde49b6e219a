"""Ranks that share a model, by pipeline.stages or tensor_parallel.size, train on the same
rows; accelerate and transformers give each rank rows of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from tranche.error import Error, Status
from tranche.run import Run


class Mesh(NamedTuple):
    """What a Trainer has to know of the ranks."""

    parts: int  # ranks that train on the same rows
    stages: int  # of a pipeline: those of one of them have the outputs
    data_ranks: int
    data_rank: int  # of this process

    def share_out(self, loader: Any) -> Any:
        """A loader of accelerate's, which gives each data rank its rows."""
        if self.parts == 1:
            return loader
        sampler: Any = getattr(loader, "batch_sampler", None)
        if not hasattr(sampler, "process_index"):
            raise Error(
                Status.USAGE,
                "train_dataset is a stream, which is shared out over all ranks, and ranks "
                "of pipeline.stages and tensor_parallel.size train on the same rows: give "
                "a dataset with a length, or set both keys to 1",
            )
        sampler.num_processes, sampler.process_index = self.data_ranks, self.data_rank
        if self.data_ranks == 1:
            sampler.even_batches = False  # the last batch is short, as on one rank
        return loader

    def in_the_mean(self, loss: Any, device: Any) -> Any:
        """What this rank has in the mean over all ranks, which transformers logs. Stages
        are at different micro-batches, so they do not wait for each other here: a rank
        without outputs has 0, and those with outputs have that much more. loss: None on
        the former."""
        return torch.zeros((), device=device) if loss is None else loss.detach() * self.stages


def of(config: Mapping[str, Any], args: Any) -> Mesh:
    """config: of the engine."""
    run = Run(config)
    try:
        tensor, stages = (_size(run, key) for key in _KEYS)
    finally:
        run.close()
    parts, ranks = tensor * stages, args.world_size
    if ranks % parts:
        raise Error(
            Status.USAGE,
            f"{ranks} ranks are no multiple of pipeline.stages times "
            f"tensor_parallel.size, {parts}",
        )
    data_ranks = ranks // parts
    # Neighbours share layers; then come the data ranks of a stage.
    return Mesh(parts, stages, data_ranks, args.process_index // tensor % data_ranks)


_KEYS = ("tensor_parallel.size", "pipeline.stages")


def _size(run: Run, key: str) -> int:
    value = run.get(key)
    if value == "auto":
        raise Error(
            Status.USAGE,
            f"{key}: rows are shared out before there is a plan: give a number in place "
            f'of "auto"',
        )
    return int(value or 1)
