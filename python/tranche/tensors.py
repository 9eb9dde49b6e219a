"""Tensors of an engine, and arrays that numpy and PyTorch take without a copy."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from ctypes import byref
from typing import TYPE_CHECKING, Any, NamedTuple

from tranche import _declarations as c
from tranche import _dlpack
from tranche._handle import sized
from tranche._library import library
from tranche.error import Error, Status

if TYPE_CHECKING:
    from tranche.engine import Engine


class Kind(NamedTuple):
    ctype: Any
    format: str  # of memoryview
    name: str  # of numpy
    code: int  # of DLPack


_KINDS = {
    c.TR_F32: Kind(ctypes.c_float, "f", "<f4", _dlpack.FLOAT),
    c.TR_I64: Kind(ctypes.c_int64, "q", "<i8", _dlpack.INT),
    c.TR_F16: Kind(ctypes.c_uint16, "H", "<f2", _dlpack.FLOAT),
    # numpy has no such type: it gets a copy in f32.
    c.TR_BF16: Kind(ctypes.c_uint16, "H", "bf16", _dlpack.BFLOAT),
}


class Array:
    """Numbers in memory, with a shape: a copy of its own, or lent by an engine. numpy,
    PyTorch and others take it without a copy (`numpy.asarray`, `torch.from_dlpack`).
    What is lent may be in a GPU's memory: then PyTorch and others that compute there
    take it."""

    def __init__(
        self,
        buffer: Any,
        kind: Kind,
        shape: Sequence[int],
        lender: Any = None,
        device: _dlpack.Device = _dlpack.CPU,
    ):
        self._buffer = buffer  # of ctypes: [elements]
        self._kind = kind
        self._lender = lender  # that keeps the memory
        self._wide: Array | None = None
        self._device = device
        self.shape = tuple(shape)

    @property
    def device(self) -> str:
        """"cpu", or "cuda:1": in whose memory it is."""
        kind, number = self._device
        return f"cuda:{number}" if kind == _dlpack.CUDA else "cpu"

    def _on_host(self) -> Any:
        """The buffer, to be read here."""
        if self._device != _dlpack.CPU:
            raise Error(
                Status.USAGE,
                f"this array is in the memory of {self.device}: torch() takes it there, "
                f'and with "execution.parts_on_device" false outputs are on the host',
            )
        return self._buffer

    @property
    def readonly(self) -> bool:
        """It shows an engine's own memory, which the engine alone writes."""
        return self._lender is not None

    @property
    def address(self) -> int:
        return ctypes.addressof(self._buffer)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        self._on_host()
        if self._kind.code == _dlpack.BFLOAT:
            self._wide = self.widened()  # which numpy reads
            return self._wide.__array_interface__
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": self._kind.name,
            "data": (self.address, self.readonly),
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device

    def __dlpack__(self, **_: Any) -> Any:
        """On a GPU for any stream, because the engine has waited for its own."""
        return _dlpack.capsule(
            self,
            self.address,
            self.shape,
            (self._kind.code, ctypes.sizeof(self._kind.ctype)),
            self._device,
        )

    def reshaped(self, shape: Sequence[int]) -> Array:
        """The same memory in another shape."""
        return Array(self._buffer, self._kind, shape, self._lender, self._device)

    def widened(self) -> Array:
        """A copy in f32 of numbers of 16 bits; of others, the array itself."""
        if self._kind.ctype is not ctypes.c_uint16:
            return self
        kind = _KINDS[c.TR_F32]
        copy = (kind.ctype * len(self._buffer))()
        bits = bytes(self._on_host())
        if self._kind.code == _dlpack.BFLOAT:  # the upper half of an f32
            wide = bytearray(2 * len(bits))
            wide[2::4], wide[3::4] = bits[::2], bits[1::2]
            ctypes.memmove(copy, bytes(wide), len(wide))
        else:
            copy[:] = struct.unpack(f"<{len(self._buffer)}e", bits)
        return Array(copy, kind, self.shape)

    def memoryview(self) -> memoryview:
        """Of this shape; without numpy, `tolist()` and `[i, j]` read it. Numbers of 16
        bits are widened."""
        if self._kind.ctype is ctypes.c_uint16:
            return self.widened().memoryview()
        flat = memoryview(self._on_host()).cast("B")
        shape = list(self.shape) or [1]
        view: Any = flat.cast(self._kind.format, shape)  # type: ignore[call-overload]
        found: memoryview = view.toreadonly() if self.readonly else view
        return found

    def tolist(self) -> Any:
        found = self.memoryview().tolist()
        return found if self.shape else found[0]

    def numpy(self) -> Any:
        """The same memory as a numpy array, read-only where it is lent."""
        import numpy

        return numpy.asarray(self)

    def torch(self) -> Any:
        """The same memory as a tensor of PyTorch. PyTorch does not know read-only ones:
        do not write to one that is lent."""
        import torch

        return torch.utils.dlpack.from_dlpack(self)

    def __repr__(self) -> str:
        lent = f", lent, {self.device}" if self.readonly else ""
        return f"<tranche.Array {self._kind.name[1:]} {list(self.shape)}{lent}>"


