"""Ranks that torchrun has started come to the bits of MPI's, and end together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import unittest
from pathlib import Path

from common import InFolder, config, needs_mpi, needs_torch, run_program

from tranche import slurm

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
MPIRUN = [sys.executable, "-m", "tranche", "launch", "-n", "2"]
# Each launcher's agents listen where they like, so that tests do not meet.
TORCHRUN += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]

TRAINS = """
import sys, tranche
given = {"out": sys.argv[1]}
engine = tranche.train("run.json", settings=given, progress=False)
print(f"rank {tranche.rank()} of {tranche.rank_count()}\\n", end="", flush=True)
"""

CLASSIFIER = """
import sys, torch, tranche
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

tranche.init_distributed()
torch.manual_seed(0)
data = TensorDataset(torch.randn(256, 100), torch.randint(0, 10, (256,)))
module = nn.Sequential(nn.Linear(100, 50), nn.ReLU(), nn.Linear(50, 10))
ranks, rank = tranche.rank_count(), tranche.rank()
sampler = DistributedSampler(data, ranks, rank, seed=1)
config = {
    "train_batch_size": 64,
    "train_micro_batch_size_per_gpu": 32,
    "zero_optimization": {"stage": 3},
    "execution": {"threads": 1},
    "optimizer": {"type": "Adam", "params": {"lr": 1e-3}},
}
engine, *_ = tranche.initialize(model=module, config=config)
told = []
for x, y in DataLoader(data, batch_size=32, sampler=sampler):
    loss = nn.functional.cross_entropy(engine(x), y)
    engine.backward(loss)
    engine.step()
    told.append(loss.item())
told.append(sum(values.sum().item() for values in engine.module.state_dict().values()))
print(ranks, rank, told, file=open(f"{sys.argv[1]}-{rank}", "w"))
"""

ENDS = """
import os, sys, time, tranche
def told(result):
    if result.step == 3 and tranche.rank() == 1:
        HOW
try:
    tranche.train("run.json", callbacks=[told], progress=False)
except BaseException as error:
    print(type(error).__name__, getattr(error, "status", None), flush=True)
    open(f"ended-{tranche.rank()}", "w").write(str(time.time()))
    raise
