"""Modules whose large tensors have no memory yet: what a constructor does to them is
written down, and done again for one tensor at a time when an engine takes it."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn import init
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from tranche import ranks
from tranche.error import Error, Status

LARGE = 64 << 10  # bytes: smaller tensors are made at once
_META = torch.device("meta")
_READING = ("_no_grad_trunc_normal_",)  # of torch.nn.init


class _Place(NamedTuple):
    """A tensor by the storage that it is in."""

    storage: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


class _Call(NamedTuple):
    function: Any
    given: tuple[Any, dict[str, Any]]  # places in place of tensors without memory
    made: list[_Place | None]  # results in storages that are new
    writes: list[_Place]
    number: int


class _OfTheHost(TorchFunctionMode):
    """Constructors are told that tensors without memory are of the host: torch.nn.init
    leaves those of the meta device as they are."""

    _TOLD = (
        (torch.Tensor.is_meta.__get__, False),  # type: ignore[attr-defined]
        (torch.Tensor.device.__get__, torch.device("cpu")),  # type: ignore[attr-defined]
    )

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        for getter, told in self._TOLD:
            if function == getter:
                with torch._C.DisableTorchFunction():
                    return told if self._recorder.has(args[0]) else function(*args)
        return function(*args, **(kwargs or {}))


class Recorder(TorchDispatchMode):
    """Inside, large tensors are of the meta device. seed: what they are drawn by."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed
        self._told = _OfTheHost(self)
        self._whole: dict[str, Any] = {}
        self._calls: list[_Call] = []
        self._alive: dict[int, Any] = {}  # a tensor of each storage

    def __enter__(self) -> Recorder:
        self._whole = {n: vars(init)[n] for n in _READING if n in vars(init)}
        for name, function in self._whole.items():
            setattr(init, name, functools.partial(self._as_one, function))
        self._told.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *why: Any) -> None:
        super().__exit__(*why)
        self._told.__exit__(*why)
        for name, function in self._whole.items():
            setattr(init, name, function)

    def _as_one(self, function: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
        """A function that fills a tensor, and reads it meanwhile."""
        with torch._C.DisableTorchFunction():
            if not self.has(tensor):
                return function(tensor, *args, **kwargs)
            given = ((_place(tensor), *args), kwargs)
            self._calls.append(_Call(function, given, [], [_place(tensor)], len(self._calls)))
            return tensor

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        with torch._C.DisableTorchFunction():
            return self._call(function, args, kwargs or {})

    def _call(self, function: Any, args: Any, kwargs: Any) -> Any:
        tensors = [t for t in tree_leaves((args, kwargs)) if _is_tensor(t)]
        if any(self._knows(t) for t in tensors):
            return self._record(function, args, kwargs)
        if tensors or not _is_new(function, kwargs):
            return function(*args, **kwargs)
        planned = function(*args, **{**kwargs, "device": _META})
        if planned.untyped_storage().nbytes() < LARGE:
            return function(*args, **kwargs)
        self._keep(function, args, {**kwargs, "device": torch.device("cpu")}, planned)
        return planned

    def _record(self, function: Any, args: Any, kwargs: Any) -> Any:
        def as_meta(value: Any) -> Any:
            here = _is_tensor(value) and not value.is_meta
            return value.to(_META) if here else value

        if not all(self._knows(t) for t in _written(function, args, kwargs)):
            raise self._reads(function)
        try:
            made = function(*tree_map(as_meta, args), **tree_map(as_meta, kwargs))
        except (NotImplementedError, RuntimeError) as error:
            raise self._reads(function) from error
        self._keep(function, args, kwargs, made)
        return made

    def _reads(self, function: Any) -> Error:
        return Error(
            Status.USAGE,
            f"zero.Init: {function} asks for values of a tensor that has none yet: make "
            f"this module outside of zero.Init",
        )

    def _keep(self, function: Any, args: Any, kwargs: Any, made: Any) -> None:
        new = [t if _is_tensor(t) and not self._knows(t) else None for t in tree_leaves(made)]
        if not any(t is not None for t in new) and not function._schema.is_mutable:
            return  # a view
        given = tree_map(self._placed, (args, kwargs))
        places = [None if tensor is None else _place(tensor) for tensor in new]
        self._alive.update((_storage(t), t) for t in new if t is not None)
        writes = [_place(t) for t in _written(function, args, kwargs)]
        self._calls.append(_Call(function, given, places, writes, len(self._calls)))

    def _knows(self, tensor: Any) -> bool:
        return tensor.is_meta and _storage(tensor) in self._alive

    def _placed(self, value: Any) -> Any:
        if not _is_tensor(value):
            return value
        return _place(value) if self._knows(value) else value.detach().clone()

    def has(self, tensor: Any) -> bool:
        return bool(self._knows(tensor))

    def draw(self, tensor: Any) -> Any:
        """Its values, in memory of its own."""
        found: dict[int, Any] = {}
        calls = self._calls_for(_place(tensor).storage)

        def real(value: Any) -> Any:
            if not isinstance(value, _Place):
                return value
            base = found[value.storage]
            return base.as_strided(value.shape, value.strides, value.offset)

        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(self.seed + calls[0].number)
            for call in calls:
                args, kwargs = tree_map(real, call.given, is_leaf=_is_place)
                made = call.function(*args, **kwargs)
                for place, result in zip(call.made, tree_leaves(made), strict=False):
                    if place is not None:
                        found[place.storage] = _laid(result, place)
        return real(_place(tensor))

    def _calls_for(self, storage: int) -> list[_Call]:
        """Those that its values come of, in their order."""
        wanted, found = {storage}, []
        for call in reversed(self._calls):
            leaves = tree_leaves(call.given, is_leaf=_is_place)
            places = [each for each in leaves if isinstance(each, _Place)]
            written = {each.storage for each in call.made if each is not None}
            written |= {each.storage for each in call.writes}
            if wanted & written:
                wanted.update(p.storage for p in places)
                found.append(call)
        return found[::-1]


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _written(function: Any, args: Any, kwargs: Any) -> list[Any]:
    """The tensors that it writes into."""
    found = []
    for i, argument in enumerate(function._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            found.append(args[i] if i < len(args) else kwargs.get(argument.name))
    return [each for each in found if _is_tensor(each)]


def _is_place(value: Any) -> bool:
    return isinstance(value, _Place)


def _is_new(function: Any, kwargs: Any) -> bool:
    """Does it make a tensor of numbers alone, on the host?"""
    named = {argument.name for argument in function._schema.arguments}
    on = kwargs.get("device")
    return "device" in named and (on is None or torch.device(on).type == "cpu")


def _laid(tensor: Any, place: _Place) -> Any:
    """In the layout that was seen without values, at the begin of its memory."""
    if (tensor.stride(), tensor.storage_offset()) == (place.strides, place.offset):
        return tensor
    size = place.offset + sum(
        (count - 1) * stride for count, stride in zip(place.shape, place.strides, strict=True)
    )
    memory = tensor.new_empty(size + 1)
    return memory.as_strided(place.shape, place.strides, place.offset).copy_(tensor)


def _storage(tensor: Any) -> int:
    return int(StorageWeakRef(tensor.untyped_storage()).cdata)


def _place(tensor: Any) -> _Place:
    return _Place(_storage(tensor), tuple(tensor.shape), tensor.stride(), tensor.storage_offset())


# ---- parameters that are not drawn yet

_RECORDERS: list[Recorder] = []
_MARK = "_tranche_recorder"  # of a parameter: what it is to be drawn by


def record() -> Recorder:
    """Of a new context; the caller's random numbers say which others are drawn."""
    _RECORDERS.append(Recorder(int(torch.randint(0, 1 << 62, ()))))
    return _RECORDERS[-1]


def _recorder_of(tensor: Any) -> Recorder | None:
    if not _is_tensor(tensor) or not tensor.is_meta:
        return None
    return next((each for each in _RECORDERS if each.has(tensor)), None)


def take(module: torch.nn.Module) -> None:
    """Parameters without memory stand for ones of their shapes from now on, until they
    are drawn. What else has none is drawn. All ranks call it."""
    for child in module.modules():
        for table in (child._buffers, vars(child)):
            for name, value in list(table.items()):
                found = _recorder_of(value)
                if found is not None:
                    table[name] = found.draw(value)
    for parameter in module.parameters():
        recorder = _recorder_of(parameter)
        if recorder is not None:
            recorder.seed = ranks.most(recorder.seed) if ranks.count() > 1 else recorder.seed
            small = torch.full((1,), 0.01, dtype=parameter.dtype)
            whole = parameter.detach()
            _exchange(parameter, small.expand(parameter.shape))
            setattr(parameter, _MARK, (recorder, whole))


def values(parameter: Any) -> Any:
    """Those of a parameter; one that waits for them is drawn."""
    recorder, whole = getattr(parameter, _MARK, (None, None))
    return parameter.detach() if recorder is None else recorder.draw(whole)


def done(parameter: Any) -> None:
    """An engine has its values."""
    if hasattr(parameter, _MARK):
        delattr(parameter, _MARK)


def make(parameter: Any) -> None:
    """Gives a parameter values of its own, if it waits for some."""
    recorder = _recorder_of(parameter)
    if recorder is not None:
        _exchange(parameter, recorder.draw(parameter))


def _exchange(parameter: Any, tensor: Any) -> None:
    made = torch.nn.Parameter(tensor, parameter.requires_grad)
    torch.utils.swap_tensors(parameter, made)
