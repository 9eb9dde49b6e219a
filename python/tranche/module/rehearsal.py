"""What PyTorch takes of memory beside the plan: one call forward and one backward are
run before the plan is made, on rows like the first batch's, and their peak is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from tranche.module.regions import Region


def outside_bytes(region: Region, examples: Mapping[Any, Any], rows: int) -> int:
    """Of a micro-batch of `rows`, at most; 0: this PyTorch does not tell."""
    values = region.like(examples, rows)

    def forward() -> None:
        with torch.no_grad():
            region.run(rows, values)

    def backward() -> None:
        with torch.enable_grad():
            result = region.run(rows, leaves)
            if result.requires_grad:
                torch.autograd.grad(result, wanted, torch.ones_like(result), allow_unused=True)

    leaves = [v.requires_grad_() if v.is_floating_point() else v for v in _copies(values)]
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    return max(_peak(forward), _peak(backward))


def _copies(values: Sequence[Any]) -> list[Any]:
    return [value.detach().clone() for value in values]


def _peak(call: Callable[[], None]) -> int:
    """The most bytes that the call had allocated at one time. The profiler of before
    Kineto gives each allocation in its order, and prints nothing."""
    told: Any = torch.autograd
    try:
        begin, end = told._enable_profiler_legacy, told._disable_profiler_legacy
        of_memory = told.ProfilerConfig(
            told.ProfilerState.CPU,
            False,
            True,
            False,
            False,
            False,
            torch._C._profiler._ExperimentalConfig(),
        )
    except (AttributeError, TypeError):
        return 0  # another PyTorch
    begin(of_memory)
    try:
        call()
    finally:
        threads = end()
    now = most = 0
    for event in (event for thread in threads for event in thread):
        if event.kind() == "memory_alloc":
            now += event.cpu_memory_usage()
            most = max(most, now)
    return most
