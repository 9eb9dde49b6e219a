"""Three programs that are known from DeepSpeed, beside a plain loop of PyTorch's with the
same clipping: the rows of all ranks, each micro-batch's mean counting once.

    programs.py ROWS ACCUMULATION
"""

from __future__ import annotations

import copy
import sys
from typing import Any

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import tranche as deepspeed

ZERO: list[dict[str, Any]] = [
    {},
    {"stage": 1, "offload_optimizer": {"device": "cpu"}},
    {"stage": 3},
]
EPOCHS = 5


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(100, 500)
        self.relu = nn.ReLU()
        self.fc2 = nn.Linear(500, 10)

    def forward(self, x: Any) -> Any:
        return self.fc2(self.relu(self.fc1(x)))


def loader_of(data: Any, rows: int, rank: int, ranks: int) -> tuple[Any, Any]:
    sampler = DistributedSampler(data, ranks, rank, seed=3)
    return DataLoader(data, batch_size=rows, sampler=sampler), sampler


def program(zero: dict[str, Any], rows: int, steps: int) -> tuple[float, float]:
    """How far losses and weights are off."""
    ranks, rank = deepspeed.rank_count(), deepspeed.rank()
    config = {
        "train_batch_size": rows * steps * ranks,
        "gradient_accumulation_steps": steps,
        "optimizer": {"type": "Adam", "params": {"lr": 1e-3}},
        "zero_optimization": zero,
    }
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(1000, 100), torch.randint(0, 10, (1000,)))
    model = Classifier()
    plain = copy.deepcopy(model)
    optimizer = torch.optim.Adam(plain.parameters(), lr=1e-3)
    engine, _, _, _ = deepspeed.initialize(
        model=model, model_parameters=model.parameters(), config=config
    )
    criterion = nn.CrossEntropyLoss()
    loaders = [loader_of(data, rows, i, ranks) for i in range(ranks)]
    off, done = 0.0, 0
    for epoch in range(EPOCHS):
        for _, sampler in loaders:
            sampler.set_epoch(epoch)
        for batches in zip(*(loader for loader, _ in loaders), strict=True):
            x, y = batches[rank]
            loss = criterion(engine(x.to(engine.device)), y.to(engine.device))
            engine.backward(loss)
            engine.step()
            wanted = [criterion(plain(x), y) for x, y in batches]
            (sum(wanted) / (steps * ranks)).backward()
            done += 1
            if done % steps == 0:
                nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            off = max(off, abs(loss.item() - wanted[rank].item()))
    state = engine.module.state_dict()
    apart = [(state[n] - v).abs().max().item() for n, v in plain.state_dict().items()]
    engine.destroy()
    return off, max(apart)


if __name__ == "__main__":
    for zero in ZERO:
        off, apart = program(zero, *map(int, sys.argv[1:]))
        assert off < 1e-5, (zero, off)
        assert apart < 1e-4, (zero, apart)
        print(f"{off:.1e} {apart:.1e}: as PyTorch")
