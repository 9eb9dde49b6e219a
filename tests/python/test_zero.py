"""Modules that are made inside of zero.Init: their weights have no memory until the
engine takes them."""

from __future__ import annotations

import copy
import unittest
from typing import Any

from common import HAS_TORCH, InFolder, needs_torch, run_python
from modules import CUTS, ROWS, Modules, config

import tranche

if HAS_TORCH:
    import torch
    from torch import nn

WIDE = 160  # a matrix of so many rows and columns is large

if HAS_TORCH:

    class Net(nn.Module):
        """Drawn twice, tied, with a buffer and an attribute."""

        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(6, WIDE)
            self.blocks = nn.Sequential(*[nn.Linear(WIDE, WIDE) for _ in range(3)])
            self.blocks.append(nn.Linear(WIDE, WIDE, bias=False))
            self.blocks[3].weight = self.blocks[2].weight
            self.register_buffer("ones", torch.ones(WIDE, WIDE))
            self.eye = torch.eye(WIDE)
            self.head = nn.Linear(WIDE, 3)
            self.apply(self.draw)
            nn.init.orthogonal_(self.blocks[1].weight)
            nn.init.trunc_normal_(self.blocks[2].weight, std=0.05, b=0.1)
            with torch.no_grad():
                self.blocks[0].weight[:3] = 0.25

        def draw(self, module: Any) -> None:
            if isinstance(module, nn.Linear):
                module.weight.data.normal_(0, 0.1)
                if module.bias is not None:
                    nn.init.constant_(module.bias, 0.01)

        def forward(self, x: Any) -> Any:
            x = torch.relu(self.first(x)) @ self.eye
            return self.head(torch.tanh(self.blocks(x)) * self.ones.mean())


def made() -> Any:
    torch.manual_seed(7)
    with tranche.zero.Init(config_dict_or_path=config()):
        return Net()


def batch() -> tuple[Any, Any]:
    return torch.randn(ROWS, 6), torch.randint(0, 3, (ROWS,))


# Of a module whose weights are 512 MiB: what the process takes for it, and then what it
# takes at most while an engine trains one of 64 MiB, beside that engine's ledger.
MEMORY = """
import tranche, torch
from torch import nn

def told(key):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(key))

def made(layers):
    with tranche.zero.Init():
        return nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(layers)])

def trained(module, rows=4):
    config = {"train_batch_size": rows, "zero_optimization": {"stage": 3}}
    engine = tranche.initialize(model=module, config=config, loss=nn.MSELoss())[0]
    x = torch.randn(rows, 1024)
    engine.train_batch(iter([(x, x)]))
    return engine

trained(made(1)).destroy()
before = told("VmRSS")
large = made(128)
print((told("VmRSS") - before) >> 20)
before = told("VmRSS")
engine = trained(made(16))
rows = [row for row in engine.plan.ledger if row.category == "total"]
ledger = sum(row.bytes for row in rows if row.space != "nvme")
print((told("VmHWM") - before - ledger) >> 20)
"""


@needs_torch
class Init(Modules):
    def whole(self, module: Any) -> Any:
        with tranche.zero.GatheredParameters(module.parameters(), modifier_rank=0):
            for table in (module.__dict__, module._buffers):
                for name in ("ones", "eye"):
                    if name in table:
                        table[name] = torch.eye(WIDE) if name == "eye" else torch.ones(WIDE, WIDE)
            return copy.deepcopy(module)

    def test_trains_as_what_it_draws(self) -> None:
        plain = self.whole(made())
        cut = plain.blocks[2].weight
        self.assertAlmostEqual(cut.median().item(), 0.0, delta=0.005)
        self.assertLessEqual(cut.max().item(), 0.1)
        self.assertTrue((plain.blocks[0].weight[:3] == 0.25).all())
        rows = plain.blocks[1].weight @ plain.blocks[1].weight.T
        torch.testing.assert_close(rows, torch.eye(WIDE), atol=1e-4, rtol=1e-4)
        self.assertIs(plain.blocks[3].weight, plain.blocks[2].weight)
        start = plain.state_dict()
        for each in CUTS:
            module = made()
            self.assertTrue(module.blocks[0].weight.is_meta)
            self.assertFalse(module.first.bias.is_meta)  # a small one
            optimizer = torch.optim.SGD(module.parameters(), lr=0.0)
            engine = tranche.initialize(
                model=module, config=config(**each), optimizer=optimizer,
                loss=nn.CrossEntropyLoss(),
            )[0]
            given = batch()
            with self.subTest(each):
                found = float(engine.train_batch(iter([given])))
                wanted = nn.functional.cross_entropy(plain(given[0]), given[1])
                self.assertAlmostEqual(found, float(wanted.detach()), delta=1e-5)
                state = engine.module.state_dict()
                for name, values in start.items():
                    if "first" not in name and "head" not in name:  # small: drawn at once
                        self.assertTrue(torch.equal(state[name], values), name)
                optimizer.param_groups[0]["lr"] = 0.1
                engine.train_batch(iter([given]))
                now = engine.module.state_dict()["blocks.0.weight"]
                self.assertFalse(torch.equal(now, start["blocks.0.weight"]))
            engine.destroy()
            self.assertTrue(torch.equal(module.blocks[0].weight, now))

    def test_what_is_written_stays(self) -> None:
        module = made()
        with tranche.zero.GatheredParameters(module.blocks[0].weight):
            with torch.no_grad():
                module.blocks[0].weight.fill_(0.5)
        engine = tranche.initialize(
            model=module, config=config(), loss=nn.CrossEntropyLoss(),
            optimizer=torch.optim.SGD(module.parameters(), lr=0.0),
        )[0]
        engine.train_batch(iter([batch()]))
        self.assertTrue((engine.module.state_dict()["blocks.0.weight"] == 0.5).all())
        engine.destroy()

    def test_what_is_refused(self) -> None:
        with tranche.zero.Init(enabled=False):
            self.assertFalse(nn.Linear(WIDE, WIDE).weight.is_meta)
        with self.refused(tranche.Status.USAGE, "zero.Init", "no", "outside"):
            with tranche.zero.Init():
                float(torch.zeros(WIDE, WIDE).sum())
        with self.refused(tranche.Status.USAGE, "mpu"):
            tranche.zero.Init(mpu=object())
        with torch.device("meta"):
            module = nn.Linear(6, 3)
        engine = tranche.initialize(
            model=module, config=config(), loss=nn.CrossEntropyLoss()
        )[0]
        with self.refused(tranche.Status.USAGE, "weight", "meta", "zero.Init"):
            engine.train_batch(iter([batch()]))


@needs_torch
class Memory(InFolder):
    def test_weights_have_no_memory(self) -> None:
        done = run_python(MEMORY, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        made, beside = map(int, done.stdout.split())
        self.assertLess(made, 16)
        self.assertLess(beside, 96)


if __name__ == "__main__":
    unittest.main()
