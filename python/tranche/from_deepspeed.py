"""Makes a checkpoint of a folder that DeepSpeed saved, for a run file whose model has
the same tensors: `python -m tranche from-deepspeed RUN.json FOLDER CHECKPOINT`. A run
goes on from such a folder without this, too: `tranche train RUN.json --resume FOLDER`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tranche.error import Error, Status
from tranche.run import Config, Run


def _is_theirs(folder: str) -> bool:
    """Has it files of a step, or folders with such files?"""
    path, end = Path(folder), "*_model_states.pt"
    return any(path.glob(end)) or any(path.glob(f"*/{end}"))


def convert(config: Config, folder: str, checkpoint: str) -> int:
    """Makes the checkpoint, and returns how many steps its weights have seen. The
    library reads the folder: nothing of its pickles is run."""
    if not _is_theirs(folder):
        raise Error(Status.IO, f"{folder}: this is no folder that DeepSpeed saved")
    run = Run(config, settings={"resume": folder})
    try:
        with run.engine() as engine:
            engine.save(checkpoint)
            return engine.steps_done
    finally:
        run.close()


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tranche from-deepspeed", description=__doc__
    )
    parser.add_argument("run", metavar="RUN.json", help="the run that goes on")
    parser.add_argument("folder", metavar="FOLDER", help="that DeepSpeed saved")
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="the folder to make")
    asked = parser.parse_args(words)
    try:
        steps = convert(asked.run, asked.folder, asked.checkpoint)
    except Error as error:
        print(f"tranche: {error}", file=sys.stderr)
        return error.status.exit_status
    print(f"{asked.checkpoint}: after {steps} steps")
    return 0
