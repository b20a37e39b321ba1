# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Keep NumPy's BLAS from using threads: on a busy machine they spin and wait for each other."""

from __future__ import annotations

from typing import Any


def single_threaded_blas() -> Any:
    """Limit BLAS to one thread, for good or as a context; torch's own threads are not touched.

    The matrices of projecting and scoring have three columns: threads gain nothing, and where a
    camera's and a network's processes have the cores, each call waits for all of them.
    """
    import numpy as np  # noqa: F401  its BLAS must be loaded to be found
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1, user_api="blas")
