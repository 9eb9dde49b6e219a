"""The ranks of this run: this process alone, or those that a launcher has started, of
MPI or of PyTorch."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import weakref
from collections.abc import Sequence
from ctypes import byref, c_int64, c_void_p
from types import TracebackType

from tranche import _declarations as c
from tranche import group
from tranche._library import check, library
from tranche.error import Error, Status

_joined: int | None = None
_failed: Status | None = None
_parted: tuple[int, int] | None = None  # rank and ranks, once there is no connection


def comm() -> int | None:
    """Joins the ranks when it is first called; None: this process is alone."""
    global _joined
    if _parted is not None:
        raise Error(Status.COMM, "the ranks have parted: the interpreter ends")
    if _joined is not None:
        return _joined
    launcher = library().tr_comm_launcher()
    if launcher and not group.leads(launcher.decode()):
        _joined = _open_mpi()
    elif group.size() > 1:
        _joined = group.join()
    if _joined is not None:
        _watch_the_end()
    return _joined


def announce() -> None:
    """What srun has told, in the names that programs of PyTorch's read."""
    launcher = library().tr_comm_launcher()
    if launcher:
        group.leads(launcher.decode())


def _open_mpi() -> int | None:
    pointer, error = c_void_p(), c.tr_error()
    check(library().tr_comm_open(byref(pointer), byref(error)), error)
    found = int(library().tr_comm_ranks(pointer))
    if group.size() not in (1, found):
        raise Error(
            Status.COMM,
            f"{library().tr_comm_launcher().decode()} has started {found} ranks, and "
            f"torch.distributed has {group.size()}: start them by one of the two",
        )
    return pointer.value


def rank() -> int:
    """The number of this process among the ranks, from 0."""
    if _parted is not None:
        return _parted[0]
    return int(library().tr_comm_rank(comm())) if comm() else 0


def count() -> int:
    """How many ranks there are; 1: this process is alone."""
    if _parted is not None:
        return _parted[1]
    return int(library().tr_comm_ranks(comm())) if comm() else 1


def most(number: int) -> int:
    """The largest of the numbers that the ranks bring. All ranks call it."""
    found, error = c_int64(), c.tr_error()
    check(library().tr_comm_most(comm(), number, byref(found), byref(error)), error)
    return found.value


def local(otherwise: int) -> int:
    """The number of this process among those of its machine, as its launcher says, or
    else this."""
    names = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")
    told = (os.environ.get(name, "") for name in (*names, "SLURM_LOCALID"))
    return next((int(each) for each in told if each.isdigit()), otherwise)


def anywhere(here: Sequence[bool]) -> list[bool]:
    """What holds on one rank or more, of what holds here. All ranks call it."""
    if count() == 1:
        return list(here)
    return [most(each) > 0 for each in here]


def abandon(error: BaseException) -> None:
    """Tells the other ranks that this one ends with an error, so that none waits."""
    global _failed
    if _joined is None or _failed is not None:
        return
    _failed = error.status if isinstance(error, Error) else Status.INTERNAL
    told = c.tr_error()
    told.status = _failed
    told.message = f"{type(error).__name__}: {error}".encode()[: c.TR_MESSAGE_MAX - 1]
    library().tr_comm_abandon(_joined, byref(told))


def _watch_the_end() -> None:
    before = sys.excepthook

    def hook(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        abandon(error)
        told = io.StringIO()
        with contextlib.redirect_stderr(told):
            before(kind, error, trace)
        sys.stderr.write(told.getvalue())  # at once: ranks share what stderr is

    sys.excepthook = hook
    # Behind the engines that are left then: finalizers run from the newest to the oldest.
    weakref.finalize(_end, _end)


def _end() -> None:
    global _joined, _parted
    _parted = rank(), count()  # what is registered at exit may still ask
    pointer, _joined = _joined, None
    if _failed is not None:
        sys.stdout.flush()
        sys.stderr.flush()
        library().tr_comm_end(pointer, _failed.exit_status)
    else:
        library().tr_comm_close(pointer)
