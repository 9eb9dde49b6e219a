"""Lightning's Trainer with the strategy changed and nothing else comes to the losses and
weights that it comes to by itself; its checkpoints go on, here and there."""

from __future__ import annotations

import importlib.util
import logging
import os
import subprocess
import sys
import unittest
import warnings
from pathlib import Path
from typing import Any

from common import HAS_TORCH, InFolder
from test_torchrun import TORCHRUN

import tranche

HAS_LIGHTNING = HAS_TORCH and importlib.util.find_spec("lightning") is not None
needs_lightning = unittest.skipUnless(HAS_LIGHTNING, "lightning is not installed")
USAGE = tranche.Status.USAGE

if HAS_LIGHTNING:
    import lightning
    import torch
    import torch.nn.functional as F
    from torch import nn

    import tranche.lightning

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Classifier(lightning.LightningModule):
        def __init__(self, through: str = "forward") -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
            self.through, self.losses, self.hooks = through, [], []

        def forward(self, x: Any) -> Any:
            return self.net(x)

        def training_step(self, batch: Any, number: int) -> Any:
            x, y = batch
            if self.through == "parts":
                logits = self.net[2](torch.relu(self.net[0](x)))
            else:
                logits = self(x) if self.through == "forward" else self.net(x)
            if self.through == "both":
                logits = self(x)
            loss = F.cross_entropy(logits, y)
            self.losses.append(loss.item())
            return loss

        def validation_step(self, batch: Any, number: int) -> None:
            x, y = batch
            self.log("val", F.cross_entropy(self(x), y))

        def on_before_optimizer_step(self, optimizer: Any) -> None:
            self.hooks.append("before")

        def on_after_backward(self) -> None:
            self.hooks.append("backward")

        def configure_optimizers(self) -> Any:
            made = torch.optim.AdamW(self.parameters(), lr=1e-2)
            return [made], [torch.optim.lr_scheduler.StepLR(made, 1, 0.5)]

    class Manual(Classifier):
        def __init__(self) -> None:
            super().__init__()
            self.automatic_optimization = False

    class OwnBackward(Classifier):
        def backward(self, loss: Any) -> None:
            loss.backward()


def data() -> Any:
    torch.manual_seed(1)
    x = torch.randn(44, 6)  # the last batch is short
    rows = torch.utils.data.TensorDataset(x, (x[:, 0] > 0).long())
    return torch.utils.data.DataLoader(rows, batch_size=8)


def module(kind: Any = None, **given: Any) -> Any:
    torch.manual_seed(0)
    return (kind or Classifier)(**given)


def trainer(strategy: Any, **given: Any) -> Any:
    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    return lightning.Trainer(
        strategy=strategy,
        accelerator="cpu",
        **{"devices": 1, "max_epochs": 3, **quiet, **given},
    )


@needs_lightning
class Trained(InFolder):
    def setUp(self) -> None:
        super().setUp()
        warnings.simplefilter("ignore")

    def close(self, one: Any, other: Any) -> None:
        self.assertEqual(len(one.losses), len(other.losses))
        for a, b in zip(one.losses, other.losses, strict=True):
            self.assertAlmostEqual(a, b, delta=1e-6)
        for a, b in zip(one.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-5)

    def test_the_same_losses_and_weights(self) -> None:
        for given in (
            {},
            {"gradient_clip_val": 0.1},
            {"accumulate_grad_batches": 2},
            {"accumulate_grad_batches": 4, "max_epochs": 2},
        ):
            for through in ("forward", "net"):
                with self.subTest(through=through, **given):
                    alone, ours = module(through=through), module(through=through)
                    one = trainer("auto", **given)
                    one.fit(alone, data(), data())
                    other = trainer(tranche.lightning.Strategy(), **given)
                    other.fit(ours, data(), data())
                    self.close(alone, ours)
                    self.assertEqual(one.global_step, other.global_step)
                    self.assertEqual(alone.hooks, ours.hooks)
                    self.assertAlmostEqual(
                        one.callback_metrics["val"].item(),
                        other.callback_metrics["val"].item(),
                        delta=1e-6,
                    )

    def test_keys_of_the_config_count(self) -> None:
        ours = module()
        trainer(tranche.lightning.Strategy({"bf16": {"enabled": True}})).fit(
            ours, data()
        )
        alone = module()
        trainer("auto").fit(alone, data())
        off = [abs(a - b) for a, b in zip(alone.losses, ours.losses, strict=True)]
        self.assertTrue(1e-6 < max(off) < 0.05, max(off))

    def test_checkpoints_are_lightnings(self) -> None:
        whole = module()
        trainer("auto", max_epochs=4).fit(whole, data())
        half = module()
        saver = SaveAtEnd("half.ckpt")
        first = trainer(tranche.lightning.Strategy(), max_epochs=2, callbacks=[saver])
        first.fit(half, data())
        for strategy in (tranche.lightning.Strategy(), "auto"):
            with self.subTest(strategy=str(strategy)):
                again = module()
                trainer(strategy, max_epochs=4).fit(
                    again, data(), ckpt_path="half.ckpt"
                )
                again.losses = half.losses + again.losses
                self.close(whole, again)

    def test_after_training_the_module_is_its_own(self) -> None:
        ours = module()
        training = trainer(tranche.lightning.Strategy(), max_epochs=1)
        training.fit(ours, data())
        self.assertNotIn("forward", vars(ours))
        before = [p.clone() for p in ours.parameters()]
        found = training.validate(ours, data(), verbose=False)
        self.assertIn("val", found[0])
        training.fit_loop.max_epochs = 2
        training.fit(ours, data())
        for was, now in zip(before, ours.parameters(), strict=True):
            self.assertFalse(torch.equal(was, now))


