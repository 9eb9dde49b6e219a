"""A run: a run file or the same as a dict, what is changed of it, and what it
becomes."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping
from ctypes import byref, c_char_p, string_at
from typing import TYPE_CHECKING, Any, Protocol

from tranche import _declarations as c
from tranche import data, ranks
from tranche._calls import Raised
from tranche._handle import Handle, field_type, sized
from tranche.plan import Plan

if TYPE_CHECKING:
    from tranche.engine import Engine

Config = str | os.PathLike[str] | Mapping[str, Any]
Messages = Callable[[int, str], None]


class Model(Protocol):
    """A model that is not the config's. Its functions keep what they raise in
    `raised`."""

    pointer: Any  # of a tr_model
    raised: Raised


_log = logging.getLogger("tranche")


def _to_log(level: int, line: str) -> None:
    _log.log(level, "%s", line)


class Run(Handle):
    """What is to be trained. config: the path of a run file, or the same as a dict.
    settings: keys in place of the config's, such as {"steps": 10}. train, validation:
    data in place of the config's (docs/python.md says what they may be). model: one of
    the program's own, in place of the config's. messages: gets notes and warnings, with
    the level of `logging`; they go to the logger "tranche" where there is none.

    A run takes settings until it is resolved, which its plan and its engine see to."""

    _kind = "run"

    def __init__(
        self,
        config: Config,
        *,
        train: object = None,
        validation: object = None,
        settings: Mapping[str, Any] | None = None,
        messages: Messages | None = None,
        model: Model | None = None,
    ) -> None:
        super().__init__()
        self._create("tr_run_create")
        self._model = model
        if model is not None:
            self._raised = model.raised
        self._resolved = False
        self._begun = False
        self._load(config)
        self._call("tr_run_name_source", b"python")
        for key, value in {"choose_device": True, **(settings or {})}.items():
            self.set(key, value)
        self._data = [
            data.Dataset(data.source(given), self._raised)
            if given is not None
            else None
            for given in (train, validation)
        ]
        self._give(messages or _to_log)

    def _load(self, config: Config) -> None:
        if isinstance(config, Mapping):
            text = json.dumps(config).encode()
            self._call("tr_run_load_text", text)
        else:
            self._call("tr_run_load_file", os.fsencode(config))

    def _give(self, messages: Messages) -> None:
        def write(_: object, level: int, line: int) -> None:
            warning = level == c.TR_MESSAGE_WARNING
            text = string_at(line).decode("utf-8", "replace")
            messages(logging.WARNING if warning else logging.INFO, text)

        parts = sized(c.tr_run_parts)
        parts.messages.write = field_type(c.tr_messages, "write")(
            self._raised.guard(write, None)
        )
        parts.stop = self._raised.stop(field_type(c.tr_run_parts, "stop"))
        parts.comm = ranks.comm()
        parts.train, parts.validation = (
            given.owner.pointer if given else None for given in self._data
        )
        if self._model is not None:
            parts.model = self._model.pointer
        self._call("tr_run_give", byref(parts))
        # What the library calls and reads lives as long as the run does.
        self._owner.keeps += [parts, self._data, self._model]

    def set(self, key: str, value: Any) -> None:
        """Sets a key of the run file ("zero_optimization.stage"), or one of the call
        ("resume"), in place of what the config says. None leaves it out."""
        self._call("tr_run_set", key.encode(), json.dumps(value).encode())

    def get(self, key: str) -> Any:
        """The value of a key; None where it has none."""
        return self._entry(key)[0]

    def origin(self, key: str) -> str | None:
        """Where the value of a key is from: "file", "python", "default", ..."""
        return self._entry(key)[1]

    def _entry(self, key: str) -> tuple[Any, str | None]:
        value, origin = c_char_p(), c_char_p()
        self._call("tr_run_get", key.encode(), byref(value), byref(origin))
        told = json.loads(value.value) if value.value is not None else None
        return told, origin.value.decode() if origin.value is not None else None

    def resolve(self) -> None:
        """Reads model and data, and lets the planner choose what is open. On several
        ranks all of them call it."""
        if self._resolved:
            return
        self._call("tr_run_set", b"computes_here", b"true")
        self._call("tr_run_resolve")
        self._resolved = True
        for given in self._data:
            if given:
                given.reader.classes = self._ask("tr_run_model").contents.classes

    def _begin(self, plan: Plan) -> None:
        """Makes the out folder and takes it for this run, until its end."""
        if not self._begun:
            self._call("tr_run_begin", plan._owner.pointer)
            self._begun = True

    def plan(self) -> Plan:
        """The plan of the run's steps. It takes no memory of tensors."""
        self.resolve()
        return Plan(self)

    def engine(self, plan: Plan | None = None) -> Engine:
        """An engine that trains this run, with all its memory. plan: of this run."""
        from tranche.engine import Engine

        return Engine(self, plan)

    @property
    def steps(self) -> int:
        """Optimizer steps in all; 0 before the run is resolved."""
        return int(self._ask("tr_run_steps"))

    @property
    def ranks(self) -> int:
        """Ranks that the run is planned for; 0 before the run is resolved."""
        return int(self._ask("tr_run_ranks"))
