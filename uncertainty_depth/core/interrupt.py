# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Handle Ctrl-C between two frames, so that the current one is finished first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

Handler = Callable[[int, FrameType | None], None]


class Interrupt:
    """Flag that Ctrl-C sets; loops check `requested` between two frames."""

    def __init__(self) -> None:
        self.requested = False

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Set the flag; if it is set already, raise `KeyboardInterrupt`."""
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True


@contextmanager
def deferred_interrupt() -> Iterator[Interrupt]:
    """Turn the first Ctrl-C into a flag; a second one raises `KeyboardInterrupt` at once.

    Nested contexts share the outer flag: a loop stops, and so does the code around it. Outside the
    main thread, which alone gets signals, the flag is never set. Code that leaves a loop by the
    flag must report it: nothing is raised on leaving.
    """
    outer = getattr(signal.getsignal(signal.SIGINT), "__self__", None)
    interrupt = outer if isinstance(outer, Interrupt) else Interrupt()
    with _handler(interrupt.on_signal):
        yield interrupt


@contextmanager
def held_interrupt() -> Iterator[None]:
    """Delay Ctrl-C until the context is left, for a short step that must be completed.

    Others' handlers stay: to set one again would undo rclpy's, which calls Python's, and the
    node would not hear Ctrl-C any more.
    """
    before = signal.getsignal(signal.SIGINT)
    is_own = isinstance(getattr(before, "__self__", None), Interrupt)
    if not is_own and before is not signal.default_int_handler:
        yield
        return
    waiting = Interrupt()

    def on_signal(number: int, frame: FrameType | None) -> None:
        waiting.requested = True

    with _handler(on_signal):
        yield
    if waiting.requested:
        signal.raise_signal(signal.SIGINT)


@contextmanager
def _handler(handler: Handler) -> Iterator[None]:
    """Handle SIGINT by `handler`, unless it is ignored, as in a background job."""
    before = signal.getsignal(signal.SIGINT)
    is_main_thread = threading.current_thread() is threading.main_thread()
    if not is_main_thread or not callable(before):
        yield
        return
    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
