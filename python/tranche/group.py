"""Ranks that torchrun, another launcher of PyTorch's, or srun has started: they exchange by
messages of torch.distributed, over gloo. Who sends what to whom, and the order of
additions, are the library's, so results have the bits of MPI's ranks."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import sys
from collections.abc import Callable
from ctypes import byref, c_void_p
from datetime import timedelta
from typing import Any

from tranche import _declarations as c
from tranche import slurm
from tranche._handle import field_type, sized
from tranche._library import check, library
from tranche.error import Error, Status

_SET = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_FOREVER = timedelta(days=1000)  # that a message may take: a rank may compute for long


def _distributed() -> Any:
    """torch.distributed, where the script has made a group of it; else None."""
    found = sys.modules.get("torch.distributed")
    return found if found and found.is_available() and found.is_initialized() else None


def size() -> int:
    """How many ranks PyTorch has, or will have; 1: this process is alone."""
    distributed = _distributed()
    if distributed is not None:
        return int(distributed.get_world_size())
    return int(os.environ["WORLD_SIZE"]) if _is_told() else 1


def _is_told() -> bool:
    return all(os.environ.get(name) for name in _SET)


def leads(launcher: str) -> bool:
    """Are the ranks PyTorch's, although another launcher has left its traces? torchrun
    runs inside of srun, and srun alone connects nobody."""
    if "TORCHELASTIC_RUN_ID" in os.environ and _is_told():
        return True
    if launcher != "srun":  # mpirun's daemons may be a step of srun's
        return False
    if size() == 1 and importlib.util.find_spec("torch"):
        os.environ.update(slurm.place() or {})
    return size() > 1


class Group:
    """A process group of the library's own, and the functions that exchange over it."""

    def __init__(self) -> None:
        try:
            import torch
            import torch.distributed as distributed
        except ImportError as error:
            raise Error(
                Status.COMM,
                "RANK and WORLD_SIZE are set, as torchrun sets them, and PyTorch, by "
                "which the ranks exchange, is not installed",
            ) from error
        self._torch, self._distributed = torch, distributed
        self._is_made = _distributed() is None
        self._group: Any = None
        self._join()
        self.functions = self._table()

    def _join(self) -> None:
        told = os.environ.get("TRANCHE_START_SECONDS", "300")
        seconds = int(told) if told.isdigit() else 300
        wait = timedelta(seconds=seconds) if seconds else _FOREVER
        try:
            if self._is_made:
                self._distributed.init_process_group("gloo", timeout=wait)
            self._group = self._distributed.new_group(backend="gloo", timeout=_FOREVER)
        except (RuntimeError, ValueError) as error:
            raise Error(
                Status.COMM, f"the ranks of PyTorch do not find each other: {error}"
            ) from error

    def _table(self) -> Any:
        made = sized(c.tr_comm_functions)
        made.rank = self._distributed.get_rank()
        made.ranks = self._distributed.get_world_size()
        made.any_thread = 1
        for name, function in (
            ("exchange", self._exchange),
            ("abandon", self._abandon),
            ("close", self._close),
        ):
            setattr(made, name, field_type(c.tr_comm_functions, name)(function))
        return made

    def _bytes(self, address: int, count: int) -> Any:
        buffer = (ctypes.c_char * count).from_address(address)
        return self._torch.frombuffer(buffer, dtype=self._torch.uint8)

    def _exchange(
        self,
        _: object,
        to: int,
        out: Any,
        sent: int,
        source: int,
        into: Any,
        received: int,
        error: Any,
    ) -> int:
        try:
            if self._group is None:
                raise RuntimeError("the ranks have parted")
            works = []
            if received:
                values = self._bytes(into, received)
                works.append(self._message("irecv", values, source))
            if sent:
                works.append(self._message("isend", self._bytes(out, sent), to))
            for work in works:
                work.wait()
        except BaseException as raised:
            others = " or ".join(str(each) for each in sorted({to, source}))
            why = (str(raised) or type(raised).__name__).splitlines()[0]
            told = f"rank {others} has ended, or its messages do not arrive: {why}"
            error.contents.status = Status.COMM
            error.contents.message = told.encode()[: c.TR_MESSAGE_MAX - 1]
            return int(Status.COMM)
        return int(Status.OK)

    def _message(self, name: str, values: Any, other: int) -> Any:
        send_or_receive: Callable[..., Any] = getattr(self._distributed, name)
        return send_or_receive(values, other, group=self._group)

    def _abandon(self, _: object, error: Any) -> None:
        """The others wait for messages of this rank: their connections end. So does an
        exchange of this rank's that another thread waits in."""
        group = self._group
        if group is not None and hasattr(group, "abort"):
            with contextlib.suppress(RuntimeError):
                group.abort()
        self._close(None)

    def _close(self, _: object) -> None:
        group, self._group = self._group, None
        if group is None:
            return
        try:
            self._distributed.destroy_process_group(group)
            if self._is_made and self._distributed.is_initialized():
                self._distributed.destroy_process_group()
        except Exception:  # what is left of a group that has failed
            return


_joined: Group | None = None  # which the library calls


def join() -> int | None:
    """A comm of PyTorch's ranks. All of them call it."""
    global _joined
    _joined = Group()
    pointer, error = c_void_p(), c.tr_error()
    create = library().tr_comm_create_callback
    check(create(byref(_joined.functions), byref(pointer), byref(error)), error)
    return pointer.value
