"""torch.nn.MultiheadAttention with rows as the first dimension of all that it makes.

PyTorch's own brings the positions to the front, so that the rows of what is between are
no longer one behind the other; the result is the same."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F

_original = torch.nn.MultiheadAttention.forward


def _is_plain(module: Any, query: Any, key: Any, value: Any, need_weights: bool) -> bool:
    """Is it self-attention of batches, without what this module does not do?"""
    return bool(
        module.batch_first
        and query.dim() == 3
        and query is key
        and key is value
        and module.in_proj_weight is not None
        and module.bias_k is None
        and not module.add_zero_attn
        and not (need_weights and module.training and module.dropout > 0)
    )


def _added(mask: Any) -> Any:
    if mask.dtype != torch.bool:
        return mask
    return torch.zeros(mask.shape).masked_fill(mask, -math.inf)


def _mask(attn_mask: Any, key_padding_mask: Any, heads: int) -> Any:
    """What is added to the products [rows, heads, queries, keys]; None: nothing."""
    found = None
    if attn_mask is not None:
        found = _added(attn_mask)
        if found.dim() == 3:
            found = found.unflatten(0, (-1, heads))
    if key_padding_mask is not None:
        padding = _added(key_padding_mask)[:, None, None, :]
        found = padding if found is None else found + padding
    return found


def _forward(
    self: Any,
    query: Any,
    key: Any,
    value: Any,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Any = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> Any:
    if not _is_plain(self, query, key, value, need_weights):
        return _original(
            self,
            query,
            key,
            value,
            key_padding_mask,
            need_weights,
            attn_mask,
            average_attn_weights,
            is_causal,
        )
    heads, depth = self.num_heads, self.head_dim
    projected = F.linear(query, self.in_proj_weight, self.in_proj_bias)
    q, k, v = (
        part.unflatten(-1, (heads, depth)).transpose(1, 2)
        for part in projected.chunk(3, -1)
    )
    mask = _mask(attn_mask, key_padding_mask, heads)
    dropped = self.dropout if self.training else 0.0
    mixed = F.scaled_dot_product_attention(q, k, v, mask, dropped)
    out = self.out_proj(mixed.transpose(1, 2).flatten(2))
    if not need_weights:
        return out, None
    scores = (q * depth**-0.5) @ k.transpose(-2, -1)
    weights = torch.softmax(scores if mask is None else scores + mask, -1)
    return out, weights.mean(1) if average_attn_weights else weights


@contextmanager
def batch_first() -> Iterator[None]:
    torch.nn.MultiheadAttention.forward = _forward  # type: ignore[method-assign]
    try:
        yield
    finally:
        torch.nn.MultiheadAttention.forward = _original  # type: ignore[method-assign]
