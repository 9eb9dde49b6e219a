"""A step in parts on a GPU, tried without one: the engine's device is the stand-in for
NVIDIA's, whose memory is the host's and whose streams are late, and PyTorch computes on
the CPU in place of the GPU. So all of the package is tried but what PyTorch does with a
GPU's memory and streams (test_gpu_parts.py)."""

from __future__ import annotations

import copy
import ctypes
import gc
import os
import unittest
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

from common import HAS_TORCH, InFolder, needs_torch

import test_trainer
import tranche
from tranche import _dlpack, _parts, tensors

if HAS_TORCH:
    import test_gpu_parts as modules
    import torch
    import torch.nn.functional as F
    from tranche.module import core, gpu, regions

    THERE = torch.device("cpu", 0)  # in place of cuda:0

IS_THERE = "TRANCHE_STAND_IN" in os.environ
HALF = {"bf16": {"enabled": True}}
FP16 = {"fp16": {"enabled": True, "initial_scale_power": 8}}


class StandIn:
    """PyTorch's GPU is its CPU. `calls`: of operators that run in PyTorch."""

    def __init__(self) -> None:
        self.calls = 0
        self.there = 0  # rows that were asked for their place
        self._library = ctypes.CDLL(os.environ["TRANCHE_LIBRARY"])
        self._library.test_device_wait.argtypes = [ctypes.c_void_p]
        self._library.test_device_open()

    @contextmanager
    def stream(self, pointer: int | None) -> Iterator[Any]:
        if pointer:
            self.calls += 1
            self._library.test_device_wait(pointer)
        yield regions.HOST

    def is_there(self, values: Any) -> bool:
        self.there += 1
        return isinstance(values, torch.Tensor)

    def patches(self) -> list[Any]:
        capsule, settings = _dlpack.capsule, core.Core._settings
        told, made = _parts.OnDevice.__init__, regions.Function.__init__

        def of_host(*given: Any) -> Any:
            return capsule(*given[:4])

        def on_cuda(engine: Any) -> Any:
            return {**settings(engine), "device": "cuda"}

        def on_host(there: Any, number: int) -> None:
            told(there, number)
            there._on = regions.HOST

        def on_device(function: Any, *given: Any) -> None:
            made(function, *given)
            function.table.on_device = True

        def device(array: Any) -> str:
            return str(THERE) if array._device[0] == _dlpack.CUDA else "cpu"

        return [
            mock.patch.object(_dlpack, "capsule", of_host),
            mock.patch.object(tensors.Array, "device", property(device)),
            mock.patch.object(tensors.Array, "__dlpack_device__", lambda _: _dlpack.CPU),
            mock.patch.object(gpu, "device_of", lambda *_: THERE),
            mock.patch.object(gpu, "stream", self.stream),
            mock.patch.object(core.Core, "_on_gpu", property(lambda _: True)),
            mock.patch.object(core.Core, "_settings", on_cuda),
            mock.patch.object(_parts.OnDevice, "__init__", on_host),
            mock.patch.object(_parts, "is_there", self.is_there),
            mock.patch.object(regions.Function, "__init__", on_device),
            mock.patch.object(torch.cuda, "set_device", lambda _: None),
        ]


