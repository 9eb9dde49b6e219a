"""Calls of DeepSpeed's engine beside forward, backward and step: losses that the caller
divides, what a module returns, and micro-batches that end no step."""

from __future__ import annotations

import copy
import unittest
from typing import Any, NamedTuple

from common import HAS_TORCH, needs_torch
from test_module import Modules, config

import tranche

if HAS_TORCH:
    import torch
    import torch.nn.functional as F
    from test_module import rows
    from torch import nn

USAGE = tranche.Status.USAGE


def classifier() -> Any:
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 4))


class Pair(NamedTuple):
    """A module beside the same of PyTorch's, with SGD and the config's clipping."""

    engine: Any
    plain: Any
    optimizer: Any


def pair(module: Any, **changes: Any) -> Pair:
    plain = copy.deepcopy(module)
    engine, *_ = tranche.initialize(model=module, config=config(**changes))
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.9)
    return Pair(engine, plain, optimizer)


def torch_step(of: Pair, losses: list[Any]) -> None:
    """PyTorch's step on the sum of losses."""
    sum(losses).backward()
    torch.nn.utils.clip_grad_norm_(of.plain.parameters(), 1.0)
    of.optimizer.step()
    of.optimizer.zero_grad()


@needs_torch
class Calls(Modules):
    def same(self, of: Pair) -> None:
        state = of.engine.module.state_dict()
        for name, values in of.plain.state_dict().items():
            torch.testing.assert_close(state[name], values, atol=1e-5, rtol=1e-4)

    def test_losses_that_the_caller_has_divided(self) -> None:
        of = pair(classifier(), train_micro_batch_size_per_gpu=2)
        for there in (4, 3, 1):  # micro-batches of the step
            of.engine.set_gradient_accumulation_boundary(False)
            losses = []
            for i in range(there):
                x, y = (tensor[:2] for tensor in rows())
                loss = F.cross_entropy(of.engine(x), y, reduction="sum") / 7
                losses.append(F.cross_entropy(of.plain(x), y, reduction="sum") / 7)
                self.assertIs(of.engine.backward(loss, scale_wrt_gas=False), loss)
                of.engine.set_gradient_accumulation_boundary(i == there - 1)
                of.engine.step()
            torch_step(of, losses)
            self.same(of)
        self.assertEqual(of.engine.global_steps, 3)

    def test_what_a_module_returns(self) -> None:
        class Named(nn.Module):
            def __init__(self, kind: Any) -> None:
                super().__init__()
                self.inner, self.kind = classifier(), kind

            def forward(self, x: Any, labels: Any = None) -> Any:
                logits = self.inner(x)
                found = {"logits": logits, "twice": 2 * logits}
                if labels is not None:
                    found["loss"] = F.cross_entropy(logits, labels)
                return self.kind(**found)

        class Output(dict[str, Any]):
            @property
            def loss(self) -> Any:
                return self["loss"]

        of = pair(Named(Output))
        for _ in range(2):
            x, y = rows()
            found, wanted = of.engine(x, labels=y), of.plain(x, y)
            self.assertIsInstance(found, Output)
            self.assertAlmostEqual(found.loss.item(), wanted.loss.item(), delta=1e-5)
            of.engine.backward(found.loss)
            of.engine.step()
            torch_step(of, [wanted.loss])
        self.same(of)
        of = pair(Named(dict))
        x, y = rows()
        found = of.engine(x)
        self.assertEqual(list(found), ["logits", "twice"])
        of.engine.backward(F.cross_entropy(found["logits"], y))
        of.engine.step()
        torch_step(of, [F.cross_entropy(of.plain(x)["logits"], y)])
        self.same(of)

    def test_no_sync(self) -> None:
        of = pair(classifier(), train_micro_batch_size_per_gpu=4)
        (x, y), (u, v) = [[tensor[:4] for tensor in rows()] for _ in range(2)]
        with of.engine.no_sync():
            of.engine.backward(F.cross_entropy(of.engine(x), y))
            with self.refused(USAGE, "step", "no_sync"):
                of.engine.step()
            with self.refused(USAGE, "entered already"), of.engine.no_sync():
                pass
        of.engine.set_gradient_accumulation_boundary(True)
        of.engine.backward(F.cross_entropy(of.engine(u), v))
        of.engine.step()
        losses = [F.cross_entropy(of.plain(x), y), F.cross_entropy(of.plain(u), v)]
        torch_step(of, [loss / 2 for loss in losses])
        self.same(of)


if __name__ == "__main__":
    unittest.main()
