"""Whether Hugging Face's transformers and Tranche agree on a language model, by hand:

    python tools/goldens/check_hf.py FOLDER [--program build/tranche] [--length N]

FOLDER is a checkpoint, a run's out folder or any Hugging Face folder. Against float64 are
checked, over random tokens: the logits; loss and gradient norm of a step at rate 0; the
losses of three steps of AdamW, and the logits of the checkpoint that they end with. Also:
from_pretrained finds every tensor and no other in all of these folders; the step at rate 0
saves the same weights bit by bit, and, when asked to, rounded to bf16 and in shards.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM
from transformers.utils import logging

SAMPLES, STEPS = 3, 3
ADAMW = {"lr": 1e-4, "betas": [0.9, 0.999], "eps": 1e-8}
DROPOUT = ("resid_pdrop", "embd_pdrop", "attn_pdrop", "attention_dropout")
failures = 0


def check(what, far, limit):
    global failures
    ok = far <= limit
    failures += not ok
    print(f"{'ok  ' if ok else 'FAIL'} {what}: {far:.2e} (at most {limit:g})", flush=True)


def locate(path):
    path = pathlib.Path(path)
    latest = path / "checkpoints" / "latest"
    return (path if (path / "config.json").exists() else latest).resolve()


def load(folder, dtype=torch.float32):
    """In the type given, or in that which the folder says ("auto"), as float64."""
    model, info = AutoModelForCausalLM.from_pretrained(
        folder, dtype=dtype, output_loading_info=True)
    wrong = [f"{kind}: {sorted(info[kind])}"
             for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")
             if info.get(kind)]
    check(f"from_pretrained loads every tensor {' '.join(wrong)}".strip(), len(wrong), 0)
    return model.double().eval()


class Tranche:
    """The program on one model's weights, without dropout, in a folder of its own."""

    def __init__(self, program, folder, length, work):
        self.program, self.length, self.work = program, length, work
        self.model = work / "model"
        self.model.mkdir()
        config = json.loads((folder / "config.json").read_text())
        config.update({key: 0.0 for key in DROPOUT if key in config})
        (self.model / "config.json").write_text(json.dumps(config))
        for weights in folder.glob("model*.safetensors*"):
            (self.model / weights.name).symlink_to(weights)

    def tokens(self, ids):
        path = self.work / "tokens.u16"
        ids.astype("<u2").tofile(path)
        return path

    def train(self, name, ids, steps, optimizer, checkpoint):
        """The metrics of each step, and the checkpoint."""
        out = self.work / name
        (self.work / "run.json").write_text(json.dumps({
            "model": str(self.model), "steps": steps, "out": str(out),
            "data": {"format": "tokens", "train": [str(self.tokens(ids))],
                     "max_length": self.length, "order": "sequential"},
            "train_batch_size": SAMPLES, "train_micro_batch_size_per_gpu": 2,
            "checkpoint": checkpoint,
            "optimizer": {"type": "AdamW", "params": optimizer}}))
        self.call("train", self.work / "run.json")
        lines = (out / "metrics.jsonl").read_text().splitlines()
        steps = [json.loads(line) for line in lines]
        return ([s for s in steps if s["kind"] == "step"],
                (out / "checkpoints" / "latest").resolve())

    def logits(self, folder, ids):
        path = self.work / "logits.npy"
        self.call("evaluate", folder, "--data", self.tokens(ids), "--format", "tokens",
                  "--set", f"data.max_length={self.length}", "--logits", path)
        return torch.from_numpy(np.load(path))

    def call(self, *arguments):
        done = subprocess.run([self.program, *map(str, arguments)], text=True,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode != 0:
            sys.exit(f"tranche {arguments[0]}: status {done.returncode}\n{done.stderr}")


def logits_of(model, ids):
    return model(input_ids=ids, use_cache=False).logits


def batches(ids, steps, length):
    """(input, targets) of each step, each [SAMPLES, length]."""
    shape = (steps, SAMPLES, length)
    return zip(torch.from_numpy(ids[:-1].reshape(shape)),
               torch.from_numpy(ids[1:].reshape(shape)))


def backward(model, x, y):
    """The loss; the gradient's norm."""
    model.zero_grad()
    loss = torch.nn.functional.cross_entropy(logits_of(model, x).flatten(0, 1),
                                             y.flatten())
    loss.backward()
    norm = math.sqrt(sum(float(p.grad.pow(2).sum()) for p in model.parameters()))
    return float(loss.detach()), norm


def far_logits(model, tranche, folder, ids, x):
    with torch.no_grad():
        wanted = logits_of(model, x)
    return float((tranche.logits(folder, ids) - wanted).abs().max())


def check_rate_0(model, tranche, ids):
    """One step over the first samples that changes nothing."""
    (x, y), = batches(ids, 1, tranche.length)
    loss, norm = backward(model, x, y)
    still = {"lr": 0.0}
    steps, saved = tranche.train("still", ids, 1, still, {})
    weights = load_file(saved / "model.safetensors")
    again = load(saved)
    check("loss", abs(steps[0]["loss"] - loss), 1e-5)
    check("gradient norm, relative", abs(steps[0]["grad_norm"] / norm - 1), 1e-4)
    differing = [n for n, p in model.named_parameters()
                 if n not in weights or not torch.equal(weights[n].double(), p)]
    check("tensors that a step at rate 0 changed", len(differing), 0)
    with torch.no_grad():
        differs = not torch.equal(logits_of(again, x), logits_of(model, x))
    check("logits of what from_pretrained loads then", float(differs), 0)
    check("logits", far_logits(model, tranche, tranche.model, ids, x), 5e-4)

    total = 2 * sum(p.numel() for p in model.parameters())
    _, saved = tranche.train("rounded", ids, 1, still,
                             {"dtype": "bf16", "shard_bytes": total // 5})
    check("shards lacking", max(0, 2 - len(list(saved.glob("model-*-of-*")))), 0)
    rounded = load(saved, "auto")
    differing = [n for n, p in rounded.named_parameters()
                 if not torch.equal(p, weights[n].bfloat16().double())]
    check("tensors that are not the weights in bf16", len(differing), 0)


def check_training(model, tranche, ids):
    """Changes the model."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=ADAMW["lr"],
                                  betas=tuple(ADAMW["betas"]), eps=ADAMW["eps"],
                                  weight_decay=0.0)
    steps, saved = tranche.train("learns", ids, STEPS, ADAMW, {})
    for step, (x, y) in zip(steps, batches(ids, STEPS, tranche.length)):
        loss, norm = backward(model, x, y)
        for p in model.parameters():  # DeepSpeed's clipping at 1
            p.grad.div_(max(1.0, norm + 1e-6))
        optimizer.step()
        check(f"loss of step {step['step']}", abs(step["loss"] - loss), 2e-4)
    short = ids[:SAMPLES * tranche.length + 1]
    x, _ = next(batches(short, 1, tranche.length))
    check("logits after the training", far_logits(model, tranche, saved, short, x), 1e-3)
    theirs = load(saved)
    check("logits of what from_pretrained loads then",
          far_logits(theirs, tranche, saved, short, x), 1e-3)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("folder")
    options.add_argument("--program", default="build/tranche")
    options.add_argument("--length", type=int, default=64,
                         help="tokens of a sample (64, or the model's positions)")
    options.add_argument("--seed", type=int, default=1)
    args = options.parse_args()

    logging.disable_progress_bar()
    folder = locate(args.folder)
    model = load(folder)
    length = min(model.config.max_position_embeddings, args.length)
    rng = np.random.default_rng(args.seed)
    vocabulary = min(model.config.vocab_size, 65536)
    ids = rng.integers(0, vocabulary, STEPS * SAMPLES * length + 1)
    with tempfile.TemporaryDirectory() as temporary:
        tranche = Tranche(args.program, folder, length, pathlib.Path(temporary))
        check_rate_0(model, tranche, ids[:SAMPLES * length + 1])
        check_training(model, tranche, ids)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
