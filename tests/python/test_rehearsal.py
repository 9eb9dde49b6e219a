"""The memory that operators in PyTorch take beside the plan, as the plan says it."""

from __future__ import annotations

import unittest
from typing import Any

from common import HAS_TORCH, needs_torch
from modules import ROWS, Modules, config

import tranche

WIDTH = 4096
ROW = WIDTH * 4  # bytes of a row of a float tensor
if HAS_TORCH:
    import torch
    from torch import nn

    class Sorted(nn.Module):
        """An operator that the library lacks, twice, in blocks alike."""

        def forward(self, x: Any) -> Any:
            return x.sort(dim=1)[0]

    def model() -> Any:
        blocks = [
            nn.Sequential(nn.Linear(WIDTH, WIDTH, bias=False), Sorted()) for _ in range(2)
        ]
        return nn.Sequential(*blocks, nn.Linear(WIDTH, 4))


@needs_torch
class Rehearsal(Modules):
    def _engine(self, micro: int) -> Any:
        engine, *_ = tranche.initialize(
            model=model(),
            config=config(train_micro_batch_size_per_gpu=micro),
            loss=nn.CrossEntropyLoss(),
        )
        batch = torch.randn(ROWS, WIDTH), torch.randint(0, 4, (ROWS,))
        engine.train_batch(iter([batch]))
        return engine

    def test_counted_by_hand(self) -> None:
        for micro in (2, 8):
            with self.subTest(micro):
                engine = self._engine(micro)
                found = {each.outside for each in engine.in_torch}
                self.assertEqual(len(found), 1)
                # A sort leaves values and numbers of 8 bytes; backward, the gradient of
                # ones and the one of the operand are there, too. What it needs to work
                # with is PyTorch's own affair.
                (outside,) = found
                self.assertGreaterEqual(outside, micro * (2 + 1 + 2) * ROW)
                self.assertLess(outside, micro * 9 * ROW)

    def test_in_the_plan(self) -> None:
        engine = self._engine(2)
        functions = engine.plan.to_dict()["functions"]
        self.assertEqual(sum(each["units"] for each in functions), 2)
        report = engine.plan.report()
        self.assertIn("memory that a call takes beside the ledger", report)
        for each in functions:
            self.assertEqual(each["outside_bytes"], engine.in_torch[0].outside)
            self.assertIn("test_rehearsal.py", each["name"])
            self.assertIn(each["name"], report)


if __name__ == "__main__":
    unittest.main()
