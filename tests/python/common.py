"""What the tests share: a small run, a folder that goes away, and what is installed."""

from __future__ import annotations

import importlib.util
import logging
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

import tranche
from tranche._library import library, program, with_open_mpi

SOURCE = Path(os.environ["TRANCHE_SOURCE"])
HAS_NUMPY = importlib.util.find_spec("numpy") is not None
HAS_TORCH = importlib.util.find_spec("torch") is not None
HAS_MPI = library().tr_comm_mpi(None) != 0 or with_open_mpi() is not None

needs_numpy = unittest.skipUnless(HAS_NUMPY, "numpy is not installed")
needs_torch = unittest.skipUnless(HAS_TORCH, "torch is not installed")
needs_mpi = unittest.skipUnless(HAS_MPI, "the library was built without MPI")

FEATURES, CLASSES = 6, 3
logging.getLogger("tranche").setLevel(logging.ERROR)


def config(**changes: Any) -> dict[str, Any]:
    """A classifier on random samples."""
    return {
        "model": {"model_type": "mlp", "layer_sizes": [FEATURES, 16, CLASSES]},
        "data": {
            "format": "random",
            "samples": 200,
            "features": FEATURES,
            "classes": CLASSES,
            "validation": 0.2,
        },
        "steps": 12,
        "seed": 3,
        "train_batch_size": 16,
        "evaluation": {"every": 4},
        "execution": {"threads": 2},
        "optimizer": {"type": "Adam", "params": {"lr": 1e-2}},
        **changes,
    }


def text_model(**changes: Any) -> dict[str, Any]:
    """A small language model, without data."""
    model = {
        "model_type": "gpt2",
        "n_layer": 1,
        "n_embd": 16,
        "n_head": 2,
        "n_positions": 8,
    }
    rates = {"resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0, "vocab_size": 32}
    given = config(model={**model, **rates}, **changes)
    del given["data"]
    return given


def samples(count: int = 64) -> tuple[list[list[float]], list[int]]:
    """Features and labels as lists: class i has a larger feature i."""
    rows, labels = [], []
    for i in range(count):
        row = [((i * 7 + f * 3) % 11) / 11 for f in range(FEATURES)]
        labels.append(i % CLASSES)
        row[i % CLASSES] += 2
        rows.append(row)
    return rows, labels


class InFolder(unittest.TestCase):
    """Each test works in an empty folder."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        self.folder = Path(folder.name)

    def refused(self, status: tranche.Status, *words: str) -> Any:
        """A context in which an error of this status with these words is raised."""
        return Refused(self, status, words)


class Refused:
    def __init__(
        self, test: unittest.TestCase, status: tranche.Status, words: Any
    ) -> None:
        self.test, self.status, self.words = test, status, words

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        self.test.assertIsInstance(error, tranche.Error)
        self.test.assertEqual(error.status, self.status, str(error))
        for word in self.words:
            self.test.assertIn(word, str(error))
        return True


def run_program(*words: str | Path) -> str:
    """Runs `tranche` to success."""
    done = subprocess.run([program(), *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_python(
    code: str, *words: str, timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        timeout=timeout,
    )