@needs_torch
@unittest.skipUnless(IS_THERE, "the library is not on the stand-in")
class OnStandIn(InFolder):
    def setUp(self) -> None:
        super().setUp()
        torch.manual_seed(1)
        self.stand_in = StandIn()
        for patch in self.stand_in.patches():
            patch.start()
            self.addCleanup(patch.stop)

    def like_torch(
        self,
        module: Any,
        batches: Sequence[Any],
        loss: Callable[[Any, Any], Any],
        cut: dict[str, Any],
        within: float = 1e-4,
        inside: bool = False,
    ) -> None:
        """Both train; losses, weights and answers after eval() are compared."""
        plain = copy.deepcopy(module)
        optimizer = torch.optim.AdamW(plain.parameters(), lr=1e-3, eps=1e-6, weight_decay=0.01)
        cut = {key: value for key, value in cut.items() if key != "device"}
        engine, *_ = tranche.initialize(
            model=module, config=cut, loss=loss if inside else None
        )
        steps = engine.gradient_accumulation_steps()
        for s in range(modules.STEPS):
            optimizer.zero_grad()
            for x, y in batches[s * steps : (s + 1) * steps]:
                wanted = loss(plain(x), y)
                (wanted / steps).backward()
                found = self.one(engine, x, y, loss, inside)
                self.assertAlmostEqual(found, float(wanted.detach()), delta=100 * within)
            torch.nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
            optimizer.step()
        state = engine.module.state_dict()
        for name, values in plain.state_dict().items():
            away = float((state[name] - values).abs().max())
            self.assertLessEqual(away, 10 * within, name)
        self.evaluate(engine, plain, batches[0][0], within)
        state = None
        engine.destroy()
        del engine
        gc.collect()
        self.assertEqual(len(_dlpack._alive), 0)  # nobody has a view any more

    def one(self, engine: Any, x: Any, y: Any, loss: Any, inside: bool) -> float:
        if inside:
            return float(engine.train_batch(iter([(x, y)])))
        found = loss(engine(x), y)
        engine.backward(found)
        engine.step()
        return float(found.detach())

    def evaluate(self, engine: Any, plain: Any, x: Any, within: float) -> None:
        engine.eval()
        with torch.no_grad():
            away = float((engine(x) - plain(x)).abs().max())
        self.assertLessEqual(away, 100 * within)
        engine.train()

    def test_mlp(self) -> None:
        cut = modules.config(8)
        self.like_torch(modules.mlp(), modules.rows_and_classes(3), modules.of_classes, cut)

    def test_accumulation(self) -> None:
        cut = modules.config(8, 2)
        self.like_torch(modules.mlp(), modules.rows_and_classes(6), modules.of_classes, cut)

    def test_texts(self) -> None:
        for more, within in (({}, 1e-4), (HALF, 5e-4), (FP16, 5e-4)):
            with self.subTest(more):
                cut = modules.config(4, **more)
                batches = modules.ids_and_next(3)
                self.like_torch(modules.Texts(), batches, modules.of_words, cut, within)

    def test_classifier(self) -> None:
        cut = modules.config(8)
        batches = modules.ids_and_classes(3)
        self.like_torch(modules.Classifier(), batches, modules.of_classes, cut)

    def test_operators_of_torch(self) -> None:
        for more, within in (({}, 1e-4), (HALF, 2e-3)):
            with self.subTest(more):
                cut, before = modules.config(8, **more), self.stand_in.calls
                batches = modules.rows_and_classes(3)
                self.like_torch(modules.Odd(), batches, modules.of_classes, cut, within)
                self.assertGreaterEqual(self.stand_in.calls, before + 6)

    def test_loss_in_torch(self) -> None:
        def loss(out: Any, target: Any) -> Any:
            return F.cross_entropy(torch.asinh(out), target)

        cut, before = modules.config(8), self.stand_in.calls
        batches = modules.rows_and_classes(3)
        self.like_torch(modules.mlp(), batches, loss, cut, inside=True)
        self.assertGreater(self.stand_in.calls, before)

    def test_optimizer_on_the_host(self) -> None:
        away = {"zero_optimization": {"stage": 0, "offload_optimizer": {"device": "cpu"}}}
        cut = modules.config(8, **away)
        self.like_torch(modules.mlp(), modules.rows_and_classes(3), modules.of_classes, cut)

    def test_by_way_of_the_host(self) -> None:
        """What the config says of outputs holds."""
        cut = modules.config(8, execution={"parts_on_device": False})
        self.like_torch(modules.mlp(), modules.rows_and_classes(3), modules.of_classes, cut)

    def test_ids_on_the_gpu_are_looked_at(self) -> None:
        engine, *_ = tranche.initialize(model=modules.Texts(), config=modules.config(4))
        engine.backward(engine(torch.zeros(4, 16, dtype=torch.long)).square().mean())
        engine.step()
        own, good = engine._working(), torch.full((3, 16), 95, dtype=torch.int32)
        self.stand_in.there = 0
        own.forward(good, evaluate=True)
        self.assertEqual(self.stand_in.there, 1)
        good[2, 5] = 96
        with self.assertRaisesRegex(tranche.Error, "96"):
            own.forward(good, evaluate=True)
        with self.assertRaisesRegex(tranche.Error, "integers are needed"):
            own.forward(good.float(), evaluate=True)
        engine.destroy()

    def test_arrays_say_where_they_are(self) -> None:
        module = modules.mlp()
        engine, *_ = tranche.initialize(model=module, config=modules.config(8))
        engine(torch.randn(8, 12))
        lent = engine._working().tensors["0.weight"].borrow()
        self.assertEqual(lent._device, (_dlpack.CUDA, 0))
        self.assertEqual(module[0].weight.data_ptr(), lent.address)
        for ask in (lent.tolist, lent.memoryview, lambda: lent.__array_interface__):
            with self.assertRaisesRegex(tranche.Error, "in the memory of cpu:0"):
                ask()
        engine.destroy()


@needs_torch
class Places(unittest.TestCase):
    def test_ranks_share_out_the_gpus_of_their_machine(self) -> None:
        """Rank 2 of four on two machines of four GPUs is the first one there."""
        patches = (
            mock.patch.object(torch.cuda, "is_available", lambda: True),
            mock.patch.object(torch.cuda, "device_count", lambda: 4),
            mock.patch.object(gpu.ranks, "rank", lambda: 2),
        )
        for patch in patches:
            patch.start()
            self.addCleanup(patch.stop)
        module, asked = torch.nn.Linear(2, 2), {**modules.config(8), "device": "cuda"}
        with mock.patch.dict(os.environ, LOCAL_RANK="0"):
            self.assertEqual(gpu.device_of(asked, module).index, 0)
            named = {**asked, "device": "cuda:3"}
            self.assertEqual(gpu.device_of(named, module).index, 3)
        self.assertEqual(gpu.device_of(asked, module).index, 2)


@unittest.skipUnless(IS_THERE, "the library is not on the stand-in")
@test_trainer.needs_trainer
class Trainers(test_trainer.Beside):
    """transformers' Trainer, whose device is the host here as the GPU's is."""

    def setUp(self) -> None:
        super().setUp()
        for patch in StandIn().patches():
            patch.start()
            self.addCleanup(patch.stop)

    def test_the_whole_step(self) -> None:
        model = test_trainer.language_model()
        self.beside(model, max_steps=8, eval_dataset=test_trainer.texts(9, 7))

    def test_a_mean_of_micro_batches(self) -> None:
        data = {"train_dataset": test_trainer.rows(), "data_collator": None}
        self.beside(test_trainer.Classifier(), **data)


if __name__ == "__main__":
    unittest.main()
