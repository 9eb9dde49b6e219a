"""A unit as the steps that build its graph. Steps are data: units with the same steps
share a program."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tranche.module.regions import Function


@dataclass(frozen=True)
class Value:
    """A tensor in a unit. shape: of a sample, as the library has it."""

    index: int
    shape: tuple[int, ...]
    channels_last: bool = False


class Step(NamedTuple):
    """One call that gives one value: of an op, or of what comes in."""

    # "op", "function", "input", "data", "parameter", "state"; "constant", of each
    # sample, and "vector", in a parameter's place
    kind: str
    name: str
    inputs: tuple[int, ...] = ()
    attributes: str = ""
    shape: tuple[int, ...] = ()
    function: Function | None = None
    values: Any = None  # of a constant, whose name says what they are

    def text(self, prefix: str) -> str:
        name = self.name.removeprefix(prefix) if prefix else self.name
        inside = self.function.region.text if self.function else ""
        return f"{self.kind} {name} {self.inputs} {self.attributes} {self.shape} {inside}"


class Unit:
    """The steps so far of one unit."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.steps: list[Step] = []
        self.outputs: list[int] = []
        self._known: dict[tuple[str, str], int] = {}

    def add(self, step: Step) -> int:
        self.steps.append(step)
        return len(self.steps) - 1

    def once(self, kind: str, name: str, shape: Sequence[int] = ()) -> int:
        """What comes in by a name is the same value each time."""
        key = (kind, name)
        if key not in self._known:
            self._known[key] = self.add(Step(kind, name, shape=tuple(shape)))
        return self._known[key]

    def op(self, name: str, inputs: Sequence[int], **attributes: Any) -> int:
        text = json.dumps(attributes) if attributes else ""
        return self.add(Step("op", name, tuple(inputs), text))

    def text(self, prefix: str) -> str:
        lines = [step.text(prefix) for step in self.steps]
        return "\n".join([*lines, str(self.outputs)])
