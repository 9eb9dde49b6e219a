"""Modules in 16 bits beside PyTorch without autocast: there the module is cast, and the
weights that are trained are in f32."""

from __future__ import annotations

import copy
import unittest
from typing import Any

from common import HAS_TORCH, needs_torch
from modules import ROWS, Modules, config

import tranche

if HAS_TORCH:
    import torch
    from test_families import Encoder, Mixed, Mobile
    from test_module import Images, Text, images, text
    from torch import nn

STEPS, RATE = 4, 0.05
KINDS = ("bf16", "fp16")
# How far the weights of 16 bits end from those of f32, of the way that all have gone: at
# most so much further than PyTorch's cast module does.
MORE, BESIDE = 1.5, 0.01


def sequences() -> tuple[Any, Any]:
    return torch.randn(ROWS, 5, 16), torch.randint(0, 4, (ROWS,))


def narrow() -> tuple[Any, Any]:
    return torch.randn(ROWS, 5, 6), torch.randint(0, 4, (ROWS,))


def pictures() -> tuple[Any, Any]:
    return torch.randn(ROWS, 3, 7, 7), torch.randint(0, 5, (ROWS,))


class Cast:
    """A module whose forward and backward are in 16 bits, or in f32."""

    def __init__(self, module: Any, kind: Any, loss: Any) -> None:
        self.whole, self.kind, self.loss = module, kind, loss
        self.half = copy.deepcopy(module).to(kind)
        self.optimizer = torch.optim.SGD(module.parameters(), lr=RATE, momentum=0.9)

    def train(self, batch: Any) -> float:
        with torch.no_grad():
            for mine, theirs in zip(
                self.half.parameters(), self.whole.parameters(), strict=True
            ):
                mine.copy_(theirs)
        x, y = (t.to(self.kind) if t.is_floating_point() else t for t in batch)
        found = self.half(x, y) if self.loss is None else self.loss(self.half(x).float(), y)
        (found.float() * 64).backward()
        for mine, theirs in zip(
            self.half.parameters(), self.whole.parameters(), strict=True
        ):
            theirs.grad = None if mine.grad is None else mine.grad.float() / 64
            mine.grad = None
        torch.nn.utils.clip_grad_norm_(self.whole.parameters(), 1.0)
        self.optimizer.step()
        return float(found.detach())


def _apart(found: Any, wanted: Any, begin: Any) -> float:
    far = way = 0.0
    for name, values in wanted.items():
        far += float((found[name].detach() - values.detach()).square().sum())
        way += float((values.detach() - begin[name]).square().sum())
    return (far / way) ** 0.5


@needs_torch
class Half(Modules):
    def beside_torch(self, module: Any, draw: Any, loss: Any, kind: str, **cut: Any) -> None:
        begin = {n: p.detach().clone() for n, p in module.named_parameters()}
        types = {"bf16": torch.bfloat16, "fp16": torch.float16}
        plain = Cast(copy.deepcopy(module), types[kind], loss)
        whole = Cast(copy.deepcopy(module), torch.float32, loss)
        optimizer = {"type": "SGD", "params": {"lr": RATE, "momentum": 0.9}}
        scale = {"initial_scale_power": 6} if kind == "fp16" else {}
        engine, *_ = tranche.initialize(
            model=module,
            config=config(
                optimizer=optimizer, **{kind: {"enabled": True, **scale}}, **cut
            ),
            loss=loss,
            fallback="refuse",
        )
        for _ in range(STEPS):
            batch = draw()
            found, wanted = float(engine.train_batch(iter([batch]))), plain.train(batch)
            whole.train(batch)
            self.assertAlmostEqual(found, wanted, delta=0.02 * abs(wanted))
        state = engine.module.state_dict()
        self.assertEqual({t.dtype for t in state.values()} - {torch.int64}, {torch.float32})
        wanted = dict(whole.whole.named_parameters())
        theirs = _apart(dict(plain.whole.named_parameters()), wanted, begin)
        self.assertLess(_apart(state, wanted, begin), MORE * theirs + BESIDE)
        engine.destroy()

    def test_families(self) -> None:
        classes = nn.CrossEntropyLoss()
        stage = {"zero_optimization": {"stage": 3}}
        micro = {"train_micro_batch_size_per_gpu": 3}
        for make, draw, loss, cut in (
            (Encoder, sequences, classes, micro),
            (Text, text, None, stage),
            (Mixed, narrow, classes, stage),
            (Images, images, classes, {}),
            (Mobile, pictures, classes, micro),
        ):
            for kind in KINDS:
                with self.subTest(module=make.__name__, kind=kind):
                    torch.manual_seed(2)
                    self.beside_torch(make(), draw, loss, kind, **cut)

    def test_calls(self) -> None:
        """forward, backward and step: outputs are of the run's type."""
        for kind in KINDS:
            torch.manual_seed(3)
            module = Encoder()
            plain = copy.deepcopy(module)
            engine, *_ = tranche.initialize(
                model=module, config=config(**{kind: {"enabled": True}})
            )
            x, y = sequences()
            with self.subTest(kind):
                outputs = engine(x)
                torch.testing.assert_close(outputs.float(), plain(x), atol=0.05, rtol=0.05)
                loss = nn.functional.cross_entropy(outputs.float(), y)
                engine.backward(loss)
                engine.step()
                nn.functional.cross_entropy(plain(x), y).backward()
                norm = nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
                self.assertAlmostEqual(
                    engine.get_global_grad_norm() / float(norm), 1, delta=0.03
                )


if __name__ == "__main__":
    unittest.main()
