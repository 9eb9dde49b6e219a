"""Makes tests/data/deepspeed: folders that DeepSpeed saves, of each ZeRO stage, and
what it goes on to. Needs deepspeed (made with 0.19.8, PyTorch 2.15) on the CPU:

    python tools/goldens/deepspeed_folders.py tests/data/deepspeed STAGE

starts two ranks. Each trains a module of two layers on rows that follow from their
number, for three steps, saves a folder, and goes on for three steps more, whose losses
and weights go into OUT/stageN.json."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

RANKS, STEPS, ROWS = 2, 3, 4  # rows: of a rank's micro-batch


def module():
    import torch
    from torch import nn

    class Module(nn.Module):  # with the names of the library's own
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(6, 5), nn.Linear(5, 3)])

        def forward(self, x):
            return self.layers[1](self.layers[0](x).relu())

    torch.manual_seed(7)
    made = Module()
    made.layers[0].bias.requires_grad_(False)
    return made


def rows(step: int, rank: int):
    """The rows of a rank in a step."""
    import torch

    first = (step * RANKS + rank) * ROWS
    number = torch.arange(first, first + ROWS, dtype=torch.float32)[:, None]
    return torch.sin(number * torch.arange(1.0, 7.0)), (number[:, 0] % 3).long()


def config(stage: int) -> dict:
    params = {"lr": 0.01, "betas": [0.8, 0.9], "weight_decay": 0.1}
    return {
        "train_batch_size": ROWS * RANKS,
        "train_micro_batch_size_per_gpu": ROWS,
        "gradient_clipping": 1.0,
        "optimizer": {"type": "AdamW", "params": {**params, "torch_adam": True}},
        "zero_optimization": {"stage": stage},
    }


def train(out: Path, stage: int) -> None:
    import deepspeed
    import torch
    import torch.nn.functional as F

    # Exchanges over shared memory would be compiled first.
    deepspeed.ops.__compatible_ops__.clear()
    deepspeed.init_distributed("gloo")
    made = module()
    trained = [p for p in made.parameters() if p.requires_grad]
    engine, *_ = deepspeed.initialize(
        model=made, model_parameters=trained, config=config(stage)
    )
    losses = []
    for step in range(2 * STEPS):
        if step == STEPS:
            engine.save_checkpoint(out / f"stage{stage}", client_state={"epoch": 4})
        x, y = rows(step, int(os.environ["RANK"]))
        loss = F.cross_entropy(engine(x), y)
        engine.backward(loss)
        engine.step()
        mean = loss.detach().clone()
        torch.distributed.all_reduce(mean)
        losses.append(mean.item() / RANKS)
    if stage == 3:
        with deepspeed.zero.GatheredParameters(list(made.parameters())):
            state = {n: p.detach().clone() for n, p in made.named_parameters()}
    else:
        state = made.state_dict()
    if os.environ["RANK"] == "0":
        weights = {n: values.flatten().tolist() for n, values in state.items()}
        told = {"losses": losses[STEPS:], "weights": weights}
        (out / f"stage{stage}.json").write_text(json.dumps(told))


def main() -> None:
    out, stage = Path(sys.argv[1]), int(sys.argv[2])
    if "RANK" in os.environ:
        train(out, stage)
        return
    out.mkdir(parents=True, exist_ok=True)
    launch = [sys.executable, "-m", "torch.distributed.run"]
    launch += ["--nproc-per-node", str(RANKS), "--rdzv-backend", "c10d"]
    launch += ["--rdzv-endpoint", "localhost:0", __file__, str(out), str(stage)]
    subprocess.run(launch, check=True)
    for program in (out / f"stage{stage}").glob("*.py"):
        program.unlink()  # which DeepSpeed puts beside its files


if __name__ == "__main__":
    main()
