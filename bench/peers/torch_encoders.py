"""Encoders in PyTorch: tokens a second and peak memory of transformers' BERT on masked tokens, on pairs of texts
in one batch, or on pairs with the cached loss of sentence-transformers. Texts are random ids, all of one length.

    torch_encoders.py MODEL masked|pairs|cached [--length 64] [--micro-batch 16] [--batch 64] [--steps 3]

MODEL: a folder of BERT's. batch: windows, or pairs, of a step; of masked tokens in micro-batches, of the cached
loss in mini-batches of that size.
"""
import argparse
import time

import torch
import torch.nn.functional as F
from transformers import AutoModel, AutoModelForMaskedLM

import gpt2
import measure

CHOSEN = 0.15  # of masked tokens
TEMPERATURE = 0.05


def draw(model, count, length):
    return torch.randint(999, model.config.vocab_size, (count, length))


class Masked:
    def __init__(self, args):
        self.args = args
        self.model = AutoModelForMaskedLM.from_pretrained(args.model, attn_implementation="sdpa").train()
        self.tokens = args.batch * args.length

    def backward(self):
        parts = self.args.batch // self.args.micro_batch
        for _ in range(parts):
            ids = draw(self.model, self.args.micro_batch, self.args.length)
            labels = torch.where(torch.rand(ids.shape) < CHOSEN, ids, -100)
            (self.model(input_ids=ids, labels=labels).loss / parts).backward()


class Pairs:
    """All texts of a step at once."""

    def __init__(self, args):
        self.args = args
        self.model = AutoModel.from_pretrained(args.model, attn_implementation="sdpa", add_pooling_layer=False).train()
        self.tokens = 2 * args.batch * args.length

    def embed(self):
        ids = draw(self.model, self.args.batch, self.args.length)
        return F.normalize(self.model(input_ids=ids).last_hidden_state.mean(1), dim=1)

    def backward(self):
        products = self.embed() @ self.embed().T / TEMPERATURE
        F.cross_entropy(products, torch.arange(self.args.batch)).backward()


class Cached:
    """In mini-batches, each forward twice."""

    def __init__(self, args):
        from sentence_transformers import SentenceTransformer, losses

        self.args = args
        self.model = SentenceTransformer(args.model, device="cpu").train()
        self.model.config = self.model[0].auto_model.config
        self.loss = losses.CachedMultipleNegativesRankingLoss(self.model, scale=1 / TEMPERATURE,
                                                              mini_batch_size=args.micro_batch)
        self.tokens = 2 * args.batch * args.length

    def texts(self):
        ids = draw(self.model, self.args.batch, self.args.length)
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}

    def backward(self):
        self.loss([self.texts(), self.texts()], None).backward()


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("model")
    options.add_argument("what", choices=["masked", "pairs", "cached"])
    options.add_argument("--length", type=int, default=64)
    options.add_argument("--micro-batch", type=int, default=16)
    options.add_argument("--batch", type=int, default=64)
    options.add_argument("--steps", type=int, default=3)
    args = options.parse_args()
    torch.manual_seed(1)
    work = {"masked": Masked, "pairs": Pairs, "cached": Cached}[args.what](args)
    optimizer = gpt2.make_adamw(work.model, 1e-5, (0.9, 0.999), 0.01)
    seconds = []
    for _ in range(args.steps):
        begin = time.perf_counter()
        work.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds.append(time.perf_counter() - begin)
    measure.report(work.tokens, seconds)


if __name__ == "__main__":
    main()
