"""What went wrong: the library's statuses, and the exception that carries one."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """The kinds of errors; `exit_status` is what the program `tranche` ends with."""

    OK = 0
    DIFFERENT = 1
    USAGE = 2
    BUDGET = 3
    DATA = 4
    IO = 5
    COMM = 6
    NUMBERS = 7
    INTERNAL = 8
    MEMORY = 9
    INTERRUPTED = 10

    @property
    def exit_status(self) -> int:
        if self is Status.MEMORY:
            return int(Status.INTERNAL)
        return 128 if self is Status.INTERRUPTED else int(self)


class Error(RuntimeError):
    """An error of the library: its message, and `status`, the kind."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status

    def __reduce__(self) -> tuple[type[Error], tuple[Status, str]]:
        return Error, (self.status, str(self))


class StopTraining(Exception):
    """Raised in a callback, it ends the training after a checkpoint, and no error."""
