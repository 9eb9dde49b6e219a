"""torch.optim's optimizers, taken over by their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from tranche.error import Error, Status
from tranche.module.build import pattern

# What an optimizer of PyTorch's is here, which of its numbers ours has, and those that
# have to be left as they are.
_KINDS: dict[str, tuple[str, dict[str, str], dict[str, Any]]] = {
    "Adam": (
        "Adam",
        {"lr": "lr", "betas": "betas", "eps": "eps", "weight_decay": "weight_decay"},
        {"amsgrad": False, "maximize": False},
    ),
    "AdamW": (
        "AdamW",
        {"lr": "lr", "betas": "betas", "eps": "eps", "weight_decay": "weight_decay"},
        {"amsgrad": False, "maximize": False},
    ),
    "SGD": (
        "SGD",
        {
            **{name: name for name in ("lr", "momentum", "dampening", "nesterov")},
            "weight_decay": "weight_decay",
        },
        {"maximize": False},
    ),
    "Adagrad": (
        "Adagrad",
        {
            **{name: name for name in ("lr", "lr_decay", "weight_decay", "eps")},
            "initial_accumulator_value": "initial_accumulator_value",
        },
        {"maximize": False},
    ),
}
_OF_GROUPS = ("lr", "weight_decay")  # what groups may differ in


def taken_over(optimizer: Any, names: Mapping[int, str]) -> dict[str, Any]:
    """The "optimizer" of a run file. names: of the module's parameters by their id."""
    kind = type(optimizer).__name__
    if kind not in _KINDS or not type(optimizer).__module__.startswith("torch.optim"):
        known = ", ".join(_KINDS)
        raise Error(
            Status.USAGE,
            f"optimizer {kind}: those of torch.optim that are taken over are {known}; "
            f'the config\'s "optimizer" has more',
        )
    ours, numbers, fixed = _KINDS[kind]
    groups = optimizer.param_groups
    last = groups[-1]
    for group in groups:
        for key, value in fixed.items():
            if group.get(key, value) != value:
                raise Error(Status.USAGE, f"optimizer {kind}: {key} is not supported")
        for key in numbers:
            if key not in _OF_GROUPS and group.get(key) != last.get(key):
                raise Error(
                    Status.USAGE,
                    f"optimizer {kind}: groups may differ in {' and '.join(_OF_GROUPS)}, "
                    f"not in {key}",
                )
    params = {to: _plain(last[key]) for key, to in numbers.items() if key in last}
    if kind == "Adam":
        params["adam_w_mode"] = bool(last.get("decoupled_weight_decay", False))
    made: dict[str, Any] = {"type": ours, "params": params}
    if len(groups) > 1:
        made["groups"] = [
            {
                "match": [pattern(names[id(p)]) for p in group["params"]],
                **{key: _plain(group[key]) for key in _OF_GROUPS},
            }
            for group in groups[:-1]
        ]
    return made


def _plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return float(value)
    return list(value) if isinstance(value, tuple) else value


def left_out(optimizer: Any, module: torch.nn.Module) -> list[str]:
    """Parameters of the module that the optimizer does not have: they stay as they
    are."""
    given = {id(p) for group in optimizer.param_groups for p in group["params"]}
    return [
        pattern(name)
        for name, parameter in module.named_parameters()
        if parameter.requires_grad and id(parameter) not in given
    ]


class Optimizer(torch.optim.Optimizer):
    """What tranche.initialize returns as the optimizer: its groups are those of the
    caller's, and a rate that is written there counts from the next step on. The step
    is the engine's."""

    def __init__(self, groups: list[dict[str, Any]]) -> None:
        super().__init__([{"params": [torch.empty(0)]}], {"lr": 0.0})
        self.param_groups = groups

    def step(self, closure: Any = None) -> Any:
        raise Error(
            Status.USAGE, "the optimizer's step is the engine's: call engine.step()"
        )

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Gradients are the engine's, which begins them anew with each step."""
