# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Memory, threads and open files of a process, from Linux's /proc."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

MIB = 2**20


class Resources(NamedTuple):
    """What a process holds now: resident MiB without shared files, threads, open files."""

    memory_mib: float
    threads: int
    descriptors: int


def resources_of(pid: int | None = None) -> Resources | None:
    """Return a process's resources, by default this one's; None at its end, or without /proc."""
    folder = Path("/proc") / str(os.getpid() if pid is None else pid)
    try:
        pages = [int(text) for text in (folder / "statm").read_text().split()]
        threads = len(os.listdir(folder / "task"))
        descriptors = len(os.listdir(folder / "fd"))
    except (OSError, ValueError):
        return None
    private_pages = pages[1] - pages[2]  # resident without shared ones
    memory_mib = private_pages * os.sysconf("SC_PAGE_SIZE") / MIB
    return Resources(memory_mib, threads, descriptors)
