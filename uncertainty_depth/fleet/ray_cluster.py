# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A connection to a Ray cluster, and what its tasks have in common."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from uncertainty_depth.errors import ConfigError
from uncertainty_depth.extras import missing

LOCAL = "local"
RETRIES = 5
"""Of a task whose node or process died."""
POLL_S = 0.5


@contextmanager
def cluster_at(address: str) -> Iterator[Any]:
    """Connect to a cluster and yield the module `ray`; None for an empty address.

    Args:
        address: of the cluster; "local" starts one on this machine.

    Raises:
        ConfigError: Ray is not installed, or no cluster answers at the address.
    """
    if not address:
        yield None
        return
    ray = _connected(address)
    try:
        yield ray
    finally:
        ray.shutdown()


def _connected(address: str) -> Any:
    try:
        import ray
    except ImportError as error:
        raise ConfigError(missing("ray")) from error
    try:
        ray.init(
            address=None if address == LOCAL else address,
            log_to_driver=False,
            include_dashboard=False if address == LOCAL else None,
        )
    except ConnectionError as error:
        raise ConfigError(
            f"no Ray cluster answers at {address}; expected its address, as `ray start --head` "
            "prints it, or local"
        ) from error
    return ray


def go_to(folder: str) -> None:
    """Work in the driver's folder where a node has it, so that relative paths are the same."""
    if Path(folder).is_dir():
        os.chdir(folder)


def last_line(error: Exception) -> str:
    """Return what an error of Ray says last, which is its reason."""
    lines = str(error).strip().splitlines()
    return lines[-1] if lines else repr(error)
