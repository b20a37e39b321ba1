# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Shut a node down in bounded time: the middleware may hang."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rclpy.node import Node

STEP_S = 1.5
THREADS = ("worker", "teardown")


def take_down(step: Callable[[], object]) -> None:
    """Run a shutdown step; leave it to `exit_if_stuck` where it takes longer than `STEP_S`."""
    thread = threading.Thread(target=step, name="teardown", daemon=True)
    thread.start()
    thread.join(STEP_S)


def exit_if_stuck(code: int) -> None:
    """Exit the process if a thread of this package still runs: Python would wait for it."""
    if any(thread.name in THREADS for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


@contextmanager
def destroyed_on_failure(node: Node) -> Iterator[None]:
    """Destroy a node that cannot be constructed: whoever holds the exception holds the node.

    It would stay in the graph, with publishers that others wait for.
    """
    try:
        yield
    except Exception:
        take_down(node.destroy_node)
        raise
