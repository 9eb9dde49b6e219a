"""PyTorch modules on several ranks, of MPI and of torchrun, come to what PyTorch has of
all rows (ranks_of_modules.py)."""

from __future__ import annotations

import subprocess
import sys
import unittest
from pathlib import Path

from common import InFolder, needs_mpi, needs_torch
from test_torchrun import TORCHRUN

SCRIPT = Path(__file__).with_name("ranks_of_modules.py")
ALL = (
    *("stages", "modules", "calls", "pipelines", "outputs", "short", "drawn"),
    *("checkpoints", "refused"),
)


@needs_torch
class Ranks(InFolder):
    def like_torch(self, launcher: list[str], ranks: int, *names: str) -> None:
        done = subprocess.run(
            [*launcher, str(SCRIPT), *names],
            capture_output=True,
            text=True,
            timeout=200,
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for name in names:
            told = f"{name} as PyTorch on"
            self.assertEqual(done.stdout.count(told), ranks, done.stdout)

    def launch(self, ranks: int) -> list[str]:
        return [sys.executable, "-m", "tranche", "launch", "-n", str(ranks)]

    @needs_mpi
    def test_of_mpi(self) -> None:
        self.like_torch(self.launch(2), 2, *ALL)

    @needs_mpi
    def test_pipelines_side_by_side(self) -> None:
        self.like_torch(self.launch(4), 4, "pipelines", "outputs")

    def test_of_torchrun(self) -> None:
        self.like_torch(TORCHRUN, 2, *ALL)


if __name__ == "__main__":
    unittest.main()
