"""deepspeed.zero's contexts: modules that are made without memory for their weights."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from tranche.error import Error, Status

__all__ = ["GatheredParameters", "Init", "register_external_parameter"]


class Init:
    """Modules that are made inside have no memory for large weights. tranche.initialize
    draws each as the constructor says, one at a time, into the engine's memory. A module
    that is there already stays as it is; the other arguments have nothing to do."""

    def __init__(
        self,
        module: Any = None,
        data_parallel_group: Any = None,
        mem_efficient_linear: bool = True,
        remote_device: Any = None,
        pin_memory: bool = False,
        config_dict_or_path: Any = None,
        config: Any = None,
        enabled: bool = True,
        dtype: Any = None,
        mpu: Any = None,
        **others: Any,
    ) -> None:
        if mpu is not None:
            raise Error(Status.USAGE, "mpu: parallel models are not supported")
        self._enabled = enabled and module is None
        self._recorder: Any = None

    def __enter__(self) -> Init:
        if self._enabled:
            from tranche.module import deferred

            self._recorder = deferred.record()
            self._recorder.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._recorder is not None:
            self._recorder.__exit__(kind, error, trace)
            self._recorder = None


class GatheredParameters:
    """Parameters of a module of zero.Init have values inside, and keep what is written
    to them. Those of an engine are whole inside of `with engine.whole():`."""

    def __init__(
        self,
        params: Any,
        modifier_rank: int | None = None,
        fwd_module: Any = None,
        enabled: bool = True,
    ) -> None:
        given = [params] if hasattr(params, "numel") else params
        self._params = list(given) if enabled else []

    def __enter__(self) -> None:
        from tranche.module import deferred

        for parameter in self._params:
            deferred.make(parameter)
            size = parameter.numel() * parameter.element_size()
            if parameter.untyped_storage().nbytes() < size:
                raise Error(
                    Status.USAGE,
                    "zero.GatheredParameters: the engine has these: they are whole "
                    "inside of `with engine.whole():`",
                )

    def __exit__(self, *_: object) -> None:
        return None


def register_external_parameter(module: Any, parameter: Any) -> None:
    """Has nothing to do: a plan knows who uses a parameter."""


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    raise Error(
        Status.USAGE,
        f"DeepSpeed's zero.{name} is not supported: Init and GatheredParameters are, and "
        f"zero_optimization of the config",
    )
