"""Attention as people write it becomes the library's op, and trains as in PyTorch."""

from __future__ import annotations

import math
import unittest
from typing import Any

from common import HAS_TORCH, needs_torch
from modules import CUTS, ROWS, Modules

if HAS_TORCH:
    import torch
    import torch.nn.functional as F
    from torch import nn

WIDTH, HEADS, LENGTH = 8, 2, 5
DEPTH = WIDTH // HEADS


def hidden() -> Any:
    """True where a query may not see a key."""
    return torch.ones(LENGTH, LENGTH).tril() == 0


def view_and_fill(q: Any, k: Any, v: Any) -> Any:
    scores = (q @ k.transpose(-2, -1)) / math.sqrt(DEPTH)
    return F.softmax(scores.masked_fill(hidden(), float("-inf")), dim=-1) @ v


def where_and_turned(q: Any, k: Any, v: Any) -> Any:
    scores = torch.matmul(q, k.mT) * DEPTH**-0.5
    least = torch.finfo(scores.dtype).min
    return torch.where(~hidden(), scores, least).softmax(-1) @ v


def added(q: Any, k: Any, v: Any) -> Any:
    mask = torch.full((LENGTH, LENGTH), -math.inf).triu(1)
    scores = q @ k.transpose(2, 3) / math.sqrt(DEPTH) + mask
    return torch.matmul(torch.softmax(scores, -1, dtype=torch.float32).type_as(q), v)


def scaled_before(q: Any, k: Any, v: Any) -> Any:
    return ((q * DEPTH**-0.5) @ k.permute(0, 1, 3, 2)).softmax(-1) @ v


def another_scale(q: Any, k: Any, v: Any) -> Any:
    return ((q @ k.transpose(-1, -2)) * 0.3).softmax(-1) @ v


def function(q: Any, k: Any, v: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.7)


def near(q: Any, k: Any, v: Any) -> Any:
    there = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril().triu(-2)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=there)


def dropped(q: Any, k: Any, v: Any) -> Any:
    shares = (q @ k.transpose(-1, -2) * DEPTH**-0.5).softmax(-1)
    return F.dropout(shares, 0.0, True) @ v


def batch_mask(q: Any, k: Any, v: Any) -> Any:
    """The products, since no op has this mask: a number that hides nothing."""
    scores = q @ k.transpose(-1, -2) * DEPTH**-0.5
    return scores.masked_fill(hidden(), -1.0).softmax(-1) @ v


def one_matrix(q: Any, k: Any, v: Any) -> Any:
    """bmm, with heads and rows in one dimension."""
    q, k, v = (t.reshape(-1, LENGTH, DEPTH) for t in (q, k, v))
    shares = torch.bmm(q, k.transpose(1, 2)).div(math.sqrt(DEPTH)).softmax(-1)
    return torch.bmm(shares, v).view(-1, HEADS, LENGTH, DEPTH)


if HAS_TORCH:

    class Apart(nn.Module):
        """Queries, keys and values of three layers."""

        def __init__(self, attend: Any, residual: bool = True) -> None:
            super().__init__()
            self.attend = attend
            self.q, self.k = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
            self.v, self.out = nn.Linear(WIDTH, WIDTH, False), nn.Linear(WIDTH, WIDTH)
            self.head = nn.Linear(WIDTH, 3)

        def heads(self, x: Any) -> Any:
            return x.view(*x.shape[:2], HEADS, DEPTH).transpose(1, 2)

        def forward(self, x: Any) -> Any:
            parts = (self.heads(layer(x)) for layer in (self.q, self.k, self.v))
            y = self.attend(*parts).transpose(1, 2).contiguous().view(x.shape)
            return self.head((x + self.out(y)).mean(1))

    class Einsum(Apart):
        """As a well-known tutorial writes it: the scale comes behind the mask."""

        def __init__(self) -> None:
            super().__init__(None)

        def forward(self, x: Any) -> Any:
            q, k, v = (
                layer(x).reshape(-1, LENGTH, HEADS, DEPTH)
                for layer in (self.q, self.k, self.v)
            )
            energy = torch.einsum("nqhd,nkhd->nhqk", [q, k])
            energy = energy.masked_fill(hidden(), float("-1e20"))
            shares = torch.softmax(energy / (WIDTH**0.5), dim=3)
            y = torch.einsum("nhql,nlhd->nqhd", [shares, v]).reshape(x.shape)
            return self.head(self.out(y)[:, -1])

    class Together(nn.Module):
        """One layer, of which a permutation makes the three (ViT of timm)."""

        def __init__(self, unbind: bool) -> None:
            super().__init__()
            self.unbind = unbind
            self.qkv, self.head = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, 3)

        def forward(self, x: Any) -> Any:
            qkv = self.qkv(x).reshape(-1, LENGTH, 3, HEADS, DEPTH).permute(2, 0, 3, 1, 4)
            q, k, v = qkv.unbind(0) if self.unbind else (qkv[0], qkv[1], qkv[2])
            y = scaled_before(q, k, v)
            return self.head(y.transpose(1, 2).reshape(x.shape)[:, 0])


@needs_torch
class Written(Modules):
    def trained(self, module: Any, cut: int) -> set[str]:
        batches = [
            (torch.randn(ROWS, LENGTH, WIDTH), torch.randint(0, 3, (ROWS,)))
            for _ in range(2)
        ]
        engine = self.like_torch(
            module, batches, nn.CrossEntropyLoss(), CUTS[cut], whole=True
        )
        units = engine._made.lowering.units
        engine.destroy()
        return {step.name for unit in units for step in unit.steps}

    def test_that_is_the_op(self) -> None:
        causal, both = "attention", "bidirectional_attention"
        for i, (module, op) in enumerate(
            (
                (Apart(view_and_fill), causal),
                (Apart(where_and_turned), causal),
                (Apart(added), causal),
                (Apart(scaled_before), both),
                (Apart(another_scale), both),
                (Apart(function), causal),
                (Apart(near), causal),
                (Apart(dropped), both),
                (Einsum(), causal),
                (Together(False), both),
                (Together(True), both),
            )
        ):
            with self.subTest(i):
                names = self.trained(module, i % len(CUTS))
                self.assertIn(op, names)
                self.assertNotIn("softmax", names)

    def test_that_is_products(self) -> None:
        for attend in (batch_mask, one_matrix):
            with self.subTest(attend.__name__):
                names = self.trained(Apart(attend), 0)
                self.assertIn("softmax", names)


if __name__ == "__main__":
    unittest.main()
