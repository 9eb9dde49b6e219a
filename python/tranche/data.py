"""Data that Python has: columns of arrays, or samples one by one.

(inputs, labels), {"features": inputs, "labels": labels}   columns [samples, ...]
tokens [samples, n + 1]                                    windows: each token's label
                                                           is the one behind it
a sequence of samples, each such a tuple, dict or window   read when they are needed
any other iterable of samples                              read once, and kept
"""

from __future__ import annotations

import ctypes
import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from ctypes import byref, c_void_p
from typing import Any, NamedTuple

from tranche import _declarations as c
from tranche import _fill
from tranche._calls import Raised
from tranche._handle import Owner, field_type, sized
from tranche._library import check, library
from tranche.error import Error, Status

_ROLES = {"labels": c.TR_ROLE_TARGET, "position_ids": c.TR_ROLE_POSITION}
_WHOLE = {"labels", "position_ids", "input_ids"}
_HASHED = 16 << 20  # bytes of columns that are hashed whole


class Field(NamedTuple):
    """One tensor of a sample."""

    name: str
    dtype: int
    shape: tuple[int, ...]
    role: int | None = None  # None: as its name says

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * _fill.size(self.dtype)


def _input_name(values: Any, shape: tuple[int, ...]) -> str:
    if _fill.is_whole(values):
        return "input_ids"
    names = {1: "features", 3: "pixel_values"}
    if len(shape) not in names:
        raise Error(
            Status.DATA,
            f"inputs of {len(shape)} dimensions a sample: rows of features have 1, "
            f"images [height, width, channels] 3; a dict gives tensors other names",
        )
    return names[len(shape)]


def _named(sample: Any, first: int) -> dict[str, Any]:
    """The parts of a sample, or of columns, by name. first: dimensions in front of
    those of a sample."""
    if isinstance(sample, Mapping):
        return dict(sample)
    if not isinstance(sample, tuple):
        return _window(sample, first)
    if len(sample) not in (2, 3):
        raise Error(
            Status.DATA,
            f"a tuple of {len(sample)}: (inputs, labels) or (input_ids, labels, "
            f"position_ids); a dict gives tensors other names",
        )
    name = _input_name(sample[0], _fill.shape_of(sample[0])[first:])
    return dict(zip((name, "labels", "position_ids"), sample, strict=False))


def _window(tokens: Any, first: int) -> dict[str, Any]:
    shape = _fill.shape_of(tokens)[first:]
    if len(shape) != 1 or shape[0] < 2 or not _fill.is_whole(tokens):
        raise Error(
            Status.DATA,
            "one array alone is windows of at least two tokens, integers "
            "[samples, n + 1]; other data are (inputs, labels) or a dict",
        )
    if first == 0:
        return {"input_ids": tokens[:-1], "labels": tokens[1:]}
    if hasattr(tokens, "shape"):
        return {"input_ids": tokens[:, :-1], "labels": tokens[:, 1:]}
    return {
        "input_ids": [row[:-1] for row in tokens],
        "labels": [row[1:] for row in tokens],
    }


def _field(name: str, values: Any, shape: tuple[int, ...]) -> Field:
    whole = name in _WHOLE or (
        name not in ("features", "pixel_values") and _fill.is_whole(values)
    )
    return Field(name, c.TR_I32 if whole else c.TR_F32, shape)


class Source:
    """Numbered samples. A subclass reads some of them into memory."""

    samples: int
    fields: list[Field]
    about: str
    checks_ids = False  # whether `read` itself sees to it that ids are in range

    def read(self, index: Sequence[int], rows: Sequence[int]) -> None:
        """Writes the samples `index` to the addresses `rows`, one for each field."""
        raise NotImplementedError

    def hash(self) -> int:
        """Of what the data is: a run resumes on the same alone."""
        raise NotImplementedError

    def _digest(self) -> Any:
        told = repr((type(self).__name__, self.samples, self.fields))
        return hashlib.blake2b(told.encode(), digest_size=8)


class Columns(Source):
    """One array for each tensor, with all samples."""

    def __init__(self, columns: Any) -> None:
        self._columns = {
            name: _fill.indexable(values) for name, values in _named(columns, 1).items()
        }
        shapes = {
            name: _fill.shape_of(values) for name, values in self._columns.items()
        }
        counts = {name: shape[0] if shape else 0 for name, shape in shapes.items()}
        if len(set(counts.values())) != 1 or not min(counts.values()):
            told = ", ".join(f"{name} {count}" for name, count in counts.items())
            raise Error(
                Status.DATA, f"columns need equally many samples, at least one: {told}"
            )
        self.samples = min(counts.values())
        self.fields = [
            _field(name, values, shapes[name][1:])
            for name, values in self._columns.items()
        ]
        self.about = f"{self.samples} samples of " + ", ".join(self._columns)

    def read(self, index: Sequence[int], rows: Sequence[int]) -> None:
        for field, address in zip(self.fields, rows, strict=True):
            values = self._columns[field.name]
            taken = (
                values[index]
                if hasattr(values, "shape")
                else [values[i] for i in index]
            )
            _fill.fill(
                taken, address, field.dtype, (len(index), *field.shape), field.name
            )

    def hash(self) -> int:
        digest = self._digest()
        each = sum(field.bytes for field in self.fields)
        step = max(1, math.ceil(self.samples * each / _HASHED))
        for first in range(0, self.samples, 1024 * step):
            index = list(range(first, min(first + 1024 * step, self.samples), step))
            buffers = [
                ctypes.create_string_buffer(len(index) * f.bytes) for f in self.fields
            ]
            self.read(index, [ctypes.addressof(buffer) for buffer in buffers])
            for buffer in buffers:
                digest.update(buffer)
        return int.from_bytes(digest.digest(), "little")


