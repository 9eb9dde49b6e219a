"""tranche.initialize and its companions: DeepSpeed's calls for a PyTorch module."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from tranche.error import Error, Status

if TYPE_CHECKING:
    from tranche.module.engine import ModuleEngine


def initialize(
    args: Any = None,
    model: Any = None,
    optimizer: Any = None,
    model_parameters: Any = None,
    training_data: Any = None,
    lr_scheduler: Any = None,
    distributed_port: int = 29500,
    mpu: Any = None,
    dist_init_required: bool | None = None,
    collate_fn: Any = None,
    config: Any = None,
    mesh_param: Any = None,
    config_params: Any = None,
    *,
    loss: Any = None,
    fallback: str = "torch",
) -> tuple[ModuleEngine, Any, Any, Any]:
    """Trains a PyTorch module by a plan: (engine, optimizer, loader, scheduler), as
    deepspeed.initialize of version 0.19.8 returns them. loss: of the module's outputs
    and the last tensor of a batch, a module or a function; the plan then has it.
    fallback: "refuse" makes operators that the library has no op for an error, and
    "torch" runs them in PyTorch."""
    try:
        import torch
    except ImportError as error:
        raise Error(
            Status.USAGE, "tranche.initialize needs PyTorch, which is not installed"
        ) from error
    from tranche.module import config as configs
    from tranche.module.engine import ModuleEngine

    if not isinstance(model, torch.nn.Module):
        raise Error(Status.USAGE, "model: a torch.nn.Module is needed")
    if fallback not in ("torch", "refuse"):
        raise Error(Status.USAGE, f'fallback is "torch" or "refuse", not {fallback!r}')
    for name, value in (("mpu", mpu), ("mesh_param", mesh_param)):
        if value is not None:
            raise Error(Status.USAGE, f"{name}: parallel models are not supported")
    found = configs.one_config(args, config, config_params)
    if callable(optimizer) and not isinstance(optimizer, torch.optim.Optimizer):
        optimizer = optimizer(model_parameters or model.parameters())
    scheduler = lr_scheduler
    engine = ModuleEngine(
        model,
        found,
        optimizer=optimizer,
        loss=loss,
        fallback=fallback,
    )
    if callable(scheduler) and not hasattr(scheduler, "step"):
        scheduler = scheduler(optimizer if optimizer is not None else engine.optimizer)
    engine.lr_scheduler = scheduler
    loader = None
    if training_data is not None:
        loader = torch.utils.data.DataLoader(
            training_data,
            batch_size=engine.batch.micro,
            shuffle=True,
            collate_fn=collate_fn,
        )
    return engine, engine.optimizer, loader, scheduler


def add_config_arguments(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Adds --deepspeed and --deepspeed_config to a program's arguments."""
    group = parser.add_argument_group("Tranche", "as DeepSpeed's")
    group.add_argument("--deepspeed", action="store_true", help="taken, and not needed")
    group.add_argument("--deepspeed_config", help="a run file, or a ds_config.json")
    return parser