"""


@needs_torch
class Torchrun(InFolder):
    def setUp(self) -> None:
        super().setUp()
        self.given = config(
            execution={"threads": 1},
            train_micro_batch_size_per_gpu=4,
            zero_optimization={"stage": 3},
        )
        Path("run.json").write_text(json.dumps(self.given))

    def start(
        self, launcher: list[str], script: str, *words: str
    ) -> subprocess.CompletedProcess[str]:
        Path("script.py").write_text(script)
        command = [*launcher, "script.py", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=100)

    @needs_mpi
    def test_bits_of_mpi(self) -> None:
        done = self.start(TORCHRUN, TRAINS, "torch")
        self.assertEqual(done.returncode, 0, done.stderr)
        for rank in range(2):
            self.assertIn(f"rank {rank} of 2", done.stdout)
        done = self.start(MPIRUN, TRAINS, "mpi")
        self.assertEqual(done.returncode, 0, done.stderr)
        run_program("diff", "torch", "mpi")

    @needs_mpi
    def test_a_program_for_deepspeed(self) -> None:
        for launcher, name in ((TORCHRUN, "torch"), (MPIRUN, "mpi")):
            done = self.start(launcher, CLASSIFIER, name)
            self.assertEqual(done.returncode, 0, done.stderr)
        for rank in range(2):
            told = Path(f"torch-{rank}").read_text()
            self.assertTrue(told.startswith(f"2 {rank} ["), told)
            self.assertEqual(told, Path(f"mpi-{rank}").read_text())

    def test_a_group_of_another_size(self) -> None:
        """The config is for one rank: both say what would fit, and end."""
        script = CLASSIFIER.replace(
            '"train_micro_batch_size_per_gpu": 32,',
            '"train_micro_batch_size_per_gpu": 32, "gradient_accumulation_steps": 2,',
        )
        done = self.start(TORCHRUN, script, "unused")
        self.assertNotEqual(done.returncode, 0)
        told = "train_batch_size 64 is not train_micro_batch_size_per_gpu 32 x "
        self.assertEqual(done.stderr.count(f"Error: {told}"), 2, done.stderr)
        self.assertIn("what would fit: train_batch_size 128", done.stderr)

    @needs_mpi
    def test_ranks_of_two_launchers(self) -> None:
        place = {"MASTER_ADDR": "localhost", "MASTER_PORT": "1"}
        os.environ.update(RANK="0", WORLD_SIZE="3", **place)
        try:
            done = self.start(MPIRUN, "import tranche; tranche.rank_count()")
        finally:
            for name in ("RANK", "WORLD_SIZE", *place):
                del os.environ[name]
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("has started 2 ranks, and torch.distributed has 3", done.stderr)

    def test_pytorch_s_ranks_that_are_missing(self) -> None:
        told = {"RANK": "0", "WORLD_SIZE": "2", "TRANCHE_START_SECONDS": "2"}
        place = {"MASTER_ADDR": "localhost", "MASTER_PORT": "0"}
        script = "import tranche; tranche.rank_count()"
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            timeout=100,
            env={**os.environ, **told, **place},
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("the ranks of PyTorch do not find each other", done.stderr)

    def slurm(self, rank: int, out: str) -> subprocess.Popen[str]:
        """A rank as srun starts it."""
        told = {
            "SLURM_PROCID": str(rank),
            "SLURM_LOCALID": str(rank),
            "SLURM_STEP_NUM_TASKS": "2",
            "SLURM_STEP_NODELIST": "localhost",
            "SLURM_JOB_ID": str(os.getpid()),
            "SLURM_STEP_ID": "3",
        }
        return subprocess.Popen(
            [sys.executable, "script.py", out],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **told},
        )

    def test_ranks_of_srun(self) -> None:
        Path("script.py").write_text(TRAINS)
        started = [self.slurm(rank, "slurm") for rank in range(2)]
        for rank, each in enumerate(started):
            told, _ = each.communicate(timeout=100)
            self.assertEqual(each.returncode, 0, told)
            self.assertIn(f"rank {rank} of 2", told)
        os.environ.update(SLURM_PROCID="0", SLURM_STEP_NUM_TASKS="3")
        try:  # srun has started an agent of torchrun on each node
            done = self.start(TORCHRUN, TRAINS, "torch")
        finally:
            del os.environ["SLURM_PROCID"], os.environ["SLURM_STEP_NUM_TASKS"]
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("rank 1 of 2", done.stdout)
        run_program("diff", "torch", "slurm")

    @needs_mpi
    def test_ranks_of_mpirun_inside_of_a_step(self) -> None:
        """Its daemons may be other tasks, of which each rank is told."""
        step = {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "5"}
        os.environ.update(step, SLURM_STEP_NODELIST="localhost")
        try:
            told = "import tranche; print('ranks', tranche.rank_count())"
            done = self.start([*MPIRUN], told)
        finally:
            for name in (*step, "SLURM_STEP_NODELIST"):
                del os.environ[name]
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("ranks 2", done.stdout)

    def test_hosts_of_slurm(self) -> None:
        for nodes, first in (
            ("node7", "node7"),
            ("login,node[1-2]", "login"),
            ("node[03-05,08],login1", "node03"),
            ("rack[2-3]n[10,12]", "rack2n10"),
            ("a[4]-ib,b1", "a4-ib"),
        ):
            self.assertEqual(slurm.first_host(nodes), first)

    def ends(self, how: str) -> str:
        endless = {**self.given, "steps": 10**7, "out": "out", "evaluation": {}}
        Path("run.json").write_text(json.dumps(endless))
        begun = time.monotonic()
        done = self.start(TORCHRUN, ENDS.replace("HOW", how))
        self.assertNotEqual(done.returncode, 0)
        self.assertLess(time.monotonic() - begun, 60)
        return done.stdout + done.stderr

    def test_a_killed_rank_ends_all(self) -> None:
        how = "open('killed', 'w').write(str(time.time())); os.kill(os.getpid(), 9)"
        self.ends(how)
        if os.path.exists("ended-0"):  # else torchrun was faster
            killed, ended = (float(Path(n).read_text()) for n in ("killed", "ended-0"))
            self.assertLess(ended - killed, 10)

    def test_an_exception_of_one_rank_ends_all(self) -> None:
        self.assertIn("ValueError: of rank 1", self.ends("raise ValueError('of rank 1')"))


if __name__ == "__main__":
    unittest.main()