if HAS_LIGHTNING:

    class SaveAtEnd(lightning.Callback):
        def __init__(self, path: str) -> None:
            self.path = path

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            trainer.save_checkpoint(self.path)


@needs_lightning
class Refusals(InFolder):
    def test_what_is_not_supported(self) -> None:
        warnings.simplefilter("ignore")
        for kind, given, why in (
            (Manual, {}, "automatic optimization"),
            (OwnBackward, {}, "backward of the module"),
            (Classifier, {"precision": "bf16-mixed"}, "say it in the config"),
            (
                Classifier,
                {"gradient_clip_val": 1, "gradient_clip_algorithm": "value"},
                "gradient_clip_algorithm",
            ),
        ):
            with self.refused(USAGE, "tranche.lightning.Strategy", why):
                trainer(tranche.lightning.Strategy(), **given).fit(module(kind), data())

    def test_what_training_step_may_call(self) -> None:
        warnings.simplefilter("ignore")
        for through, why in (
            ("both", "the plan is of one of them"),
            ("parts", "training_step has to call the module"),
        ):
            with self.refused(USAGE, why):
                trainer(tranche.lightning.Strategy()).fit(
                    module(through=through), data()
                )


# Compares losses and weights with those of Lightning's DDPStrategy.
ON_RANKS = """
import logging, sys, warnings
warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
import lightning, torch
from test_lightning import SaveAtEnd, data, module, trainer
from tranche.lightning import RanksStrategy

def trained(strategy, path):
    given = {"accumulate_grad_batches": 2, "gradient_clip_val": 0.1}
    one = module()
    many = trainer(strategy, devices=2, callbacks=[SaveAtEnd(path)], **given)
    many.fit(one, data(), data())
    return one, many

one, many = trained(RanksStrategy({"zero_optimization": {"stage": 3}}), "ours")
if sys.argv[1] == "beside":
    other, others = trained("ddp", "theirs")
    assert many.global_step == others.global_step
    assert len(one.losses) == len(other.losses)
    apart = [abs(a - b) for a, b in zip(one.losses, other.losses)]
    apart += [(a - b).abs().max().item() for a, b in zip(one.parameters(), other.parameters())]
    assert max(apart) < 1e-5, apart
open(f"done-{many.global_rank}", "w").write(f"{many.world_size} {many.global_step}")
"""


@needs_lightning
class Ranks(InFolder):
    def start(self, launcher: list[str], how: str) -> None:
        Path("script.py").write_text(ON_RANKS)
        done = subprocess.run(
            [*launcher, "script.py", how],
            capture_output=True,
            text=True,
            timeout=200,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for rank in range(2):
            self.assertEqual(Path(f"done-{rank}").read_text(), "2 6")

    def test_of_torchrun(self) -> None:
        self.start(TORCHRUN, "beside")
        found, wanted = (
            torch.load(name, weights_only=False) for name in ("ours", "theirs")
        )
        for name, values in wanted["state_dict"].items():
            torch.testing.assert_close(found["state_dict"][name], values)
        (mine,), (theirs,) = found["optimizer_states"], wanted["optimizer_states"]
        for place, states in theirs["state"].items():
            for part, values in states.items():
                torch.testing.assert_close(
                    mine["state"][place][part], values, atol=1e-5, rtol=1e-4
                )

    def test_of_lightning(self) -> None:
        """It starts the second rank itself."""
        self.start([sys.executable], "alone")


if __name__ == "__main__":
    unittest.main()
