"""The engine: trains a run by its plan, a step at a time or all at once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from ctypes import byref, c_char, c_size_t, c_void_p, cast, string_at
from operator import attrgetter
from typing import Any

from tranche import _declarations as c
from tranche import callbacks as told
from tranche._calls import Raised
from tranche._handle import Handle, field_type, sized
from tranche._library import library
from tranche._parts import Parts, wait_for_torch
from tranche.callbacks import Callbacks, Evaluation, Screen, StepResult
from tranche.error import StopTraining
from tranche.plan import Plan
from tranche.predict import Predictor
from tranche.run import Config, Messages, Run
from tranche.tensors import Array, Tensors

_step_fields = [member[0] for member in c.tr_step_result._fields_ if member[0] != "size"]
_step_values = attrgetter(*_step_fields)
_stop_type = field_type(c.tr_train_options, "stop")


def step_result(found: Any) -> StepResult:
    """A tr_step_result as a value of Python's."""
    values: dict[str, Any] = dict(zip(_step_fields, _step_values(found), strict=True))
    for name in ("spike", "act"):
        values[name] = (values[name] or b"").decode()
    for name in ("rank_seconds", "rank_wait_seconds", "rank_peak_bytes"):
        spread = values[name]
        values[name] = told.Spread(spread.least, spread.mean, spread.most)
    return StepResult(**values)


class Engine(Handle):
    """Has all memory of a run, and trains it. One thread calls it at a time, in the
    process that has made it; on several ranks all of them make the same calls. plan: of
    this run; it is made where there is none.

    Ctrl-C drops the step at work, which changes nothing, and comes out of the call as
    KeyboardInterrupt."""

    _kind = "engine"

    def __init__(self, run: Run, plan: Plan | None = None) -> None:
        super().__init__()
        self._raised = run._raised
        self._gpu = -1  # in whose memory PyTorch sees something of the engine's
        self.run = run
        self.plan = plan or run.plan()
        made_of = [run._owner, self.plan._owner]
        pointers = [owner.pointer for owner in made_of]
        self._create("tr_engine_create", *pointers, keeps=made_of)
        self._stop = self._raised.stop(_stop_type)
        self._owner.keeps.append(self._stop)
        self._call("tr_engine_stop_when", self._stop, None)
        self._written = 0  # how often the caller has written tensors
        self._predictor: Predictor | None = None
        self._parts: Parts | None = None

    def _lends(self, device: int) -> None:
        """Memory of a GPU has been given out; -1: of the host."""
        self._gpu = max(self._gpu, device)

    def _call(self, name: str, *arguments: Any) -> None:
        """What PyTorch still reads of the engine's memory, or writes for it, comes
        first: streams of the two know nothing of each other."""
        if self._gpu >= 0:
            wait_for_torch(self._gpu)
        super()._call(name, *arguments)

    # ---- training

    def step(self) -> StepResult:
        """Makes one optimizer step; nothing is written. A step that fails, or is
        interrupted, changes nothing."""
        result = sized(c.tr_step_result)
        self._call("tr_engine_step", byref(result))
        return step_result(result)

    def train(self, callbacks: Callbacks = (), *, progress: bool = True) -> None:
        """Trains to the end of the run as `tranche train` does: steps, metrics,
        evaluations, checkpoints. progress: shows it on standard output. Ctrl-C, or what
        a callback raises, ends it, a checkpoint is saved, and the exception comes
        out."""
        listeners = told.listeners(callbacks)
        self.run._begin(self.plan)
        options = sized(c.tr_train_options)
        options.stop = self._stop
        if listeners:  # updates may be left to the next step where nobody asks
            options.stepped = field_type(c.tr_train_options, "stepped")(
                self._raised.guard(self._tell(listeners), None)
            )
        if progress:
            _show(options.screen, self._raised)
        try:
            for each in listeners:
                each.on_begin(self)
            self._call("tr_engine_train", byref(options))
            for each in listeners:
                each.on_end(self)
        except StopTraining:
            return

    # ---- a step in parts, of a model whose last unit has outputs and no loss

    def forward(
        self, inputs: Any = None, *, evaluate: bool = False, counts: bool = False
    ) -> list[Array]:
        """Runs the model on the next micro-batch of a step, and begins a step where
        none is at work. inputs: rows as the model takes them, [rows, ...], or a dict of
        these by name; None: the run's own data. Gives the outputs, without a copy and
        read-only, until the next call of the engine; with "execution.parts_on_device"
        they are in the GPU's memory, and `torch()` gives its tensors. evaluate: as in an evaluation,
        and no gradient comes back. counts: inputs of 0 rows, which are not computed,
        count in the mean as a micro-batch whose loss is 0. With stages of a pipeline, no
        outputs on ranks of stages without the model's last unit: they call
        backward(None)."""
        if self._parts is None:
            self._parts = Parts(self)
        return self._parts.forward(self, inputs, evaluate, counts)

    def backward(self, gradients: Any, loss: float = 0.0) -> None:
        """Takes the gradients of the micro-batch's mean loss by its outputs, each of
        the output's shape (a list of several outputs' gradients; None: zeros), and runs
        the backward. loss: for the step's result."""
        if self._parts is None:
            self._parts = Parts(self)
        self._parts.backward(self, gradients, loss)

    def update(self) -> StepResult:
        """Ends the step when all its micro-batches have been backward: the update takes
        the mean over them, and over those of all ranks."""
        result = sized(c.tr_step_result)
        self._call("tr_engine_update", byref(result))
        return step_result(result)

    def drop(self) -> None:
        """Drops the step that is at work; the next forward begins it anew. All ranks
        drop it."""
        self._call("tr_engine_drop")

    def _tell(self, listeners: Sequence[told.Callback]) -> Any:
        def stepped(_: object, result: Any, evaluation: Any) -> None:
            made = step_result(result.contents)
            for each in listeners:
                each.on_step(self, made)
            if evaluation:
                validated = _evaluation(evaluation.contents)
                for each in listeners:
                    each.on_evaluation(self, made.step, validated)

        return stepped

    def set_rate(self, rate: float | None, group: int = -1) -> None:
        """Sets the learning rate of a group of parameters for the updates from now on,
        in place of the run file's; None: as that says again. group: its number in
        optimizer.groups; -1: that of all other parameters."""
        groups = self._ask("tr_engine_groups")
        number = groups + group if group < 0 else group
        self._call("tr_engine_set_rate", number, float("nan") if rate is None else rate)

    # ---- asking

    def evaluate(self, samples: int = 0) -> Evaluation:
        """Loss and accuracy over the first validation samples; 0: over all."""
        result = sized(c.tr_evaluation)
        self._call("tr_engine_evaluate", samples, byref(result))
        return _evaluation(result)

    def predict(self, inputs: Any) -> Array:
        """The model's logits for inputs as the model takes them, [samples, ...] or a
        dict of these by name: [samples, classes] of a classifier, else [samples,
        positions, classes]. On one rank. The weights go through a folder that is
        removed: for many calls between two steps this is done once."""
        now = (self.steps_done, self._written)
        if self._predictor is None or self._predictor.made_at != now:
            self._predictor = Predictor(self, now)
        return self._predictor.ask(inputs)

    @property
    def steps_done(self) -> int:
        """Steps so far, of this process and of those that it resumes."""
        return int(self._ask("tr_engine_steps_done"))

    @property
    def tensors(self) -> Tensors:
        """Parameters and states of the model by name."""
        return Tensors(self)

    def refresh(self) -> None:
        """At ZeRO stages 1 and 2, gives every rank the current parameters."""
        self._call("tr_engine_refresh")

    @property
    def peak_bytes(self) -> dict[str, int]:
        """The most bytes so far: of each space, comparable to the ledger's totals, and
        of the "process"."""
        peaks = {
            library().tr_space_name(space).decode(): int(
                self._ask("tr_engine_space_peak", space)
            )
            for space in range(c.TR_SPACES)
        }
        return {**peaks, "process": int(self._ask("tr_engine_process_peak"))}

    # ---- checkpoints

    def save(
        self, folder: str | os.PathLike[str] | None = None, data: bytes = b""
    ) -> None:
        """Saves a checkpoint: in the run's out folder, or as the folder named. data:
        bytes of yours that go into it; `tranche.checkpoint_bytes` reads them."""
        if folder is None:
            self.run._begin(self.plan)
        options = sized(c.tr_save_options)
        options.folder = os.fsencode(folder) if folder is not None else None
        kept = (c_char * len(data)).from_buffer_copy(data) if data else None
        options.bytes = cast(kept, c_void_p) if kept is not None else None
        options.byte_count = len(data)
        self._call("tr_engine_save_as", byref(options))


