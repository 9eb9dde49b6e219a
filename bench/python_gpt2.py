"""GPT-2 124M written in PyTorch (peers/gpt2.py), trained by Tranche: tokens a second and
peak memory, as the peers report them.

    python_gpt2.py batch|parts|logits [--context 1024] [--micro-batch 1]
                   [--accumulation 4] [--steps 4] [--layers 12] [--threads 2]

batch: the module returns its loss, and train_batch takes the step. parts: forward,
backward and step, and the module returns its loss. logits: the same, and the caller takes
PyTorch's loss of whole logits; says what seconds of a step that loss takes.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Any

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))

import gpt2  # type: ignore[import-not-found]
import measure  # type: ignore[import-not-found]
import torch
import torch.nn.functional as F

import tranche


def read_options() -> argparse.Namespace:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("way", choices=["batch", "parts", "logits"])
    options.add_argument("--context", type=int, default=1024)
    options.add_argument("--micro-batch", type=int, default=1)
    options.add_argument("--accumulation", type=int, default=4)
    options.add_argument("--steps", type=int, default=4)
    options.add_argument("--layers", type=int, default=12)
    options.add_argument("--threads", type=int, default=os.cpu_count())
    return options.parse_args()


def make_engine(args: argparse.Namespace) -> Any:
    made = gpt2.Logits if args.way == "logits" else gpt2.Loss
    module = made(50257, args.context, args.layers, 768, 12)
    config = {
        "train_micro_batch_size_per_gpu": args.micro_batch,
        "gradient_accumulation_steps": args.accumulation,
        "gradient_clipping": 1.0,
        "execution": {"threads": args.threads},
    }
    optimizer = gpt2.make_adamw(module, 1e-4, (0.9, 0.999), 0.1)
    return tranche.initialize(
        model=module, optimizer=optimizer, config=config, fallback="refuse"
    )[0]


def step(engine: Any, way: str, batches: list[Any]) -> float:
    """Seconds of PyTorch's loss, the way to its gradient apart."""
    if way == "batch":
        engine.train_batch(iter(batches))
        return 0.0
    seconds = 0.0
    for ids, targets in batches:
        if way == "parts":
            loss = engine(ids, targets)
        else:
            logits = engine(ids)
            begin = time.perf_counter()
            loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
            seconds += time.perf_counter() - begin
        engine.backward(loss)
        engine.step()
    return seconds


def run(args: argparse.Namespace) -> None:
    torch.manual_seed(1)
    engine = make_engine(args)
    seconds, losses = [], []
    for _ in range(args.steps):
        batches = []
        for _ in range(args.accumulation):
            ids = torch.randint(256, (args.micro_batch, args.context + 1))
            batches.append((ids[:, :-1], ids[:, 1:]))
        begin = time.perf_counter()
        losses.append(step(engine, args.way, batches))
        seconds.append(time.perf_counter() - begin)
    if args.way != "logits" and engine.in_torch:
        raise SystemExit(f"operators run in PyTorch: {engine.in_torch}")
    rows = engine.plan.ledger
    planned = sum(r.bytes for r in rows if r.category == "total" and r.space != "nvme")
    measure.report(
        args.accumulation * args.micro_batch * args.context,
        seconds,
        planned_bytes=planned,
        loss_seconds=round(losses[-1], 3),
    )


if __name__ == "__main__":
    run(read_options())
