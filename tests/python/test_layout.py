"""The declarations for ctypes are what the compiler makes of the headers."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import unittest
from pathlib import Path

import tranche
from tranche import _declarations as c
from tranche._library import library


class Layout(unittest.TestCase):
    def test_sizes_offsets_and_constants(self) -> None:
        told = subprocess.run(
            [os.environ["TRANCHE_LAYOUT"]], capture_output=True, text=True
        )
        seen = set()
        for line in told.stdout.splitlines():
            name, *numbers = line.split()
            struct, _, member = name.partition(".")
            found = getattr(c, struct)
            seen.add(struct)
            if member:
                field = getattr(found, member)
                self.assertEqual(
                    [field.offset, field.size], list(map(int, numbers)), name
                )
            elif isinstance(found, type):
                self.assertEqual(ctypes.sizeof(found), int(numbers[0]), name)
            else:
                self.assertEqual(float(found), float(numbers[0]), name)
        ours = {
            name
            for name, value in vars(c).items()
            if re.match(r"(?i)tr(anche)?_", name) and value is not None
        }
        self.assertEqual(ours, seen)
        self.assertGreater(len(seen), 100)

    def test_every_exported_function_of_the_stable_headers_is_declared(self) -> None:
        source = Path(os.environ["TRANCHE_SOURCE"])
        headers = "".join(
            file.read_text() for file in (source / "include" / "tranche").glob("*.h")
        )
        exported = re.findall(
            r"^tr_\w+", (source / "cmake/exports.txt").read_text(), re.M
        )
        stable = {name for name in exported if re.search(rf"\b{name}\(", headers)}
        self.assertEqual(stable, set(c.FUNCTIONS) & stable)
        self.assertEqual(set(c.FUNCTIONS) - stable, set())
        for name in c.FUNCTIONS:
            getattr(library(), name)

    def test_statuses(self) -> None:
        for status in tranche.Status:
            self.assertEqual(getattr(c, f"TR_{status.name}"), status)
            self.assertEqual(library().tr_status_exit(status), status.exit_status)
        self.assertEqual(len(tranche.Status), c.TR_STATUS_COUNT)

    def test_version(self) -> None:
        self.assertEqual(tranche.__version__, library().tr_version().decode())


if __name__ == "__main__":
    unittest.main()
