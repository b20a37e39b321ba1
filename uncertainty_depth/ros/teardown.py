"""Taking a node down in bounded time: a middleware may hang while it does, and nobody waits."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable

STEP_S = 1.5
THREADS = ("worker", "teardown")


def take_down(step: Callable[[], object]) -> None:
    """Do a step, or leave it to `exit_if_stuck` where it takes longer than `STEP_S`."""
    thread = threading.Thread(target=step, name="teardown", daemon=True)
    thread.start()
    thread.join(STEP_S)


def exit_if_stuck(code: int) -> None:
    """End the process at once where a thread of this package still runs: it would wait for it."""
    if any(thread.name in THREADS for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
