"""Exceptions and signals while the library is at work. C knows no exceptions: what a
callback raises is kept, the callback ends with a value that makes the call end, and the
caller raises it again. A signal that Python handles waits for the next callback,
because what its handler raises outside of a guarded function would be lost."""

from __future__ import annotations

import importlib
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

# Those whose handlers raise, as people write them. SIGINT is restored last.
_SIGNALS = [
    *(signal.SIGALRM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGQUIT),
    *(signal.SIGTERM, signal.SIGINT),
]

# As the module signal has it, without the names of its numbers: those take longer than
# all else that a call does here.
_plain = importlib.import_module("_signal")


class Signals:
    """Those that came while C was at work, and the handlers that wait for them."""

    def __init__(self) -> None:
        self.handlers: dict[int, Callable[[int, Any], Any]] = {}
        self.direct = False  # Python is at work, in a guarded function
        self._came: list[tuple[int, Any]] = []

    def take(self) -> None:
        for number in _SIGNALS:
            handler = _plain.getsignal(number)
            if callable(handler):
                self.handlers[number] = handler
                _plain.signal(number, self._handle)

    def give_back(self) -> None:
        for number, handler in self.handlers.items():
            _plain.signal(number, handler)

    def _handle(self, number: int, frame: Any) -> None:
        if self.direct:
            self.handlers[number](number, frame)
        else:
            self._came.append((number, frame))

    def deliver(self) -> None:
        while self._came:
            number, frame = self._came.pop(0)
            self.handlers[number](number, frame)


class Raised:
    """The first exception of the callbacks of an object's calls."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self._signals = Signals()

    @contextmanager
    def at_work(self) -> Iterator[Signals]:
        """While the library is. Signals come to the main thread alone."""
        before, now = self._signals, Signals()
        if threading.current_thread() is not threading.main_thread():
            yield now
            return
        self._signals = now
        now.take()
        try:
            yield now
        finally:
            now.give_back()
            self._signals = before

    def guard(self, function: Callable[..., T], failed: T) -> Callable[..., T]:
        """A function that C may call. failed: what makes the call end."""

        def guarded(*arguments: Any) -> T:
            signals = self._signals
            try:
                signals.direct = True
                try:
                    signals.deliver()
                    return function(*arguments)
                finally:
                    signals.direct = False
            except BaseException as error:
                signals.direct = False
                if self.error is None:
                    self.error = error
                return failed

        return guarded

    def stop(self, kind: Any) -> Any:
        """A function that the library asks now and then whether to end: where a
        callback or a signal's handler has raised."""

        def stop(_: object) -> bool:
            return self.error is not None

        return kind(self.guard(stop, True))

    def again(self) -> None:
        error, self.error = self.error, None
        if error is not None:
            raise error
