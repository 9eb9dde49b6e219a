"""Makes a checkpoint of a folder that DeepSpeed saved, for a run file whose model has
the same tensors: `python -m tranche from-deepspeed RUN.json FOLDER CHECKPOINT`. Then
`tranche train RUN.json --resume CHECKPOINT` goes on from its weights, optimizer and
steps; the order of the data begins anew."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from tranche.error import Error, Status
from tranche.run import Config, Run

if TYPE_CHECKING:
    from tranche.engine import Engine
    from tranche.module.deepspeed import Saved


def step_folder(folder: str) -> str:
    """The folder of the step that is its latest, or itself."""
    latest = os.path.join(folder, "latest")
    if os.path.isfile(latest):
        with open(latest) as file:
            return os.path.join(folder, file.read().strip())
    return folder


def _write(saved: Saved, engine: Engine, path: str) -> None:
    tensors = dict(engine.tensors.items())
    trained = next(iter(saved.states.values()))
    for name in sorted({*trained, *tensors}):
        why = ""
        if name not in tensors:
            why = f"it trains {name}, which the model has not"
        elif name not in saved.weights:
            why = f"{name} is missing"
        elif tensors[name].trained != (name in trained):
            had = "" if name in trained else "not "
            why = f'it has {name} {had}trained, and the run otherwise (key "freeze")'
        elif tuple(saved.weights[name].shape) != tuple(tensors[name].shape):
            why = f"{name} is of another shape"
        if why:
            raise Error(Status.IO, f"{path} is of another model: {why}")
    for name, tensor in tensors.items():
        tensor.write(saved.weights[name].float().contiguous())
        for state, values in saved.states.items():
            if name in values:
                tensor.write(values[name].float().contiguous(), state)
    engine._call("tr_engine_set_updates", saved.updates)


def convert(config: Config, folder: str, checkpoint: str) -> int:
    """Makes the checkpoint, and returns how many updates its weights have seen. Reading
    DeepSpeed's files unpickles them: they are to be of a source that you trust."""
    try:
        from tranche.module import deepspeed
    except ImportError as error:
        raise Error(
            Status.USAGE,
            f"DeepSpeed's files are PyTorch's: {error} (pip install torch)",
        ) from error
    path = step_folder(folder)
    if not os.path.isdir(path) or not deepspeed.is_theirs(path):
        raise Error(Status.IO, f"{path}: this is no folder that DeepSpeed saved")
    saved = deepspeed.read(path)
    run = Run(config, settings={"resume": "never"})
    try:
        with run.engine() as engine:
            _write(saved, engine, path)
            engine.save(checkpoint)
    finally:
        run.close()
    return saved.updates


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tranche from-deepspeed", description=__doc__
    )
    parser.add_argument("run", metavar="RUN.json", help="the run that goes on")
    parser.add_argument("folder", metavar="FOLDER", help="that DeepSpeed saved")
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="the folder to make")
    asked = parser.parse_args(words)
    try:
        updates = convert(asked.run, asked.folder, asked.checkpoint)
    except Error as error:
        print(f"tranche: {error}", file=sys.stderr)
        return error.status.exit_status
    print(f"{asked.checkpoint}: after {updates} updates")
    return 0
