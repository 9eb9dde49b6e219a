"""Folders that DeepSpeed saved: weights in f32 and the optimizer's states of ZeRO 1 to
3, whole again, without DeepSpeed."""

from __future__ import annotations

import math
import os
import pickle
import re
import types
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch

from tranche.error import Error, Status

# Keys of the model's file that are DeepSpeed's own; the others are the caller's.
_OWN = {
    *("module", "buffer_names", "optimizer", "param_shapes", "frozen_param_shapes"),
    *("shared_params", "frozen_param_fragments", "lr_scheduler", "data_sampler"),
    *("random_ltd", "sparse_tensor_module_names", "skipped_steps", "global_steps"),
    *("global_samples", "dp_world_size", "mp_world_size", "ds_config", "ds_version"),
    *("checkpoint_parallel_dimensions", "dataloader_state_dict", "tp_world_size"),
}


class Saved(NamedTuple):
    weights: dict[str, Any]
    states: dict[str, dict[str, Any]]  # by the state's name, then the parameter's
    updates: int
    global_steps: int
    skipped_steps: int
    scheduler: Any
    client_state: dict[str, Any]


class _Theirs:
    """An object of DeepSpeed's, of which what it was made from is kept."""

    def __init__(self, *made_of: Any) -> None:
        self.made_of = made_of

    def __setstate__(self, state: Any) -> None:
        """Nothing of it is needed."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module.startswith("deepspeed."):
            return _Theirs
        return super().find_class(module, name)


_PICKLE: Any = types.ModuleType("pickle_of_theirs")  # for torch.load
_PICKLE.Unpickler, _PICKLE.load = _Unpickler, pickle.load


def is_theirs(path: str) -> bool:
    return any(name.endswith("_model_states.pt") for name in os.listdir(path))


def _load(path: str, name: str) -> Any:
    return torch.load(
        os.path.join(path, name),
        map_location="cpu",
        pickle_module=_PICKLE,
        weights_only=False,
    )


def _files(path: str, end: str) -> list[Any]:
    """Of all ranks, in their order."""

    def rank(name: str) -> int:
        found = re.search(r"pp_rank_(\d+)_", name)
        return int(found[1]) if found else 0

    names = [name for name in os.listdir(path) if name.endswith(end)]
    return [_load(path, name) for name in sorted(names, key=rank)]


def _unknown(path: str, why: str) -> Error:
    return Error(
        Status.IO,
        f"{path}: DeepSpeed saved this folder, and {why}: those of ZeRO 1 to 3 are "
        f"read, with one model on all ranks",
    )


def read(path: str) -> Saved:
    """The folder of one step."""
    models = _files(path, "_model_states.pt")
    parts = [each["optimizer_state_dict"] for each in _files(path, "_optim_states.pt")]
    if not parts or "zero_stage" not in parts[0]:
        raise _unknown(path, "it has no optimizer of ZeRO's")
    stage = parts[0]["zero_stage"]
    stage = int(stage.made_of[0] if isinstance(stage, _Theirs) else stage)
    count = parts[0]["partition_count"]
    count = max(count) if isinstance(count, list) else count
    if count != len(parts):
        raise _unknown(path, f"has {len(parts)} of {count} files of ranks")
    if models[0].get("mp_world_size", 1) != 1:
        raise _unknown(path, "its model is split over ranks")
    try:
        taken = _third(models, parts) if stage == 3 else _first(models, parts)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise _unknown(path, f"its form is not known ({error})") from error
    shared = models[0]["shared_params"]
    for each in taken.values():
        each.update({n: each[other] for n, other in shared.items() if other in each})
    weights, step = taken.pop("weights"), taken.pop("step")
    return Saved(
        {**_not_trained(models, stage), **weights},
        taken,
        int(step["step"]),
        models[0]["global_steps"],
        models[0]["skipped_steps"],
        models[0]["lr_scheduler"],
        {name: value for name, value in models[0].items() if name not in _OWN},
    )


Flats = list[list[Any]]  # of each rank, of each group


def _flats(base: Sequence[Mapping[str, Any]], weights: Flats) -> dict[str, Flats]:
    """The flat buffers of weights and of each state."""
    states = [[each["state"][i] for i in sorted(each["state"])] for each in base]
    names = [n for n, value in states[0][0].items() if value.ndim > 0]
    found = {n: [[group[n] for group in rank] for rank in states] for n in names}
    return {"weights": weights, **found}


def _step(base: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"step": next(iter(base[0]["state"].values()))["step"]}


def _first(models: list[Any], parts: list[Any]) -> dict[str, dict[str, Any]]:
    """ZeRO 1 and 2: the parameters of a group lie behind one another, and each rank has
    a part of them."""
    base = [each["base_optimizer_state"] for each in parts]
    weights = [each["single_partition_of_fp32_groups"] for each in parts]
    paddings = parts[0].get("param_alignment_paddings")
    found: dict[str, dict[str, Any]] = {"step": _step(base)}
    for name, flats in _flats(base, weights).items():
        found[name] = {}
        for g, shapes in enumerate(models[0]["param_shapes"]):
            whole = torch.cat([rank[g] for rank in flats])
            at = 0
            for i, (parameter, shape) in enumerate(shapes.items()):
                size = math.prod(shape)
                found[name][parameter] = whole[at : at + size].view(tuple(shape))
                at += size + (paddings[g][i] if paddings else 0)
    return found


def _third(models: list[Any], parts: list[Any]) -> dict[str, dict[str, Any]]:
    """ZeRO 3: each parameter is cut into as many parts as there are ranks."""
    base = [each["optimizer_state_dict"] for each in parts]
    weights = [each["fp32_flat_groups"] for each in parts]
    shapes = {n: s for group in models[0]["param_shapes"] for n, s in group.items()}
    found: dict[str, dict[str, Any]] = {"step": _step(base)}
    for name, flats in _flats(base, weights).items():
        found[name], at = {}, 0
        ranks = [torch.cat([values.flatten() for values in rank]) for rank in flats]
        for parameter, shape in shapes.items():
            size = -(-math.prod(shape) // len(ranks))
            pieces = [rank[at : at + size] for rank in ranks]
            found[name][parameter] = _joined(pieces, shape)
            at += size
    return found


def _joined(pieces: Sequence[Any], shape: Any) -> Any:
    return torch.cat(list(pieces))[: math.prod(shape)].view(tuple(shape))


def _not_trained(models: list[Any], stage: int) -> dict[str, Any]:
    """Buffers and frozen parameters."""
    module = models[0]["module"]
    if stage < 3:
        return dict(module)  # whole; those of the optimizer are in f32
    shapes = models[0].get("frozen_param_shapes") or {}
    frozen = {
        name: _joined([each["frozen_param_fragments"][name] for each in models], shape)
        for name, shape in shapes.items()
    }
    return {**{name: module[name] for name in models[0]["buffer_names"]}, **frozen}


def put(saved: Saved, module: Any, names: Mapping[str, str], path: str) -> None:
    """The weights become the module's. names: of each parameter the one of its first
    name."""
    buffers = dict(module.named_buffers())
    own = {**dict(module.named_parameters()), **buffers}
    there = {name: tuple(values.shape) for name, values in saved.weights.items()}
    why = ""
    for name in sorted({*there, *own}):
        if name not in there:
            why = f"{name} is missing" if name not in buffers else ""
        elif names.get(name, name) not in own:
            why = f"the module has no {name}"
        elif there[name] != tuple(own[names.get(name, name)].shape):
            why = f"{name} is of another shape"
        if why:
            raise Error(Status.IO, f"{path} is of another module: {why}")
    with torch.no_grad():
        for name in set(own) & set(there):
            own[name].copy_(saved.weights[name])
