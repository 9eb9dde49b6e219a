"""The program: `python -m tranche train run.json`; `python -m tranche launch`, which
starts ranks of a script of Python's; `python -m tranche follow`, which hands metrics on
to services; `python -m tranche from-deepspeed`, which makes a checkpoint of DeepSpeed's."""

from __future__ import annotations

import os
import sys


def main() -> int:
    if sys.argv[1:2] == ["launch"]:
        from tranche.launch import main as launch

        return launch(sys.argv[2:])
    if sys.argv[1:2] == ["follow"]:
        from tranche.follow import main as follow

        return follow(sys.argv[2:])
    if sys.argv[1:2] == ["from-deepspeed"]:
        from tranche.from_deepspeed import main as from_deepspeed

        return from_deepspeed(sys.argv[2:])
    from tranche._library import program

    sys.stdout.flush()
    os.execv(program(), ["tranche", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
