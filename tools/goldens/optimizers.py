#!/usr/bin/env python3
"""Writes tests/data/optimizers/*.txt: what optimizers that others wrote make of a few
parameters: PyTorch's; DeepSpeed's Lion; LAMB of torch_optimizer (DeepSpeed's form, whose
own LAMB runs on GPUs only) and of timm (the paper's form); timm's LARS.

Each file holds the hyper-parameters, the parameters at the start, and for each update
the gradients given and the parameters and states after it, all as hexadecimal floats.

    python3 tools/goldens/optimizers.py tests/data/optimizers [NAME ...]
"""

import importlib.metadata
import math
import pathlib
import sys

import timm.optim
import torch
import torch_optimizer
from deepspeed.ops.lion import DeepSpeedCPULion

COUNT, STEPS = 7, 6


# ---- what others call by other names, by ours


class Lion(DeepSpeedCPULion):
    states = ("exp_avg",)  # it has one more, which it does not use


class Lamb(torch_optimizer.Lamb):
    """DeepSpeed's form: the rate has the bias correction, the ratio of norms has not.
    Bounds that always bind make the ratio a constant: a part of the rate."""

    def __init__(self, parameters, lr, min_coeff, max_coeff, **options):
        bound = min_coeff == max_coeff
        super().__init__(parameters, lr * min_coeff if bound else lr, adam=bound,
                         debias=True, clamp_value=math.inf, **options)


class PaperLamb(timm.optim.Lamb):
    """The paper's form, algorithm 2 of arXiv 1904.00962."""

    def __init__(self, parameters, corrected, **options):
        super().__init__(parameters, max_grad_norm=None, always_adapt=True,
                         foreach=False, **options)


class LARS(timm.optim.Lars):
    """Its momentum buffer is without the rate, a constant here, which the paper's has."""

    def __init__(self, parameters, trust_coefficient, **options):
        super().__init__(parameters, trust_coeff=trust_coefficient, always_adapt=True,
                         foreach=False, **options)


ADAM = dict(lr=0.05, betas=(0.9, 0.999), eps=1e-8)
SGD = dict(lr=0.05)
LARS_OPTIONS = dict(lr=2.0, nesterov=False, trust_coefficient=0.02)
CASES = {
    "adam": (torch.optim.Adam, ADAM),
    "adam_l2": (torch.optim.Adam, dict(ADAM, weight_decay=0.1)),
    "adamw": (torch.optim.AdamW, dict(ADAM, weight_decay=0.1)),
    "adamw_betas": (
        torch.optim.AdamW,
        dict(lr=0.02, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.01),
    ),
    # Betas that f32 holds exactly: DeepSpeed has 1 - beta in f32.
    "lion": (Lion, dict(lr=0.01, betas=(1 - 2**-3, 1 - 2**-7))),
    "lion_decay": (
        Lion,
        dict(lr=0.01, betas=(1 - 2**-2, 1 - 2**-10), weight_decay=0.5),
    ),
    "adagrad": (torch.optim.Adagrad, dict(lr=0.05, eps=1e-10)),
    "adagrad_l2": (
        torch.optim.Adagrad,
        dict(
            lr=0.05,
            eps=1e-3,
            weight_decay=0.1,
            lr_decay=0.25,
            initial_accumulator_value=0.5,
        ),
    ),
    "lamb": (Lamb, dict(ADAM, min_coeff=0, max_coeff=math.inf, weight_decay=0.1)),
    "lamb_below": (Lamb, dict(ADAM, min_coeff=16, max_coeff=16, weight_decay=0.01)),
    "lamb_above": (
        Lamb,
        dict(ADAM, min_coeff=0.03125, max_coeff=0.03125, weight_decay=0.01),
    ),
    "lamb_zero": (Lamb, dict(ADAM, min_coeff=0, max_coeff=math.inf)),
    "lamb_still": (Lamb, dict(ADAM, min_coeff=0, max_coeff=math.inf)),
    "lamb_paper": (PaperLamb, dict(ADAM, corrected=True, weight_decay=0.1)),
    "lamb_paper_zero": (PaperLamb, dict(ADAM, corrected=True, weight_decay=0.1)),
    "lamb_paper_still": (PaperLamb, dict(ADAM, corrected=True, weight_decay=0)),
    "lars": (LARS, dict(LARS_OPTIONS, eps=1e-8, momentum=0.9, weight_decay=0.1)),
    "lars_nesterov": (
        LARS,
        dict(LARS_OPTIONS, eps=1e-3, momentum=0.8, nesterov=True, weight_decay=0.01),
    ),
    "lars_zero": (LARS, dict(LARS_OPTIONS, eps=1e-8, momentum=0.9, weight_decay=0.1)),
    "lars_still": (LARS, dict(LARS_OPTIONS, eps=1e-8, momentum=0.9, weight_decay=0.1)),
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
EXTRA = (
    "lr_decay",
    "initial_accumulator_value",
    "corrected",
    "min_coeff",
    "max_coeff",
    "trust_coefficient",
)
STATES = ("exp_avg", "exp_avg_sq", "momentum_buffer", "sum")


# Cases whose parameters begin as zeros, and whose first gradients are zeros.
ZERO = ("lamb_zero", "lamb_paper_zero", "lars_zero")
STILL = ("lamb_still", "lamb_paper_still", "lars_still")


def origin(optimizer_class):
    theirs = next(c for c in optimizer_class.__mro__ if c.__module__ != __name__)
    package = theirs.__module__.split(".")[0]
    return f"{package} {importlib.metadata.version(package)}, {theirs.__name__}"


def row(name, tensor):
    return " ".join([name] + [float(x).hex() for x in tensor.tolist()])


def states_of(optimizer, parameter):
    for name in getattr(optimizer, "states", STATES):
        value = optimizer.state[parameter].get(name)
        if value is not None:
            lars = isinstance(optimizer, LARS)
            yield name, optimizer.param_groups[0]["lr"] * value if lars else value


def run(name, optimizer_class, options):
    generator = torch.Generator().manual_seed(1)
    start = torch.randn(COUNT, generator=generator)
    parameter = torch.nn.Parameter(start * 0 if name in ZERO else start)
    if optimizer_class.__module__.startswith("torch."):
        options = dict(options, foreach=False)
    optimizer = optimizer_class([parameter], **options)
    lines = [row("start", parameter.detach())]
    for step in range(STEPS):
        # Of very different sizes, so that eps and the square root matter.
        scale = torch.logspace(-6, 1, COUNT)
        parameter.grad = torch.randn(COUNT, generator=generator) * scale
        if name in STILL and step < 2:
            parameter.grad.zero_()
        lines.append(row("grad", parameter.grad))
        optimizer.step()
        lines.append(row("param", parameter.detach()))
        lines += [row(*state) for state in states_of(optimizer, parameter)]
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
    for name in EXTRA:
        if name in options:
            values[name] = float(options[name])
    return [f"{name} {value!r}" for name, value in values.items()]


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or CASES:
        optimizer_class, options = CASES[name]
        options = dict({"weight_decay": 0}, **options)
        head = [
            f"# {origin(optimizer_class)}, float32, by tools/goldens/optimizers.py",
            f"count {COUNT}",
            f"updates {STEPS}",
        ]
        lines = head + hyper(optimizer_class, options)
        lines += run(name, optimizer_class, options)
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
