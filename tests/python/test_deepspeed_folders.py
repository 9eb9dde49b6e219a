"""Folders that DeepSpeed saved on two ranks, of each stage of ZeRO, go on to the losses
and weights that DeepSpeed came to (tools/goldens/deepspeed_folders.py made them)."""

from __future__ import annotations

import json
import os
import shutil
import sys
import unittest
from pathlib import Path
from typing import Any

from common import HAS_TORCH, SOURCE, InFolder, needs_torch

import tranche

if HAS_TORCH:
    import torch
    import torch.nn.functional as F

sys.path.insert(0, str(SOURCE / "tools/goldens"))
import deepspeed_folders as made  # noqa: E402

IO = tranche.Status.IO
FOLDERS = SOURCE / "tests/data/deepspeed"


@needs_torch
class Folders(InFolder):
    def engine(self, module: Any, **changes: Any) -> Any:
        """One rank with the rows of both, as two micro-batches."""
        config = made.config(0)
        del config["optimizer"]["params"]["torch_adam"]
        config["gradient_accumulation_steps"] = made.RANKS
        config.update(execution={"threads": 1}, **changes)
        parameters = [p for p in module.parameters() if p.requires_grad]
        engine, *_ = tranche.initialize(
            model=module, model_parameters=parameters, config=config
        )
        return engine

    def step(self, engine: Any, number: int) -> float:
        losses = []
        for rank in range(made.RANKS):
            x, y = made.rows(number, rank)
            loss = F.cross_entropy(engine(x), y)
            engine.backward(loss)
            engine.step()
            losses.append(loss.item())
        return sum(losses) / len(losses)

    def goes_on(self, engine: Any, stage: int) -> None:
        told = json.loads((FOLDERS / f"stage{stage}.json").read_text())
        path, client = engine.load_checkpoint(FOLDERS / f"stage{stage}")
        self.assertTrue(path.endswith("global_step3"))
        self.assertEqual(client, {"epoch": 4})
        self.assertEqual(engine.global_steps, 3)
        for i, wanted in enumerate(told["losses"]):
            found = self.step(engine, made.STEPS + i)
            self.assertAlmostEqual(found, wanted, delta=1e-5)
        for name, values in engine.module.state_dict().items():
            wanted = torch.tensor(told["weights"][name]).view(values.shape)
            torch.testing.assert_close(values, wanted, atol=1e-5, rtol=1e-4)

    def test_before_the_first_batch(self) -> None:
        for stage in (1, 2, 3):
            with self.subTest(stage=stage):
                self.goes_on(self.engine(made.module()), stage)

    def test_in_a_run_that_is_at_work(self) -> None:
        engine = self.engine(made.module(), zero_optimization={"stage": 3})
        self.step(engine, 9)
        self.goes_on(engine, 3)
        engine.save_checkpoint("ours")
        again = self.engine(made.module())
        again.load_checkpoint("ours")
        self.assertEqual(self.step(again, 6), self.step(engine, 6))

    def test_what_does_not_fit(self) -> None:
        other, more, wide = made.module(), made.module(), made.module()
        del other.layers[1].bias
        other.layers[1].bias = None
        more.layers.append(torch.nn.Linear(3, 3))
        wide.layers[1] = torch.nn.Linear(5, 4)
        for module, why in (
            (more, "layers.2.bias is missing"),
            (wide, "layers.1.bias is of another shape"),
            (other, "the module has no layers.1.bias"),
        ):
            with self.refused(IO, "of another module", why):
                self.engine(module).load_checkpoint(FOLDERS / "stage2")

    def test_folders_of_another_form(self) -> None:
        engine = self.engine(made.module())
        with self.refused(IO, "DeepSpeed saved this folder", "no optimizer of ZeRO"):
            engine.load_checkpoint(FOLDERS / "stage0")
        for name, why in (
            ("zero_pp_rank_1_mp_rank_00_optim_states.pt", "1 of 2 files"),
            ("zero_pp_rank_0_mp_rank_00_optim_states.pt", "no optimizer of ZeRO"),
        ):
            shutil.copytree(FOLDERS / "stage2", "cut", dirs_exist_ok=True)
            os.remove(Path("cut/global_step3") / name)
            if "optimizer" in why:
                for each in Path("cut/global_step3").glob("*optim*"):
                    each.unlink()
            with self.refused(IO, "DeepSpeed saved this folder", why):
                engine.load_checkpoint("cut")


if __name__ == "__main__":
    unittest.main()
