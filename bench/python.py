"""python.py: what Python takes of a micro-batch, and what the process takes of memory.

Prints, for a step of forward, backward and step on a small module: microseconds of a
micro-batch in all, in the library, in PyTorch's loss and autograd, and the rest, which is
the package's. Then MiB of a process that trains a module of 64 MiB of weights: how much
more it has than before the engine, and what the plan's ledger says."""

from __future__ import annotations

import resource
import time
from typing import Any

import torch
from torch import nn

import tranche
from tranche._library import library

STEPS, RUNS = 50, 60
MIB = 1 << 20
CALLS = ("tr_engine_forward", "tr_engine_backward", "tr_engine_update")
config: dict[str, Any] = {
    "train_batch_size": 8,
    "gradient_clipping": 1.0,
    "optimizer": {"type": "Adam", "params": {"lr": 1e-3}},
    "execution": {"threads": 1},
}


class Timed:
    """The library's calls, with the time that they take."""

    def __init__(self) -> None:
        self.seconds = 0.0
        for name in CALLS:
            setattr(library(), name, self._timed(getattr(library(), name)))

    def _timed(self, call: Any) -> Any:
        def timed(*arguments: Any) -> Any:
            begin = time.thread_time()
            result = call(*arguments)
            self.seconds += time.thread_time() - begin
            return result

        return timed


def steps(engine: Any, module: Any, x: Any, y: Any, count: int) -> None:
    for _ in range(count):
        loss = nn.functional.mse_loss(engine(x) if engine else module(x), y)
        if engine:
            engine.backward(loss)
            engine.step()
        else:
            loss.backward()


def cost() -> None:
    """Of the best of many short runs: others are at work on the machine, too."""
    x, y = torch.randn(8, 4), torch.randn(8, 2)
    engine, *_ = tranche.initialize(model=nn.Linear(4, 2), config=config)
    output = torch.randn(8, 2, requires_grad=True)
    timed = Timed()
    found = []
    for _ in range(RUNS):
        timed.seconds = 0.0
        begin = time.thread_time()
        steps(engine, None, x, y, STEPS)
        whole, inside = time.thread_time() - begin, timed.seconds
        begin = time.thread_time()
        steps(None, lambda _: output, x, y, STEPS)
        torchs = time.thread_time() - begin
        found.append((whole - inside - torchs, whole, inside, torchs))
    package, whole, inside, torchs = (1e6 * part / STEPS for part in min(found))
    print(
        f"microseconds of a micro-batch: {whole:.0f} in all, library {inside:.0f}, "
        f"torch {torchs:.0f}, package {package:.0f}"
    )


def resident() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / MIB


def memory() -> None:
    module = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(4)))
    x, y = torch.randn(8, 2048), torch.randn(8, 2048)
    weights = sum(p.numel() * 4 for p in module.parameters()) / MIB
    steps(None, module, x, y, 1)  # what PyTorch takes when it is first called
    module.zero_grad(set_to_none=True)
    before = resident() - weights  # those become the engine's
    engine, *_ = tranche.initialize(model=module, config=config)
    steps(engine, None, x, y, 5)
    rows = engine.plan.ledger
    ledger = sum(r.bytes for r in rows if r.category == "total" and r.space != "nvme")
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before
    ledger /= MIB
    print(
        f"MiB: {taken:.0f} taken at most, ledger {ledger:.0f}, "
        f"beside it {taken - ledger:.0f}"
    )


if __name__ == "__main__":
    cost()
    memory()
