"""deepspeed.comm's calls about the ranks. Exchanges of tensors are the plan's, or
torch.distributed's."""

from __future__ import annotations

from typing import Any

from tranche import ranks
from tranche.error import Error, Status

__all__ = [
    "barrier",
    "get_local_rank",
    "get_rank",
    "get_world_size",
    "init_distributed",
    "is_available",
    "is_initialized",
]


def init_distributed(dist_backend: Any = None, *rest: Any, **named: Any) -> None:
    """Joins the ranks, which mpirun, srun or torchrun has started."""
    ranks.comm()


def get_rank(group: Any = None) -> int:
    """The number of this process among the ranks, from 0."""
    _of_all(group)
    return ranks.rank()


def get_world_size(group: Any = None) -> int:
    """How many ranks there are."""
    _of_all(group)
    return ranks.count()


def get_local_rank() -> int:
    """The number of this process among those of its machine, as its launcher says."""
    return ranks.local(0)


def barrier(group: Any = None, **_: Any) -> None:
    """Returns when all ranks have come here."""
    _of_all(group)
    if ranks.count() > 1:
        ranks.most(0)


def is_initialized() -> bool:
    """Ranks join when they are first asked for."""
    return ranks.comm() is not None


def is_available() -> bool:
    return True


def _of_all(group: Any) -> None:
    if group is not None:
        raise Error(Status.USAGE, "group: the ranks are one group")


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    raise Error(
        Status.USAGE,
        f"tranche.comm has no {name}: step() exchanges what a plan needs; for other "
        f"tensors call torch.distributed under torchrun",
    )
