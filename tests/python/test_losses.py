"""Losses inside of modules: means of numbers, and sums of several means, in drawn cuts,
stages and placements, beside PyTorch's autograd."""

from __future__ import annotations

import copy
import math
import random
import unittest
from collections.abc import Callable
from typing import Any

from common import HAS_TORCH, needs_torch
from modules import CUTS, ROWS, Modules, config
from test_drawn_modules import cut

import tranche

if HAS_TORCH:
    import torch
    import torch.nn.functional as F
    from torch import nn
    from torch.utils._python_dispatch import TorchDispatchMode

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

    class Scaled(nn.Module):
        """Labels that are no targets are -1, and a factor is trained."""

        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Linear(6, OUT)
            self.scale = nn.Parameter(torch.tensor(0.3))

        def forward(self, x: Any, labels: Any) -> Any:
            mean = F.cross_entropy(self.body(x), labels, ignore_index=-1)
            return mean * torch.exp(-self.scale) + self.scale

    class Means(nn.Module):
        """Returns a cross-entropy of rows of classes, and keeps what PyTorch is asked."""

        def __init__(self, loss: Loss, shape: tuple[int, ...] = (OUT,)) -> None:
            super().__init__()
            self.loss, self.shape = loss, shape
            size = math.prod(shape)
            self.first, self.head = nn.Linear(6, 8), nn.Linear(8, size)

        def forward(self, x: Any, labels: Any) -> Any:
            z = self.head(torch.tanh(self.first(x)))
            return self.loss(z.view(-1, *self.shape), labels)

    class NoLoss(TorchDispatchMode):
        """Raises where PyTorch looks at classes."""

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if "softmax" in str(func) or "nll_loss" in str(func):
                raise AssertionError(f"PyTorch computes {func}")
            return func(*args, **(kwargs or {}))


def inputs() -> tuple[Any, Any]:
    return torch.randn(ROWS, 6), torch.randn(ROWS, OUT)


def labels(none: bool = False) -> Any:
    found = torch.randint(0, OUT, (ROWS,))
    if none:
        found[1] = -100
        found[5:7] = -100
    return found


def drawn(shape: tuple[int, ...], rows: int = ROWS) -> tuple[Any, Any]:
    found = torch.randint(0, OUT, (rows, *shape))
    found[1] = -100
    return torch.randn(rows, 6), found


# Of logits [rows, ...] and labels; the shape of a row's logits, and of its labels.
WEIGHT = (0.5, 1.0, 2.0, 3.0)
MEANS: dict[str, tuple[Loss, tuple[int, ...], tuple[int, ...]]] = {
    "rows": (lambda z, y: F.cross_entropy(z, y), (OUT,), ()),
    "in 64 bits": (lambda z, y: F.cross_entropy(z, y).double(), (OUT,), ()),
    "log of softmax": (lambda z, y: F.nll_loss(z.log_softmax(1), y), (OUT,), ()),
    "weights and smoothing": (
        lambda z, y: F.cross_entropy(z, y, torch.tensor(WEIGHT), label_smoothing=0.1),
        (OUT,),
        (),
    ),
    "other labels are none": (
        lambda z, y: F.cross_entropy(z, y.masked_fill(y < 0, 1), ignore_index=1),
        (OUT,),
        (),
    ),
    "tokens, one further": (
        lambda z, y: F.cross_entropy(z[:, :-1].reshape(-1, OUT), y[:, 1:].reshape(-1)),
        (3, OUT),
        (3,),
    ),
    "classes before places": (lambda z, y: F.cross_entropy(z, y), (OUT, 3), (3,)),
    "as many places as classes": (lambda z, y: F.cross_entropy(z, y), (OUT, OUT), (OUT,)),
    "classes behind places": (
        lambda z, y: F.cross_entropy(z.transpose(1, 2), y),
        (3, OUT),
        (3,),
    ),
}


