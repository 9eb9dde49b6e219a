"""What all objects of the library have in common: an owner, and calls whose callbacks
may raise."""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from ctypes import byref, c_void_p
from types import TracebackType
from typing import Any, TypeVar

from tranche import _declarations as c
from tranche._calls import Raised
from tranche._library import check, library
from tranche.error import Error, Status

T = TypeVar("T")


class Owner:
    """Owns an object of the library, and keeps alive what must outlive it. It is
    destroyed when nobody holds the owner any more; in a child of fork() it is not."""

    def __init__(self, pointer: int, destroy: str, *keeps: object) -> None:
        self.pointer = pointer
        self.keeps = list(keeps)
        weakref.finalize(self, _destroy, os.getpid(), destroy, pointer, self.keeps)


def _destroy(process: int, function: str, pointer: int, keeps: list[object]) -> None:
    if os.getpid() == process:
        getattr(library(), function)(pointer)


class Handle:
    """An object of the library, which is closed by hand, in `with`, or by nobody."""

    _kind = "object"

    def __init__(self) -> None:
        self._owned: Owner | None = None
        self._raised = Raised()

    def _create(self, name: str, *arguments: Any, keeps: Sequence[object] = ()) -> None:
        """Calls a function that makes the object, and owns it, also where a signal has
        come meanwhile."""
        pointer = c_void_p()
        try:
            self._make(name, *arguments, byref(pointer))
        finally:
            if pointer.value is not None:
                self._owned = Owner(pointer.value, f"tr_{self._kind}_destroy", *keeps)

    @property
    def _owner(self) -> Owner:
        if self._owned is None:
            raise Error(Status.USAGE, f"the {self._kind} is closed")
        return self._owned

    def _call(self, name: str, *arguments: Any) -> None:
        """Calls a function that takes the object first and a tr_error last."""
        owner = self._owner  # which a callback may close meanwhile
        self._make(name, owner.pointer, *arguments)

    def _make(self, name: str, *arguments: Any) -> None:
        error = c.tr_error()
        function = getattr(library(), name)
        with self._raised.at_work() as waiting:
            status = function(*arguments, byref(error))
        self._raised.again()
        waiting.deliver()
        check(status, error)

    def _ask(self, name: str, *arguments: Any) -> Any:
        owner = self._owner
        return getattr(library(), name)(owner.pointer, *arguments)

    def _print(self, name: str, *arguments: Any) -> str:
        """The text that a function gives to a tr_sink."""
        from ctypes import string_at

        pieces: list[bytes] = []

        def write(_: object, text: int, size: int) -> bool:
            pieces.append(string_at(text, size))
            return True

        sink = c.tr_sink()
        sink.write = sink_write(self._raised.guard(write, False))
        self._call(name, *arguments, byref(sink))
        return b"".join(pieces).decode("utf-8", "replace")

    def close(self) -> None:
        """Gives back what the object holds; nothing happens where it is closed. What
        was made of it, such as an engine of a run, goes on and keeps it until its own
        end."""
        self._owned = None

    @property
    def closed(self) -> bool:
        return self._owned is None

    def __enter__(self: T) -> T:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def field_type(struct: Any, name: str) -> Any:
    """The type of a member of a struct of the library."""
    return dict(struct._fields_)[name]


sink_write = field_type(c.tr_sink, "write")


def sized(struct: type[T]) -> T:
    """A struct that begins with its size."""
    from ctypes import sizeof

    made: Any = struct()
    made.size = sizeof(made)
    result: T = made
    return result
