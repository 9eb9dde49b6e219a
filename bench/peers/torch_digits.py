"""ResNet-20 on scikit-learn's digits (1,797 images of 8 x 8) in eager PyTorch, and the
images as npy files for both sides.

    torch_digits.py --write FOLDER           x.npy, y.npy and a held-out fifth: vx, vy
    torch_digits.py --data FOLDER [--micro-batch 32] [--accumulation 1] [--epochs 1]
        [--start FILE --steps N --save FILE]  from given weights, batches in their order

The optimizer step has micro-batch x accumulation samples; with accumulation, batch norm
has the statistics of each micro-batch. Rates as of bench/digits.sh.
"""
import argparse
import math
import pathlib
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

import measure

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tools" / "goldens"))
from resnet import ResNet  # noqa: E402

MEAN, STD = 4.9, 6.0


def write(folder):
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    held = len(order) // 5
    images, labels = digits.images.astype(np.uint8), digits.target.astype(np.int32)
    for name, rows in (("v", order[:held]), ("", order[held:])):
        np.save(f"{folder}/{name}x.npy", images[rows])
        np.save(f"{folder}/{name}y.npy", labels[rows])


def read(folder, name):
    x = torch.tensor(np.load(f"{folder}/{name}x.npy"), dtype=torch.float32)
    return (x[:, None] - MEAN) / STD, torch.tensor(np.load(f"{folder}/{name}y.npy")).long()


def make_model():
    config = {"width": 16, "num_channels": 1, "num_labels": 10, "shortcut": "identity"}
    model = ResNet(config, [3, 3, 3], False, False)
    for module in model.modules():
        if isinstance(module, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return model


def make_optimizer(model, rate):
    return torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, weight_decay=5e-4)


def step(model, optimizer, x, y, micro):
    optimizer.zero_grad(set_to_none=True)
    for part in range(0, len(y), micro):
        loss = F.cross_entropy(model(x[part:part + micro]), y[part:part + micro],
                               reduction="sum") / len(y)
        loss.backward()
    optimizer.step()


def follow(args, x, y):
    """A few steps from given weights, samples in their order, at a constant rate."""
    model = make_model()
    model.load_state_dict(load_file(args.start))
    optimizer = make_optimizer(model, 0.05)
    batch = args.micro_batch * args.accumulation
    for s in range(args.steps):
        rows = slice(s * batch, (s + 1) * batch)
        step(model, optimizer, x[rows], y[rows], args.micro_batch)
    save_file({name: t.contiguous() for name, t in model.state_dict().items()}, args.save)


def train(args, x, y, vx, vy):
    batch = args.micro_batch * args.accumulation
    model = make_model()
    optimizer = make_optimizer(model, 0.05)
    steps, warm, seconds = args.epochs * math.ceil(len(y) / batch), 45, []
    for _ in range(args.epochs):
        for rows in torch.randperm(len(y)).split(batch):
            at = len(seconds)
            scale = at / warm if at < warm else (
                1 + math.cos(math.pi * (at - warm) / max(1, steps - warm))) / 2
            optimizer.param_groups[0]["lr"] = 0.05 * scale
            begin = time.perf_counter()
            step(model, optimizer, x[rows], y[rows], args.micro_batch)
            seconds.append((time.perf_counter() - begin) * batch / len(rows))
    model.eval()
    with torch.no_grad():
        right = (model(vx).argmax(1) == vy).float().mean().item()
    measure.report(batch, seconds, "samples", validation_accuracy=round(right, 5))


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--write")
    options.add_argument("--data")
    options.add_argument("--micro-batch", type=int, default=32)
    options.add_argument("--accumulation", type=int, default=1)
    options.add_argument("--epochs", type=int, default=1)
    options.add_argument("--start")
    options.add_argument("--save")
    options.add_argument("--steps", type=int, default=5)
    args = options.parse_args()
    torch.manual_seed(1)
    if args.write:
        write(args.write)
    elif args.start:
        follow(args, *read(args.data, ""))
    else:
        train(args, *read(args.data, ""), *read(args.data, "v"))


if __name__ == "__main__":
    main()
