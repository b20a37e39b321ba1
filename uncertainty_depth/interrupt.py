# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Handle Ctrl-C between two frames, so that the current one is finished first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


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
    main thread, which alone gets signals, the flag is never set. Code that leaves a loop because
    of the flag must report it: nothing is raised on leaving.
    """
    outer = getattr(signal.getsignal(signal.SIGINT), "__self__", None)
    interrupt = outer if isinstance(outer, Interrupt) else Interrupt()
    before = signal.getsignal(signal.SIGINT)
    is_main_thread = threading.current_thread() is threading.main_thread()
    if not is_main_thread or not callable(before):  # it is ignored, as in a background job
        yield interrupt
        return
    signal.signal(signal.SIGINT, interrupt.on_signal)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
