"""Metrics that are handed on: what is sent, once, while the file grows; and by the
packages of the services, in their offline modes, where they are installed."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import threading
import unittest
from pathlib import Path
from typing import Any

from common import InFolder, config

import tranche
from tranche.follow import Metrics, Record, follow, is_complete, settings_of

FAKE = """
import json, os
class Run:
    def log(self, values, step):
        with open("sent", "a") as file:
            file.write(json.dumps([step, values]) + chr(10))
    def finish(self):
        open("finished", "w").close()
def init(project, name, config):
    if project == "refused":
        raise ValueError("no such project")
    assert config["train_batch_size"] == 16 and "origins" not in config
    return Run()
"""


def line(step: int, **more: Any) -> str:
    return json.dumps({"step": step, "kind": "step", "loss": 1 / step, **more}) + "\n"


def command(out: Path, *words: str, **environment: str) -> Any:
    return subprocess.run(
        [sys.executable, "-m", "tranche", "follow", str(out), *words],
        cwd=out.parent,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )


def trained(folder: Path) -> Path:
    out = folder / "out"
    tranche.train(config(out=str(out)))
    return out


class Lines(InFolder):
    def file(self) -> Path:
        return self.folder / "metrics.jsonl"

    def test_numbers_of_whole_lines_are_told_once(self) -> None:
        metrics = Metrics(str(self.folder))
        self.assertEqual(list(metrics.new()), [])
        self.file().write_text(
            line(1, time=5.0, peak_bytes={"device": 7}, noise=None, skipped=False)
        )
        self.assertEqual(
            list(metrics.new()),
            [Record(1, 5.0, {"loss": 1.0, "peak_bytes/device": 7.0, "skipped": 0.0})],
        )
        with self.file().open("a") as file:
            file.write("no JSON\n[1]\n" + line(2)[:9])
            file.flush()
            self.assertEqual(list(metrics.new()), [])
            file.write(line(2)[9:])
        self.assertEqual([r.step for r in metrics.new()], [2])
        self.assertEqual(list(metrics.new()), [])

    def test_a_file_that_was_cut_back_tells_what_is_new(self) -> None:
        metrics = Metrics(str(self.folder))
        self.file().write_text("".join(map(line, range(1, 6))))
        self.assertEqual(len(list(metrics.new())), 5)
        self.file().write_text("".join(map(line, range(1, 4))))
        self.assertEqual(list(metrics.new()), [])
        with self.file().open("a") as file:
            file.write("".join(map(line, range(4, 8))))
        self.assertEqual([r.step for r in metrics.new()], [6, 7])

    def test_it_goes_on_until_the_run_is_complete(self) -> None:
        sent: list[int] = []
        (self.folder / "run.json").write_text('{"epochs": 1, "derived": {"steps": 3}}')
        self.file().write_text(line(1))

        def write() -> None:
            with self.file().open("a") as file:
                file.write(line(2) + line(3))

        later = threading.Timer(0.5, write)
        later.start()
        count = follow(str(self.folder), lambda r: sent.append(r.step), every=0.1)
        later.join()
        self.assertEqual((count, sent), (3, [1, 2, 3]))

    def test_when_a_run_is_complete(self) -> None:
        out = str(self.folder)
        self.assertFalse(is_complete(out, 10))
        (self.folder / "run.json").write_text('{"steps": 10, "origins": {}}')
        self.assertFalse(is_complete(out, 9))
        self.assertTrue(is_complete(out, 10))
        self.assertEqual(settings_of(out), {"steps": 10})
        (self.folder / "run.json").write_text('{"epochs": 2, "derived": {}}')
        self.assertFalse(is_complete(out, 10))
        state = self.folder / "checkpoints" / "latest"
        state.mkdir(parents=True)
        (state / "state.json").write_text('{"epoch": 2}')
        self.assertTrue(is_complete(out, 10))


class Command(InFolder):
    def test_the_package_gets_what_the_file_has(self) -> None:
        out = trained(self.folder)
        (self.folder / "wandb.py").write_text(FAKE)
        done = command(out, "--to", "wandb", "--once")
        self.assertEqual(done.returncode, 0, done.stderr)
        sent = [json.loads(s) for s in (self.folder / "sent").read_text().splitlines()]
        told = [json.loads(s) for s in (out / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual(len(sent), len(told))
        self.assertIn(f"{len(told)} lines to wandb", done.stdout)
        for (step, values), record in zip(sent, told, strict=True):
            self.assertEqual(step, record["step"])
            for key in {"loss", "lr", "validation_loss", "epoch_loss"} & set(record):
                self.assertEqual(values[key], record[key])
        self.assertTrue((self.folder / "finished").exists())

    def test_what_goes_wrong_has_a_message_and_a_status(self) -> None:
        out = trained(self.folder)
        (self.folder / "wandb.py").write_text(FAKE)
        done = command(out, "--to", "wandb", "--project", "refused")
        self.assertEqual((done.returncode, done.stdout), (5, ""))
        self.assertEqual(done.stderr, "tranche: wandb: no such project\n")
        (self.folder / "mlflow.py").write_text("raise ImportError('none here')")
        done = command(out, "--to", "mlflow")
        self.assertEqual(done.returncode, 2)
        self.assertIn("pip install mlflow", done.stderr)
        done = command(self.folder / "no", "--to", "wandb")
        self.assertEqual(done.returncode, 5)
        self.assertIn("no such folder", done.stderr)


def needs(package: str) -> Any:
    there = importlib.util.find_spec(package) is not None
    return unittest.skipUnless(there, f"{package} is not installed")


class Offline(InFolder):
    @needs("wandb")
    def test_wandb(self) -> None:
        out = trained(self.folder)
        done = command(
            out, "--to", "wandb", WANDB_MODE="offline", WANDB_DIR=str(self.folder)
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(list(self.folder.glob("wandb/offline-run-*/*.wandb")))

    @needs("mlflow")
    def test_mlflow(self) -> None:
        out = trained(self.folder)
        done = command(
            out,
            *("--to", "mlflow", "--project", "p"),
            MLFLOW_TRACKING_URI=f"file:{self.folder}/runs",
            MLFLOW_ALLOW_FILE_STORE="true",
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        (losses,) = self.folder.glob("runs/*/*/metrics/loss")
        told = [json.loads(s) for s in (out / "metrics.jsonl").read_text().splitlines()]
        expected = [(r["step"], r["loss"]) for r in told if "loss" in r]
        found = [row.split() for row in losses.read_text().splitlines()]
        self.assertEqual([(int(r[2]), float(r[1])) for r in found], expected)

    @needs("comet_ml")
    def test_comet(self) -> None:
        out = trained(self.folder)
        done = command(
            out,
            *("--to", "comet"),
            COMET_START_ONLINE="0",
            COMET_OFFLINE_DIRECTORY=str(self.folder),
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(list(self.folder.glob("*.zip")))


if __name__ == "__main__":
    unittest.main()
