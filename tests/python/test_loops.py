"""The programs of examples/python for transformers' Trainer and for TRL's SFTTrainer: on
two ranks of torchrun they come to the losses of what they were before one import
changed."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import unittest
from pathlib import Path
from typing import Any

from common import SOURCE, InFolder
from test_sft import HAS_TRL
from test_trainer import HAS_TRAINER
from test_trainer_ranks import TORCHRUN

HAS_DATASETS = importlib.util.find_spec("datasets") is not None
if HAS_TRAINER:
    import chats
    from transformers import AutoModelForCausalLM

OURS = "from tranche.hf import "
SHARED = ["--per_device_train_batch_size", "2", "--gradient_accumulation_steps", "2"]
SHARED += ["--max_steps", "4", "--logging_steps", "1", "--learning_rate", "1e-2"]
SHARED += ["--use_cpu", "true", "--bf16", "false", "--report_to", "none"]


class Programs(InFolder):
    def setUp(self) -> None:
        super().setUp()
        chats.save("model")
        lines = [json.dumps(chat) for chat in chats.messages()]
        Path("chats.jsonl").write_text("\n".join(lines))
        Path("text.txt").write_text(chats.text())

    def logged(self, script: Path, out: str, *options: str) -> list[dict[str, Any]]:
        done = subprocess.run(
            [*TORCHRUN, str(script), *options, *SHARED, "--output_dir", out],
            capture_output=True,
            text=True,
            timeout=280,
            env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HOME": str(self.folder)},
        )
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        AutoModelForCausalLM.from_pretrained(out)
        state = json.loads(Path(out, "trainer_state.json").read_text())
        return state["log_history"]

    def beside(self, program: str, origin: str, *options: str) -> None:
        ours = SOURCE / "examples/python" / program
        text = ours.read_text()
        self.assertEqual(text.count(OURS), 1)
        theirs = Path("theirs.py")
        theirs.write_text(text.replace(OURS, f"from {origin} import "))
        wanted = self.logged(theirs, "theirs", *options)
        found = self.logged(ours, "ours", *options)
        compared = 0
        for a, b in zip(found, wanted, strict=True):
            for key in ("loss", "eval_loss", "learning_rate"):
                self.assertEqual(key in a, key in b)
                if key in a:
                    self.assertAlmostEqual(a[key], b[key], delta=1e-4, msg=key)
                    compared += 1
        self.assertGreaterEqual(compared, 10)

    @unittest.skipUnless(
        HAS_TRAINER and HAS_DATASETS, "transformers, accelerate or datasets is missing"
    )
    def test_a_language_model(self) -> None:
        options = ["--model", "model", "--text", "text.txt", "--block_size", "16"]
        options += ["--do_train", "--do_eval", "--eval_strategy", "steps"]
        self.beside("language_model.py", "transformers", *options, "--eval_steps", "2")

    @unittest.skipUnless(HAS_TRL, "trl or datasets is not installed")
    def test_chats(self) -> None:
        options = ["--model_name_or_path", "model", "--dataset_name", "chats.jsonl"]
        options += ["--eval_strategy", "steps", "--eval_steps", "2"]
        self.beside("chats_sft.py", "trl", *options)


if __name__ == "__main__":
    unittest.main()
