"""nanoGPT's setting for a CPU in eager PyTorch: a small GPT-2 on one text file; tokens a
second and the validation loss at the end.

    torch_nano.py --data FILE [--vocabulary bytes|characters] [--steps 2000]

The first nine tenths of the file are trained on by random crops; the loss at the end is
over all windows of the last tenth, as Tranche evaluates.
"""
import argparse
import math
import time

import numpy as np
import torch

import gpt2
import measure

CONTEXT, BATCH = 64, 12
LAYERS, WIDTH, HEADS = 4, 128, 4
RATE, RATE_END, WARMUP = 1e-3, 1e-4, 100


def read(path, kind):
    data = np.fromfile(path, np.uint8)
    if kind == "bytes":
        return torch.from_numpy(data.astype(np.int64)), 256
    text = data.tobytes().decode("utf-8", "replace")
    alphabet = {c: i for i, c in enumerate(sorted(set(text)))}
    return torch.tensor([alphabet[c] for c in text]), len(alphabet)


def rate(step, steps):
    if step < WARMUP:
        return RATE * (step + 1) / (WARMUP + 1)
    done = (step - WARMUP) / max(1, steps - WARMUP)
    return RATE_END + (RATE - RATE_END) * (1 + math.cos(math.pi * done)) / 2


def crops(data):
    starts = torch.randint(len(data) - CONTEXT, (BATCH,))
    rows = torch.stack([data[s:s + CONTEXT + 1] for s in starts.tolist()])
    return rows[:, :-1], rows[:, 1:]


@torch.no_grad()
def evaluate(model, data):
    count = (len(data) - 1) // CONTEXT
    x = data[:count * CONTEXT].view(count, CONTEXT)
    y = data[1:count * CONTEXT + 1].view(count, CONTEXT)
    total = sum(float(model.loss(x[i:i + 64], y[i:i + 64], "sum"))
                for i in range(0, count, 64))
    return total / (count * CONTEXT)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", required=True)
    options.add_argument("--vocabulary", choices=["bytes", "characters"],
                         default="bytes")
    options.add_argument("--steps", type=int, default=2000)
    options.add_argument("--seed", type=int, default=1337)
    args = options.parse_args()

    torch.manual_seed(args.seed)
    data, vocabulary = read(args.data, args.vocabulary)
    split = len(data) * 9 // 10
    train, validation = data[:split], data[split:]
    model = gpt2.Gpt2(vocabulary, CONTEXT, LAYERS, WIDTH, HEADS)
    optimizer = gpt2.make_adamw(model, RATE, (0.9, 0.99), 0.1)
    seconds = []
    for step in range(args.steps):
        begin = time.perf_counter()
        for group in optimizer.param_groups:
            group["lr"] = rate(step, args.steps)
        x, y = crops(train)
        loss = model.loss(x, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        float(loss.detach())  # as a log line needs it
        seconds.append(time.perf_counter() - begin)
    measure.report(BATCH * CONTEXT, seconds,
                   validation_loss=round(evaluate(model, validation), 4))


if __name__ == "__main__":
    main()
