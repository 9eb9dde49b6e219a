"""What TrainingArguments say, as a config of tranche.initialize."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Mapping
from typing import Any

import transformers

from tranche import ranks
from tranche.error import Error, Status
from tranche.hf import mesh
from tranche.module.config import log

# What the engine decides itself: named where it is set, and else ignored.
_WITHOUT_EFFECT = (
    *("activation_checkpointing", "gradient_checkpointing", "torch_compile", "tf32"),
    *("torch_empty_cache_steps", "use_liger_kernel", "auto_find_batch_size"),
    *("ddp_find_unused_parameters", "ddp_bucket_cap_mb", "ddp_broadcast_buffers"),
    *("ddp_static_graph", "activation_offloading"),
)
# What would train or evaluate something else.
_REFUSED = (
    *("fsdp", "parallelism_config", "neftune_noise_alpha", "debug"),
    *("fp16_full_eval", "bf16_full_eval"),
)
# "auto" in these is a size of DeepSpeed's buffers, and has no meaning here.
_SIZES_OF_BUFFERS = (
    *("reduce_bucket_size", "allgather_bucket_size", "stage3_prefetch_bucket_size"),
    *("stage3_param_persistence_threshold", "stage3_max_live_parameters"),
    *("stage3_max_reuse_distance", "sub_group_size"),
)


class TrainingArguments(transformers.TrainingArguments):
    """transformers' own. `deepspeed` is the engine's config, and DeepSpeed is neither
    needed nor started."""

    def __post_init__(self) -> None:
        given, self.deepspeed = self.deepspeed, None
        ranks.announce()  # accelerate asks the environment for ranks
        super().__post_init__()
        self.engine_config = given  # a dict, a path, JSON or None

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "deepspeed": self.engine_config}


def check(args: Any) -> None:
    """Raises what cannot be, before anything is made."""
    if getattr(args, "deepspeed_plugin", None) is not None:
        raise Error(
            Status.USAGE,
            "deepspeed of transformers' TrainingArguments or of TRL's SFTConfig, and "
            "accelerate's launcher for DeepSpeed, start DeepSpeed: take these classes "
            "from tranche.hf, and start ranks by torchrun",
        )
    told = os.environ.get
    on_cpu = told("ACCELERATE_USE_CPU") == "True"
    if on_cpu and told("MASTER_PORT") and args.world_size == 1:
        log.warning(
            "accelerate launch --cpu has started one process: several on CPUs need its "
            "--mpirun_hostfile, or torchrun"
        )
    for name in _REFUSED:
        if _is_set(args, name):
            raise Error(Status.USAGE, f"TrainingArguments.{name} is not supported")
    if args.world_size > 1 and args.train_sampling_strategy == "batch_rebalance":
        raise Error(
            Status.USAGE,
            'TrainingArguments.train_sampling_strategy="batch_rebalance" gives ranks '
            "other numbers of rows, and a plan has equal shares: it is for one rank here",
        )
    if args.device.type not in ("cpu", "cuda"):
        raise Error(
            Status.USAGE,
            f"the engine computes on CPUs and on NVIDIA's GPUs, and TrainingArguments "
            f"say {args.device}: set use_cpu=True",
        )
    if args.n_gpu > 1:
        raise Error(
            Status.USAGE,
            f"this process has {args.n_gpu} GPUs, and an engine computes on one: start "
            f"a rank for each by torchrun, or name one in CUDA_VISIBLE_DEVICES",
        )


def leave_out(args: Any) -> None:
    """Arguments that change nothing here are off, and named where they were set."""
    names = [name for name in _WITHOUT_EFFECT if _is_set(args, name)]
    if not _is_set(args, "gradient_checkpointing"):  # which says the other name, too
        names = [name for name in names if name != "activation_checkpointing"]
    if names:
        log.warning("TrainingArguments without effect: %s", ", ".join(names))
    for name in _WITHOUT_EFFECT:
        if isinstance(getattr(args, name, None), bool):
            setattr(args, name, False)


def _is_set(args: Any, name: str) -> bool:
    fields = type(args).__dataclass_fields__
    if name not in fields:
        return False
    value = getattr(args, name)
    return bool(value) and value != fields[name].default


def given_config(args: Any) -> dict[str, Any]:
    """The config that the caller has given, as a dict of our own."""
    given = getattr(args, "engine_config", None)
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return copy.deepcopy(dict(given))
    text = str(given)
    if not text.lstrip().startswith("{"):
        try:
            with open(os.fspath(given)) as file:
                text = file.read()
        except OSError as error:
            raise Error(Status.USAGE, f"deepspeed={given}: {error}") from error
    try:
        found: dict[str, Any] = json.loads(text)
    except json.JSONDecodeError as error:
        raise Error(Status.USAGE, f"deepspeed={given}: {error}") from error
    return found


def config_of(args: Any, steps: int) -> dict[str, Any]:
    """The engine's config: the caller's, whose "auto" the arguments say, and which has
    to agree with them. steps: of the whole training."""
    config = given_config(args)
    given = bool(config)
    others = []
    said = _said_by(args, steps, mesh.of(config, args).data_ranks)
    for key, (name, value) in said.items():
        node, last = _node(config, key)
        if node is None or last not in node:
            continue
        if node[last] == "auto":
            node[last] = value
        elif name and node[last] is not None and node[last] != value:
            others.append(f"{key} is {node[last]}, and {name} says {value}")
    if others:
        raise Error(
            Status.USAGE,
            f"the config in deepspeed= and TrainingArguments differ: "
            f'{"; ".join(others)}. "auto" in the config takes the arguments\'',
        )
    _fill(config, args, said, given)
    zero = config.get("zero_optimization")
    for key in _SIZES_OF_BUFFERS:
        if isinstance(zero, dict) and zero.get(key) == "auto":
            del zero[key]
    _no_auto(config, "")
    return config


def _said_by(args: Any, steps: int, data_ranks: int) -> dict[str, tuple[str, Any]]:
    """Each key that an argument says, with its name ("": the config may differ) and
    its value."""
    micro, g = args.per_device_train_batch_size, args.gradient_accumulation_steps
    warmup = max(1, args.get_warmup_steps(steps))
    of_optimizer = {
        "lr": ("learning_rate", args.learning_rate),
        "betas": ("adam_beta1 and adam_beta2", [args.adam_beta1, args.adam_beta2]),
        "eps": ("adam_epsilon", args.adam_epsilon),
        "weight_decay": ("weight_decay", args.weight_decay),
    }
    of_scheduler = {
        "warmup_min_lr": ("", 0),
        "warmup_max_lr": ("learning_rate", args.learning_rate),
        "total_num_steps": ("the number of steps", steps),
        "warmup_num_steps": ("warmup_steps", warmup),
    }
    return {
        "train_micro_batch_size_per_gpu": ("per_device_train_batch_size", micro),
        "gradient_accumulation_steps": ("gradient_accumulation_steps", g),
        "train_batch_size": ("the product with the ranks", micro * g * data_ranks),
        "gradient_clipping": ("max_grad_norm", args.max_grad_norm),
        "fp16.enabled": ("fp16", args.fp16),
        "bf16.enabled": ("bf16", args.bf16),
        **{f"optimizer.params.{key}": said for key, said in of_optimizer.items()},
        **{f"scheduler.params.{key}": said for key, said in of_scheduler.items()},
    }


def _node(config: dict[str, Any], key: str) -> tuple[dict[str, Any] | None, str]:
    *path, last = key.split(".")
    node: Any = config
    for part in path:
        node = node.get(part)
        if not isinstance(node, dict):
            return None, last
    return node, last


def _fill(
    config: dict[str, Any], args: Any, said: dict[str, tuple[str, Any]], given: bool
) -> None:
    """What the config leaves out and the arguments say. Clipping is DeepSpeed's default
    where there is a config without it."""
    for key in (
        "train_micro_batch_size_per_gpu",
        "gradient_accumulation_steps",
        "train_batch_size",
    ):
        config.setdefault(key, said[key][1])
    if not given:
        config["gradient_clipping"] = args.max_grad_norm or 0
    if "fp16" not in config and "bf16" not in config:
        for name in ("fp16", "bf16"):
            if getattr(args, name):
                config[name] = {"enabled": True}
    config.setdefault("seed", args.seed)


def _no_auto(node: Mapping[str, Any], path: str) -> None:
    for key, value in node.items():
        if value == "auto":
            raise Error(
                Status.USAGE,
                f'{path}{key} is "auto", and no argument says it: give a value',
            )
        if isinstance(value, Mapping):
            _no_auto(value, f"{path}{key}.")
