"""Copies numbers of any kind (numpy, PyTorch, DLPack, buffers, nested lists) into
memory of the library's, packed and of its type."""

from __future__ import annotations

import array
import ctypes
import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tranche import _declarations as c
from tranche.error import Error, Status


class _Kind(NamedTuple):
    ctype: Any
    typecode: str  # of the module array
    name: str  # of numpy and PyTorch
    whole: bool


_KINDS = {
    c.TR_F32: _Kind(ctypes.c_float, "f", "float32", False),
    c.TR_I32: _Kind(ctypes.c_int32, "i", "int32", True),
    c.TR_I64: _Kind(ctypes.c_int64, "q", "int64", True),
}


def size(dtype: int) -> int:
    """Bytes of an element."""
    return ctypes.sizeof(_KINDS[dtype].ctype)


def torch_tensor(values: Any) -> Any:
    """PyTorch, where this is one of its tensors; else None."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(values, torch.Tensor) else None


def numpy() -> Any:
    """numpy, or None where it is not installed."""
    try:
        import numpy
    except ImportError:
        return None
    return numpy


def indexable(values: Any) -> Any:
    """A column whose rows a list of numbers takes out: tables are arrays for that."""
    if (
        not hasattr(values, "shape")
        or torch_tensor(values) is not None
        or numpy() is None
    ):
        return values
    return numpy().asarray(values)


def _is_list(values: Any) -> bool:
    return isinstance(values, Sequence | array.array) and not isinstance(
        values, str | bytes
    )


def shape_of(values: Any) -> tuple[int, ...]:
    """The shape of an array, or of nested lists, by their first elements."""
    if hasattr(values, "shape"):
        return tuple(int(size) for size in values.shape)
    found: list[int] = []
    while _is_list(values):
        found.append(len(values))
        if not len(values):
            break
        values = values[0]
        if hasattr(values, "shape"):
            return (*found, *shape_of(values))
    return tuple(found)


def is_whole(values: Any) -> bool:
    """Are these integers that may be ids? Bytes are levels of brightness, not ids."""
    kind = str(getattr(values, "dtype", ""))
    if kind:
        return "int" in kind and "int8" not in kind
    while _is_list(values) and len(values):
        values = values[0]
    return is_whole(values) if hasattr(values, "dtype") else isinstance(values, int)


def address(values: Any, dtype: int, shape: tuple[int, ...]) -> int | None:
    """Where an array of PyTorch or numpy has its numbers, if they lie there packed, in
    this shape and as elements of this type of the library; else None."""
    kind = _KINDS[dtype]
    torch = torch_tensor(values)
    if torch is not None:
        fits = (
            values.dtype == getattr(torch, kind.name)
            and tuple(values.shape) == shape
            and values.device.type == "cpu"
            and values.is_contiguous()
        )
        return int(values.data_ptr()) if fits else None
    np = sys.modules.get("numpy")
    if np is not None and isinstance(values, np.ndarray):
        fits = (
            values.dtype == kind.name
            and values.shape == shape
            and values.flags.c_contiguous
        )
        return int(values.ctypes.data) if fits else None
    return None


def fill(
    values: Any, address: int, dtype: int, shape: tuple[int, ...], name: str
) -> None:
    """Copies `values` of this shape to `address`, as elements of a type of the library
    (TR_F32, TR_I32, TR_I64). name: for messages."""
    kind = _KINDS[dtype]
    count = math.prod(shape)
    if torch_tensor(values) is not None:
        need_shape(tuple(values.shape), shape, name)
        _from_torch(values, address, kind, count, name)
    elif numpy() is not None:
        made = numpy().asarray(values)
        if made.dtype.kind not in "fiub":
            raise Error(Status.DATA, f"{name}: numbers are needed, not {made.dtype}")
        need_shape(made.shape, shape, name)
        _from_numpy(made, address, kind, count, name)
    else:
        need_shape(shape_of(values), shape, name)
        _from_lists(values, address, kind, count, name)


def _words(shape: tuple[int, ...]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"


def need_shape(has: tuple[int, ...], wanted: tuple[int, ...], name: str) -> None:
    if has != wanted:
        raise Error(
            Status.DATA,
            f"{name}: the shape is {_words(has)} in place of {_words(wanted)}",
        )


def _need_whole(kind: _Kind, integers: bool, least: int, most: int, name: str) -> None:
    if not kind.whole:
        return
    if not integers:
        raise Error(Status.DATA, f"{name}: integers are needed, not fractions")
    bits = 8 * ctypes.sizeof(kind.ctype) - 1
    if least < -(1 << bits) or most >= 1 << bits:
        raise Error(Status.DATA, f"{name}: {least} .. {most} is out of range")


def _from_torch(values: Any, address: int, kind: _Kind, count: int, name: str) -> None:
    torch = torch_tensor(values)
    if count == 0:
        return
    if kind.whole:
        whole = not values.is_floating_point()
        ends = torch.aminmax(values.to(torch.int64)) if whole else (0, 0)
        _need_whole(kind, whole, int(ends[0]), int(ends[1]), name)
    target = torch.frombuffer(
        (kind.ctype * count).from_address(address), dtype=getattr(torch, kind.name)
    )
    target.copy_(values.detach().reshape(-1))


def _from_numpy(values: Any, address: int, kind: _Kind, count: int, name: str) -> None:
    np = numpy()
    if count == 0:
        return
    if kind.whole:
        whole = values.dtype.kind in "iub"
        ends = (int(values.min()), int(values.max())) if whole else (0, 0)
        _need_whole(kind, whole, *ends, name)
    target = np.frombuffer((kind.ctype * count).from_address(address), dtype=kind.name)
    target[...] = values.reshape(-1)


def _flat(values: Any, shape: tuple[int, ...], name: str) -> Iterator[Any]:
    if not shape:
        yield values
        return
    if not hasattr(values, "__len__") or len(values) != shape[0]:
        raise Error(Status.DATA, f"{name}: its rows are not equally long")
    for value in values:
        yield from _flat(value, shape[1:], name)


def _from_lists(values: Any, address: int, kind: _Kind, count: int, name: str) -> None:
    numbers = list(_flat(values, shape_of(values), name))
    if not all(isinstance(number, int | float) for number in numbers):
        raise Error(Status.DATA, f"{name}: numbers are needed")
    if kind.whole and numbers:
        whole = all(isinstance(number, int) for number in numbers)
        ends = (min(numbers), max(numbers)) if whole else (0, 0)
        _need_whole(kind, whole, ends[0], ends[1], name)
    packed = array.array(kind.typecode, numbers)
    ctypes.memmove(address, packed.buffer_info()[0], count * packed.itemsize)


def ends(address: int, count: int) -> tuple[int, int]:
    """The least and the largest of int32 [count] at an address."""
    buffer = (ctypes.c_int32 * count).from_address(address)
    np = numpy()
    if np is None:
        return min(buffer), max(buffer)
    values = np.frombuffer(buffer, dtype="int32")
    return int(values.min()), int(values.max())
