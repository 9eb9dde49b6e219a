"""Writes tests/data/sampling.txt: which tokens transformers' logits warpers keep. Needs
torch, transformers and numpy:

    python tools/goldens/sampling.py

A line is: temperature top_k top_p | logits | tokens that are kept. top_k 0 and top_p 0
stand for none. With top-k alone, which keeps all of a tie, logits are halves, so that
there are ties. Which of equal logits top-p leaves out depends on PyTorch's sort, so
there they differ.
"""
import pathlib

import numpy as np
import torch
from transformers import (TemperatureLogitsWarper, TopKLogitsWarper,
                          TopPLogitsWarper)

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "sampling.txt"
CASES = [(t, k, p) for t in (0.5, 1.0, 1.7) for k in (0, 1, 3, 9, 100)
         for p in (0, 0.05, 0.5, 0.9, 0.999) if k or p]


def kept(logits, temperature, top_k, top_p):
    scores = TemperatureLogitsWarper(temperature)(None, logits)
    if top_k:
        scores = TopKLogitsWarper(top_k)(None, scores)
    if top_p:
        scores = TopPLogitsWarper(top_p)(None, scores)
    return torch.isfinite(scores[0]).nonzero()[:, 0].tolist()


def main():
    random = np.random.default_rng(7)
    lines = []
    for i, (temperature, top_k, top_p) in enumerate(CASES):
        size = 5 + i % 40
        values = np.round(random.normal(0, 2, size), 4)
        values = values if top_p else np.round(values * 2) / 2
        assert not top_p or len(set(values)) == size
        logits = torch.tensor(values[None], dtype=torch.float32)
        tokens = kept(logits, temperature, top_k, top_p)
        lines.append(f"{temperature} {top_k} {top_p} | "
                     + " ".join(f"{v:g}" for v in values)
                     + " | " + " ".join(map(str, tokens)))
    OUT.write_text("\n".join(lines) + "\n")


main()
