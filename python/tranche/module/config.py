"""What tranche.initialize makes of a DeepSpeed config."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from tranche import ranks
from tranche.error import Error, Status
from tranche.run import Config, Run

log = logging.getLogger("tranche")


class Batch(NamedTuple):
    """train = micro * accumulation * data ranks."""

    train: int
    micro: int
    accumulation: int


def one_config(args: Any, config: Any, config_params: Any) -> Config:
    """The config, which may stand in three places, and in one of them at a time."""
    of_args = getattr(args, "deepspeed_config", None)
    given = [each for each in (config, config_params, of_args) if each is not None]
    if not given:
        raise Error(
            Status.USAGE,
            "there is no config: pass config=, a dict or the path of a file, or "
            "args.deepspeed_config",
        )
    if len(given) > 1:
        raise Error(
            Status.USAGE,
            "there are two configs: give one of config=, config_params= and "
            "args.deepspeed_config",
        )
    found: Config = given[0]
    if not isinstance(found, Mapping | str | os.PathLike):
        raise Error(
            Status.USAGE,
            f"config: a dict or a path is needed, not {type(found).__name__}",
        )
    return found


def _count(run: Run, key: str) -> int | None:
    value = run.get(key)
    return int(value) if isinstance(value, int) and value > 0 else None


def data_ranks(config: Config) -> int:
    """How many ranks there are of each part of the model."""
    run = Run(config)
    try:
        parts = 1
        for key in ("tensor_parallel.size", "pipeline.stages"):
            value = run.get(key)
            if value == "auto":
                raise Error(
                    Status.USAGE,
                    f"{key}: a module's batches are shared out before there is a plan: "
                    f'give a number in place of "auto"',
                )
            parts *= int(value or 1)
    finally:
        run.close()
    if ranks.count() % parts:
        raise Error(
            Status.USAGE,
            f"{ranks.count()} ranks are no multiple of pipeline.stages times "
            f"tensor_parallel.size, {parts}",
        )
    return ranks.count() // parts


def batch_of(config: Config, world: int) -> Batch:
    """The three sizes, of which the config gives one to three. world: data ranks."""
    run = Run(config)
    try:
        train = _count(run, "train_batch_size")
        micro = _count(run, "train_micro_batch_size_per_gpu")
        steps = _count(run, "gradient_accumulation_steps")
    finally:
        run.close()
    if train is None and micro is None:
        raise Error(
            Status.USAGE,
            "the config has no batch: give train_batch_size or "
            "train_micro_batch_size_per_gpu",
        )
    if train is None:
        assert micro is not None
        return Batch(micro * (steps or 1) * world, micro, steps or 1)
    if micro is None:
        steps = steps or 1
        micro = -(-train // (world * steps))
    return Batch(train, micro, steps or -(-train // (micro * world)))


def clipping(config: Config) -> float:
    """DeepSpeed's default acts where the config has none; it is said."""
    run = Run(config)
    try:
        value = run.get("gradient_clipping")
        if not str(run.origin("gradient_clipping")).startswith("default"):
            return float(value) if isinstance(value, int | float) else 1.0
    finally:
        run.close()
    log.warning("gradient_clipping is 1.0, DeepSpeed's default; the config has none")
    return 1.0
