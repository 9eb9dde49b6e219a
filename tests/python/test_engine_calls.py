"""Calls of DeepSpeed's engine beside forward, backward and step: losses that the caller
divides, what a module returns, and micro-batches that end no step."""

from __future__ import annotations

import copy
import logging
import unittest
from typing import Any, NamedTuple

from common import HAS_TORCH, needs_mpi, needs_torch, run_python
from test_module import Modules, config

import tranche

if HAS_TORCH:
    import torch
    import torch.nn.functional as F
    from test_module import rows
    from torch import nn

USAGE = tranche.Status.USAGE


def classifier() -> Any:
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 4))


class Pair(NamedTuple):
    """A module beside the same of PyTorch's, with SGD and the config's clipping."""

    engine: Any
    plain: Any
    optimizer: Any


def pair(module: Any, **changes: Any) -> Pair:
    plain = copy.deepcopy(module)
    engine, *_ = tranche.initialize(model=module, config=config(**changes))
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.9)
    return Pair(engine, plain, optimizer)


def torch_step(of: Pair, losses: list[Any]) -> None:
    """PyTorch's step on the sum of losses."""
    sum(losses).backward()
    torch.nn.utils.clip_grad_norm_(of.plain.parameters(), 1.0)
    of.optimizer.step()
    of.optimizer.zero_grad()


