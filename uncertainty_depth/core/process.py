# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""How a process waits and ends: its threads on a busy robot, and Ctrl-C between two frames.

Threads that spin while they wait for each other take the processors from those they wait for.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], None]


def wait_passively() -> None:
    """Let torch's waiting threads sleep, not spin; call it before torch is imported.

    An OMP_WAIT_POLICY passed to the process takes precedence.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def single_threaded_blas() -> Any:
    """Limit BLAS to one thread, for good or as a context; torch's own threads are not touched.

    Projecting and scoring use matrices with three columns: threads gain nothing there, and if
    other processes occupy the cores, each call waits for all threads.
    """
    import numpy as np  # noqa: F401  its BLAS must be loaded to be found
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1, user_api="blas")


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