def _evaluation(found: Any) -> Evaluation:
    return Evaluation(found.loss, found.accuracy, found.samples)


def _show(screen: Any, raised: Raised) -> None:
    """Shows progress where Python's standard output goes."""
    on = Screen()

    def line(_: object, text: int) -> None:
        on.line(string_at(text).decode("utf-8", "replace"))

    def live(_: object, text: int | None) -> None:
        if text is not None:
            on.live(string_at(text).decode("utf-8", "replace"))

    def columns(_: object) -> int:
        return os.get_terminal_size().columns

    screen.line = field_type(c.tr_screen, "line")(raised.guard(line, None))
    if on.lively:
        screen.live = field_type(c.tr_screen, "live")(raised.guard(live, None))
        screen.columns = field_type(c.tr_screen, "columns")(raised.guard(columns, 80))


def checkpoint_bytes(path: str | os.PathLike[str]) -> bytes:
    """The bytes that were given to `Engine.save`; b"": none were."""
    pointer, count = c_void_p(), c_size_t()
    Handle()._make(
        "tr_checkpoint_bytes", os.fsencode(path), byref(pointer), byref(count)
    )
    try:
        return string_at(pointer.value, count.value) if pointer.value else b""
    finally:
        library().tr_checkpoint_bytes_release(pointer)


def train(
    config: Config,
    *,
    train: object = None,
    validation: object = None,
    callbacks: Callbacks = (),
    settings: Mapping[str, Any] | None = None,
    progress: bool = True,
    messages: Messages | None = None,
) -> Engine:
    """Trains a run to its end, as `tranche train` does, and returns its engine, which
    has the trained model. config: the path of a run file, or the same as a dict. train,
    validation: data in place of the config's. callbacks: functions that get each step's
    result, or `Callback`s. settings: keys in place of the config's. progress: it is
    shown on standard output, and notes on standard error; else `messages` or the logger
    "tranche" gets these."""
    engine: Engine | None = None
    if messages is None and progress:
        messages = told.print_message
    run = Run(
        config, train=train, validation=validation, settings=settings, messages=messages
    )
    try:
        plan = run.plan()
        run._begin(plan)
        engine = run.engine(plan)
        engine.train(callbacks, progress=progress)
    except BaseException:
        # A traceback keeps what its frames name: the out folder is free all the same.
        for each in (engine, run):
            if each is not None:
                each.close()
        raise
    return engine
