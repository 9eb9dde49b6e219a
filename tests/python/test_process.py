"""The package in a process: its import, threads, fork, interrupts, and the end."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
import weakref
from typing import Any

from common import InFolder, config, needs_torch, run_program, run_python, samples

import tranche


class Import(unittest.TestCase):
    def test_it_loads_no_library_and_nothing_that_is_optional(self) -> None:
        done = run_python(
            "import sys, tranche, tranche.__main__\n"
            "maps = open('/proc/self/maps').read()\n"
            "found = [m for m in ('numpy', 'torch') if m in sys.modules]\n"
            "print('libtranche' in maps, found)"
        )
        self.assertEqual(done.stdout, "False []\n", done.stderr)

    def test_it_takes_less_than_50_milliseconds(self) -> None:
        code = (
            "import time; begin = time.process_time(); import tranche\n"
            "print(time.process_time() - begin)"
        )
        seconds = min(float(run_python(code).stdout) for _ in range(5))
        self.assertLess(seconds, 0.05)

    def test_names(self) -> None:
        for name in tranche.__all__:
            self.assertIn(name, dir(tranche))
            getattr(tranche, name)
        with self.assertRaisesRegex(AttributeError, "trian"):
            tranche.trian  # type: ignore[attr-defined]

    def test_the_environment_stays(self) -> None:
        done = run_python(
            "import os, tranche\nbefore = dict(os.environ)\ntranche.Run({})\n"
            "print(before == dict(os.environ))"
        )
        self.assertEqual(done.stdout, "True\n", done.stderr)

    def test_one_openmp(self) -> None:
        done = run_python(
            "import tranche; tranche.Run({})\n"
            "print(len({line.split()[-1] for line in open('/proc/self/maps')"
            " if 'gomp' in line or 'iomp' in line}))"
        )
        self.assertEqual(done.stdout, "1\n", done.stderr)

    @needs_torch
    def test_one_openmp_with_torch_in_either_order(self) -> None:
        code = (
            "import sys, tranche\n"
            "if sys.argv[1] == 'torch first': import torch\n"
            f"engine = tranche.Run({config()!r}).engine()\n"
            "engine.step()\n"
            "import torch\n"
            "torch.randn(300, 300) @ torch.randn(300, 300)\n"
            "engine.step()\n"
            "print({line.split()[-1] for line in open('/proc/self/maps')"
            " if 'gomp' in line or 'iomp' in line or 'libomp' in line})"
        )
        told = {
            run_python(code, order).stdout for order in ("torch first", "tranche first")
        }
        self.assertEqual(len(told), 1)
        self.assertEqual(told.pop().count("omp.so"), 1)

    def test_a_library_that_is_not_there(self) -> None:
        done = subprocess.run(
            [sys.executable, "-c", "import tranche; tranche.Run({})"],
            env={**os.environ, "TRANCHE_LIBRARY": "/nowhere.so"},
            capture_output=True,
            text=True,
        )
        self.assertIn("/nowhere.so", done.stderr.splitlines()[-1])
        self.assertIn("cannot be loaded", done.stderr)

    def test_the_program(self) -> None:
        words = [sys.executable, "-m", "tranche"]
        told = subprocess.run([*words, "--version"], capture_output=True, text=True)
        self.assertEqual(told.stdout, f"tranche {tranche.__version__}\n")
        wrong = subprocess.run([*words, "trian"], capture_output=True, text=True)
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("did you mean train", wrong.stderr)


class Threads(InFolder):
    def test_two_threads_in_one_engine_are_an_error(self) -> None:
        rows, labels = samples()
        inside, go_on = threading.Event(), threading.Event()

        class Slow(list[Any]):
            def __getitem__(self, index: Any) -> Any:
                if threading.current_thread() is not threading.main_thread():
                    inside.set()
                    go_on.wait(20)
                return super().__getitem__(index)

        given = config()
        del given["data"]
        losses = []
        pairs = list(zip(rows, labels, strict=True))
        with tranche.Run(given, train=Slow(pairs)).engine() as engine:
            thread = threading.Thread(target=lambda: losses.append(engine.step().loss))
            thread.start()
            self.assertTrue(inside.wait(20))
            with self.refused(tranche.Status.USAGE, "one thread"):
                engine.step()
            engine.close()  # the other thread's call ends first
            go_on.set()
            thread.join()
        self.assertEqual(len(losses), 1)

    def test_any_thread_may_call_in_turn(self) -> None:
        with tranche.Run(config()).engine() as engine:
            for _ in range(3):
                thread = threading.Thread(target=engine.step)
                thread.start()
                thread.join()
            self.assertEqual(engine.step().step, 4)

    def test_two_engines_in_two_threads(self) -> None:
        ends: dict[int, float] = {}

        def train(number: int) -> None:
            with tranche.Run(config()).engine() as engine:
                ends[number] = [engine.step().loss for _ in range(12)][-1]

        threads = [threading.Thread(target=train, args=(i,)) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(ends[0], ends[1])


class Memory(InFolder):
    def test_what_is_closed_is_given_back_at_once(self) -> None:
        given = config(out="out")
        del given["data"]
        gc.disable()
        self.addCleanup(gc.enable)
        engine = tranche.train(
            given,
            train=samples(),
            validation=samples(8),
            callbacks=[lambda _: None],
            progress=False,
        )
        engine.predict([[0.0] * 6])
        owners = [
            weakref.ref(each._owner) for each in (engine, engine.plan, engine.run)
        ]
        datasets = [weakref.ref(each.owner) for each in engine.run._data if each]
        self.assertEqual(len(datasets), 2)
        engine.close()
        self.assertIsNone(owners[0]())
        del engine
        self.assertEqual([owner() for owner in (*owners, *datasets)], [None] * 5)


class Fork(InFolder):
    def test_a_child_owns_no_engine(self) -> None:
        with tranche.Run(config()).engine() as engine:
            engine.step()
            child = os.fork()
            if child == 0:
                try:
                    engine.step()
                except tranche.Error as error:
                    engine.close()
                    os._exit(0 if "fork" in str(error) else 2)
                os._exit(3)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertEqual(engine.step().step, 2)

    def test_its_exit_does_nothing(self) -> None:
        done = run_python(
            "import os, sys, tranche\n"
            f"engine = tranche.Run({config()!r}).engine()\n"
            "engine.step()\n"
            "if os.fork() == 0: sys.exit(0)\n"
            "print(os.wait()[1], engine.step().step)"
        )
        self.assertEqual((done.stdout, done.returncode), ("0 2\n", 0), done.stderr)

    def test_an_engine_is_left_open_at_the_end(self) -> None:
        done = run_python(
            f"import tranche\nengine = tranche.Run({config()!r}).engine()\n"
            "engine.step()"
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))


LONG = """
import sys, tranche
given = {given!r}
def told(result):
    if result.step == 3: print("begun", flush=True)
