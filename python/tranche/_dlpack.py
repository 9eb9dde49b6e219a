"""DLPack's structs (dlpack.h, version 0.8), and capsules of memory of ours."""

from __future__ import annotations

import atexit
import ctypes
from typing import Any

Device = tuple[int, int]  # its type, and its number

CPU: Device = (1, 0)  # kDLCPU, device 0
CUDA = 2  # kDLCUDA
INT, FLOAT, BFLOAT = 0, 2, 4  # kDLInt, kDLFloat, kDLBfloat


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),  # NULL: packed
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Managed._fields_ = [
    ("tensor", _Tensor),
    ("context", ctypes.c_void_p),
    ("deleter", _Deleter),
]

# What has been handed out, by address: the consumer's call of the deleter ends it.
_alive: dict[int, Any] = {}


def _end(address: int) -> None:
    _alive.pop(address, None)


@atexit.register
def _let_go() -> None:
    """Tensors may outlive Python, which nobody can call then: they end in silence, and
    what they point to stays."""
    for managed, *_ in _alive.values():
        managed.deleter = _Deleter()
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_alive))


def _end_unused(capsule: int) -> None:
    """A capsule that nobody has taken still has its first name."""
    if _valid(capsule, b"dltensor"):
        _end(_pointer(capsule, b"dltensor"))


_delete = _Deleter(_end)
_drop_unused = _Deleter(_end_unused)


_api = ctypes.pythonapi
_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _api)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api)
)
_new = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", _api))


def capsule(
    owner: object,
    address: int,
    shape: tuple[int, ...],
    kind: tuple[int, int],
    device: Device = CPU,
) -> Any:
    """A capsule of packed numbers, (code, bytes) each, that keeps `owner` alive."""
    sizes = (ctypes.c_int64 * max(1, len(shape)))(*shape)
    managed = _Managed()
    managed.tensor.data = address
    managed.tensor.device_type, managed.tensor.device_id = device
    managed.tensor.ndim = len(shape)
    managed.tensor.code, managed.tensor.bits = kind[0], 8 * kind[1]
    managed.tensor.lanes = 1
    managed.tensor.shape = sizes
    managed.deleter = _delete
    place = ctypes.addressof(managed)
    _alive[place] = (managed, sizes, owner)
    return _new(place, b"dltensor", ctypes.cast(_drop_unused, ctypes.c_void_p))
