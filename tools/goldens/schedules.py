#!/usr/bin/env python3
"""Writes tests/data/schedules.json: the rates, and OneCycle's betas, that the classes of
DeepSpeed's lr_schedules.py and transformers' schedules set before updates 1, 2, ...

    python3 tools/goldens/schedules.py tests/data/schedules.json
"""

import importlib.metadata
import json
import pathlib
import sys

import deepspeed.runtime.lr_schedules as lr_schedules
import torch
import transformers

UPDATES = 24
OWN_LR = 0.7  # the optimizer's

CYCLE = {"cycle_min_lr": 0.1, "cycle_max_lr": 1.0}
CASES = [
    ("WarmupLR", {}),
    ("WarmupLR", {"warmup_max_lr": 0.3, "warmup_min_lr": 0.05, "warmup_num_steps": 7}),
    ("WarmupLR", {"warmup_num_steps": 9, "warmup_type": "linear"}),
    ("WarmupLR", {"warmup_num_steps": 1}),
    ("WarmupDecayLR", {"total_num_steps": 20, "warmup_num_steps": 6}),
    ("WarmupDecayLR", {"total_num_steps": 17, "warmup_num_steps": 5,
                       "warmup_type": "linear", "warmup_min_lr": 0.01,
                       "warmup_max_lr": 0.4}),
    ("WarmupDecayLR", {"total_num_steps": 4, "warmup_num_steps": 8}),
    ("WarmupCosineLR", {"total_num_steps": 20, "warmup_num_steps": 6}),
    ("WarmupCosineLR", {"total_num_steps": 18, "warmup_num_steps": 4,
                        "warmup_min_ratio": 0.2, "cos_min_ratio": 0.1,
                        "warmup_type": "linear"}),
    ("WarmupCosineLR", {"total_num_steps": 3, "warmup_num_steps": 5}),
    ("LRRangeTest", {}),
    ("LRRangeTest", {"lr_range_test_min_lr": 0.02, "lr_range_test_step_size": 5,
                     "lr_range_test_step_rate": 3.0}),
    ("LRRangeTest", {"lr_range_test_min_lr": 0.02, "lr_range_test_step_size": 4,
                     "lr_range_test_staircase": True}),
    ("OneCycle", CYCLE),
    ("OneCycle", {**CYCLE, "cycle_first_step_size": 6, "decay_lr_rate": 0.5,
                  "decay_step_size": 3}),
    ("OneCycle", {**CYCLE, "cycle_first_step_size": 8, "cycle_second_step_size": 4,
                  "cycle_first_stair_count": 4, "cycle_second_stair_count": 2}),
    ("OneCycle", {**CYCLE, "cycle_first_step_size": 5, "cycle_second_step_size": 7,
                  "cycle_momentum": False}),
    ("OneCycle", {**CYCLE, "cycle_first_step_size": 4, "cycle_min_mom": 0.6,
                  "cycle_max_mom": 0.8, "decay_mom_rate": 0.01, "decay_step_size": 2}),
]

# Of transformers, with the run's length where "total_num_steps" is left out.
RUN = 19
HUGGING_FACE = [
    ("constant_with_warmup", {}),
    ("constant_with_warmup", {"warmup_num_steps": 5}),
    ("constant_with_warmup", {"warmup_ratio": 0.3}),
    ("linear", {}),
    ("linear", {"warmup_num_steps": 4}),
    ("linear", {"warmup_num_steps": 1, "total_num_steps": 13}),
    ("linear", {"warmup_ratio": 0.1}),
    ("linear", {"warmup_num_steps": 9, "total_num_steps": 6}),
    ("cosine", {}),
    ("cosine", {"warmup_num_steps": 6, "total_num_steps": 21}),
    ("cosine", {"warmup_ratio": 0.25}),
    ("cosine", {"warmup_num_steps": 3, "num_cycles": 1.5}),
    ("cosine", {"warmup_num_steps": 8, "total_num_steps": 5}),
]


def of_deepspeed(optimizer, kind, params):
    return getattr(lr_schedules, kind)(optimizer, **params)


def of_transformers(optimizer, kind, params):
    """As its Trainer makes it."""
    total = params.get("total_num_steps", RUN)
    warmup = params.get("warmup_num_steps", params.get("warmup_ratio", 0))
    arguments = transformers.TrainingArguments(
        output_dir="unused", lr_scheduler_type=kind, warmup_steps=warmup)
    others = {"num_cycles": params["num_cycles"]} if "num_cycles" in params else {}
    return transformers.get_scheduler(
        kind, optimizer, num_warmup_steps=arguments.get_warmup_steps(total),
        num_training_steps=total, scheduler_specific_kwargs=others)


def follow(make, kind, params):
    """What an update finds: the scheduler steps after each of them."""
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.Adam([parameter], lr=OWN_LR)
    scheduler = make(optimizer, kind, params)
    group = optimizer.param_groups[0]
    rates, betas = [], []
    for _ in range(UPDATES):
        rates.append(float(group["lr"]))
        betas.append([float(b) for b in group["betas"]])
        optimizer.step()
        scheduler.step()
    case = {"scheduler": {"type": kind, "params": params}, "rates": rates}
    if make is of_transformers:
        case["steps"] = RUN
    if kind == "OneCycle" and params.get("cycle_momentum", True):
        case["betas"] = betas
    return case


def main():
    lr_schedules.logger.setLevel("ERROR")
    cases = [follow(of_deepspeed, *case) for case in CASES]
    cases += [follow(of_transformers, *case) for case in HUGGING_FACE]
    made_with = [f"{name} {importlib.metadata.version(name)}"
                 for name in ("deepspeed", "transformers")]
    result = {"made_with": made_with, "lr": OWN_LR, "cases": cases}
    lines = json.dumps(result).replace('{"scheduler"', '\n{"scheduler"')
    pathlib.Path(sys.argv[1]).write_text(lines + "\n")


if __name__ == "__main__":
    main()
