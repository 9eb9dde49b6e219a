"""Modules of transformers that the library has a model of its own for. They take that
model where their forward is as transformers wrote it, and the batch is one that the
model reads."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from tranche import _declarations as c
from tranche.data import Field
from tranche.error import Error, Status
from tranche.module.feed import check_ids

CAUSAL = {
    "GPT2LMHeadModel",
    "LlamaForCausalLM",
    "MistralForCausalLM",
    "Qwen2ForCausalLM",
    "Qwen3ForCausalLM",
}
MASKED = {"BertForMaskedLM", "RobertaForMaskedLM"}

_WRITTEN_BY = ("torch.nn.", "transformers.")
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")
_ROLES = {"labels": c.TR_ROLE_TARGET, "position_ids": c.TR_ROLE_POSITION}
_KEYS = {"input_ids", "labels", "attention_mask"}


def _is_as_written(module: torch.nn.Module) -> bool:
    """Neither classes nor functions of others, and no hooks."""
    for each in module.modules():
        kind: Any = type(each)
        forward = getattr(kind, "forward", None)
        makers = (kind.__module__, getattr(forward, "__module__", ""))
        if not all(f"{maker}.".startswith(_WRITTEN_BY) for maker in makers):
            return False
        if "forward" in vars(each) or hasattr(each, "parametrizations"):
            return False
        if any(getattr(each, hooks, None) for hooks in _HOOKS):
            return False
    return True


class Native(NamedTuple):
    """A model of the library, by its config, and how batches become its own."""

    folder: Folder
    settings: dict[str, Any]
    reader: Reader

    def fits(self, module: torch.nn.Module, tensors: Mapping[str, Any]) -> bool:
        """Has the library's model the module's parameters, and no others?"""
        wanted = {name: tuple(p.shape) for name, p in module.named_parameters()}
        return wanted == {name: tensor.shape for name, tensor in tensors.items()}


class Folder:
    """Has a config.json, and goes away with this object."""

    def __init__(self, config: str) -> None:
        self.name = tempfile.mkdtemp(prefix="tranche-")
        self._gone = weakref.finalize(self, shutil.rmtree, self.name, True)
        with open(os.path.join(self.name, "config.json"), "w") as file:
            file.write(config)


class Reader:
    """Rows as transformers takes them become rows of the library's model."""

    def __init__(
        self, module: Any, length: int, masked: bool, packed: bool = False
    ) -> None:
        """packed: a row has several texts, as its position_ids say."""
        self._packed = packed
        self._vocabulary = int(module.config.vocab_size)
        self._kinds_below = int(getattr(module.config, "type_vocab_size", 1))
        self._length, self._masked = length, masked
        self._padding = module.config.pad_token_id if masked else None
        self.fields = [
            Field(name, c.TR_I32, (length,), _ROLES.get(name, c.TR_ROLE_INPUT))
            for name in self.names()
        ]

    def names(self) -> list[str]:
        if not self._masked:
            places = ["position_ids"] if self._packed else []
            return ["input_ids", "labels", *places]
        return ["input_ids", "token_type_ids", "position_ids", "labels"]

    def columns(self, batch: Mapping[str, Any], count: int) -> list[Any]:
        """[count, length] for each name, or an error where the model would compute
        something else than the module."""
        ids = self._ids(batch, "input_ids", count)
        labels = self._ids(batch, "labels", count)
        check_ids("input_ids", ids, self._vocabulary)
        check_ids("labels", labels[labels != c.TR_NO_TARGET], self._vocabulary)
        found = {"input_ids": ids, "labels": labels}
        if self._packed:
            found["position_ids"] = self._places(batch, count)
        else:
            there = self._there(batch, ids, labels, count)
        if self._masked:
            found["position_ids"] = torch.arange(self._length).expand_as(ids) * there
            found["token_type_ids"] = self._kinds(batch, ids, count)
        else:
            none = labels.new_full((count, 1), c.TR_NO_TARGET)
            found["labels"] = torch.cat([labels[:, 1:], none], 1)
        return [found[name].to(torch.int32).contiguous() for name in self.names()]

    def _ids(self, batch: Mapping[str, Any], name: str, count: int) -> Any:
        known = {"input_ids", "labels", "position_ids"} if self._packed else _KEYS
        known = known | ({"token_type_ids"} if self._masked else set())
        others = set(batch) - known
        values = batch.get(name)
        if others or not isinstance(values, torch.Tensor) or values.is_floating_point():
            raise Error(
                Status.USAGE,
                f"a batch has input_ids and labels, of integers, and may have "
                f"{', '.join(sorted(known - {'input_ids', 'labels'}))}; this one has "
                f"{', '.join(batch)}",
            )
        if tuple(values.shape) != (count, self._length):
            raise Error(
                Status.USAGE,
                f"{name}: {list(values.shape)} in place of [rows, {self._length}], "
                f"which the plan was made for",
            )
        return values.detach()

    def _kinds(self, batch: Mapping[str, Any], ids: Any, count: int) -> Any:
        if "token_type_ids" not in batch:
            return torch.zeros_like(ids)
        kinds = self._ids(batch, "token_type_ids", count)
        check_ids("token_type_ids", kinds, self._kinds_below)
        return kinds

    def _places(self, batch: Mapping[str, Any], count: int) -> Any:
        """Of each token in its text. (Beside an attention_mask texts of a row see each
        other, so there is none.)"""
        places = self._ids(batch, "position_ids", count)
        steps = places[:, 1:] - places[:, :-1]
        if bool(places[:, :1].any()) or bool(((steps != 1) & (places[:, 1:] != 0)).any()):
            raise Error(
                Status.USAGE,
                "position_ids: texts of a row begin at 0, and each further token is one "
                "behind the last",
            )
        return places

    def _there(self, batch: Mapping[str, Any], ids: Any, labels: Any, count: int) -> Any:
        """Which tokens are of a text: all in front of its padding."""
        if "attention_mask" not in batch:
            there = torch.ones_like(ids)
        else:
            there = (self._ids(batch, "attention_mask", count) != 0).to(ids.dtype)
        if bool((there.diff(dim=1) > 0).any()) or not bool(there[:, :1].all()):
            raise Error(
                Status.USAGE,
                "attention_mask: padding stands behind a text (the tokenizer's "
                'padding_side="right"), and a row is no padding alone',
            )
        if bool((labels[there == 0] != c.TR_NO_TARGET).any()):
            raise Error(
                Status.USAGE,
                f"labels: padding has none: set them to {c.TR_NO_TARGET} where "
                f"attention_mask is 0",
            )
        if self._padding is not None and bool((ids[there != 0] == self._padding).any()):
            raise Error(
                Status.USAGE,
                f"input_ids: the padding's token {self._padding} is in a text: give "
                f"attention_mask, 0 where padding is",
            )
        return there


def _config(module: Any) -> str:
    """config.json, with the class that says what the model is for."""
    keys = json.loads(module.config.to_json_string(use_diff=False))
    return json.dumps({**keys, "architectures": [type(module).__name__]})


def find(
    module: torch.nn.Module, loss: Any, batch: Mapping[str, Any], parts: bool
) -> Native | None:
    """The library's model of a module that returns its loss, where it has one."""
    name = type(module).__name__
    if loss is not None or parts or name not in CAUSAL | MASKED:
        return None
    if not _is_as_written(module) or getattr(batch.get("input_ids"), "ndim", 0) != 2:
        return None
    masked = name in MASKED
    count, length = batch["input_ids"].shape
    packed = "position_ids" in batch and not masked
    if packed and getattr(module.config, "use_cache", True):
        return None  # texts of a row see each other beside a cache
    reader = Reader(module, length, masked, packed)
    try:
        reader.columns(batch, count)
    except Error:
        return None  # the module itself may take it
    folder = Folder(_config(module))
    settings = {"model": folder.name, "data.max_length": length}
    return Native(folder, settings, reader)
