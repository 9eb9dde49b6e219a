"""DeepSpeed's calls: forward, backward and step beside a loop of PyTorch's, checkpoints,
rates, and calls in another order."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
import unittest
from argparse import ArgumentParser
from typing import Any

from common import HAS_TORCH, SOURCE, needs_mpi, needs_torch
from test_module import Modules, config

import tranche

if HAS_TORCH:
    import torch
    import torch.nn.functional as F
    from test_module import Text, rows, text
    from torch import nn

USAGE, IO = tranche.Status.USAGE, tranche.Status.IO


def classifier() -> Any:
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 4))


@needs_torch
class Parts(Modules):
    def beside_torch(self, module: Any, batches: list[Any], **changes: Any) -> Any:
        """A step in parts beside PyTorch's loop with the same clipping; a short
        micro-batch counts as a whole one."""
        plain = copy.deepcopy(module)
        engine, *_ = tranche.initialize(model=module, config=config(**changes))
        optimizer = torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.9)
        g = engine.gradient_accumulation_steps()
        for i, (x, y) in enumerate(batches):
            loss, wanted = F.cross_entropy(engine(x), y), F.cross_entropy(plain(x), y)
            self.assertEqual(engine.is_gradient_accumulation_boundary(), (i + 1) % g == 0)
            scaled = engine.backward(loss)
            engine.step()
            (wanted / g).backward()
            if (i + 1) % g == 0:
                norm = torch.nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
                self.assertAlmostEqual(engine.get_global_grad_norm(), float(norm), 4)
                optimizer.step()
                optimizer.zero_grad()
            self.assertAlmostEqual(loss.item(), wanted.item(), delta=1e-5)
            self.assertAlmostEqual(scaled.item(), wanted.item() / g, delta=1e-5)
        self.assertEqual(engine.global_steps, len(batches) // g)
        state = engine.module.state_dict()
        for name, values in plain.state_dict().items():
            torch.testing.assert_close(state[name], values, atol=1e-5, rtol=1e-4)
        engine.eval()
        x = batches[0][0]
        torch.testing.assert_close(engine(x), plain(x).detach(), atol=1e-5, rtol=1e-4)
        return engine

    def test_stages(self) -> None:
        zero = [
            {},
            {"stage": 1, "offload_optimizer": {"device": "cpu"}},
            {"stage": 3, "offload_param": {"device": "cpu"}},
        ]
        for each in zero:
            with self.subTest(each):
                batches = [rows() for _ in range(4)]
                self.beside_torch(classifier(), batches, zero_optimization=each)

    def test_accumulation_and_a_short_micro_batch(self) -> None:
        short = tuple(tensor[:2] for tensor in rows())
        batches = [tuple(t[:4] for t in rows()) for _ in range(3)]
        self.beside_torch(
            classifier(), [*batches, short], train_micro_batch_size_per_gpu=4
        )

    def test_a_module_that_returns_its_loss(self) -> None:
        module = Text()
        plain = copy.deepcopy(module)
        engine, *_ = tranche.initialize(model=module, config=config())
        optimizer = torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.9)
        for _ in range(3):
            ids, labels = text()
            loss, wanted = engine(ids, labels=labels), plain(ids, labels)
            engine.backward(loss)
            engine.step()
            optimizer.zero_grad()
            wanted.backward()
            torch.nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
            optimizer.step()
            self.assertAlmostEqual(loss.item(), wanted.item(), delta=1e-5)

    def test_an_optimizer_and_a_scheduler_of_torch(self) -> None:
        module = classifier()
        plain = copy.deepcopy(module)

        def made(of: Any) -> tuple[Any, Any]:
            groups = [
                {"params": [of[0].weight, of[0].bias], "lr": 0.01, "weight_decay": 0.1},
                {"params": [of[2].weight, of[2].bias]},
            ]
            optimizer = torch.optim.AdamW(groups, lr=0.02, betas=(0.8, 0.9))
            return optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)

        optimizer, schedule = made(module)
        engine, ours, _, returned = tranche.initialize(
            model=module,
            config={"train_batch_size": 8, "gradient_clipping": 0},
            optimizer=optimizer,
            lr_scheduler=schedule,
        )
        self.assertIs(returned, schedule)
        theirs, their_schedule = made(plain)
        for i in range(5):
            x, y = rows()
            if i == 3:
                ours.param_groups[0]["lr"] = theirs.param_groups[0]["lr"] = 0.003
            engine.backward(F.cross_entropy(engine(x), y))
            engine.step()
            theirs.zero_grad()
            F.cross_entropy(plain(x), y).backward()
            theirs.step()
            their_schedule.step()
            self.assertEqual(engine.get_lr(), [g["lr"] for g in theirs.param_groups])
        state = engine.module.state_dict()
        for name, values in plain.state_dict().items():
            torch.testing.assert_close(state[name], values, atol=1e-5, rtol=1e-4)

    def test_weights_are_in_the_process_once(self) -> None:
        module = classifier()
        engine, *_ = tranche.initialize(model=module, config=config())
        x, y = rows()
        engine.backward(F.cross_entropy(engine(x), y))
        engine.step()
        lent = engine._engine.tensors["0.weight"].borrow()
        self.assertEqual(module[0].weight.data_ptr(), lent.address)


@needs_torch
class Order(Modules):
    def test_calls_in_another_order(self) -> None:
        engine, *_ = tranche.initialize(model=classifier(), config=config())
        x, y = rows()
        with self.refused(USAGE, "first batch"):
            engine.plan  # noqa: B018
        with self.refused(USAGE, "no forward"):
            engine.backward(torch.zeros(()))
        with self.refused(USAGE, "step", "backward"):
            engine.step()
        outputs = engine(x)
        with self.refused(USAGE, "waits for its backward"):
            engine(x)
        with self.refused(USAGE, "no output"):
            engine.backward(torch.ones((), requires_grad=True))
        with self.refused(USAGE, "step", "backward"):
            engine.step()
        engine.backward(F.cross_entropy(outputs, y))
        engine.step()
        with self.refused(USAGE, "9 rows in a micro-batch of 8"):
            engine(torch.randn(9, 6))
        with self.refused(USAGE, "train_batch"):
            engine.train_batch(iter([(x, y)]))
        engine.backward(F.cross_entropy(engine(x), y))
        engine.step()
        self.assertEqual(engine.global_steps, 2)

    def test_what_forward_does_not_take(self) -> None:
        engine, *_ = tranche.initialize(model=classifier(), config=config())
        x, y = rows()
        engine.backward(F.cross_entropy(engine(x), y))
        engine.step()
        for given, words in (
            (x[:, :5], ["[8, 5]", "[rows, 6]"]),
            (x.long(), ["int64"]),
            ("text", ["str"]),
            (torch.zeros(()), ["a number"]),
        ):
            with self.subTest(words), self.refused(USAGE, "input", *words):
                engine(given)
        with self.refused(USAGE, "input", "other"):
            engine(x, other=x)
        with self.refused(USAGE, "nothing in place of input"):
            engine()
        outputs = engine(x)
        with self.refused(USAGE, "a tensor of one number"):
            engine.backward(outputs)
        with self.refused(USAGE, "a tensor of one number"):
            engine.backward(0.5)
        engine.backward(F.cross_entropy(outputs, y))
        engine.step()
        self.assertEqual(engine.global_steps, 2)

    def test_a_loss_that_the_plan_has(self) -> None:
        engine, *_ = tranche.initialize(
            model=classifier(), config=config(), loss=nn.CrossEntropyLoss()
        )
        with self.refused(USAGE, "train_batch", "loss="):
            engine(rows()[0])

    def test_arguments(self) -> None:
        parser = tranche.add_config_arguments(ArgumentParser())
        args = parser.parse_args(["--deepspeed", "--deepspeed_config", "none.json"])
        with self.refused(USAGE, "none.json"):
            tranche.initialize(args=args, model=classifier())
        tranche.init_distributed()
        self.assertTrue(callable(tranche.initialize))  # and no module of that name


@needs_torch
class Checkpoints(Modules):
    def trained(self, engine: Any, batches: list[Any]) -> Any:
        for x, y in batches:
            engine.backward(F.cross_entropy(engine(x), y))
            engine.step()
        return engine.module.state_dict()

    def test_going_on(self) -> None:
        module = classifier()
        again = copy.deepcopy(module)
        batches = [rows() for _ in range(4)]
        engine, *_ = tranche.initialize(model=module, config=config())
        self.trained(engine, batches[:2])
        engine.save_checkpoint("saved", client_state={"epoch": 7})
        self.assertEqual(open("saved/latest").read(), "global_step2")
        whole = self.trained(engine, batches[2:])
        other, *_ = tranche.initialize(model=again, config=config())
        path, state = other.load_checkpoint("saved")
        self.assertEqual((path, state), ("saved/global_step2", {"epoch": 7}))
        found = self.trained(other, batches[2:])
        for name, values in whole.items():
            self.assertTrue(torch.equal(values, found[name]), name)
        self.assertEqual(other.global_steps, 4)
        engine.load_checkpoint("saved")  # back again, in a run that is at work
        again_found = self.trained(engine, batches[2:])
        for name, values in whole.items():
            self.assertTrue(torch.equal(values, again_found[name]), name)

    def test_folders(self) -> None:
        engine, *_ = tranche.initialize(model=classifier(), config=config())
        self.assertEqual(engine.load_checkpoint("nowhere"), (None, None))
        with self.refused(IO, "no such checkpoint"):
            engine.load_checkpoint("nowhere", "mine")
        os.makedirs("theirs/global_step1")
        torch.save({}, "theirs/global_step1/mp_rank_00_model_states.pt")
        with self.refused(IO, "DeepSpeed saved this folder", "no optimizer of ZeRO's"):
            engine.load_checkpoint("theirs", "global_step1")


@needs_torch
class Examples(Modules):
    def test_the_programs(self) -> None:
        told = []
        for name in ("plain", "zero1", "zero3"):
            file = SOURCE / f"examples/python/classifier_{name}.py"
            done = subprocess.run(
                [sys.executable, str(file)], capture_output=True, text=True
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            told.append(done.stdout)
        self.assertEqual(told[0].count("epoch"), 5)
        self.assertEqual(told[0], told[1])
        self.assertEqual(told[0], told[2])


@needs_torch
class Programs(Modules):
    def like_torch_on(self, ranks: int, rows: int, steps: int) -> None:
        launch = ["-m", "tranche", "launch", "-n", str(ranks)] if ranks > 1 else []
        script = [str(SOURCE / "tests/python/programs.py"), str(rows), str(steps)]
        done = subprocess.run(
            [sys.executable, *launch, *script], capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.count("as PyTorch"), 3 * ranks, done.stdout)

    def test_of_one_micro_batch_and_of_four(self) -> None:
        self.like_torch_on(1, 64, 1)
        self.like_torch_on(1, 16, 4)

    @needs_mpi
    def test_on_two_ranks(self) -> None:
        self.like_torch_on(2, 32, 1)


if __name__ == "__main__":
    unittest.main()
