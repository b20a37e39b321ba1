# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""How many threads compute, and how they wait: a robot's computer is always busy.

Threads that spin while they wait for each other take the processors from those they wait for.
"""

from __future__ import annotations

import os
from typing import Any


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
