"""The programs of examples/python for transformers' Trainer and for TRL's SFTTrainer: on
two ranks of torchrun they come to the losses of what they were before one import
changed."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any

from common import HAS_MPI, SOURCE, InFolder
from test_sft import HAS_TRL
from test_trainer import HAS_TRAINER
from test_trainer_ranks import TORCHRUN

HAS_DATASETS = importlib.util.find_spec("datasets") is not None
if HAS_TRAINER:
    import chats
    from transformers import AutoModelForCausalLM

AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
STEP = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NODELIST": "localhost"}
STEP.update(SLURM_JOB_ID=str(os.getpid()), SLURM_STEP_ID="4")
OURS = "from tranche.hf import "
BLOCKS = ["--model", "model", "--text", "text.txt", "--block_size", "16", "--do_train"]
SHARED = ["--per_device_train_batch_size", "2", "--gradient_accumulation_steps", "2"]
SHARED += ["--max_steps", "4", "--logging_steps", "1", "--learning_rate", "1e-2"]
SHARED += ["--use_cpu", "true", "--bf16", "false", "--report_to", "none"]


def port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


needs_datasets = unittest.skipUnless(
    HAS_TRAINER and HAS_DATASETS, "transformers, accelerate or datasets is missing"
)


class Trained(InFolder):
    def setUp(self) -> None:
        super().setUp()
        chats.save("model")
        lines = [json.dumps(chat) for chat in chats.messages()]
        Path("chats.jsonl").write_text("\n".join(lines))
        Path("text.txt").write_text(chats.text())

    def start(self, words: list[str], out: str, **told: str) -> subprocess.Popen[str]:
        shared = {"OMP_NUM_THREADS": "1", "HF_HOME": str(self.folder)}
        return subprocess.Popen(
            [*words, *SHARED, "--output_dir", out],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **shared, **told},
        )

    def logged(self, out: str, *started: subprocess.Popen[str]) -> list[dict[str, Any]]:
        for each in started:
            told, _ = each.communicate(timeout=280)
            self.assertEqual(each.returncode, 0, told[-3000:])
            self.told = told
        AutoModelForCausalLM.from_pretrained(out)
        state = json.loads(Path(out, "trainer_state.json").read_text())
        found: list[dict[str, Any]] = state["log_history"]
        return found


class Programs(Trained):
    def beside(self, program: str, origin: str, *options: str) -> None:
        ours = SOURCE / "examples/python" / program
        text = ours.read_text()
        self.assertEqual(text.count(OURS), 1)
        theirs = Path("theirs.py")
        theirs.write_text(text.replace(OURS, f"from {origin} import "))
        words = [*TORCHRUN, str(theirs), *options]
        wanted = self.logged("theirs", self.start(words, "theirs"))
        words = [*TORCHRUN, str(ours), *options]
        found = self.logged("ours", self.start(words, "ours"))
        compared = 0
        for a, b in zip(found, wanted, strict=True):
            for key in ("loss", "eval_loss", "learning_rate"):
                self.assertEqual(key in a, key in b)
                if key in a:
                    self.assertAlmostEqual(a[key], b[key], delta=1e-4, msg=key)
                    compared += 1
        self.assertGreaterEqual(compared, 10)

    @needs_datasets
    def test_a_language_model(self) -> None:
        options = [*BLOCKS, "--do_eval", "--eval_strategy", "steps"]
        self.beside("language_model.py", "transformers", *options, "--eval_steps", "2")

    @unittest.skipUnless(HAS_TRL, "trl or datasets is not installed")
    def test_chats(self) -> None:
        options = ["--model_name_or_path", "model", "--dataset_name", "chats.jsonl"]
        options += ["--eval_strategy", "steps", "--eval_steps", "2"]
        self.beside("chats_sft.py", "trl", *options)


@needs_datasets
class Launchers(Trained):
    """Two ranks of other launchers come to the losses of torchrun's."""

    def losses(self, found: list[dict[str, Any]]) -> list[float]:
        return [each["loss"] for each in found if "loss" in each]

    def test_launchers(self) -> None:
        words = [str(SOURCE / "examples/python/language_model.py"), *BLOCKS]
        wanted = self.losses(self.logged("t", self.start([*TORCHRUN, *words], "t")))
        launch = [sys.executable, "-m", "accelerate.commands.launch"]
        ways = {"accelerate": [*launch, "--multi_gpu", "--main_process_port", port()]}
        if HAS_MPI and shutil.which("mpirun"):
            Path("hosts.txt").write_text("localhost slots=2\n")
            ways["hosts"] = [*launch, "--cpu", "--mpirun_hostfile", "hosts.txt"]
            ways["launch"] = [sys.executable, "-m", "tranche", "launch", "-n", "2"]
        for name, way in ways.items():
            more = ["--num_processes", "2"] if "accelerate" in way[2] else []
            with self.subTest(name):
                started = self.start([*way, *more, *words], name, **AS_ROOT)
                self.assertEqual(self.losses(self.logged(name, started)), wanted)
        with self.subTest("srun"):
            both = []
            for rank in "01":
                told = {"SLURM_PROCID": rank, "SLURM_LOCALID": rank, **STEP}
                both.append(self.start([sys.executable, *words], "srun", **told))
            self.assertEqual(self.losses(self.logged("srun", *both)), wanted)
        with self.subTest("one process"):
            way = [*launch, "--cpu", "--num_processes", "2", *words]
            self.logged("one", self.start(way, "one"))
            self.assertIn("has started one process", self.told)


if __name__ == "__main__":
    unittest.main()
