"""Batches of the caller's, as the library reads them: one effective batch at a time."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from tranche import _declarations as c
from tranche import ranks
from tranche.data import Field, Source
from tranche.error import Error, Status
from tranche.module import gpu
from tranche.module.build import role
from tranche.module.ending import PRESENCE, PRESENT, Tensor
from tranche.module.lower import Lowering

# The tensors of a batch [count, ...] as the library takes them.
Columns = Callable[[Mapping[str, Any], int], list[Any]]


class Feed(Source):
    """Rows of one effective batch; those that a short one lacks are no targets. A rank
    has its own share alone: its rows are those that the engine asks it for, in their
    order."""

    checks_ids = True

    def __init__(
        self, fields: list[Field], columns: Columns, rows: int, share: int
    ) -> None:
        """share: how many of the rows are this rank's."""
        self.samples = rows
        self._share = share
        self.fields = fields
        self._columns = columns
        self.about = "batches of the caller's"
        self._rows: list[Any] = []
        self._count = 0
        self._places: dict[int, int] = {}  # of samples, among the rows

    def hash(self) -> int:
        return 1  # batches are the caller's: a run that goes on gets what he gives

    def put(self, batch: Mapping[str, Any], count: int) -> None:
        """The next effective batch, or this rank's share: tensors [count, ...] by
        name."""
        self._count = count
        self._places = {}
        here = {name: gpu.on_host(values) for name, values in batch.items()}
        self._rows = self._columns(here, count)

    def read(self, index: Sequence[int], rows: Sequence[int]) -> None:
        if ranks.count() > 1:
            places = self._places
            index = [places.setdefault(i, len(places)) for i in index]
            if len(places) > self._share:
                raise Error(
                    Status.USAGE,
                    "train_batch: this plan gives a rank more rows than its share; set "
                    "train_micro_batch_size_per_gpu",
                )
        there = [i for i in index if i < self._count]
        for field, values, address in zip(self.fields, self._rows, rows, strict=True):
            kind = values.dtype
            each = values[0].numel() if self._count else 1
            size = len(index) * each * kind.itemsize
            buffer = (ctypes.c_char * size).from_address(address)
            to = torch.frombuffer(buffer, dtype=kind).view(len(index), *values.shape[1:])
            if len(there) == len(index):
                torch.index_select(values, 0, torch.tensor(index), out=to)
            else:
                to.fill_(_missing(field))
                for at, number in enumerate(index):
                    if number < self._count:
                        to[at] = values[number]


def _missing(field: Field) -> float:
    if field.role != c.TR_ROLE_TARGET:
        return 0
    return c.TR_NO_TARGET if field.dtype == c.TR_I32 else float("nan")


def fields(lowering: Lowering) -> list[Field]:
    return [
        Field(t.name, c.TR_I32 if t.whole else c.TR_F32, t.shape, role(t))
        for t in targets_first(lowering)
    ]


def targets_first(lowering: Lowering) -> list[Tensor]:
    """The tensors of the batch in the library's order: inputs, then targets, of which
    there is always one."""
    found = list(lowering.batch.values())
    inputs = [t for t in found if not t.target]
    targets = [t for t in found if t.target]
    if not targets:
        targets = [PRESENCE]
    return inputs + targets


def columns(
    lowering: Lowering, tensors: Sequence[Tensor], batch: Mapping[str, Any], count: int
) -> list[Any]:
    """A batch as the library takes it: of its types, packed, in its layout."""
    return [_column(lowering, tensor, batch, count) for tensor in tensors]


def _column(
    lowering: Lowering, tensor: Tensor, batch: Mapping[str, Any], count: int
) -> Any:
    if tensor.name == PRESENT:
        return torch.ones(count, device=next(iter(batch.values())).device)
    kind = torch.int32 if tensor.whole else torch.float32
    region = lowering.reading.prepared.get(tensor.name)
    if region is not None:
        names = lowering.traced.inputs
        with torch.no_grad():
            values = region.run(count, [batch[names[o.node]] for o in region.operands])
    else:
        values = _given(tensor, batch, count)
    values = values.reshape(count, *tensor.shape)
    _check(lowering, tensor, values)
    return values.to(kind).contiguous()


def _given(tensor: Tensor, batch: Mapping[str, Any], count: int) -> Any:
    values = batch.get(tensor.name)
    meta = tensor.node.meta["val"]
    if not isinstance(values, torch.Tensor):
        raise Error(Status.USAGE, f"{tensor.name}: the batch has no such tensor")
    same = values.is_floating_point() == meta.is_floating_point()
    if tuple(values.shape[1:]) != tuple(meta.shape[1:]) or not same:
        was = ", ".join(["rows", *map(str, meta.shape[1:])])
        raise Error(
            Status.USAGE,
            f"{tensor.name}: {values.dtype} {list(values.shape)} in place of "
            f"{meta.dtype} [{was}], which the plan was made for",
        )
    values = values.detach()
    return values.permute(0, 2, 3, 1) if tensor.channels_last else values


def _check(lowering: Lowering, tensor: Tensor, values: Any) -> None:
    """Kernels trust ids and targets: one out of range would read other memory."""
    if not tensor.whole or not values.numel():
        return
    below = lowering.reading.ids_below.get(tensor.name)
    if tensor.target and lowering.end is not None and lowering.end.is_classes:
        values, below = values[values != c.TR_NO_TARGET], lowering.classes
    if below is not None:
        check_ids(tensor.name, values, below)


def check_ids(name: str, values: Any, below: int) -> None:
    if not values.numel():
        return
    least, most = (int(end) for end in values.aminmax())
    if least < 0 or most >= below:
        raise Error(
            Status.DATA,
            f"{name}: {least if least < 0 else most} is not in [0, {below})",
        )
