"""GPT-2 124M in PyTorch: tokens a second and peak memory. In float32 and eager, or with
bf16 autocast, or compiled.

    torch_gpt2.py [--context 1024] [--micro-batch 1] [--accumulation 4] [--steps 3]
                  [--warm 1] [--width 768] [--heads 12] [--vocabulary 50257] [--bf16]
                  [--device cpu] [--attention flash|cudnn]
                  [--compile [default|max-autotune]]

The first steps, --warm of them, are not counted. On a GPU the model is made there, and
AdamW is fused.
"""
import argparse
import contextlib
import functools
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import gpt2
import measure

ATTENTION = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}


def step(model, optimizer, batches, cast):
    for x, y in batches:
        with cast():
            loss = model.loss(x, y) / len(batches)
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def parse(options):
    """Adds what all language models are measured with."""
    options.add_argument("--context", type=int, default=1024)
    options.add_argument("--micro-batch", type=int, default=1)
    options.add_argument("--accumulation", type=int, default=4)
    options.add_argument("--steps", type=int, default=3)
    options.add_argument("--warm", type=int, default=1, help="steps that do not count")
    options.add_argument("--layers", type=int, default=12)
    options.add_argument("--attention", choices=ATTENTION,
                         help="this kernel of attention, or none; else torch chooses")
    options.add_argument("--compile", nargs="?", const="default", metavar="MODE",
                         help="with torch.compile, in this mode (default)")
    options.add_argument("--bf16", action="store_true", help="with autocast")
    options.add_argument("--device", default="cpu", help="cpu, cuda")
    return options.parse_args()


def settle(device):
    """Waits for what a GPU was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def make_step(make_model, args):
    """A function of a step's batches; the model is made on its device."""
    device = torch.device(args.device)
    with device:
        model = make_model()
    optimizer = gpt2.make_adamw(model, 1e-4, (0.9, 0.999), 0.1)
    if args.compile:
        model.loss = torch.compile(model.loss, mode=args.compile)
    cast = contextlib.nullcontext
    if args.bf16:
        cast = functools.partial(torch.autocast, device.type, torch.bfloat16)
    return functools.partial(step, model, optimizer, cast=cast)


def attention(args):
    chosen = args.attention and ATTENTION[args.attention]
    return sdpa_kernel(chosen) if chosen else contextlib.nullcontext()


def run(make_model, args):
    """Trains on random bytes and reports; the model has loss(ids, targets)."""
    device = torch.device(args.device)
    make_one = make_step(make_model, args)
    seconds = []
    for _ in range(args.steps):
        batches = []
        for _ in range(args.accumulation):
            shape = (args.micro_batch, args.context + 1)
            ids = torch.randint(256, shape, device=device)
            batches.append((ids[:, :-1], ids[:, 1:]))
        settle(device)
        begin = time.perf_counter()
        with attention(args):
            make_one(batches)
        settle(device)
        seconds.append(time.perf_counter() - begin)
    measure.report(args.accumulation * args.micro_batch * args.context, seconds,
                   warm=args.warm)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--width", type=int, default=768)
    options.add_argument("--heads", type=int, default=12)
    options.add_argument("--vocabulary", type=int, default=50257)
    args = parse(options)
    torch.manual_seed(1)
    run(lambda: gpt2.Gpt2(args.vocabulary, args.context, args.layers, args.width,
                          args.heads), args)


if __name__ == "__main__":
    main()
