"""Tranche trains neural networks at any effective batch size, in whatever memory you
have.

import tranche
engine = tranche.train("run.json")
print(engine.evaluate())
"""

from __future__ import annotations

import importlib

from tranche.error import Error, Status, StopTraining

TYPE_CHECKING = False  # as in typing, whose import takes longer than all of this
if TYPE_CHECKING:
    from typing import Any

    from tranche import comm as comm
    from tranche import zero as zero
    from tranche.callbacks import Callback, Evaluation, StepResult
    from tranche.comm import init_distributed
    from tranche.engine import Engine, checkpoint_bytes, train
    from tranche._initialize import add_config_arguments, initialize
    from tranche.plan import LedgerRow, Plan
    from tranche.ranks import count as rank_count
    from tranche.ranks import rank
    from tranche.run import Run
    from tranche.tensors import Array, Tensor

__version__: str

# Importing the package loads nothing else: the library comes with the first of these.
_FROM = {
    "Array": ("tensors", "Array"),
    "Callback": ("callbacks", "Callback"),
    "Engine": ("engine", "Engine"),
    "Evaluation": ("callbacks", "Evaluation"),
    "LedgerRow": ("plan", "LedgerRow"),
    "Plan": ("plan", "Plan"),
    "Run": ("run", "Run"),
    "StepResult": ("callbacks", "StepResult"),
    "Tensor": ("tensors", "Tensor"),
    "add_config_arguments": ("_initialize", "add_config_arguments"),
    "checkpoint_bytes": ("engine", "checkpoint_bytes"),
    "init_distributed": ("comm", "init_distributed"),
    "initialize": ("_initialize", "initialize"),
    "rank": ("ranks", "rank"),
    "rank_count": ("ranks", "count"),
    "train": ("engine", "train"),
}

__all__ = [
    "Array",
    "Callback",
    "Engine",
    "Error",
    "Evaluation",
    "LedgerRow",
    "Plan",
    "Run",
    "Status",
    "StepResult",
    "StopTraining",
    "Tensor",
    "add_config_arguments",
    "checkpoint_bytes",
    "init_distributed",
    "initialize",
    "rank",
    "rank_count",
    "train",
]


# Modules of DeepSpeed's that a program may name, and what to do without.
_ABSENT = {
    "init_inference": "engine.eval() and engine(...) compute outputs, `tranche serve` "
    "answers requests",
    "moe": "mixtures of experts are not supported",
    "ops": "the config's optimizer has what DeepSpeed's optimizers have",
    "pipe": "tranche.initialize takes the module as it is: a plan places its layers",
    "tp_model_init": "set tensor_parallel in a run file",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from tranche._declarations import (
            TRANCHE_VERSION_MAJOR,
            TRANCHE_VERSION_MINOR,
            TRANCHE_VERSION_PATCH,
        )

        return (
            f"{TRANCHE_VERSION_MAJOR}.{TRANCHE_VERSION_MINOR}.{TRANCHE_VERSION_PATCH}"
        )
    if name in ("comm", "zero"):
        return importlib.import_module(f"tranche.{name}")
    if name in _ABSENT:
        told = f"DeepSpeed's {name} is not supported: {_ABSENT[name]}"
        raise Error(Status.USAGE, told)
    if name not in _FROM:
        raise AttributeError(f"module 'tranche' has no attribute {name!r}")
    module, member = _FROM[name]
    found = getattr(importlib.import_module(f"tranche.{module}"), member)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *_FROM])
