"""The module's tensors while an engine has them: views of its memory where it keeps
them whole, and empty elsewhere, so that they are in the process once."""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from tranche import ranks
from tranche.engine import Engine
from tranche.error import Error
from tranche.module import deferred, memory
from tranche.module.build import canonical
from tranche.tensors import Array

_PIECE = 1 << 20  # elements


def _tensor(array: Array) -> Any:
    """An array as a tensor over its memory, which lives as long as the tensor. (That of
    DLPack calls Python when it ends, which nobody can once Python has ended.)"""
    return _with_life(array)[0]


def _with_life(array: Array) -> tuple[Any, weakref.ref[Any]]:
    """And what is dead as soon as neither the tensor nor a view of it is there."""
    if array.device != "cpu":
        return array.torch(), weakref.ref(array)
    wide = ctypes.sizeof(array._kind.ctype) == 8
    kind = torch.int64 if wide else torch.float32
    count = math.prod(array.shape)
    buffer: Any = (ctypes.c_char * (count * kind.itemsize)).from_address(array.address)
    buffer.owner = array
    tensor = torch.frombuffer(buffer, dtype=kind).view(array.shape)
    return tensor, weakref.ref(buffer)


class Weights:
    """Takes a module's values into an engine, and hands them out again."""

    def __init__(
        self,
        module: torch.nn.Module,
        engine: Engine,
        device: torch.device,
        *,
        write: bool = True,
    ) -> None:
        """device: of PyTorch's part. write: the module's values go into the engine,
        else the engine's stay."""
        self._module, self._engine = module, engine
        self._device = device
        self._names = canonical(module)
        self._tensors = engine.tensors
        self._is_whole = False
        self._lent: dict[str, list[weakref.ref[Any]]] = {}  # alive while a view is
        self._given_back: set[str] = set()
        self._buffers = [n for n, _ in module.named_buffers() if n in self._tensors]
        if write:
            self._write()
        self._apart = self._which_lie_apart()
        self._lend()
        if device.type == "cuda":  # parameters are there
            for owner in module.modules():
                for name, buffer in list(owner.named_buffers(recurse=False)):
                    setattr(owner, name, buffer.to(device))
        memory.trim()
        self._hook = module._register_state_dict_hook(self._fill)

    def _own(self) -> Iterator[tuple[str, Any]]:
        for name, parameter in self._module.named_parameters():
            if name in self._tensors:
                yield name, parameter

    def _write(self) -> None:
        for name, parameter in self._own():
            self._tensors[name].write(deferred.values(parameter).float())
        for name in self._buffers:
            self._tensors[name].write(self._module.get_buffer(name))

    def _which_lie_apart(self) -> list[str]:
        """Parameters that do not lie whole in the memory of every rank. (A rank's part
        has some of them whole, and all ranks have to read the same ones.)"""
        own = list(self._own())
        lent = [p.dtype == torch.float32 and self._is_lent(n) for n, p in own]
        apart = ranks.anywhere([not whole for whole in lent])
        return [name for (name, _), away in zip(own, apart, strict=True) if away]

    def _lend(self) -> None:
        for name, parameter in self._own():
            if name in self._apart:
                empty = torch.empty(1, dtype=parameter.dtype, device=self._device)
                parameter.data = empty.expand(parameter.shape)
            else:
                parameter.data, life = _with_life(self._tensors[name].borrow())
                self._lent.setdefault(name, []).append(life)
            parameter.grad = None
            deferred.done(parameter)

    def _is_lent(self, name: str) -> bool:
        """Does it lie whole where PyTorch computes?"""
        try:
            found = self._tensors[name].borrow()
        except Error:
            return False
        return found.device == str(self._device)

    def _refresh(self) -> None:
        if ranks.count() > 1:
            self._engine.refresh()

    def read(self, name: str) -> Any:
        return _tensor(self._tensors[name].read())

    def _move(self, name: str, dtype: Any) -> Any:
        """The values that the engine keeps whole; piece by piece they come here, and are
        no longer there."""
        lent = self._tensors[name].borrow()
        there = _tensor(lent).flatten()
        here = torch.empty(lent.shape, dtype=dtype)
        for first in range(0, there.numel(), _PIECE):
            piece = there[first : first + _PIECE]
            here.view(-1)[first : first + _PIECE] = piece
            memory.give_up(lent.address + 4 * first, 4 * piece.numel())
        return here

    def _fill(
        self, module: Any, found: dict[str, Any], prefix: str, metadata: Any
    ) -> None:
        """What state_dict() returns is whole and current."""
        self._refresh()
        read: dict[str, Any] = {}
        for name, first in self._names.items():
            if first in self._apart and prefix + name in found:
                if first not in read:
                    read[first] = self.read(first)
                found[prefix + name] = read[first].to(found[prefix + name])
        for name in self._buffers:
            if prefix + name in found:
                found[prefix + name] = self.read(name)

    @contextmanager
    def whole(self) -> Iterator[None]:
        """While PyTorch computes with the module."""
        if self._is_whole:
            yield
            return
        self._refresh()
        for name in self._apart:
            parameter = self._module.get_parameter(name)
            parameter.data = self.read(name).to(parameter)
        for name in self._buffers:
            self._module.get_buffer(name).copy_(self.read(name))
        self._is_whole = True
        try:
            yield
        finally:
            self._is_whole = False
            if self._apart:
                self._lend()

    def give_back(self) -> None:
        """Before the engine ends: the module has its values again. What the engine has
        of them is given up, one tensor after the other, so they are not here twice. (Of
        those that somebody else has a view of, such as a state_dict, nothing is.)"""
        self._refresh()
        on_gpu = self._device.type == "cuda"
        for name, parameter in self._own():
            if name in self._given_back:
                continue
            self._given_back.add(name)
            parameter.data = torch.empty(0, dtype=parameter.dtype)  # no view of its own
            lives = self._lent.get(name, ())
            free = lives and not any(life() is not None for life in lives)
            if free and not on_gpu:
                parameter.data = self._move(name, parameter.dtype)
            else:
                parameter.data = self.read(name).to(self._device, parameter.dtype)
        for name in self._buffers:
            self._module.get_buffer(name).copy_(self.read(name))
        self._hook.remove()
