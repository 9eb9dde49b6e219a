"""The program: `python -m tranche train run.json`, and `python -m tranche launch`,
which starts ranks of a script of Python's."""

from __future__ import annotations

import os
import sys


def main() -> int:
    if sys.argv[1:2] == ["launch"]:
        from tranche.launch import main as launch

        return launch(sys.argv[2:])
    from tranche._library import program

    sys.stdout.flush()
    os.execv(program(), ["tranche", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
