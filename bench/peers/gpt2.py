"""GPT-2 in plain PyTorch, as one would write it today: fused attention, tied head, the
loss over whole logits. The same network that Tranche trains (Radford et al. 2019)."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(width)
        self.attn_in = nn.Linear(width, 3 * width)
        self.attn_out = nn.Linear(width, width)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp_in = nn.Linear(width, 4 * width)
        self.mlp_out = nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        heads = (batch, length, 3, self.heads, width // self.heads)
        q, k, v = self.attn_in(self.ln_1(x)).view(heads).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn_out(mixed.transpose(1, 2).reshape(batch, length, width))
        hidden = F.gelu(self.mlp_in(self.ln_2(x)), approximate="tanh")
        return x + self.mlp_out(hidden)


class Gpt2(nn.Module):
    def __init__(self, vocabulary, context, layers, width, heads):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                residual = name.endswith("_out.weight")
                std = 0.02 / math.sqrt(2 * layers) if residual else 0.02
                nn.init.normal_(p, std=std)
            elif name.endswith("bias"):
                nn.init.zeros_(p)

    def loss(self, ids, targets, reduction="mean"):
        """ids, targets: [batch, length]"""
        x = self.token(ids) + self.position.weight[:ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.token.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(),
                               reduction=reduction)


class Loss(Gpt2):
    """The module has its loss."""

    def forward(self, ids, targets):
        return self.loss(ids, targets)


class Logits(Gpt2):
    """The loss is the caller's, of whole logits."""

    def forward(self, ids):
        x = self.token(ids) + self.position.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.linear(self.ln_f(x), self.token.weight)


def make_adamw(model, lr, betas, weight_decay):
    """AdamW without decay for biases and norms; on a GPU in one kernel."""
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    plain = [p for p in model.parameters() if p.dim() < 2]
    return torch.optim.AdamW([{"params": decayed, "weight_decay": weight_decay},
                              {"params": plain, "weight_decay": 0.0}],
                             lr=lr, betas=betas,
                             fused=True if decayed[0].is_cuda else None)
