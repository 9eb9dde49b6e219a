#!/usr/bin/env python3
"""Writes tests/data/optimizers/*.txt: what PyTorch's optimizers make of a few
parameters, and what papers' equations do where PyTorch has no such optimizer.

Each file holds the hyper-parameters, the parameters at the start, and for each update
the gradients given and the parameters and states after it, all as hexadecimal floats.

    python3 tools/goldens/optimizers.py tests/data/optimizers
"""

import pathlib
import sys

import torch

COUNT, STEPS = 7, 6


class Lion(torch.optim.Optimizer):
    """Chen et al., arXiv 2302.06675, algorithm 2."""

    def __init__(self, parameters, foreach, **options):
        super().__init__(parameters, options)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            lr, decay = group["lr"], group["weight_decay"]
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                state = self.state[p]
                m = state.get("exp_avg", torch.zeros_like(p))
                update = torch.sign(beta1 * m + (1 - beta1) * p.grad)
                state["exp_avg"] = beta2 * m + (1 - beta2) * p.grad
                p -= lr * (update + decay * p)


class Lamb(torch.optim.Optimizer):
    """You et al., arXiv 1904.00962, algorithm 2, phi the identity ("paper"); or what
    DeepSpeed 0.19 makes of it, by its csrc/lamb/fused_lamb_cuda_kernel.cu."""

    def __init__(self, parameters, foreach, **options):
        super().__init__(parameters, options)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                self.update(p, self.state[p], group)

    def update(self, p, state, group):
        beta1, beta2 = group["betas"]
        t = state["step"] = state.get("step", 0) + 1
        m = state.get("exp_avg", torch.zeros_like(p))
        v = state.get("exp_avg_sq", torch.zeros_like(p))
        state["exp_avg"] = m = beta1 * m + (1 - beta1) * p.grad
        state["exp_avg_sq"] = v = beta2 * v + (1 - beta2) * p.grad * p.grad
        bias1, bias2 = 1 - beta1**t, 1 - beta2**t
        rate = group["lr"]
        if group["corrected"]:
            m, v = m / bias1, v / bias2
        else:
            rate *= bias2**0.5 / bias1
        u = m / (v.sqrt() + group["eps"]) + group["weight_decay"] * p
        trust = p.norm() / u.norm()
        if not group["corrected"]:
            trust = trust.clamp(group["min_coeff"], group["max_coeff"])
        p -= rate * trust * u


class LARS(torch.optim.Optimizer):
    """You, Gitman, Ginsburg, arXiv 1708.03888, algorithm 1."""

    def __init__(self, parameters, foreach, **options):
        super().__init__(parameters, options)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            decay, momentum = group["weight_decay"], group["momentum"]
            for p in group["params"]:
                size, slope = p.norm(), p.grad.norm()
                trust = group["trust_coefficient"] * size
                trust /= slope + decay * size + group["eps"]
                step = group["lr"] * trust * (p.grad + decay * p)
                state = self.state[p]
                b = momentum * state.get("momentum_buffer", torch.zeros_like(p)) + step
                state["momentum_buffer"] = b
                p -= momentum * b + step if group["nesterov"] else b


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
    "lion": (Lion, dict(lr=0.01, betas=(0.9, 0.99))),
    "lion_decay": (Lion, dict(lr=0.01, betas=(0.8, 0.999), weight_decay=0.5)),
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
    "lamb": (
        Lamb,
        dict(ADAM, corrected=False, min_coeff=0.01, max_coeff=10.0, weight_decay=0.1),
    ),
    "lamb_bounds": (
        Lamb,
        dict(ADAM, corrected=False, min_coeff=0.3, max_coeff=0.7, weight_decay=0.01),
    ),
    "lamb_paper": (
        Lamb,
        dict(ADAM, corrected=True, weight_decay=0.1),
    ),
    "lars": (
        LARS,
        dict(
            lr=2.0,
            eps=1e-8,
            momentum=0.9,
            nesterov=False,
            trust_coefficient=0.02,
            weight_decay=0.1,
        ),
    ),
    "lars_nesterov": (
        LARS,
        dict(
            lr=2.0,
            eps=1e-3,
            momentum=0.8,
            nesterov=True,
            trust_coefficient=0.02,
            weight_decay=0.01,
        ),
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
EXTRA = (
    "lr_decay",
    "initial_accumulator_value",
    "corrected",
    "min_coeff",
    "max_coeff",
    "trust_coefficient",
)
STATES = ("exp_avg", "exp_avg_sq", "momentum_buffer", "sum")


def origin(optimizer_class):
    theirs = optimizer_class.__module__.startswith("torch.")
    name = optimizer_class.__name__
    return f"torch.optim.{name}" if theirs else f"{name} by its equations"


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
    for name in EXTRA:
        if name in options:
            values[name] = float(options[name])
    return [f"{name} {value!r}" for name, value in values.items()]


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, (optimizer_class, options) in CASES.items():
        options = dict({"weight_decay": 0}, **options)
        head = [
            f"# PyTorch {torch.__version__}, {origin(optimizer_class)}, "
            "float32, by tools/goldens/optimizers.py",
            f"count {COUNT}",
            f"updates {STEPS}",
        ]
        lines = head + hyper(optimizer_class, options) + run(optimizer_class, options)
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
