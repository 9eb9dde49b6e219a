"""Operators that are said in other words (tranche/module/words.py), and masks: each is
trained beside PyTorch, and none may run there."""

from __future__ import annotations

import unittest
from collections.abc import Callable
from typing import Any

from common import HAS_TORCH, needs_torch
from modules import CUTS, ROWS, Modules

if HAS_TORCH:
    import torch
    import torch.nn.functional as F
    from torch import nn

LENGTH, WIDTH = 5, 8
Function = Callable[[Any], Any]

# Of [rows, LENGTH, WIDTH]; several at once, since each export takes its time.
FUNCTIONS: dict[str, Function] = {
    "activations": lambda x: (
        F.mish(x) + F.selu(x) + F.celu(x, 0.7) + F.logsigmoid(x) + F.glu(x).repeat(1, 1, 2)
    ),
    "softmax": lambda x: x.softmax(1) + torch.softmax(x, -1, dtype=torch.float32),
    "statistics": lambda x: (
        x / (x.std(-1, keepdim=True) + 1)
        + x * torch.rsqrt(x.var((1, 2), keepdim=True, unbiased=False) + 1e-5)
    ),
    "names": lambda x: x.movedim(1, 2).swapaxes(1, 2) + x.mT.mT + x.narrow(2, 0, 1),
    "parts": lambda x: (
        torch.stack([x, x * 2], 1).sum(1)
        + x.roll(1, 1)
        + x.repeat_interleave(2, 1)[:, :LENGTH]
        + x.unflatten(2, (2, 4)).permute(0, 2, 1, 3)[:, 1].repeat(1, 1, 2)
    ),
    "products": lambda x: (
        torch.einsum("bld,bmd->blm", x, x) @ x
        + torch.baddbmm(x @ x.mT, x, x.mT, beta=0.5, alpha=0.2) @ x
        + (x @ x.mT).tril() @ x
    ),
    "sums": lambda x: (
        torch.addcmul(x, x, x, value=0.5) + torch.lerp(x, x * 2, 0.3) + x.clamp_min(0.1)
    ),
    "masks": lambda x: (
        x.masked_fill(torch.eye(LENGTH, WIDTH) > 0, 0.5)
        + torch.where(torch.arange(WIDTH) < 3, x, x * 2)
        + torch.where(torch.arange(WIDTH) < 3, 0.0, x)
    ),
}

if HAS_TORCH:

    class Between(nn.Module):
        """A function between two layers."""

        def __init__(self, function: Function) -> None:
            super().__init__()
            self.function = function
            self.first, self.head = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 3)

        def forward(self, x: Any) -> Any:
            return self.head(self.function(self.first(x)).mean(1))

    class Matrices(nn.Module):
        """Parameters that are no layer's."""

        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = (nn.Parameter(torch.randn(WIDTH, WIDTH) / 3) for _ in "ab")
            self.head = nn.Linear(WIDTH, 3)

        def forward(self, x: Any) -> Any:
            y = torch.einsum("bli,ij->blj", x, self.a) + x @ self.b.T
            return self.head((y + torch.einsum("bli,ji->blj", y, self.b)).mean(1))

    class Masked(nn.Module):
        """A mask that the batch brings."""

        def __init__(self) -> None:
            super().__init__()
            self.first, self.head = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 3)

        def forward(self, x: Any, there: Any) -> Any:
            y = self.first(x).masked_fill((there == 0)[:, :, None], -1.0)
            y = y + (there.cumsum(1)[:, :, None] * 0.1)
            return self.head(torch.where(there[:, :, None] > 0, y, y * 0.5).mean(1))

    class Images(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.same = nn.Conv2d(3, 4, 3, padding="same")
            self.valid = nn.Conv2d(4, 4, (1, 2), padding="valid")
            self.head = nn.Linear(4 * 12, 3)

        def forward(self, x: Any) -> Any:
            x = F.interpolate(self.same(x), scale_factor=2, mode="nearest")
            x = F.softmax(self.valid(x), 1)
            x = F.adaptive_avg_pool2d(x[..., :12], (4, 3))
            return self.head(x.flatten(1))


def labels() -> Any:
    return torch.randint(0, 3, (ROWS,))


@needs_torch
class Words(Modules):
    def whole(self, module: Any, batches: list[Any], cut: int = 0) -> None:
        loss = nn.CrossEntropyLoss()
        self.like_torch(module, batches, loss, CUTS[cut], whole=True).destroy()

    def test_functions(self) -> None:
        for i, (name, function) in enumerate(FUNCTIONS.items()):
            batches = [(torch.randn(ROWS, LENGTH, WIDTH), labels()) for _ in range(2)]
            with self.subTest(name):
                self.whole(Between(function), batches, i % len(CUTS))

    def test_matrices(self) -> None:
        batches = [(torch.randn(ROWS, LENGTH, WIDTH), labels()) for _ in range(2)]
        self.whole(Matrices(), batches)

    def test_masks_of_the_batch(self) -> None:
        batches = [
            (torch.randn(ROWS, LENGTH, WIDTH), torch.rand(ROWS, LENGTH).round(), labels())
            for _ in range(2)
        ]
        self.whole(Masked(), batches)

    def test_images(self) -> None:
        self.whole(Images(), [(torch.randn(ROWS, 3, 8, 8), labels()) for _ in range(2)])


if __name__ == "__main__":
    unittest.main()
