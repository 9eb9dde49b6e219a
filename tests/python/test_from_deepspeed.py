"""The C program goes on from what DeepSpeed saved: it says how, and what Python makes of
the folder has DeepSpeed's weights, states and steps, bit for bit."""

from __future__ import annotations

import json
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any

from common import HAS_TORCH, SOURCE, InFolder, config, needs_torch

import tranche
from tranche._library import program

if HAS_TORCH:
    import torch

    from tranche.module import deepspeed

FOLDERS = SOURCE / "tests/python/deepspeed"
NAMES = {"0": "layers.0", "2": "layers.1"}  # of the module, and of the library's MLP


def renamed(value: Any) -> Any:
    """The same with the names of the library's model."""
    if isinstance(value, dict):
        return {renamed(key): renamed(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [renamed(inner) for inner in value]
    if isinstance(value, str) and value[:2] in ("0.", "2."):
        return NAMES[value[0]] + value[1:]
    return value


def run_file(**changes: Any) -> str:
    params = {"lr": 0.01, "betas": [0.8, 0.9], "weight_decay": 0.1}
    given = {
        "model": {"model_type": "mlp", "layer_sizes": [6, 5, 3]},
        "optimizer": {"type": "AdamW", "params": params},
        "freeze": ["layers.0.bias"],
        "out": "out",
        **changes,
    }
    Path("run.json").write_text(json.dumps(config(**given)))
    return "run.json"


def command(*words: str) -> Any:
    return subprocess.run(
        [sys.executable, "-m", "tranche", *words], capture_output=True, text=True
    )


class Hint(InFolder):
    def test_the_program_names_the_command(self) -> None:
        run_file()
        for folder in (FOLDERS / "stage2", FOLDERS / "stage2" / "global_step3"):
            done = subprocess.run(
                [program(), "train", "run.json", "--resume", str(folder)],
                capture_output=True,
                text=True,
            )
            self.assertEqual(done.returncode, 5)
            self.assertIn(
                f"python -m tranche from-deepspeed RUN.json {folder} CHECKPOINT",
                done.stderr,
            )


@needs_torch
class Converted(InFolder):
    def theirs(self, stage: int) -> tuple[Path, Any]:
        """DeepSpeed's folder with the library's names, and what is in it."""
        there = FOLDERS / f"stage{stage}" / "global_step3"
        Path("theirs/global_step3").mkdir(parents=True, exist_ok=True)
        Path("theirs/latest").write_text("global_step3")
        for file in there.iterdir():
            kept = renamed(deepspeed._load(str(there), file.name))
            for each in (kept, kept.get("optimizer_state_dict", {})):
                for key in ("zero_stage", "ds_config", "loss_scaler"):
                    if isinstance(each.get(key), deepspeed._Theirs):
                        each[key] = stage
            torch.save(kept, Path("theirs/global_step3") / file.name)
        return Path("theirs"), deepspeed.read("theirs/global_step3")

    def test_weights_states_and_steps(self) -> None:
        for stage in (1, 2, 3):
            with self.subTest(stage=stage):
                folder, saved = self.theirs(stage)
                file = run_file()
                done = command("from-deepspeed", file, str(folder), "made")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("made: after 3 updates", done.stdout)
                with tranche.Run(file, settings={"resume": "made"}).engine() as engine:
                    for name, tensor in engine.tensors.items():
                        found = torch.from_numpy(tensor.read().numpy())
                        self.assertTrue(torch.equal(found, saved.weights[name]), name)
                        for state, values in saved.states.items():
                            if name in values:
                                found = torch.from_numpy(tensor.read(state).numpy())
                                self.assertTrue(torch.equal(found, values[name]), name)
                    self.assertEqual(engine.step().update, 4)
        done = subprocess.run(
            [program(), "train", "run.json", "--resume", "made"],
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("resumed from made", done.stderr)

    def test_what_does_not_fit(self) -> None:
        folder, _ = self.theirs(2)
        wide = {"model_type": "mlp", "layer_sizes": [6, 5, 4, 3]}
        for changes, why in (
            ({"model": wide}, "layers.1.bias is of another shape"),
            ({"freeze": []}, "layers.0.bias not trained"),
        ):
            done = command("from-deepspeed", run_file(**changes), str(folder), "made")
            self.assertEqual(done.returncode, 5, done.stderr)
            self.assertIn("of another model", done.stderr)
            self.assertIn(why, done.stderr)
            self.assertFalse(Path("made").exists())
        done = command("from-deepspeed", run_file(), ".", "made")
        self.assertEqual(done.returncode, 5)
        self.assertIn("no folder that DeepSpeed saved", done.stderr)


if __name__ == "__main__":
    unittest.main()