@needs_torch
class Calls(Modules):
    def same(self, of: Pair) -> None:
        state = of.engine.module.state_dict()
        for name, values in of.plain.state_dict().items():
            torch.testing.assert_close(state[name], values, atol=1e-5, rtol=1e-4)

    def test_losses_that_the_caller_has_divided(self) -> None:
        of = pair(classifier(), train_micro_batch_size_per_gpu=2)
        for there in (4, 3, 1):  # micro-batches of the step
            of.engine.set_gradient_accumulation_boundary(False)
            losses = []
            for i in range(there):
                x, y = (tensor[:2] for tensor in rows())
                loss = F.cross_entropy(of.engine(x), y, reduction="sum") / 7
                losses.append(F.cross_entropy(of.plain(x), y, reduction="sum") / 7)
                self.assertIs(of.engine.backward(loss, scale_wrt_gas=False), loss)
                of.engine.set_gradient_accumulation_boundary(i == there - 1)
                of.engine.step()
            torch_step(of, losses)
            self.same(of)
        self.assertEqual(of.engine.global_steps, 3)

    def test_what_a_module_returns(self) -> None:
        class Named(nn.Module):
            def __init__(self, kind: Any) -> None:
                super().__init__()
                self.inner, self.kind = classifier(), kind

            def forward(self, x: Any, labels: Any = None) -> Any:
                logits = self.inner(x)
                found = {"logits": logits, "twice": 2 * logits}
                if labels is not None:
                    found["loss"] = F.cross_entropy(logits, labels)
                return self.kind(**found)

        class Output(dict[str, Any]):
            @property
            def loss(self) -> Any:
                return self["loss"]

        of = pair(Named(Output))
        for _ in range(2):
            x, y = rows()
            found, wanted = of.engine(x, labels=y), of.plain(x, y)
            self.assertIsInstance(found, Output)
            self.assertAlmostEqual(found.loss.item(), wanted.loss.item(), delta=1e-5)
            of.engine.backward(found.loss)
            of.engine.step()
            torch_step(of, [wanted.loss])
        self.same(of)
        of = pair(Named(dict))
        x, y = rows()
        found = of.engine(x)
        self.assertEqual(list(found), ["logits", "twice"])
        of.engine.backward(F.cross_entropy(found["logits"], y))
        of.engine.step()
        torch_step(of, [F.cross_entropy(of.plain(x)["logits"], y)])
        self.same(of)

    def test_no_sync(self) -> None:
        of = pair(classifier(), train_micro_batch_size_per_gpu=4)
        (x, y), (u, v) = [[tensor[:4] for tensor in rows()] for _ in range(2)]
        with of.engine.no_sync():
            of.engine.backward(F.cross_entropy(of.engine(x), y))
            with self.refused(USAGE, "step", "no_sync"):
                of.engine.step()
            with self.refused(USAGE, "entered already"), of.engine.no_sync():
                pass
        of.engine.set_gradient_accumulation_boundary(True)
        of.engine.backward(F.cross_entropy(of.engine(u), v))
        of.engine.step()
        losses = [F.cross_entropy(of.plain(x), y), F.cross_entropy(of.plain(u), v)]
        torch_step(of, [loss / 2 for loss in losses])
        self.same(of)


    def micro_batches(self, of: Pair, count: int, wanted: int) -> None:
        """A step of `count` micro-batches that PyTorch takes the mean of."""
        losses = []
        for i in range(count):
            x, y = (tensor[: of.engine.batch.micro] for tensor in rows())
            if count < wanted:
                of.engine.set_gradient_accumulation_boundary(i == count - 1)
            of.engine.backward(F.cross_entropy(of.engine(x), y))
            of.engine.step()
            losses.append(F.cross_entropy(of.plain(x), y) / count)
        torch_step(of, losses)
        self.same(of)

    def test_a_step_that_ends_early(self) -> None:
        of = pair(classifier(), train_micro_batch_size_per_gpu=2)
        self.micro_batches(of, 4, 4)
        with self.assertLogs("tranche", logging.WARNING) as told:
            self.micro_batches(of, 1, 4)
            self.micro_batches(of, 3, 4)
        self.assertEqual(len(told.output), 1)
        self.assertIn("1 of its 4 micro-batches", told.output[0])

    def test_another_batch(self) -> None:
        of = pair(classifier(), train_micro_batch_size_per_gpu=2)
        of.engine.set_train_batch_size(4)  # before there is a plan
        self.micro_batches(of, 2, 2)
        of.engine.set_train_batch_size(6)
        self.assertEqual(of.engine.get_batch_info(), (6, 2, 3))
        self.micro_batches(of, 3, 3)
        of.engine.set_train_micro_batch_size(4)
        self.assertEqual(of.engine.get_batch_info(), (12, 4, 3))
        self.micro_batches(of, 3, 3)
        with self.refused(USAGE, "13 is not a multiple"):
            of.engine.set_train_batch_size(13)
        of.engine(rows()[0][:4])
        with self.refused(USAGE, "a step is at work"):
            of.engine.set_train_batch_size(4)

    def test_another_batch_of_train_batch(self) -> None:
        module, loss = classifier(), nn.CrossEntropyLoss()
        plain = copy.deepcopy(module)
        engine, *_ = tranche.initialize(model=module, config=config(), loss=loss)
        optimizer = torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.9)
        of = Pair(engine, plain, optimizer)
        for count in (8, 4):
            engine.set_train_micro_batch_size(count)
            x, y = (tensor[:count] for tensor in rows())
            engine.train_batch(iter([(x, y)]))
            torch_step(of, [loss(plain(x), y)])
            self.same(of)

    def test_questions(self) -> None:
        zero = {"stage": 2, "offload_optimizer": {"device": "cpu"}}
        bf16 = {"enabled": True}
        engine = pair(classifier(), zero_optimization=zero, bf16=bf16).engine
        told = (engine.zero_optimization(), engine.zero_optimization_stage())
        self.assertEqual(told, (True, 2))
        self.assertTrue(engine.zero_optimization_partition_gradients())
        self.assertFalse(engine.zero_optimization_partition_weights())
        self.assertTrue(engine.zero_cpu_offload() and engine.bfloat16_enabled())
        self.assertFalse(engine.fp16_enabled())
        named = (engine.optimizer_name(), engine.scheduler_name())
        self.assertEqual(named, ("SGD", None))
        self.assertEqual((engine.world_size, engine.global_rank), (1, 0))
        with self.refused(USAGE, "compile", "leave the call out"):
            engine.compile()

    def test_weights_as_a_file(self) -> None:
        engine = pair(classifier(), bf16={"enabled": True}).engine
        x, y = rows()
        engine.module[0].bias.requires_grad_(False)
        engine.backward(F.cross_entropy(engine(x), y))
        engine.step()
        self.assertTrue(engine.save_16bit_model("saved", "all.bin"))
        engine.save_16bit_model("saved", "some.bin", exclude_frozen_parameters=True)
        found, some = (torch.load(f"saved/{name}.bin") for name in ("all", "some"))
        self.assertEqual(list(some), ["0.weight", "2.weight", "2.bias"])
        for name, values in engine.module_state_dict().items():
            self.assertTrue(torch.equal(found[name], values.bfloat16()), name)

    def test_ranks(self) -> None:
        comm = tranche.comm
        told = (comm.get_rank(), comm.get_world_size(), comm.get_local_rank())
        self.assertEqual(told, (0, 1, 0))
        comm.barrier()
        self.assertFalse(comm.is_initialized())
        with self.refused(USAGE, "all_reduce", "torch.distributed"):
            comm.all_reduce(torch.zeros(1))
        with self.refused(USAGE, "zero.TiledLinear", "Init"):
            tranche.zero.TiledLinear(1, 2)

    @needs_mpi
    def test_ranks_of_mpi(self) -> None:
        done = run_python(RANKS, timeout=100)
        self.assertEqual(done.returncode, 0, done.stderr)
        for rank in range(2):
            self.assertIn(f"{rank} {rank} of 2: 3", done.stdout)


RANKS = """
import os, sys
if "OMPI_COMM_WORLD_RANK" not in os.environ:
    launch = [sys.executable, "-m", "tranche", "launch", "-n", "2"]
    open("ranks.py", "w").write(sys.orig_argv[2])
    os.execv(sys.executable, [*launch, "ranks.py"])
import torch, tranche
from torch import nn
config = {"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"lr": 1e-3}}}
config["zero_optimization"] = {"stage": 2}
engine, *_ = tranche.initialize(model=nn.Linear(6, 4), config=config)
for batch in (8, 16, 8):
    if batch == 16:
        engine.set_train_micro_batch_size(8)
    if batch == 8 and engine.global_steps:
        engine.set_train_micro_batch_size(4)
    y = torch.zeros(batch // 2, dtype=torch.long)
    loss = nn.functional.cross_entropy(engine(torch.ones(batch // 2, 6)), y)
    engine.backward(loss)
    engine.step()
comm = tranche.comm
comm.barrier()
told = f"{comm.get_rank()} {comm.get_local_rank()} of {comm.get_world_size()}"
print(f"{told}: {engine.global_steps}", flush=True)
"""


if __name__ == "__main__":
    unittest.main()
