"""GPT-2 124M written in PyTorch (peers/gpt2.py), in bf16 on one GPU, trained by
tranche.initialize in several ways and by PyTorch alone: milliseconds of a step, tokens a
second, and the most memory that PyTorch has taken beside the plan.

    gpu_parts.py [--context 1024] [--micro-batch 8] [--steps 5] [--layers 12] [WAY...]

batch: the module returns its loss, and train_batch takes the step. parts: forward, backward
and step, and the module returns its loss. logits: the same, and the caller takes PyTorch's
loss of whole logits, which stay on the GPU. host: the same by way of the host. torch:
PyTorch's own training, with autocast. Without WAY: all of them.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Callable
from typing import Any

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))

import gpt2  # type: ignore[import-not-found]
import torch
import torch.nn.functional as F

import tranche

WAYS = ["torch", "batch", "parts", "logits", "host"]


def read_options() -> argparse.Namespace:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("ways", nargs="*", choices=[*WAYS, []], default=[])
    options.add_argument("--context", type=int, default=1024)
    options.add_argument("--micro-batch", type=int, default=8)
    options.add_argument("--steps", type=int, default=5)
    options.add_argument("--layers", type=int, default=12)
    return options.parse_args()


def batches(args: argparse.Namespace) -> Callable[[], Any]:
    ids = torch.randint(0, 50257, (args.micro_batch, args.context + 1), device="cuda")
    return lambda: (ids[:, :-1].contiguous(), ids[:, 1:].contiguous())


def of_torch(args: argparse.Namespace, draw: Callable[[], Any]) -> Callable[[], float]:
    module = gpt2.Loss(50257, args.context, args.layers, 768, 12).cuda()
    optimizer = gpt2.make_adamw(module, 1e-4, (0.9, 0.999), 0.1)

    def step() -> float:
        with torch.autocast("cuda", torch.bfloat16):
            loss = module(*draw())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimizer.step()
        return float(loss)

    return step


def of_tranche(
    way: str, args: argparse.Namespace, draw: Callable[[], Any]
) -> Callable[[], float]:
    made = gpt2.Logits if way in ("logits", "host") else gpt2.Loss
    config: dict[str, Any] = {
        "train_micro_batch_size_per_gpu": args.micro_batch,
        "gradient_accumulation_steps": 1,
        "gradient_clipping": 1.0,
        "bf16": {"enabled": True},
        "device": "cuda",
    }
    if way == "host":
        config["execution"] = {"parts_on_device": False}
    module = made(50257, args.context, args.layers, 768, 12)
    optimizer = gpt2.make_adamw(module, 1e-4, (0.9, 0.999), 0.1)
    engine = tranche.initialize(
        model=module, optimizer=optimizer, config=config, fallback="refuse"
    )[0]

    def step() -> float:
        ids, targets = draw()
        if way == "batch":
            return float(engine.train_batch(iter([(ids, targets)])))
        if way == "parts":
            loss = engine(ids, targets)
        else:
            logits = engine(ids).cuda()
            loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        engine.backward(loss)
        engine.step()
        return float(loss)

    return step


def measure(way: str, args: argparse.Namespace) -> None:
    torch.manual_seed(1)
    draw = batches(args)
    step = of_torch(args, draw) if way == "torch" else of_tranche(way, args, draw)
    begin = time.perf_counter()
    first = step()
    torch.cuda.synchronize()
    started = time.perf_counter() - begin
    step()
    torch.cuda.synchronize()
    free, _ = torch.cuda.mem_get_info()
    begin = time.perf_counter()
    losses = [step() for _ in range(args.steps)]
    torch.cuda.synchronize()
    seconds = (time.perf_counter() - begin) / args.steps
    tokens = args.micro_batch * args.context
    peak = torch.cuda.max_memory_allocated() / 1e9
    print(
        f"{way:8} {1e3 * seconds:8.1f} ms {tokens / seconds:10,.0f} tokens/s   "
        f"loss {first:.4f} .. {losses[-1]:.4f}   PyTorch's peak {peak:.2f} GB, "
        f"free {free / 1e9:.1f} GB   first step {started:.1f} s",
        flush=True,
    )


def main() -> None:
    args = read_options()
    for way in args.ways or WAYS:
        torch.cuda.reset_peak_memory_stats()
        try:
            measure(way, args)
        except (tranche.Error, RuntimeError) as error:
            print(f"{way:8} {str(error)[:500]}", flush=True)
        gc.collect()
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