class Samples(Source):
    """A sequence of samples, each a tuple, a dict or a window of tokens.
    `__getitems__`, where it is there, is asked for several at once."""

    def __init__(self, samples: Any) -> None:
        self._samples = samples
        self.samples = len(samples)
        if not self.samples:
            raise Error(Status.DATA, "there are no samples")
        first = _named(samples[0], 0)
        self.fields = [
            _field(name, values, _fill.shape_of(values))
            for name, values in first.items()
        ]
        self.about = f"{self.samples} samples of " + ", ".join(first)

    def read(self, index: Sequence[int], rows: Sequence[int]) -> None:
        several = getattr(self._samples, "__getitems__", None)
        found = several(list(index)) if several else (self._samples[i] for i in index)
        for at, (number, sample) in enumerate(zip(index, found, strict=True)):
            parts = _named(sample, 0)
            for field, address in zip(self.fields, rows, strict=True):
                if field.name not in parts:
                    raise Error(
                        Status.DATA, f"sample {number}: there is no {field.name}"
                    )
                where = f"sample {number}: {field.name}"
                place = address + at * field.bytes
                _fill.fill(parts[field.name], place, field.dtype, field.shape, where)

    def hash(self) -> int:
        """Samples may be drawn anew each time: their number and shapes count alone."""
        return int.from_bytes(self._digest().digest(), "little")


def source(given: Any) -> Source:
    """What has been given as data, as numbered samples."""
    if isinstance(given, Source):
        return given
    if isinstance(given, Mapping | tuple) or hasattr(given, "shape"):
        return Columns(given)
    if not isinstance(given, str | bytes):
        if hasattr(given, "__getitem__") and hasattr(given, "__len__"):
            return Samples(given)
        if isinstance(given, Iterable):
            return Samples(list(given))
    raise Error(
        Status.USAGE,
        f"data of type {type(given).__name__}: give columns, (inputs, labels) or a "
        f"dict, or samples; files are named in the config",
    )


class Reader:
    """Reads a source for the library, and looks at what it has read."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.classes = 0  # of the run's model, as soon as it is known

    def read(self, _: object, index: Any, count: int, rows: Any, __: object) -> int:
        numbers = index[:count]
        fields = self.source.fields
        addresses = [rows[i] for i in range(len(fields))]
        self.source.read(numbers, addresses)
        for field, address in zip(fields, addresses, strict=True):
            if field.dtype == c.TR_I32 and not self.source.checks_ids:
                self._check(field, address, numbers)
        return int(Status.OK)

    def _check(self, field: Field, address: int, numbers: list[int]) -> None:
        """Kernels trust ids: one that is out of range would read other memory."""
        target = field.name == "labels"
        if not self.classes or field.name == "position_ids":
            return  # the library checks positions
        each = math.prod(field.shape)
        least, most = _fill.ends(address, each * len(numbers))
        if most < self.classes and least >= 0:
            return
        ids = (ctypes.c_int32 * (each * len(numbers))).from_address(address)
        for at, value in enumerate(ids):
            none = target and value == c.TR_NO_TARGET
            if not none and not 0 <= value < self.classes:
                raise Error(
                    Status.DATA,
                    f"sample {numbers[at // each]}: {field.name}: {value} is not in "
                    f"[0, {self.classes})",
                )


class Dataset:
    """A source as the library has it, for one run."""

    def __init__(self, source: Source, raised: Raised) -> None:
        self.reader = Reader(source)
        table = sized(c.tr_dataset_source)
        table.about = source.about.encode()
        table.samples = source.samples
        table.tensors = _tensors(source.fields)
        table.hash = source.hash()
        read = raised.guard(self.reader.read, int(Status.DATA))
        table.read = field_type(c.tr_dataset_source, "read")(read)
        table.on_calling_thread = True
        pointer, error = c_void_p(), c.tr_error()
        create = library().tr_dataset_create_callback
        check(create(byref(table), byref(pointer), byref(error)), error)
        assert pointer.value is not None
        self.owner = Owner(pointer.value, "tr_dataset_destroy", table)


def _tensors(fields: Sequence[Field]) -> Any:
    """The list of a source's tensors, as the library has it."""
    made = c.tr_batch_tensors()
    if len(fields) > c.TR_BATCH_TENSORS_MAX:
        raise Error(
            Status.DATA, f"a sample has at most {c.TR_BATCH_TENSORS_MAX} tensors"
        )
    made.count = len(fields)
    for tensor, field in zip(made.tensor, fields, strict=False):
        if (
            len(field.name.encode()) >= c.TR_BATCH_NAME_MAX
            or len(field.shape) >= c.TR_RANK_MAX
        ):
            raise Error(
                Status.DATA,
                f"{field.name}: names have up to {c.TR_BATCH_NAME_MAX - 1} bytes, and "
                f"a sample at most {c.TR_RANK_MAX - 1} dimensions",
            )
        tensor.name = field.name.encode()
        named = _ROLES.get(field.name, c.TR_ROLE_INPUT)
        tensor.role = named if field.role is None else field.role
        tensor.desc.dtype = field.dtype
        tensor.desc.shape.rank = len(field.shape)
        for i, size in enumerate(field.shape):
            tensor.desc.shape.dim[i] = size
    return made
