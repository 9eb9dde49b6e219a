"""Convolutions of sequences, and batch norm of rows and of sequences: each is trained
beside PyTorch, in drawn cuts."""

from __future__ import annotations

import random
import unittest
from typing import Any

from common import HAS_TORCH, needs_torch
from modules import CUTS, ROWS, Modules
from test_drawn_modules import cut

if HAS_TORCH:
    import torch
    import torch.nn.functional as F
    from torch import nn

if HAS_TORCH:

    class Sound(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv1d(3, 8, 5, stride=2, padding=2)
            self.norm = nn.BatchNorm1d(8)
            self.groups = nn.Conv1d(8, 8, 3, padding=2, dilation=2, groups=4, bias=False)
            self.same = nn.Conv1d(8, 6, 3, padding="same")
            self.head = nn.Linear(6 * 3, 4)

        def forward(self, x: Any) -> Any:
            x = F.relu(self.norm(self.first(x)))
            x = F.avg_pool1d(self.groups(x), 2)
            return self.head(F.adaptive_avg_pool1d(self.same(x), 3).flatten(1))

    class Rows(nn.Module):
        def __init__(self, **kinds: bool) -> None:
            super().__init__()
            self.first, self.head = nn.Linear(6, 8), nn.Linear(8, 4)
            self.norm = nn.BatchNorm1d(8, **kinds)

        def forward(self, x: Any) -> Any:
            return self.head(torch.tanh(self.norm(self.first(x))))

    class Pooled(nn.Module):
        """Pooling that PyTorch does."""

        def __init__(self) -> None:
            super().__init__()
            self.first, self.head = nn.Conv1d(3, 8, 3), nn.Linear(8, 4)

        def forward(self, x: Any) -> Any:
            return self.head(F.max_pool1d(self.first(x), 2).mean(-1))


def batch(*shape: int) -> tuple[Any, Any]:
    return torch.randn(ROWS, *shape) + 0.5, torch.randint(0, 4, (ROWS,))


@needs_torch
class Sequences(Modules):
    def like(self, module: Any, shape: tuple[int, ...], how: Any, whole: bool) -> None:
        batches = [batch(*shape) for _ in range(3)]
        loss = nn.CrossEntropyLoss()
        self.like_torch(module, batches, loss, how, whole=whole).destroy()

    def test_convolutions(self) -> None:
        for length in (24, 25):
            for how in CUTS:
                with self.subTest(length=length, cut=how):
                    self.like(Sound(), (3, length), how, True)

    def test_batch_norm_of_rows(self) -> None:
        draw = random.Random(3)
        for kinds in ({}, {"affine": False}, {"track_running_stats": False}):
            for how in (*CUTS, cut(draw)):
                with self.subTest(kinds=kinds, cut=how):
                    self.like(Rows(**kinds), (6,), how, True)

    def test_in_torch(self) -> None:
        self.like(Pooled(), (3, 12), CUTS[0], False)


if __name__ == "__main__":
    unittest.main()
