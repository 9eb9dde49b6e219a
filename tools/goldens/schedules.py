#!/usr/bin/env python3
"""Writes tests/data/schedules.json: the rates, and OneCycle's betas, that the classes of
DeepSpeed's lr_schedules.py set before updates 1, 2, ...

    python3 tools/goldens/schedules.py tests/data/schedules.json
"""

import importlib.metadata
import json
import pathlib
import sys

import deepspeed.runtime.lr_schedules as lr_schedules
import torch

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


def follow(kind, params):
    """What an update finds: the scheduler steps after each of them."""
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.Adam([parameter], lr=OWN_LR)
    scheduler = getattr(lr_schedules, kind)(optimizer, **params)
    group = optimizer.param_groups[0]
    rates, betas = [], []
    for _ in range(UPDATES):
        rates.append(float(group["lr"]))
        betas.append([float(b) for b in group["betas"]])
        optimizer.step()
        scheduler.step()
    case = {"scheduler": {"type": kind, "params": params}, "rates": rates}
    if kind == "OneCycle" and params.get("cycle_momentum", True):
        case["betas"] = betas
    return case


def main():
    lr_schedules.logger.setLevel("ERROR")
    result = {"made_with": f"deepspeed {importlib.metadata.version('deepspeed')}",
              "lr": OWN_LR, "cases": [follow(*case) for case in CASES]}
    lines = json.dumps(result).replace('{"scheduler"', '\n{"scheduler"')
    pathlib.Path(sys.argv[1]).write_text(lines + "\n")


if __name__ == "__main__":
    main()