try:
    tranche.train(given, callbacks=[told], progress=False)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(7)
"""


class Signals(InFolder):
    def test_a_handler_that_raises_nothing_ends_nothing(self) -> None:
        seen: list[int] = []
        before = signal.signal(signal.SIGUSR2, lambda number, _: seen.append(number))
        self.addCleanup(signal.signal, signal.SIGUSR2, before)
        with tranche.Run(config()).engine() as engine:
            losses = [engine.step().loss for _ in range(4)]
        timer = threading.Timer(0.01, lambda: os.kill(os.getpid(), signal.SIGUSR2))
        with tranche.Run(config()).engine() as engine:
            timer.start()
            self.assertEqual([engine.step().loss for _ in range(4)], losses)
            timer.join()
        self.assertEqual(seen, [signal.SIGUSR2])

    def test_handlers_are_as_before(self) -> None:
        before = [signal.getsignal(number) for number in signal.valid_signals()]
        with tranche.Run(config()).engine() as engine:
            engine.step()
        after = [signal.getsignal(number) for number in signal.valid_signals()]
        self.assertEqual(before, after)


class Interrupts(InFolder):
    def interrupt(self, code: str) -> tuple[str, float]:
        with subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            self.assertEqual(child.stdout.readline(), "begun\n")
            begin = time.monotonic()
            child.send_signal(signal.SIGINT)
            watch = threading.Timer(30, child.kill)
            watch.start()
            rest = child.stdout.read()
            self.assertEqual(child.wait(), 7)
            watch.cancel()
        return rest, time.monotonic() - begin

    def test_it_stops_saves_and_comes_out(self) -> None:
        given = config(out="out", steps=10**7, evaluation={})
        rest, seconds = self.interrupt(LONG.format(given=given))
        self.assertEqual(rest, "interrupted\n")
        self.assertLess(seconds, 5)
        self.assertIn("step-", run_program("inspect", "out"))

    def test_within_one_long_step(self) -> None:
        """A step of a minute: 10,000 micro-batches."""
        model = {"model_type": "mlp", "layer_sizes": [6, 1500, 1500, 3]}
        given = config(
            out="out",
            model=model,
            train_batch_size=10_000,
            train_micro_batch_size_per_gpu=1,
            evaluation={},
        )
        given["data"]["samples"] = 20_000
        code = (
            f"import sys, threading, tranche\n"
            f"engine = tranche.Run({given!r}).engine()\n"
            "threading.Timer(0.5, lambda: print('begun', flush=True)).start()\n"
            "try:\n    engine.step()\n"
            "except KeyboardInterrupt:\n"
            "    print(engine.steps_done)\n    engine.save('saved')\n    sys.exit(7)\n"
        )
        rest, seconds = self.interrupt(code)
        self.assertEqual(rest, "0\n")
        self.assertLess(seconds, 5)

    def test_in_a_data_source(self) -> None:
        given = config(out="out", steps=50, evaluation={})
        del given["data"]
        code = f"""
import sys, time, tranche
class Slow(list):
    def __getitem__(self, index):
        if len(done) == 2:
            print("begun", flush=True)
            time.sleep(20)
        return super().__getitem__(index)
done = []
data = Slow([([0.5 * i % 3] * 6, i % 3) for i in range(64)])
try:
    tranche.train({given!r}, train=data, callbacks=[done.append], progress=False)
except KeyboardInterrupt:
    print("interrupted")
    sys.exit(7)
"""
        rest, seconds = self.interrupt(code)
        self.assertEqual(rest, "interrupted\n")
        self.assertLess(seconds, 5)
        self.assertIn("step-00000002", run_program("inspect", "out"))


if __name__ == "__main__":
    unittest.main()
