"""Answers of a model that is being trained."""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Mapping
from ctypes import byref, c_void_p
from typing import TYPE_CHECKING, Any

from tranche import _declarations as c
from tranche import _fill
from tranche._handle import Handle, sized
from tranche.error import Error, Status
from tranche.tensors import Array, empty

if TYPE_CHECKING:
    from tranche.engine import Engine


class Predictor(Handle):
    """The model as it is at one step, for rows of the caller's."""

    _kind = "evaluator"

    def __init__(self, engine: Engine, made_at: tuple[int, int]) -> None:
        super().__init__()
        self.made_at = made_at
        with tempfile.TemporaryDirectory(prefix="tranche-") as folder:
            # A run.json two folders above a checkpoint would be taken for its own.
            path = os.path.join(folder, "checkpoints", "now")
            engine.save(path)
            options = sized(c.tr_evaluator_options)
            options.path = os.fsencode(path)
            options.rows_only = True
            self._create("tr_evaluator_create", byref(options))
        self._model = self._ask("tr_evaluator_model").contents
        self._positions = int(self._ask("tr_evaluator_positions"))

    def ask(self, inputs: Any) -> Array:
        batch = self._model.batch
        tensors = list(batch.tensor[: batch.count])
        given = self._by_name(inputs, tensors)
        count = self._count(given)
        rows = (c_void_p * batch.count)()
        buffers = []
        for i, tensor in enumerate(tensors):
            name = tensor.name.decode()
            if name in given:
                shape = (count, *tensor.desc.shape.dim[: tensor.desc.shape.rank])
                buffer = ctypes.create_string_buffer(_bytes(shape, tensor.desc.dtype))
                _fill.fill(
                    given[name],
                    ctypes.addressof(buffer),
                    tensor.desc.dtype,
                    shape,
                    name,
                )
                buffers.append(buffer)
                rows[i] = ctypes.addressof(buffer)
        logits = empty(c.TR_F32, (count, self._positions, self._model.classes))
        self._call(
            "tr_evaluator_ask",
            rows,
            count,
            ctypes.cast(logits.address, ctypes.POINTER(ctypes.c_float)),
        )
        return (
            logits.reshaped((count, self._model.classes))
            if self._positions == 1
            else logits
        )

    def _by_name(self, inputs: Any, tensors: list[Any]) -> Mapping[str, Any]:
        names = [t.name.decode() for t in tensors if t.role != c.TR_ROLE_TARGET]
        given = inputs if isinstance(inputs, Mapping) else {names[0]: inputs}
        missing = [name for name in names if name not in given]
        unknown = [name for name in given if name not in names]
        if missing or unknown:
            raise Error(
                Status.USAGE,
                f"the model takes {', '.join(names)}; given: {', '.join(given)}",
            )
        return given

    def _count(self, given: Mapping[str, Any]) -> int:
        counts = {_fill.shape_of(values)[:1] for values in given.values()}
        if len(counts) != 1 or () in counts:
            raise Error(
                Status.USAGE, "inputs need equally many samples, [samples, ...]"
            )
        return int(counts.pop()[0])


def _bytes(shape: tuple[int, ...], dtype: int) -> int:
    size = _fill.size(dtype)
    for part in shape:
        size *= part
    return size
