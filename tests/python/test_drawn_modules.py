"""Modules drawn by their number: stacks of layers, functions, attention, embeddings and
convolutions, in drawn cuts, stages and placements, beside PyTorch's autograd.
TR_DRAWN_MODULES=200 draws as many."""

from __future__ import annotations

import os
import random
import unittest
from typing import Any

from common import HAS_TORCH, needs_torch
from modules import ROWS, Modules

if HAS_TORCH:
    import torch
    import torch.nn.functional as F
    from test_attention import another_scale, batch_mask, view_and_fill
    from test_words import FUNCTIONS
    from torch import nn

COUNT = int(os.environ.get("TR_DRAWN_MODULES", "20"))

if HAS_TORCH:
    ELEMENTS = (
        *(nn.ReLU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.Hardswish, nn.ReLU6),
        *(nn.ELU, nn.LeakyReLU, nn.Softplus, nn.Hardsigmoid),
    )

    class Residual(nn.Module):
        def __init__(self, inner: Any, factor: float) -> None:
            super().__init__()
            self.inner, self.factor = inner, factor

        def forward(self, x: Any) -> Any:
            return x - self.factor * self.inner(x)

    class Gate(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.both = nn.Linear(width, 2 * width)
            self.scale = nn.Parameter(torch.rand(width) + 0.5)

        def forward(self, x: Any) -> Any:
            gate, value = self.both(x).chunk(2, -1)
            return torch.sigmoid(gate) * value * self.scale

    class Attention(nn.Module):
        """Apart or of one product, one way or both, with fewer heads of keys."""

        def __init__(self, draw: random.Random, width: int) -> None:
            super().__init__()
            self.heads = draw.choice([1, 2, 4])
            self.shared = draw.choice([1, self.heads])
            self.depth = width // self.heads
            self.causal = draw.random() < 0.5
            self.q = nn.Linear(width, width)
            self.k = nn.Linear(width, self.shared * self.depth)
            self.v = nn.Linear(width, self.shared * self.depth, bias=False)
            self.scale = draw.choice([None, 0.3])

        def forward(self, x: Any) -> Any:
            q, k, v = (
                part(x).unflatten(-1, (heads, self.depth)).transpose(1, 2)
                for part, heads in (
                    (self.q, self.heads),
                    (self.k, self.shared),
                    (self.v, self.shared),
                )
            )
            k, v = (
                t[:, :, None]
                .expand(-1, -1, self.heads // self.shared, -1, -1)
                .reshape(q.shape)
                for t in (k, v)
            )
            y = F.scaled_dot_product_attention(
                q, k, v, is_causal=self.causal, scale=self.scale
            )
            return y.transpose(1, 2).reshape(x.shape)

    class Mean(nn.Module):
        def __init__(self, dims: tuple[int, ...]) -> None:
            super().__init__()
            self.dims = dims

        def forward(self, x: Any) -> Any:
            return x.mean(self.dims)

    class ByHand(nn.Module):
        """Of the words of people: LENGTH and heads are those of test_attention."""

        def __init__(self, draw: random.Random) -> None:
            super().__init__()
            self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
            self.attend = draw.choice([view_and_fill, another_scale, batch_mask])
            self.permuted = draw.random() < 0.5

        def forward(self, x: Any) -> Any:
            if self.permuted:
                parts = self.qkv(x).reshape(-1, 5, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
            else:
                parts = [
                    part.view(-1, 5, 2, 4).transpose(1, 2) for part in self.qkv(x).split(8, 2)
                ]
            return self.out(self.attend(*parts).transpose(1, 2).reshape(x.shape))

    class Written(nn.Module):
        """A function of test_words, of numbers that it does not blow up."""

        def __init__(self, draw: random.Random) -> None:
            super().__init__()
            self.function = FUNCTIONS[draw.choice(sorted(FUNCTIONS))]
            self.norm = nn.LayerNorm(8)

        def forward(self, x: Any) -> Any:
            return self.norm(self.function(torch.tanh(x)))

    class Texts(nn.Module):
        """Tokens with places, whose table may be the head."""

        def __init__(self, draw: random.Random, layers: list[Any]) -> None:
            super().__init__()
            self.table = nn.Embedding(7, 8, draw.choice([None, 3]))
            self.places = nn.Embedding(5, 8) if draw.random() < 0.5 else None
            self.layers = nn.Sequential(*layers)
            self.head = nn.Linear(8, 7, bias=False)
            if draw.random() < 0.5:
                self.head.weight = self.table.weight

        def forward(self, ids: Any) -> Any:
            x = self.table(ids)
            if self.places is not None:
                x = x + self.places(torch.arange(5))
            return self.head(self.layers(x)).transpose(1, 2)

    def rows(draw: random.Random) -> tuple[Any, Any]:
        width = draw.choice([5, 8])
        layers: list[Any] = []
        for _ in range(draw.randint(1, 4)):
            inner = nn.Sequential(nn.Linear(width, width), draw.choice(ELEMENTS)())
            norms = [nn.LayerNorm(width), nn.BatchNorm1d(width)]
            layers.append(
                draw.choice([inner, *norms, Gate(width), Residual(inner, 0.7)])
            )
        return nn.Sequential(*layers, nn.Linear(width, 3)), (width,)

    def sequences(draw: random.Random) -> tuple[Any, Any]:
        width, length = 8, draw.randint(2, 6)
        layers: list[Any] = []
        for _ in range(draw.randint(1, 3)):
            inner = nn.Sequential(nn.LayerNorm(width), Attention(draw, width))
            layers.append(Residual(inner, draw.choice([-1.0, 0.5])))
            if draw.random() < 0.5:
                layers += [nn.Linear(width, width), draw.choice(ELEMENTS)()]
        return nn.Sequential(*layers, Mean((1,)), nn.Linear(width, 3)), (length, width)

    def written(draw: random.Random) -> list[Any]:
        layers: list[Any] = []
        for _ in range(draw.randint(1, 3)):
            inner = draw.choice([ByHand, Written])(draw)
            layers += [Residual(inner, 0.5), nn.Linear(8, 8)]
        return layers

    def functions(draw: random.Random) -> tuple[Any, Any]:
        return nn.Sequential(*written(draw), Mean((1,)), nn.Linear(8, 3)), (5, 8)

    def texts(draw: random.Random) -> tuple[Any, Any]:
        return Texts(draw, written(draw)), None

    def images(draw: random.Random) -> tuple[Any, Any]:
        channels = 4
        layers: list[Any] = []
        for _ in range(draw.randint(1, 3)):
            groups = draw.choice([1, 2, channels])
            kernel = (draw.choice([1, 3]), draw.choice([1, 2, 3]))
            dilation = draw.choice([1, 2])
            layers.append(
                nn.Conv2d(channels, channels, kernel, 1, 1, dilation, groups)
            )
            layers.append(draw.choice([nn.GroupNorm(2, channels), nn.Identity()]))
            layers.append(draw.choice(ELEMENTS)())
        end = draw.choice([nn.AdaptiveAvgPool2d(1), nn.AvgPool2d(2)])
        sides = (draw.randint(5, 7), draw.randint(5, 7))
        body = nn.Sequential(*layers, end, nn.Flatten())
        wide = body(torch.zeros(1, channels, *sides)).shape[1]
        return nn.Sequential(body, nn.Linear(wide, 3)), (channels, *sides)


    def waves(draw: random.Random) -> tuple[Any, Any]:
        channels, length = 4, draw.randint(7, 12)
        layers: list[Any] = []
        for _ in range(draw.randint(1, 3)):
            groups = draw.choice([1, 2, channels])
            kernel, dilation = draw.choice([1, 2, 3]), draw.choice([1, 2])
            layers.append(
                nn.Conv1d(channels, channels, kernel, 1, 1, dilation, groups)
            )
            layers.append(draw.choice([nn.BatchNorm1d(channels), nn.Identity()]))
            layers.append(draw.choice(ELEMENTS)())
        body = nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten())
        return nn.Sequential(body, nn.Linear(channels, 3)), (channels, length)


def cut(draw: random.Random) -> dict[str, Any]:
    """How the step is cut, what is sharded, and where it lies."""
    host = {"device": "cpu"}
    stage = draw.randrange(4)
    zero: dict[str, Any] = {"stage": stage}
    if stage and draw.random() < 0.4:
        zero["offload_optimizer"] = host
    if stage == 3 and draw.random() < 0.4:
        zero["offload_param"] = host
    found: dict[str, Any] = {"zero_optimization": zero}
    if draw.random() < 0.8:
        found["train_micro_batch_size_per_gpu"] = draw.randint(1, ROWS)
    return found


def batch(draw: random.Random, shape: Any) -> tuple[Any, Any]:
    if shape is None:
        labels = torch.randint(0, 7, (ROWS, 5))
        labels[torch.rand(ROWS, 5) < 0.3] = -100
        labels[0, 0] = 1
        return torch.randint(0, 7, (ROWS, 5)), labels
    return torch.randn(ROWS, *shape), torch.randint(0, 3, (ROWS,))


@needs_torch
class Drawn(Modules):
    def test_drawn_modules(self) -> None:
        for seed in range(COUNT):
            draw = random.Random(seed)
            torch.manual_seed(seed)
            kind = draw.choice([rows, sequences, images, waves, functions, texts])
            module, shape = kind(draw)
            batches = [batch(draw, shape) for _ in range(2)]
            with self.subTest(seed=seed):
                engine = self.like_torch(
                    module, batches, nn.CrossEntropyLoss(), cut(draw), whole=True
                )
                engine.destroy()


if __name__ == "__main__":
    unittest.main()