@needs_torch
class HandedOut(Modules):
    """By forward, backward and step the plan gives the loss of each row, and PyTorch takes
    the mean of them: the logits stay in the plan."""

    MICRO = 4

    def beside_torch(
        self, module: Any, batches: list[Any], tolerance: float = 1e-5, **changes: Any
    ) -> None:
        plain = copy.deepcopy(module)
        cut = {"train_micro_batch_size_per_gpu": self.MICRO, **changes}
        engine, *_ = tranche.initialize(model=module, config=config(**cut))
        optimizer = torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.9)
        for i, (x, y) in enumerate(batches):
            optimizer.zero_grad()
            for at in range(0, ROWS, self.MICRO):  # the last batch's last part is short
                given = x[at : at + self.MICRO], y[at : at + self.MICRO]
                if i > 0:
                    with NoLoss():
                        found = engine(*given)
                        engine.backward(found)
                else:
                    found = engine(*given)
                    engine.backward(found)
                engine.step()
                wanted = plain(*given)
                (wanted * self.MICRO / ROWS).backward()
                self.assertEqual(found.dtype, wanted.dtype)
                self.assertAlmostEqual(found.item(), wanted.item(), delta=tolerance)
            torch.nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
            optimizer.step()
        state = engine.module.state_dict()
        for name, values in plain.state_dict().items():
            torch.testing.assert_close(
                state[name], values, atol=10 * tolerance, rtol=10 * tolerance
            )
        engine.destroy()

    def test_16_bits(self) -> None:
        for kind in ("bf16", "fp16"):
            for name in ("rows", "weights and smoothing"):
                with self.subTest(kind, mean=name):
                    batches = [drawn(()) for _ in range(3)]
                    changes = {kind: {"enabled": True}, "tolerance": 3e-3}
                    self.beside_torch(Means(*MEANS[name][:2]), batches, **changes)

    def test_means(self) -> None:
        with NoLoss(), self.assertRaisesRegex(AssertionError, "PyTorch computes"):
            F.cross_entropy(torch.ones(2, 2), torch.zeros(2, dtype=torch.int64))
        for name, (loss, shape, labelled) in MEANS.items():
            batches = [drawn(labelled) for _ in range(3)]
            batches.append(drawn(labelled, ROWS - 1))
            for each in CUTS[1:]:
                cut = {k: v for k, v in each.items() if k == "zero_optimization"}
                with self.subTest(name, cut=cut):
                    self.beside_torch(Means(loss, shape), batches, **cut)

    def test_a_loss_that_is_scaled(self) -> None:
        """backward is not told what the loss is: autograd brings its gradients."""
        module = Means(MEANS["rows"][0])
        plain = copy.deepcopy(module)
        changes = config(gradient_clipping=0.0)
        engine, *_ = tranche.initialize(model=module, config=changes)
        x, y = drawn(())
        before = {n: p.clone() for n, p in plain.named_parameters()}
        loss = engine(x, y)
        engine.backward(0.25 * loss + loss.square())
        engine.step()
        wanted = plain(x, y)
        (0.25 * wanted + wanted.square()).backward()
        for name, p in plain.named_parameters():
            found = engine.module.state_dict()[name]
            torch.testing.assert_close(found, before[name] - 0.1 * p.grad, atol=1e-5, rtol=1e-5)
        engine.destroy()

    def test_a_step_that_ends_early(self) -> None:
        """What is missing has no gradient: of one row, its loss has the shape [1]."""
        module = Means(MEANS["rows"][0])
        plain = copy.deepcopy(module)
        changes = config(train_micro_batch_size_per_gpu=self.MICRO, gradient_clipping=0.0)
        engine, *_ = tranche.initialize(model=module, config=changes)
        x, y = (values[: self.MICRO] for values in drawn(()))
        before = {n: p.detach().clone() for n, p in plain.named_parameters()}
        loss = engine(x, y)
        engine.backward(loss / 2, scale_wrt_gas=False)  # the other half is missing
        engine.set_gradient_accumulation_boundary(True)
        engine.step()
        (plain(x, y) / 2).backward()
        for name, p in plain.named_parameters():
            found = engine.module.state_dict()[name]
            wanted = before[name] - 0.1 * p.grad
            torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)
        engine.destroy()

    def test_labels_that_are_no_classes(self) -> None:
        engine, *_ = tranche.initialize(
            model=Means(MEANS["rows"][0]), config=config(train_batch_size=ROWS)
        )
        x, y = drawn(())
        y[2] = OUT
        with self.assertRaisesRegex(tranche.Error, rf"{OUT} is not in \[0, {OUT}\)"):
            engine(x, y)
        engine.destroy()


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

    def test_means_of_classes(self) -> None:
        """What one mean is of, of the effective batch: labels that are none count not."""
        draw = random.Random(6)
        for name, (loss, shape, labelled) in MEANS.items():
            with self.subTest(name):
                batches = [drawn(labelled) for _ in range(3)]
                self.like_torch(Means(loss, shape), batches, None, cut(draw)).destroy()

    def test_one_number_of_targets(self) -> None:
        """Labels that are no targets count in neither head."""
        for each in CUTS:
            batches = [(torch.randn(ROWS, 6), labels(none=True)) for _ in range(3)]
            batches.append(tuple(t[:3] for t in batches[0]))  # micro-batches have none
            with self.subTest(each):
                self.like_torch(Beside(), batches, None, each).destroy()

    def test_labels_below_0_that_are_no_targets(self) -> None:
        for each in CUTS:
            batches = [(torch.randn(ROWS, 6), labels(none=True)) for _ in range(3)]
            for _, found in batches:
                found[found == -100] = -1
            with self.subTest(each):
                self.like_torch(Scaled(), batches, None, each).destroy()

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
