"""What is told of a training while it runs."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TextIO

if TYPE_CHECKING:
    from tranche.engine import Engine


class Spread(NamedTuple):
    """The least, mean and most of a number over the ranks."""

    least: float
    mean: float
    most: float


class StepResult(NamedTuple):
    """What an optimizer step has come to (`tr_step_result` in tranche/engine.h)."""

    step: int  # attempts so far, this one included
    update: int  # of them applied
    epoch: int  # of the step's first sample, from 0
    samples: int  # consumed so far
    batch: int  # samples of this step
    train_batch: int  # the effective batch
    targets: float  # of this step
    loss: float  # the mean over all targets
    accuracy: float  # share of targets that the best guess got right
    lr: float  # of the parameters that are in no group
    grad_norm: float  # before clipping
    skipped: bool  # nothing was changed
    noise_scale: float  # in samples; NaN: not known
    noise_trace: float
    noise_gradient: float
    spike: str  # what is far outside of its spread; "": nothing
    act: str  # what the spike guard does about it
    loss_scale: float
    seconds: float
    wait_seconds: float  # of them, spent waiting for data
    rank_seconds: Spread
    rank_wait_seconds: Spread
    rank_peak_bytes: Spread


class Evaluation(NamedTuple):
    """Loss and accuracy over validation samples."""

    loss: float
    accuracy: float
    samples: int


class Callback:
    """A listener: override what is of interest. The engine is free in each call, so
    that it may be read, evaluated and saved; it makes no steps and is not closed there.
    What an override raises ends the training, which saves a checkpoint, and comes out
    of it; `tranche.StopTraining` ends it without an error."""

    def on_begin(self, engine: Engine) -> None:
        """Before the first step."""

    def on_step(self, engine: Engine, result: StepResult) -> None:
        """After each step, and its checkpoint where one was due."""

    def on_evaluation(self, engine: Engine, step: int, result: Evaluation) -> None:
        """After each evaluation that the run file asks for."""

    def on_end(self, engine: Engine) -> None:
        """After the last step."""


class _OnStep(Callback):
    def __init__(self, function: Callable[[StepResult], object]) -> None:
        self._function = function

    def on_step(self, engine: Engine, result: StepResult) -> None:
        self._function(result)


Callbacks = Iterable[Callback | Callable[[StepResult], object]]


def listeners(given: Callbacks) -> Sequence[Callback]:
    """A function is told of each step."""
    return [each if isinstance(each, Callback) else _OnStep(each) for each in given]


def print_message(level: int, line: str) -> None:
    """Shows a note or a warning as the program does."""
    lead = "warning: " if level >= logging.WARNING else ""
    print(f"{lead}{line}", file=sys.stderr, flush=True)


class Screen:
    """Shows progress as the program does: lines that stay and, on a terminal, one that
    changes."""

    def __init__(self, to: TextIO | None = None) -> None:
        self._to = to or sys.stdout
        self.lively = self._to.isatty()
        self._shown = ""

    def line(self, text: str) -> None:
        self.live("")
        print(text, file=self._to, flush=True)

    def live(self, text: str) -> None:
        if text != self._shown and self.lively:
            self._to.write(f"\r\x1b[K{text}")
            self._to.flush()
            self._shown = text
