#!/usr/bin/env python3
"""Writes tests/data/optimizers/*.txt: what PyTorch's optimizers make of a few parameters.

Each file holds the hyper-parameters, the parameters at the start, and for each update
the gradients given and the parameters and states after it, all as hexadecimal floats.

    python3 tools/goldens/optimizers.py tests/data/optimizers
"""

import pathlib
import sys

import torch

COUNT, STEPS = 7, 6

ADAM = dict(lr=0.05, betas=(0.9, 0.999), eps=1e-8)
SGD = dict(lr=0.05)
CASES = {
    "adam": (torch.optim.Adam, ADAM),
    "adam_l2": (torch.optim.Adam, dict(ADAM, weight_decay=0.1)),
    "adamw": (torch.optim.AdamW, dict(ADAM, weight_decay=0.1)),
    "adamw_betas": (
        torch.optim.AdamW,
        dict(lr=0.02, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.01),
    ),
    "sgd": (torch.optim.SGD, SGD),
    "sgd_l2": (torch.optim.SGD, dict(SGD, weight_decay=0.1)),
    "sgd_momentum": (torch.optim.SGD, dict(SGD, momentum=0.9)),
    "sgd_dampening": (
        torch.optim.SGD,
        dict(SGD, momentum=0.9, dampening=0.3, weight_decay=0.1),
    ),
    "sgd_nesterov": (
        torch.optim.SGD,
        dict(SGD, momentum=0.9, nesterov=True, weight_decay=0.1),
    ),
}
STATES = ("exp_avg", "exp_avg_sq", "momentum_buffer")


def row(name, tensor):
    return " ".join([name] + [float(x).hex() for x in tensor.tolist()])


def run(optimizer_class, options):
    generator = torch.Generator().manual_seed(1)
    parameter = torch.nn.Parameter(torch.randn(COUNT, generator=generator))
    optimizer = optimizer_class([parameter], foreach=False, **options)
    lines = [row("start", parameter.detach())]
    for _ in range(STEPS):
        # Of very different sizes, so that eps and the square root matter.
        scale = torch.logspace(-6, 1, COUNT)
        parameter.grad = torch.randn(COUNT, generator=generator) * scale
        lines.append(row("grad", parameter.grad))
        optimizer.step()
        lines.append(row("param", parameter.detach()))
        state = optimizer.state[parameter]
        for name in STATES:
            if state.get(name) is not None:
                lines.append(row(name, state[name]))
    return lines


def hyper(optimizer_class, options):
    beta1, beta2 = options.get("betas", (0, 0))
    values = {
        "lr": options["lr"],
        "weight_decay": options.get("weight_decay", 0),
        "beta1": beta1,
        "beta2": beta2,
        "eps": options.get("eps", 0),
        "decoupled": int(optimizer_class is torch.optim.AdamW),
        "momentum": options.get("momentum", 0),
        "dampening": options.get("dampening", 0),
        "nesterov": int(options.get("nesterov", False)),
    }
    return [f"{name} {value!r}" for name, value in values.items()]


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, (optimizer_class, options) in CASES.items():
        options = dict({"weight_decay": 0}, **options)
        head = [
            f"# PyTorch {torch.__version__}, torch.optim.{optimizer_class.__name__}, "
            "float32, by tools/goldens/optimizers.py",
            f"count {COUNT}",
            f"updates {STEPS}",
        ]
        lines = head + hyper(optimizer_class, options) + run(optimizer_class, options)
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
