#!/usr/bin/env python3
"""compare_contrastive.py FOLDER [--steps N] [--batch T] [--micro-batch M] [--length L]
                       [--program FILE]

Trains the embeddings of a folder (a BERT with its tokenizer, as all-MiniLM-L6-v2) on pairs
of texts with Tranche, in one pass and in two, and with the cached loss of
sentence-transformers; the loss of one direction, and of both. The pairs are names of
Python's functions with the first line of what is written of them. All take the same pairs
in the same order; dropout is off. Ends with 1 where losses of a step are over 1e-4 apart,
or weights at the end over 1% of the distance that they moved. Needs torch and
sentence_transformers.
"""
import argparse
import importlib
import inspect
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer, losses

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODULES = ("os", "shutil", "json", "random", "math", "statistics", "re", "socket", "pathlib",
           "itertools", "functools", "collections", "string", "logging", "textwrap", "locale")
TEMPERATURE, RATE = 0.05, 2e-5
BOTH = {"directions": ("query_to_doc", "doc_to_query"), "partition_mode": "per_direction"}


def read_options():
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
    options.add_argument("folder")
    options.add_argument("--steps", type=int, default=3)
    options.add_argument("--batch", type=int, default=32)
    options.add_argument("--micro-batch", type=int, default=8)
    options.add_argument("--length", type=int, default=32)
    options.add_argument("--program", default=str(ROOT / "build" / "tranche"))
    return options.parse_args()


def pairs(count):
    found = {}
    for name in MODULES:
        for member, value in sorted(vars(importlib.import_module(name)).items()):
            text = inspect.getdoc(value) if inspect.isroutine(value) else None
            if text and not member.startswith("_"):
                found.setdefault(text.split("\n")[0], f"{name} {member.replace('_', ' ')}")
    if len(found) < count:
        sys.exit(f"{len(found)} pairs, and {count} are asked for")
    return [(anchor, positive) for positive, anchor in list(found.items())[:count]]


def copy_folder(folder, to):
    shutil.copytree(folder, to)
    config = json.loads((to / "config.json").read_text())
    config.update(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    (to / "config.json").write_text(json.dumps(config))


def ours(args, work, both, passes):
    out = work / f"out-{both}-{passes}"
    run = {"model": str(work / "model"), "task": "contrastive", "out": str(out),
           "data": {"format": "jsonl", "train": [str(work / "pairs.jsonl")],
                    "max_length": args.length, "order": "sequential"},
           "contrastive": {"temperature": TEMPERATURE, "symmetric": both, "passes": passes},
           "steps": args.steps, "train_batch_size": args.batch, "gradient_clipping": 0,
           "train_micro_batch_size_per_gpu": args.micro_batch,
           "optimizer": {"type": "AdamW", "params": {"lr": RATE, "eps": 1e-6,
                                                     "weight_decay": 0.0}}}
    path = work / "run.json"
    path.write_text(json.dumps(run))
    done = subprocess.run([args.program, "train", str(path)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    lines = (out / "metrics.jsonl").read_text().splitlines()
    told = [json.loads(line)["loss"] for line in lines if '"grad_norm"' in line]
    return told, load_file(out / "checkpoints" / "latest" / "model.safetensors")


def theirs(args, work, both, texts):
    model = SentenceTransformer(str(work / "model"), device="cpu").eval()
    model.max_seq_length = args.length
    loss = losses.CachedMultipleNegativesRankingLoss(
        model, scale=1 / TEMPERATURE, mini_batch_size=args.micro_batch, **(BOTH if both else {}))
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, eps=1e-6, weight_decay=0.0)
    told = []
    for at in range(0, args.steps * args.batch, args.batch):
        columns = zip(*texts[at:at + args.batch])
        rows = [dict(model.preprocess(list(column))) for column in columns]
        optimizer.zero_grad()
        value = loss(rows, None)
        value.backward()
        optimizer.step()
        told.append(float(value.detach()))
    return told, dict(model[0].auto_model.state_dict())


def distance(start, a, b):
    """Of weights a from b, of what b moved from the start."""
    names = [n for n in start if n in a and n in b and start[n].is_floating_point()]
    far = sum(float((a[n] - b[n]).double().pow(2).sum()) for n in names)
    moved = sum(float((b[n] - start[n]).double().pow(2).sum()) for n in names)
    return (far / moved) ** 0.5


def main():
    args = read_options()
    transformers.utils.logging.disable_progress_bar()
    good = True
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        copy_folder(args.folder, work / "model")
        start = load_file(work / "model" / "model.safetensors")
        texts = pairs(args.steps * args.batch)
        (work / "pairs.jsonl").write_text("".join(
            json.dumps({"anchor": a, "positive": p}) + "\n" for a, p in texts))
        for both in (False, True):
            wanted, end = theirs(args, work, both, texts)
            for passes in (1, 2):
                got, weights = ours(args, work, both, passes)
                far = max(abs(a - b) for a, b in zip(got, wanted))
                share = distance(start, weights, end)
                print(f"{'both directions' if both else 'one direction'}, "
                      f"{'two passes' if passes == 2 else 'one pass'}: "
                      f"loss {got[0]:.6f}, theirs {wanted[0]:.6f}; at most {far:.1e} apart; "
                      f"weights {share:.1e} of the distance", flush=True)
                good = good and len(got) == args.steps and far <= 1e-4 and share <= 0.01
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
