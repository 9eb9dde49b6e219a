"""Hands a run's metrics.jsonl on to W&B, MLflow or Comet, while the run is at work or
afterwards: `python -m tranche follow OUT --to wandb`.

The service's own package does the sending, and finds its keys, addresses and modes where
it always does (wandb login, MLFLOW_TRACKING_URI, COMET_API_KEY, ...). None is read, kept
or passed on here."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

from tranche.error import Error, Status

SETTLED = 2.0  # seconds without a new line, after which a complete run has ended


class Record(NamedTuple):
    """The numbers of a line of metrics.jsonl, by their names there."""

    step: int
    time: float  # since 1970
    values: dict[str, float]


def _numbers(line: dict[str, Any], prefix: str = "") -> dict[str, float]:
    found: dict[str, float] = {}
    for key, value in line.items():
        if isinstance(value, dict):
            found.update(_numbers(value, f"{prefix}{key}/"))
        elif isinstance(value, bool | int | float):
            found[prefix + key] = float(value)
    return found


def _record(line: bytes) -> Record | None:
    """None: it is no line of metrics with a step."""
    try:
        told = json.loads(line)
        values = _numbers(told)
        return Record(int(values.pop("step")), values.pop("time", 0.0), values)
    except (ValueError, KeyError, AttributeError):
        return None


class Metrics:
    """What comes in a metrics.jsonl. Where a resumed run has cut it back, steps that
    have been told are not told again."""

    def __init__(self, out: str) -> None:
        self.path = os.path.join(out, "metrics.jsonl")
        self.step = 0
        self._at = 0
        self._told: set[tuple[int, frozenset[str]]] = set()

    def new(self) -> Iterator[Record]:
        """The whole lines that have come since the last call."""
        if not os.path.exists(self.path):
            return
        with open(self.path, "rb") as file:
            if os.fstat(file.fileno()).st_size < self._at:
                self._at = 0
            file.seek(self._at)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._at += len(line)
                record = _record(line)
                if record is None:
                    continue
                self.step = record.step
                known = (record.step, frozenset(record.values))
                if known not in self._told:
                    self._told.add(known)
                    yield record


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path) as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def settings_of(out: str) -> dict[str, Any]:
    """Of the run, as resolved: its run.json, without where each value is from."""
    settings = _read(os.path.join(out, "run.json"))
    settings.pop("origins", None)
    return settings


def is_complete(out: str, step: int) -> bool:
    """Has the run made all of its steps? How many epochs with an adaptive batch are,
    the checkpoint at their end says."""
    settings = settings_of(out)
    steps = settings.get("steps") or settings.get("derived", {}).get("steps") or 0
    epochs = settings.get("epochs") or 0
    state = _read(os.path.join(out, "checkpoints", "latest", "state.json"))
    return 0 < steps <= step or 0 < epochs <= state.get("epoch", 0)


def follow(
    out: str,
    send: Callable[[Record], None],
    *,
    once: bool = False,
    every: float = 1.0,
) -> int:
    """Calls `send` with each record, until the run is complete; `once`: with those that
    are there. Returns how many there were."""
    metrics, count, last = Metrics(out), 0, time.monotonic()
    while True:
        before = count
        for record in metrics.new():
            send(record)
            count += 1
        if count > before:
            last = time.monotonic()
        settled = time.monotonic() - last >= SETTLED
        if once or (settled and is_complete(out, metrics.step)):
            return count
        time.sleep(every)


# ---- services


def _package(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Error(
            Status.USAGE,
            f"the package {name} sends the metrics, and it cannot be imported "
            f"({error}): pip install {name.replace('_', '-')}",
        ) from error


class Wandb:
    """A run of Weights & Biases."""

    def __init__(self, project: str | None, name: str | None, out: str) -> None:
        wandb = _package("wandb")
        self.run = wandb.init(project=project, name=name, config=settings_of(out))

    def send(self, record: Record) -> None:
        self.run.log(record.values, step=record.step)

    def end(self) -> None:
        self.run.finish()


def _flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, dict):
            found.update(_flat(value, f"{prefix}{key}."))
        else:
            found[prefix + key] = value
    return found


class Mlflow:
    """A run of MLflow, in the experiment `project`."""

    LONGEST = 500  # characters of a parameter

    def __init__(self, project: str | None, name: str | None, out: str) -> None:
        self.mlflow = _package("mlflow")
        if project:
            self.mlflow.set_experiment(project)
        self.mlflow.start_run(run_name=name)
        flat = _flat(settings_of(out))
        self.mlflow.log_params({k: str(v)[: self.LONGEST] for k, v in flat.items()})

    def send(self, record: Record) -> None:
        self.mlflow.log_metrics(record.values, step=record.step)

    def end(self) -> None:
        self.mlflow.end_run()


class Comet:
    """An experiment of Comet's."""

    def __init__(self, project: str | None, name: str | None, out: str) -> None:
        comet = _package("comet_ml")
        quiet = comet.ExperimentConfig(
            log_code=False, log_git_metadata=False, log_git_patch=False
        )
        self.experiment = comet.start(project_name=project, experiment_config=quiet)
        if name:
            self.experiment.set_name(name)
        self.experiment.log_parameters(_flat(settings_of(out)))

    def send(self, record: Record) -> None:
        self.experiment.log_metrics(record.values, step=record.step)

    def end(self) -> None:
        self.experiment.end()


SERVICES: dict[str, Any] = {"wandb": Wandb, "mlflow": Mlflow, "comet": Comet}


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tranche follow",
        description="Hands the metrics of a run on to a service, by its own package.",
    )
    parser.add_argument("out", metavar="OUT", help="the run's out folder")
    parser.add_argument("--to", required=True, choices=sorted(SERVICES))
    parser.add_argument("--project", help="of the service (MLflow: the experiment)")
    parser.add_argument("--name", help="of the run there")
    parser.add_argument(
        "--once", action="store_true", help="sends what is there, and ends"
    )
    asked = parser.parse_args(words)
    try:
        count = _hand_on(asked)
    except KeyboardInterrupt:
        return 130
    except Error as error:
        print(f"tranche: {error}", file=sys.stderr)
        return error.status.exit_status
    print(f"{asked.out}: {count} lines to {asked.to}")
    return 0


def _hand_on(asked: argparse.Namespace) -> int:
    if not os.path.isdir(asked.out):
        raise Error(Status.IO, f"{asked.out}: there is no such folder")
    try:
        service = SERVICES[asked.to](asked.project, asked.name, asked.out)
        try:
            return follow(asked.out, service.send, once=asked.once)
        finally:
            service.end()
    except Error:
        raise
    except Exception as error:  # each package has exceptions of its own
        raise Error(Status.IO, f"{asked.to}: {error}") from error
