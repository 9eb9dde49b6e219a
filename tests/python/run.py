"""run.py MODULE: runs the tests of a file of this folder, and says at the end how many
passed, failed and were left out, in cmocka's words, which tools/test.sh counts."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path


def main() -> int:
    sys.path.insert(0, str(Path(__file__).parent))
    tests = unittest.defaultTestLoader.loadTestsFromName(sys.argv[1])
    result = unittest.TextTestRunner(verbosity=2, stream=sys.stdout).run(tests)
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    passed = result.testsRun - failed - len(result.skipped)
    for word, count in (
        ("PASSED ", passed),
        ("FAILED ", failed),
        ("SKIPPED", len(result.skipped)),
    ):
        if count or word == "PASSED ":
            print(f"[  {word} ] {count} test(s)")
    return 0 if result.wasSuccessful() and result.testsRun else 1


if __name__ == "__main__":
    sys.exit(main())