def empty(kind: int, shape: Sequence[int]) -> Array:
    """An array of a data type of the library (TR_F32, TR_I64), of zeros."""
    found = _KINDS[kind]
    return Array((found.ctype * math.prod(shape))(), found, shape)


def device_of(number: int) -> _dlpack.Device:
    """Of the GPU of that number; of the host for -1."""
    return _dlpack.CPU if number < 0 else (_dlpack.CUDA, number)


def view(output: Any, owner: Any, device: int = -1) -> Array:
    """Memory of an engine's, as a tr_output describes it."""
    desc = output.desc
    found, shape = _KINDS[desc.dtype], tuple(desc.shape.dim[: desc.shape.rank])
    count = math.prod(shape)
    buffer = (found.ctype * count).from_address(output.data)
    return Array(buffer, found, shape, owner, device_of(device))


class Tensor:
    """A parameter or a state of a model, as an engine has it."""

    def __init__(self, engine: Engine, info: Any) -> None:
        self._engine = engine
        self.name: str = info.name.decode()
        self.shape: tuple[int, ...] = tuple(info.shape.dim[: info.shape.rank])
        self.trained: bool = info.trained
        self.of_model: bool = info.of_model
        self._dtype: int = info.dtype
        spaces = (info.space, info.gradient_space, info.optimizer_space)
        self.space, self.gradient_space, self.optimizer_space = (
            library().tr_space_name(space).decode() for space in spaces
        )

    @property
    def dtype(self) -> str:
        """As safetensors names it: "F32", "I64"."""
        return str(library().tr_dtype_name(self._dtype).decode())

    def read(self, part: str = "values") -> Array:
        """A copy of a part: "values", "gradient", or a state of the optimizer
        ("exp_avg"). All ranks make the same call."""
        array = empty(self._dtype, self.shape)
        self._move("tr_engine_read", part, array)
        return array

    def write(self, values: Any, part: str = "values") -> None:
        """Sets a part to values of the same shape: an array of numpy or PyTorch, or
        nested lists. All ranks make the same call with the same values."""
        from tranche import _fill

        array = empty(self._dtype, self.shape)
        _fill.fill(values, array.address, self._dtype, self.shape, self.name)
        self._move("tr_engine_write", part, array)
        self._engine._written += 1

    def _move(self, function: str, part: str, array: Array) -> None:
        self._engine._call(
            function,
            self.name.encode(),
            part.encode(),
            0,
            math.prod(self.shape),
            array.address,
        )

    def borrow(self) -> Array:
        """The values themselves, without a copy and read-only, until the next step, in
        the memory of the host or of a GPU. An error where they do not lie whole in the
        memory of this rank: read them then."""
        count, device = ctypes.c_int64(), ctypes.c_int()
        at = self._engine._ask(
            "tr_engine_parameter_on", self.name.encode(), byref(count), byref(device)
        )
        if not at:
            raise Error(
                Status.USAGE,
                f"{self.name}: it is no parameter, or its values do not lie whole in "
                f"this rank's memory: read() copies them",
            )
        kind = _KINDS[c.TR_F32]
        address = ctypes.cast(at, ctypes.c_void_p).value
        assert address is not None
        buffer = (kind.ctype * count.value).from_address(address)
        on = device_of(device.value)
        self._engine._lends(device.value)
        return Array(buffer, kind, self.shape, self._engine._owner, on)

    def __repr__(self) -> str:
        return f"<tranche.Tensor {self.name} {self.dtype} {list(self.shape)}>"


class Tensors(Mapping[str, Tensor]):
    """The tensors of an engine by name, in its order."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._found: dict[str, Tensor] = {}
        for index in range(engine._ask("tr_engine_tensors")):
            info = sized(c.tr_tensor_info)
            engine._call("tr_engine_tensor", index, byref(info))
            tensor = Tensor(engine, info)
            self._found[tensor.name] = tensor

    def __getitem__(self, name: str) -> Tensor:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    @property
    def parts(self) -> list[str]:
        """Parts of trained tensors: "values", "gradient", the optimizer's states."""
        found: list[str] = []
        while name := self._engine._ask("tr_engine_part", len(found)):
            found.append(name.decode())
        return found
