"""Losses inside of modules: means of numbers, and sums of several means, in drawn cuts,
stages and placements, beside PyTorch's autograd."""

from __future__ import annotations

import random
import unittest
from collections.abc import Callable
from typing import Any

from common import HAS_TORCH, needs_torch
from modules import CUTS, ROWS, Modules
from test_drawn_modules import cut

import tranche

if HAS_TORCH:
    import torch
    import torch.nn.functional as F
    from torch import nn

OUT = 4
Loss = Callable[[Any, Any], Any]

# Of outputs and numbers, both [rows, OUT].
NUMBERS: dict[str, Loss] = {
    "l1": lambda z, y: F.l1_loss(z, y),
    "smooth l1": lambda z, y: F.smooth_l1_loss(z, y, beta=0.3),
    "huber": lambda z, y: nn.HuberLoss(delta=0.7)(z, y),
    "bce": lambda z, y: nn.BCELoss()(z.sigmoid(), y.sigmoid()),
    "bce with logits": lambda z, y: F.binary_cross_entropy_with_logits(z, y.sigmoid()),
    "weights of positives": lambda z, y: nn.BCEWithLogitsLoss(
        pos_weight=torch.arange(1.0, OUT + 1)
    )(z, y.sigmoid()),
    "two": lambda z, y: F.mse_loss(z, y) + 0.1 * F.l1_loss(z, y),
    "half of one": lambda z, y: F.mse_loss(z, y) / 2,
    "one less another": lambda z, y: -(0.1 * z.tanh().mean() - F.mse_loss(z, y)),
    "of other numbers of targets": lambda z, y: sum(
        [F.mse_loss(z[:, :1], y[:, :1]), 0.3 * F.huber_loss(z[:, 1:], y[:, 1:])]
    ),
}

if HAS_TORCH:

    class Numbers(nn.Module):
        def __init__(self, loss: Loss) -> None:
            super().__init__()
            self.loss = loss
            self.first, self.head = nn.Linear(6, 8), nn.Linear(8, OUT)

        def forward(self, x: Any, y: Any) -> Any:
            return self.loss(self.head(torch.tanh(self.first(x))), y)

    class Heads(nn.Module):
        """Classes and numbers of one body."""

        def __init__(self, weight: Any = None) -> None:
            super().__init__()
            self.weight = weight
            self.body, self.of = nn.Linear(6, 8), nn.Linear(8, OUT)
            self.number = nn.Linear(8, 1)

        def forward(self, x: Any, y: Any, labels: Any) -> Any:
            h = torch.tanh(self.body(x))
            classes = F.cross_entropy(self.of(h), labels, self.weight)
            return classes + 0.1 * F.mse_loss(self.number(h), y[:, :1])

    class Beside(nn.Module):
        """A second head of the same classes, a penalty, and a factor that is trained."""

        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Linear(6, 8)
            self.one, self.other = nn.Linear(8, OUT), nn.Linear(6, OUT)
            self.scale = nn.Parameter(torch.tensor(0.3))

        def forward(self, x: Any, labels: Any) -> Any:
            main = F.cross_entropy(self.one(torch.tanh(self.body(x))), labels)
            beside = F.cross_entropy(self.other(x), labels)
            penalty = self.scale + 0.01 * self.body.weight.square().sum()
            return main * torch.exp(-self.scale) + 0.3 * beside + penalty


def inputs() -> tuple[Any, Any]:
    return torch.randn(ROWS, 6), torch.randn(ROWS, OUT)


def labels(none: bool = False) -> Any:
    found = torch.randint(0, OUT, (ROWS,))
    if none:
        found[1] = -100
        found[5:7] = -100
    return found


@needs_torch
class Losses(Modules):
    def test_numbers(self) -> None:
        draw = random.Random(5)
        for name, loss in NUMBERS.items():
            with self.subTest(name):
                batches = [inputs() for _ in range(2)]
                batches.append(tuple(t[:5] for t in inputs()))  # a short one
                self.like_torch(Numbers(loss), batches, None, cut(draw)).destroy()

    def test_classes_and_numbers(self) -> None:
        for each in CUTS:
            batches = [(*inputs(), labels()) for _ in range(2)]
            batches.append(tuple(t[:5] for t in batches[0]))  # a short one
            with self.subTest(each):
                self.like_torch(Heads(), batches, None, each).destroy()

    def test_one_number_of_targets(self) -> None:
        """Labels that are no targets count in neither head."""
        for each in CUTS:
            batches = [(torch.randn(ROWS, 6), labels(none=True)) for _ in range(3)]
            batches.append(tuple(t[:3] for t in batches[0]))  # micro-batches have none
            with self.subTest(each):
                self.like_torch(Beside(), batches, None, each).destroy()

    def test_what_is_refused(self) -> None:
        def engine(module: Any) -> Any:
            config = {"train_batch_size": ROWS, "optimizer": {"type": "SGD"}}
            return tranche.initialize(model=module, config=config)[0]

        heads = engine(Heads())
        with self.refused(tranche.Status.DATA, "no targets", "one mean"):
            heads.train_batch(iter([(*inputs(), labels(none=True))]))
        heads.train_batch(iter([(*inputs(), labels())]))  # it can still be used
        weighted = engine(Heads(torch.ones(OUT)))
        with self.refused(tranche.Status.USAGE, "weights of classes", "test_losses.py"):
            weighted.train_batch(iter([(*inputs(), labels())]))
        for loss in (
            lambda z, y: F.mse_loss(z, y, reduction="sum") + F.l1_loss(z, y),
            lambda z, y: F.mse_loss(z, y) * F.l1_loss(z, y),
            lambda z, y: z.mean() / F.l1_loss(z, y),
            lambda z, y: F.mse_loss(z, y) + F.l1_loss(z, y).sqrt(),
        ):
            with self.refused(tranche.Status.USAGE, "a sum of such means", "test_losses"):
                engine(Numbers(loss)).train_batch(iter([inputs()]))
        centred = engine(Numbers(lambda z, y: z.mean() + F.mse_loss(z - z.mean(0), y)))
        with self.refused(tranche.Status.USAGE, "mixes the rows", "test_losses.py"):
            centred.train_batch(iter([inputs()]))


if __name__ == "__main__":
    unittest.main()
