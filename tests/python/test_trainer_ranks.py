"""tranche.hf.Trainer on two ranks of torchrun comes to the losses of transformers' own,
resumes, and ends whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any

from common import InFolder
from test_trainer import HAS_TRAINER, needs_trainer

if HAS_TRAINER:
    import torch
    import transformers

TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
TORCHRUN += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]

RANKS = """
import sys, json, torch
sys.path.insert(0, sys.argv[1])
import test_trainer as t
import transformers
from tranche import hf
kind = hf if sys.argv[2] == "hf" else transformers
class Told(transformers.TrainerCallback):
    def on_step_end(self, args, state, control, **named):
        HOW
more = json.loads(sys.argv[3])
resume = more.pop("resume", None)
evaluated_on = t.texts(9, 7)
if more.pop("even", False):  # then the mean is that of any number of ranks
    evaluated_on = [{k: ids[:6] for k, ids in text.items()} for text in t.texts(16, 7)]
trained_on = t.texts(42)
if more.pop("stream", False):
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(t.texts(42))
    trained_on = Stream()
trainer = kind.Trainer(
    model=t.language_model(),
    args=t.arguments(kind.TrainingArguments, sys.argv[2], **more),
    train_dataset=trained_on, eval_dataset=evaluated_on, data_collator=t.collated,
    callbacks=[Told()],
)
trainer.train(resume_from_checkpoint=resume)
trainer.save_model(sys.argv[2] + "-model")
told = t.logged(trainer, "eval_loss") + [trainer.evaluate()["eval_loss"]]
told += [trainer.state.num_input_tokens_seen, trainer.state.total_flos / 1e9]
if trainer.args.process_index == 0:
    json.dump(t.logged(trainer) + told, open(sys.argv[2] + ".json", "w"))
"""


class OnRanks(InFolder):
    def start(
        self, kind: str, how: str = "pass", ranks: int = 2, **more: Any
    ) -> subprocess.CompletedProcess[str]:
        Path("script.py").write_text(RANKS.replace("HOW", how))
        here = str(Path(__file__).parent)
        return subprocess.run(
            [*TORCHRUN, "--nproc-per-node", str(ranks), "script.py", here, kind, json.dumps(more)],
            capture_output=True,
            text=True,
            timeout=200,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def told(self, kind: str, **more: Any) -> list[float]:
        done = self.start(kind, **more)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        found: list[float] = json.loads(Path(f"{kind}.json").read_text())
        return found

    def alike(self, found: list[float], wanted: list[float]) -> None:
        self.assertEqual(len(found), len(wanted))
        for a, b in zip(found, wanted, strict=True):
            self.assertAlmostEqual(a, b, delta=1e-4)

    def same_models(self) -> None:
        load = transformers.LlamaForCausalLM.from_pretrained
        ours, theirs = load("hf-model").state_dict(), load("theirs-model").state_dict()
        for name, values in ours.items():
            torch.testing.assert_close(values, theirs[name], atol=1e-4, rtol=1e-3)


@needs_trainer
class TwoRanks(OnRanks):
    def test_losses_stages_and_resuming(self) -> None:
        epochs = {"max_steps": -1, "num_train_epochs": 2, "eval_strategy": "epoch"}
        wanted = self.told("theirs", **epochs)
        zero = {"zero_optimization": {"stage": 3}}
        saving = {"save_strategy": "steps", "save_steps": 5, "deepspeed": zero}
        found = self.told("hf", **epochs, **saving)
        self.alike(found, wanted)
        self.same_models()
        again = self.told("hf", **epochs, **saving, resume="hf/checkpoint-5")
        self.assertEqual(again, found)

    def test_a_callback_that_raises_ends_all(self) -> None:
        how = "if args.process_index == 1: raise ValueError('of rank 1')"
        done = self.start("hf", how)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("ValueError: of rank 1", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
