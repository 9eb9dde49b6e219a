"""PyTorch computes nothing of a layer: with its products, embeddings, attention, norms,
activations and optimizers made to raise, modules train, and as they do without."""

from __future__ import annotations

import copy
import unittest
from collections.abc import Callable
from typing import Any

from common import HAS_TORCH, needs_torch
from modules import ROWS, Modules, config
from test_families import HAS_TRANSFORMERS

import tranche

if HAS_TORCH:
    import torch
    from test_attention import LENGTH, WIDTH, Apart, view_and_fill
    from test_families import Encoder, Mobile, padded, pictures
    from test_half import sequences
    from test_half import pictures as wide_pictures
    from test_module import Images, Text, images, text
    from torch import nn
    from torch.utils._python_dispatch import TorchDispatchMode

    class Frugal(TorchDispatchMode):
        """Raises where PyTorch does the arithmetic of layers."""

        NAMES = (
            *("mm", "addmm", "bmm", "baddbmm", "embedding", "native_layer_norm", "gelu"),
            *("_scaled_dot_product", "convolution", "native_batch_norm", "softmax"),
            *("_foreach", "_fused", "lerp", "addcdiv", "addcmul", "silu", "native_group_norm"),
            *("native_dropout", "sigmoid", "tanh", "relu", "hardswish", "elu", "max_pool2d"),
            *("avg_pool2d", "_native_batch_norm", "_adaptive_avg_pool2d", "_softmax"),
            *("_scaled", "linear", "_fused_rms_norm", "convolution_backward"),
        )

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            name = str(func).removeprefix("aten.")
            if name.startswith(self.NAMES):
                raise AssertionError(f"PyTorch computes {name}")
            return func(*args, **(kwargs or {}))


def by_hand() -> tuple[Any, Any]:
    return torch.randn(ROWS, LENGTH, WIDTH), torch.randint(0, 3, (ROWS,))


def bert() -> Any:
    from test_families import NO_DROPOUT, SIZES, WORDS
    from transformers import BertConfig, BertForSequenceClassification

    sizes = {"vocab_size": WORDS, "intermediate_size": 32, "num_labels": 3}
    return BertForSequenceClassification(BertConfig(**sizes, **SIZES, **NO_DROPOUT))


def vit() -> Any:
    from test_families import NO_DROPOUT, SIZES
    from transformers import ViTConfig, ViTForImageClassification

    sizes = {"intermediate_size": 32, "image_size": 8, "patch_size": 4, "num_labels": 3}
    return ViTForImageClassification(ViTConfig(**sizes, **SIZES, **NO_DROPOUT))


@needs_torch
class Layers(Modules):
    def trained(self, module: Any, batches: list[Any], loss: Any, mode: bool) -> Any:
        """Losses; mode: PyTorch raises after the first step."""
        adam = {"type": "Adam", "params": {"lr": 1e-3}}
        changes = config(optimizer=adam, train_micro_batch_size_per_gpu=3)
        engine, *_ = tranche.initialize(model=module, config=changes, loss=loss)
        losses = [float(engine.train_batch(iter(batches[:1])))]
        self.assertEqual(engine.in_torch, [])
        if mode:
            with Frugal():
                losses += [float(engine.train_batch(iter([b]))) for b in batches[1:]]
        else:
            losses += [float(engine.train_batch(iter([b]))) for b in batches[1:]]
        engine.destroy()
        return losses

    def families(self) -> list[tuple[Callable[[], Any], Callable[[], Any], Any]]:
        classes = nn.CrossEntropyLoss()
        found: list[Any] = [
            (Encoder, sequences, classes),
            (lambda: Apart(view_and_fill), by_hand, classes),
            (Text, text, None),
            (Images, images, classes),
            (Mobile, wide_pictures, classes),
        ]
        if HAS_TRANSFORMERS:
            found += [(bert, padded, None), (vit, pictures, None)]
        return found

    def test_train_batch(self) -> None:
        with Frugal(), self.assertRaisesRegex(AssertionError, "PyTorch computes"):
            torch.ones(2, 2) @ torch.ones(2, 2)
        for i, (make, draw, loss) in enumerate(self.families()):
            module = make()
            batches = [draw() for _ in range(4)]
            with self.subTest(i):
                wanted = self.trained(copy.deepcopy(module), batches, loss, False)
                self.assertEqual(self.trained(module, batches, loss, True), wanted)

    def test_calls(self) -> None:
        """The loss alone is PyTorch's."""
        adam = {"type": "Adam", "params": {"lr": 1e-2}}
        engine, *_ = tranche.initialize(model=Encoder(), config=config(optimizer=adam))
        x, y = sequences()
        losses = []
        for i in range(20):
            if i == 1:
                mode = Frugal()
                mode.__enter__()
                self.addCleanup(mode.__exit__, None, None, None)
            loss = nn.functional.cross_entropy(engine(x), y)
            engine.backward(loss)
            engine.step()
            losses.append(loss.item())
        self.assertLess(losses[-1], losses[0] / 2)


if __name__ == "__main__":
    unittest.main()
