# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""How many threads compute, and how they wait: a robot's computer is always busy.

Threads that spin while they wait for each other take the processors from those they wait for.
"""

from __future__ import annotations

import os
from typing import Any


def wait_passively() -> None:
    """Let the waiting threads of torch sleep; to be called before torch is imported.

    They spin by default, which costs most where least is left. Passing OMP_WAIT_POLICY to the
    process still decides.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def single_threaded_blas() -> Any:
    """Limit BLAS to one thread, for good or as a context; torch's own threads are not touched.

    The matrices of projecting and scoring have three columns: threads gain nothing, and where a
    camera's and a network's processes have the cores, each call waits for all of them.
    """
    import numpy as np  # noqa: F401  its BLAS must be loaded to be found
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1, user_api="blas")
