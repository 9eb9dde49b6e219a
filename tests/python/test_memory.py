"""Weights are in the process once: what a module had of them goes back to the system when
the engine takes them, and the engine's when the module has its own again."""

from __future__ import annotations

import unittest
from typing import Any

from common import HAS_TORCH, needs_torch, run_python
from modules import Modules, config

import tranche

if HAS_TORCH:
    import torch
    from torch import nn

# MiB of a process beside a module's weights and the engine's ledger, before the first
# step and at most. The module's 64 MiB are in pieces of 1 MiB.
MEMORY = """
import tranche, torch
from torch import nn

def told(key):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(key))

def made(layers):
    return nn.Sequential(*[nn.Linear(512, 512) for _ in range(layers)])

def trained(module):
    settings = {"train_batch_size": 4}
    engine = tranche.initialize(model=module, config=settings, loss=nn.MSELoss())[0]
    x = torch.randn(4, 512)
    engine.train_batch(iter([(x, x)]))
    return engine

trained(made(1)).destroy()
before = told("VmRSS")
module = made(64)
engine = trained(module)
rows = [row for row in engine.plan.ledger if row.category == "total"]
ledger = sum(row.bytes for row in rows if row.space != "nvme")
print((told("VmRSS") - before - ledger) >> 20)
engine.destroy()
print((told("VmHWM") - before - ledger) >> 20)
print((told("VmRSS") - before) >> 20)
"""

# The most that a process has had, in bytes, after a step within a budget of so many
# bytes (0: without one), or what is wrong with the budget.
WITHIN = """
import sys
import tranche, torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(512, 512), nn.Linear(512, 512)

    def forward(self, x):
        gelu = nn.functional.gelu
        return x + gelu(self.second(gelu(self.first(x))))

settings = {"train_batch_size": 4096, "train_micro_batch_size_per_gpu": 4096}
if int(sys.argv[1]):
    settings["memory"] = {"total": int(sys.argv[1])}
module = nn.Sequential(*[Block() for _ in range(12)])
engine = tranche.initialize(model=module, config=settings, loss=nn.MSELoss())[0]
x = torch.randn(4096, 512)
try:
    engine.train_batch(iter([(x, x)]))
except tranche.Error as error:
    print(error.status.name, error)
    sys.exit()
with open("/proc/self/status") as file:
    print(next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM")))
"""


def within(budget: int) -> str:
    done = run_python(WITHIN, str(budget), timeout=110)
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


@needs_torch
class Budgets(unittest.TestCase):
    def test_a_budget_counts_what_python_takes(self) -> None:
        free = int(within(0))
        budget = free - (64 << 20)
        self.assertLess(int(within(budget)), budget)

    def test_a_budget_that_python_alone_exceeds(self) -> None:
        self.assertIn("BUDGET no plan fits the budgets", within(200 << 20))


@needs_torch
class Once(Modules):
    def trained(self) -> tuple[Any, dict[str, Any]]:
        torch.manual_seed(0)
        module = nn.Sequential(*[nn.Linear(64, 64) for _ in range(4)])
        adam = {"type": "Adam", "params": {"lr": 1e-2}}
        settings = config(optimizer=adam)
        engine = tranche.initialize(model=module, config=settings, loss=nn.MSELoss())[0]
        rows = settings["train_batch_size"]
        x = torch.randn(rows, 64)
        engine.train_batch(iter([(x, x)]))
        return engine, {n: v.clone() for n, v in module.named_parameters()}

    def test_the_process_has_no_second_copy(self) -> None:
        done = run_python(MEMORY, timeout=110)
        self.assertEqual(done.returncode, 0, done.stderr)
        beside, most, left = map(int, done.stdout.split())
        self.assertLess(beside, 32)
        self.assertLess(most, 32)
        self.assertLess(left, 64 + 32)

    def test_a_view_outlives_the_engine(self) -> None:
        engine, values = self.trained()
        state = engine.module.state_dict()
        view = engine.module[1].weight.detach()[3:5]
        with engine.whole():
            pass
        later = engine.module[1].weight.detach()
        engine.destroy()
        for name, value in engine.module.named_parameters():
            self.assertTrue(torch.equal(value, values[name]), name)
            self.assertTrue(torch.equal(state[name], values[name]), name)
        self.assertTrue(torch.equal(view, values["1.weight"][3:5]))
        self.assertTrue(torch.equal(later, values["1.weight"]))

    def test_an_end_comes_twice(self) -> None:
        engine, values = self.trained()
        weights = engine._weights
        weights.give_back()
        weights.give_back()
        for name, value in engine.module.named_parameters():
            self.assertTrue(torch.equal(value, values[name]), name)
        engine.destroy()


if __name__ == "__main__":
    unittest.main()
