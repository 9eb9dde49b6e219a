"""What the process takes beside the engine's memory. What it has no more use for goes
back to the system: in its peak it would stand beside the engine's."""

from __future__ import annotations

import ctypes
import mmap
import os

import torch

from tranche import ranks

_TRAINING = 32 << 20  # batches, and the threads' own
_STEP = 16 << 20  # measured bytes are a multiple of it


def beside(module: torch.nn.Module) -> int | None:
    """Bytes that the process of each rank takes beside a plan: what it has now, but for
    the module's weights, which become the engine's. None: the system does not say. All
    ranks call it."""
    trim()
    resident = _resident()
    if ranks.most(int(resident is None)) or resident is None:
        return None
    taken = ranks.most(max(0, resident - _of_weights(module)) + _TRAINING)
    return -(-taken // _STEP) * _STEP


def _resident() -> int | None:
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


def _of_weights(module: torch.nn.Module) -> int:
    storages = (p.untyped_storage() for p in module.parameters() if p.device.type == "cpu")
    return sum({each.data_ptr(): each.nbytes() for each in storages}.values())


def trim() -> None:
    """What has been freed. (glibc keeps blocks of some MiB for further calls: after a
    module's weights are the engine's, that is most of what they had.)"""
    found = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if found is not None:
        found(0)


def give_up(address: int, size: int) -> None:
    """Whole pages of the engine's memory, which nobody reads again: they are zero."""
    page = mmap.PAGESIZE
    first, end = -(-address // page) * page, (address + size) // page * page
    if first < end:
        advise = ctypes.CDLL(None).madvise
        advise(ctypes.c_void_p(first), ctypes.c_size_t(end - first), mmap.MADV_DONTNEED)
