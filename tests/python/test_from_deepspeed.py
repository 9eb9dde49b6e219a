"""The C program goes on from what DeepSpeed saved (tools/goldens/deepspeed_folders.py),
without Python's pickles: to the losses and weights that DeepSpeed came to. And Python
makes a checkpoint of such a folder."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any

from common import HAS_MPI, HAS_TORCH, SOURCE, InFolder, config, needs_torch

import tranche
from tranche._library import program

if HAS_TORCH:
    import torch

    from tranche.module import deepspeed

sys.path.insert(0, str(SOURCE / "tools/goldens"))
import deepspeed_folders as made  # noqa: E402

FOLDERS = SOURCE / "tests/data/deepspeed"
FIRST = made.STEPS * made.RANKS * made.ROWS  # row of the first step that goes on
LAST = 2 * FIRST


def run_file(**changes: Any) -> str:
    """The run that goes on, on the rows that DeepSpeed had in its next steps."""
    rows = [
        [*(math.sin(row * k) for k in range(1, 7)), row % 3]
        for row in range(FIRST, LAST)
    ]
    text = "\n".join(",".join(map(str, row)) for row in rows)
    Path("rows.csv").write_text(text + "\n")
    params = {"lr": 0.01, "betas": [0.8, 0.9], "weight_decay": 0.1}
    given = {
        "model": {"model_type": "mlp", "layer_sizes": [6, 5, 3]},
        "data": {"format": "csv", "train": "rows.csv", "order": "sequential"},
        "steps": 2 * made.STEPS,
        "train_batch_size": made.RANKS * made.ROWS,
        "gradient_accumulation_steps": made.RANKS,
        "gradient_clipping": 1.0,
        "optimizer": {"type": "AdamW", "params": params},
        "freeze": ["layers.0.bias"],
        "execution": {"threads": 1},
        "out": "out",
        **changes,
    }
    given = config(**given)
    del given["evaluation"]
    Path("run.json").write_text(json.dumps(given))
    return "run.json"


def train(folder: Path | str, *before: str, **changes: Any) -> Any:
    shutil.rmtree("out", ignore_errors=True)
    return subprocess.run(
        [*before, program(), "train", run_file(**changes), "--resume", str(folder)],
        capture_output=True,
        text=True,
    )


def command(*words: str) -> Any:
    return subprocess.run(
        [sys.executable, "-m", "tranche", *words], capture_output=True, text=True
    )


class GoesOn(InFolder):
    def same_as_theirs(self, stage: int) -> None:
        told = json.loads((FOLDERS / f"stage{stage}.json").read_text())
        lines = Path("out/metrics.jsonl").read_text().splitlines()
        told_here = [json.loads(line) for line in lines]
        losses = [line["loss"] for line in told_here if line["kind"] == "step"]
        for found, wanted in zip(losses, told["losses"], strict=True):
            self.assertAlmostEqual(found, wanted, delta=1e-5)
        settings = {"resume": "out/checkpoints/latest"}
        with tranche.Run("run.json", settings=settings).engine() as engine:
            self.assertEqual(engine.steps_done, 2 * made.STEPS)
            for name, tensor in engine.tensors.items():
                values = tensor.read().memoryview().cast("B").cast("f")
                for found, wanted in zip(values, told["weights"][name], strict=True):
                    self.assertAlmostEqual(found, wanted, delta=1e-5)

    def test_each_stage(self) -> None:
        for stage in (0, 1, 2, 3):
            for inner in ("", "global_step3"):
                with self.subTest(stage=stage, inner=inner):
                    folder = FOLDERS / f"stage{stage}" / inner
                    done = train(folder)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertIn(f"ZeRO {stage}, 3 updates", done.stderr)
                    self.assertIn("(step 3)", done.stderr)
                    self.same_as_theirs(stage)

    @unittest.skipUnless(HAS_MPI, "the library was built without MPI")
    def test_on_two_ranks(self) -> None:
        if not shutil.which("mpirun"):
            self.skipTest("mpirun is not installed")
        ranks = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
        changes = {
            "gradient_accumulation_steps": 1,
            "zero_optimization": {"stage": 3},
        }
        done = train(FOLDERS / "stage2", *ranks, **changes)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.same_as_theirs(2)


class Refused(InFolder):
    def says(self, done: Any, *words: str) -> None:
        self.assertEqual(done.returncode, 5, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertFalse(Path("out/checkpoints").exists())

    def copy(self, stage: int) -> Path:
        shutil.rmtree("theirs", ignore_errors=True)
        shutil.copytree(FOLDERS / f"stage{stage}", "theirs")
        return Path("theirs/global_step3")

    def test_of_another_run(self) -> None:
        wide = {"model_type": "mlp", "layer_sizes": [6, 5, 4]}
        deep = {"model_type": "mlp", "layer_sizes": [6, 5, 3, 3]}
        flat = {"model_type": "mlp", "layer_sizes": [6, 5]}
        lion = {"type": "Lion", "params": {"lr": 0.01}}
        for changes, why in (
            ({"model": wide}, "layers.1.weight [3, 5] has another shape"),
            ({"model": deep}, "layers.2.weight is missing"),
            ({"model": flat}, "it trains layers.1."),
            ({"freeze": []}, "has layers.0.bias not trained"),
            ({"freeze": ["layers.0.*"]}, "has layers.0.weight trained"),
            ({"optimizer": lion}, "keeps exp_avg_sq"),
        ):
            with self.subTest(why=why):
                self.says(train(FOLDERS / "stage2", **changes), why)
        for changes, why in (
            ({"freeze": []}, "are of other shapes"),
            ({"freeze": ["layers.0.*"]}, "of other shapes"),
        ):
            with self.subTest(why=why):
                self.says(train(FOLDERS / "stage0", **changes), why)

    def test_ranks_that_are_missing(self) -> None:
        rank = "zero_pp_rank_{}_mp_rank_00_{}_states.pt"
        for stage, number, kind, why in (
            (2, 1, "optim", "has 1 of 2 files of ranks"),
            (1, 0, "optim", "has no file of rank 0"),
            (3, 1, "model", "has 1 files of the model for 2 ranks"),
        ):
            folder = self.copy(stage)
            (folder / rank.format(number, kind)).unlink()
            with self.subTest(why=why):
                self.says(train("theirs"), "DeepSpeed saved this folder", why)

    def test_damaged_files(self) -> None:
        for stage, name in (
            (2, "mp_rank_00_model_states.pt"),
            (2, "zero_pp_rank_1_mp_rank_00_optim_states.pt"),
            (3, "zero_pp_rank_1_mp_rank_00_model_states.pt"),
        ):
            file = self.copy(stage) / name
            good = file.read_bytes()
            file.write_bytes(good[: len(good) // 2])
            self.says(train("theirs"), str(file), "damaged")
            changed = bytearray(good)
            changed[changed.index(b"data.pkl") + 100] ^= 1
            file.write_bytes(changed)
            self.says(train("theirs"), str(file), "is damaged: the CRC of its entry")

    def test_of_a_model_in_parts(self) -> None:
        folder = self.copy(1)
        model = folder / "mp_rank_00_model_states.pt"
        shutil.copy(model, folder / "mp_rank_01_model_states.pt")
        self.says(train("theirs"), "mp_rank_01_model_states.pt is of a model that is")

    def test_the_latest_is_not_said(self) -> None:
        self.copy(1)
        Path("theirs/latest").write_text("../global_step3\n")
        self.says(train("theirs"), "give the folder of a step")

    def test_who_only_reads_weights(self) -> None:
        done = subprocess.run(
            [program(), "evaluate", str(FOLDERS / "stage2"), "--data", "x.csv"],
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("tranche train RUN.json --resume", done.stderr)


class Converted(InFolder):
    @needs_torch
    def test_weights_states_and_steps(self) -> None:
        for stage in (1, 2, 3):
            with self.subTest(stage=stage):
                folder = FOLDERS / f"stage{stage}"
                saved = deepspeed.read(str(folder / "global_step3"))
                file = run_file()
                done = command("from-deepspeed", file, str(folder), "made")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("made: after 3 steps", done.stdout)
                with tranche.Run(file, settings={"resume": "made"}).engine() as engine:
                    for name, tensor in engine.tensors.items():
                        found = torch.from_numpy(tensor.read().numpy())
                        self.assertTrue(torch.equal(found, saved.weights[name]), name)
                        for state, values in saved.states.items():
                            if name in values:
                                found = torch.from_numpy(tensor.read(state).numpy())
                                self.assertTrue(torch.equal(found, values[name]), name)
                    self.assertEqual(engine.step().update, 4)

    def test_what_does_not_fit(self) -> None:
        folder = str(FOLDERS / "stage2")
        done = command("from-deepspeed", run_file(freeze=[]), folder, "made")
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("of another model", done.stderr)
        self.assertFalse(Path("made").exists())
        done = command("from-deepspeed", run_file(), ".", "made")
        self.assertEqual(done.returncode, 5)
        self.assertIn("no folder that DeepSpeed saved", done.stderr)


if __name__ == "__main__":
    unittest.main()
