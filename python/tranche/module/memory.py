"""Memory that the process has no more use for goes back to the system: in its peak it
would stand beside the engine's."""

from __future__ import annotations

import ctypes
import mmap


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
