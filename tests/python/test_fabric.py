"""A loop of Lightning's Fabric with the strategy changed and nothing else comes to the
losses and weights that it comes to by itself; its checkpoints go on, here and there."""

from __future__ import annotations

import importlib.util
import unittest
from typing import Any

from common import HAS_TORCH, InFolder

import tranche

HAS_FABRIC = HAS_TORCH and importlib.util.find_spec("lightning") is not None
needs_fabric = unittest.skipUnless(HAS_FABRIC, "lightning is not installed")
USAGE = tranche.Status.USAGE

if HAS_FABRIC:
    import lightning
    import torch
    import torch.nn.functional as F
    from torch import nn

    import tranche.fabric

ROWS, BATCHES = 8, 6


def data() -> Any:
    draw = torch.Generator().manual_seed(3)
    x = torch.randn(ROWS * BATCHES, 6, generator=draw)
    return [
        (x[i : i + ROWS], x[i : i + ROWS].argmax(1) % 3)
        for i in range(0, len(x), ROWS)
    ]


def parts() -> Any:
    torch.manual_seed(5)
    module = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    return module, torch.optim.AdamW(module.parameters(), lr=1e-2)


def train(
    strategy: Any, accumulate: int = 1, load: str = "", save: str = "", steps: int = 6
) -> Any:
    """The script: losses, a validation loss for each step, and the weights."""
    fabric = lightning.Fabric(strategy=strategy, accelerator="cpu", devices=1)
    model, optimizer = fabric.setup(*parts())
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.7)
    state = {"model": model, "optimizer": optimizer}
    if load:
        fabric.load(load, state)
    losses, seen = [], []
    for number, (x, y) in enumerate(data()[:steps]):
        loss = F.cross_entropy(model(x), y)
        fabric.backward(loss / accumulate)
        losses.append(loss.item())
        if (number + 1) % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
        model.eval()
        with torch.no_grad():
            seen.append(F.cross_entropy(model(data()[0][0]), data()[0][1]).item())
        model.train()
    if save:
        fabric.save(save, state)
    weights = fabric.strategy.get_module_state_dict(model.module)
    return losses, seen, weights


@needs_fabric
class Fabric(InFolder):
    def alike(self, one: Any, other: Any) -> None:
        for mine, its in zip(one[:2], other[:2], strict=True):
            self.assertEqual(len(mine), len(its))
            for a, b in zip(mine, its, strict=True):
                self.assertAlmostEqual(a, b, delta=1e-5)
        self.assertEqual(set(one[2]), set(other[2]))
        for name, values in one[2].items():
            torch.testing.assert_close(values, other[2][name], atol=1e-5, rtol=1e-5)

    def test_the_same_losses_and_weights(self) -> None:
        self.alike(train(tranche.fabric.Strategy()), train("auto"))

    def test_accumulation(self) -> None:
        ours = tranche.fabric.Strategy({"gradient_accumulation_steps": 2})
        self.alike(train(ours, accumulate=2), train("auto", accumulate=2))

    def test_checkpoints_go_on_here_and_there(self) -> None:
        ours = tranche.fabric.Strategy
        first = train(ours(), save="ours.ckpt", steps=3)
        self.alike(first, train("auto", save="theirs.ckpt", steps=3))
        wanted = train("auto", load="theirs.ckpt")
        for strategy, file in (
            (ours(), "ours.ckpt"),
            (ours(), "theirs.ckpt"),
            ("auto", "ours.ckpt"),
        ):
            self.alike(train(strategy, load=file), wanted)

    def refused(self, words: str, work: Any) -> None:
        with self.assertRaises(tranche.Error) as found:
            work()
        self.assertEqual(found.exception.status, USAGE)
        self.assertIn(words, str(found.exception))

    def test_what_is_refused(self) -> None:
        def fabric(**more: Any) -> Any:
            return lightning.Fabric(
                strategy=tranche.fabric.Strategy(), accelerator="cpu", devices=1, **more
            )

        self.refused("together", lambda: fabric().setup_module(parts()[0]))
        self.refused(
            'leave it out, and say it in the config, as {"bf16"',
            lambda: fabric(precision="bf16-true").setup(*parts()),
        )
        module, optimizer = parts()
        other = torch.optim.SGD(module.parameters(), lr=1e-2)
        self.refused(
            "one module with one optimizer",
            lambda: fabric().setup(module, optimizer, other),
        )
        one = fabric()
        model, planned = one.setup(*parts())
        self.refused("call fabric.backward first", planned.step)
        x, y = data()[0]
        loss = F.cross_entropy(model(x), y)
        self.refused("retain_graph alone", lambda: one.backward(loss, create_graph=True))
        one.backward(loss)
        self.refused(
            'say {"gradient_clipping": NORM}',
            lambda: one.clip_gradients(model, planned, max_norm=1.0),
        )
        # A second micro-batch where the plan has one.
        self.refused(
            "gradient_accumulation_steps",
            lambda: one.backward(F.cross_entropy(model(x), y)),
        )
        planned.step()


if __name__ == "__main__":
    unittest.main()
