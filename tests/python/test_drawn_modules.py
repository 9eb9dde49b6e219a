"""Modules drawn by their number: stacks of layers, activations, attention and
convolutions, in drawn cuts, beside PyTorch. TR_DRAWN_MODULES=200 draws as many."""

from __future__ import annotations

import os
import random
import unittest
from typing import Any

from common import HAS_TORCH, needs_torch
from modules import CUTS, ROWS, Modules

if HAS_TORCH:
    import torch
    import torch.nn.functional as F
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

    def rows(draw: random.Random) -> tuple[Any, Any]:
        width = draw.choice([5, 8])
        layers: list[Any] = []
        for _ in range(draw.randint(1, 4)):
            kind = draw.randrange(4)
            inner = nn.Sequential(nn.Linear(width, width), draw.choice(ELEMENTS)())
            layers.append(
                [inner, nn.LayerNorm(width), Gate(width), Residual(inner, 0.7)][kind]
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


@needs_torch
class Drawn(Modules):
    def test_drawn_modules(self) -> None:
        for seed in range(COUNT):
            draw = random.Random(seed)
            torch.manual_seed(seed)
            module, shape = draw.choice([rows, sequences, images])(draw)
            batches = [
                (torch.randn(ROWS, *shape), torch.randint(0, 3, (ROWS,)))
                for _ in range(2)
            ]
            with self.subTest(seed=seed):
                engine = self.like_torch(
                    module, batches, nn.CrossEntropyLoss(), draw.choice(CUTS), whole=True
                )
                engine.destroy()


if __name__ == "__main__":
    unittest.main()
