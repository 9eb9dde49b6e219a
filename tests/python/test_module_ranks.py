"""A PyTorch module on two ranks, each with its share of the rows, comes to what PyTorch
has of all rows."""

from __future__ import annotations

import subprocess
import sys
import unittest
from pathlib import Path

from common import InFolder, needs_mpi, needs_torch

SCRIPT = """
import copy, torch, tranche
from torch import nn

rank = tranche.rank()


def initialize(module, stage, micro):
    config = {
        "train_batch_size": 8,
        "train_micro_batch_size_per_gpu": micro,
        "zero_optimization": {"stage": stage},
        "execution": {"threads": 1},
        "optimizer": {"type": "SGD", "params": {"lr": 0.5}},
    }
    loss = nn.CrossEntropyLoss()
    return tranche.initialize(model=module, config=config, loss=loss)[0]


def step(engine, plain, optimizer):
    x, y = torch.randn(8, 6), torch.randint(0, 4, (8,))
    mine = [(x[i : i + 2], y[i : i + 2]) for i in range(4 * rank, 4 * rank + 4, 2)]
    found = float(engine.train_batch(iter(mine)))
    wanted = nn.functional.cross_entropy(plain(x), y)
    optimizer.zero_grad()
    wanted.backward()
    nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
    optimizer.step()
    assert abs(found - wanted.item()) < 1e-5, (found, wanted)


torch.manual_seed(1)
for stage in (1, 3):
    module = nn.Sequential(nn.Linear(6, 8), nn.Sigmoid(), nn.Linear(8, 4))
    plain = copy.deepcopy(module)
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.5)
    engine = initialize(module, stage, 2)
    for _ in range(3):
        step(engine, plain, optimizer)
    state = engine.module.state_dict()
    for name, values in plain.state_dict().items():
        torch.testing.assert_close(state[name], values, atol=1e-5, rtol=1e-5)
    engine.destroy()
    print("stage", stage, "alike on", rank)

try:
    step(initialize(module, 1, 3), plain, optimizer)
except tranche.Error as error:
    print(error)
"""


@needs_torch
@needs_mpi
class Ranks(InFolder):
    def test_shares_of_a_batch(self) -> None:
        Path("script.py").write_text(SCRIPT)
        command = [sys.executable, "-m", "tranche", "launch", "-n", "2", "script.py"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stderr)
        for stage in (1, 3):
            self.assertEqual(done.stdout.count(f"stage {stage} alike"), 2, done.stdout)
        self.assertEqual(done.stdout.count("equal shares"), 2, done.stdout)


if __name__ == "__main__":
    unittest.main()
