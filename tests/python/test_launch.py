"""Scripts on several ranks: `python -m tranche launch`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

from common import InFolder, config, needs_mpi, run_program

from tranche import ranks

SCRIPT = """
import json, pathlib, sys, tranche
given = json.load(open("run.json"))
engine = tranche.train(given, settings={"out": sys.argv[1]}, progress=False)
weight = engine.tensors["layers.0.weight"].read().tolist()
told = [tranche.rank(), tranche.rank_count(), sum(map(sum, weight))]
pathlib.Path(f"told-{tranche.rank()}").write_text(json.dumps(told))
"""


class Launch(InFolder):
    def setUp(self) -> None:
        super().setUp()
        self.reproducible = config(
            execution={"threads": 1, "reproducible": True},
            train_micro_batch_size_per_gpu=4,
            zero_optimization={"stage": 3},
        )
        Path("run.json").write_text(json.dumps(self.reproducible))

    def launch(
        self, script: str, *words: str, ranks: int = 2
    ) -> subprocess.CompletedProcess[str]:
        Path("script.py").write_text(script)
        command = [
            sys.executable,
            "-m",
            "tranche",
            "launch",
            "-n",
            str(ranks),
            "script.py",
        ]
        return subprocess.run(
            [*command, *words], capture_output=True, text=True, timeout=60
        )

    @needs_mpi
    def test_two_ranks_come_to_the_bits_of_one(self) -> None:
        done = self.launch(SCRIPT, "two")
        self.assertEqual(done.returncode, 0, done.stderr)
        told = [json.loads(Path(f"told-{rank}").read_text()) for rank in range(2)]
        self.assertEqual([line[:2] for line in told], [[0, 2], [1, 2]])
        self.assertEqual(told[0][2], told[1][2])
        run_program("train", "run.json", "--out", "one")
        run_program("diff", "one", "two")

    @needs_mpi
    def test_an_exception_of_one_rank_ends_all(self) -> None:
        script = (
            "import tranche\n"
            "def fails(result):\n"
            "    if result.step == 3 and tranche.rank() == 1:\n"
            "        raise ValueError('of rank 1')\n"
            "tranche.train('run.json', callbacks=[fails], progress=False)\n"
            "raise SystemExit(9)\n"
        )
        done = self.launch(script)
        self.assertNotIn(done.returncode, (0, 9))
        self.assertIn("ValueError: of rank 1", done.stderr)

    def test_a_traceback_is_written_at_once(self) -> None:
        """Line by line, those of several ranks would stand in each other's lines."""
        told = mock.Mock()
        with mock.patch("sys.excepthook"), mock.patch("weakref.finalize"):
            sys.excepthook = sys.__excepthook__
            ranks._watch_the_end()
            try:
                raise ValueError("of this rank")
            except ValueError as error:
                with mock.patch("sys.stderr", told):
                    sys.excepthook(ValueError, error, error.__traceback__)
        [written] = told.write.call_args_list
        self.assertRegex(written.args[0], r"(?s)^Traceback.*\nValueError: of this rank\n$")

    @needs_mpi
    def test_engines_end_before_the_connection(self) -> None:
        """Of those that a script leaves to the end of the interpreter."""
        script = (
            "import tranche\n"
            "from tranche import _handle, ranks\n"
            "def told(name, function):\n"
            "    def tell(*given):\n"
            "        if tranche.rank() == 0: print(name, flush=True)\n"
            "        return function(*given)\n"
            "    return tell\n"
            "_handle._destroy = told('object', _handle._destroy)\n"
            "ranks._end = told('connection', ranks._end)\n"
            "engine = tranche.Run('run.json').engine()\n"
            "engine.step()\n"
        )
        done = self.launch(script)
        self.assertEqual(done.returncode, 0, done.stderr)
        ended = done.stdout.split()
        self.assertGreaterEqual(ended.index("connection"), 2)  # engine and plan

    @needs_mpi
    def test_the_number_of_a_rank_is_known_to_the_end(self) -> None:
        """What is registered first is called last, behind the connection's end."""
        script = (
            "import atexit\n"
            "def told():\n"
            "    print(f'rank {tranche.rank()} of {tranche.rank_count()}', flush=True)\n"
            "    try:\n"
            "        tranche.comm.barrier()\n"
            "    except tranche.Error as error:\n"
            "        print(error, flush=True)\n"
            "atexit.register(told)\n"
            "import tranche, tranche.comm\n"
            "tranche.rank()\n"
        )
        done = self.launch(script)
        self.assertEqual(done.returncode, 0, done.stderr)
        for rank in range(2):
            self.assertIn(f"rank {rank} of 2", done.stdout)
        self.assertEqual(done.stdout.count("the ranks have parted"), 2)

    @needs_mpi
    def test_an_exit_of_one_rank_ends_all(self) -> None:
        script = (
            "import sys, tranche\n"
            "engine = tranche.Run('run.json').engine()\n"
            "if tranche.rank() == 1: sys.exit(3)\n"
            "engine.step()\n"
        )
        done = self.launch(script)
        self.assertNotEqual(done.returncode, 0)

    @needs_mpi
    def test_an_interrupt_saves(self) -> None:
        endless = {**self.reproducible, "steps": 10**7, "out": "out", "evaluation": {}}
        Path("run.json").write_text(json.dumps(endless))
        Path("script.py").write_text(
            "import tranche\n"
            "def told(result):\n"
            "    if result.step == 3 and tranche.rank() == 0:\n"
            "        print('begun', flush=True)\n"
            "tranche.train('run.json', callbacks=[told], progress=False)\n"
        )
        command = [sys.executable, "-m", "tranche", "launch", "-n", "2", "script.py"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            self.assertEqual(child.stdout.readline(), "begun\n")
            begin = time.monotonic()
            self.addCleanup(child.kill)
            child.send_signal(signal.SIGINT)
            self.assertEqual(child.wait(20), 128 + signal.SIGINT)
        self.assertLess(time.monotonic() - begin, 10)
        self.assertIn("step-", run_program("inspect", "out"))

    def test_what_is_asked_wrongly(self) -> None:
        for words, said in (
            (["-n", "2", "nowhere.py"], "nowhere.py: there is no such script"),
            (["-n", "0", "script.py"], "from 1 to 4096"),
            (["script.py"], "-n/--ranks"),
        ):
            done = subprocess.run(
                [sys.executable, "-m", "tranche", "launch", *words],
                capture_output=True,
                text=True,
            )
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)
