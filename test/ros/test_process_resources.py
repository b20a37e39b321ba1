# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Memory, threads and descriptors of a process, as diagnostics publish them."""

from __future__ import annotations

import os
import threading

from uncertainty_depth.ros.process_resources import resources_of


def test_resources_of_this_process_follow_what_it_opens_and_starts(tmp_path):
    before = resources_of()
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    with (tmp_path / "file").open("w"):
        during = resources_of(os.getpid())
    stop.set()
    thread.join()
    assert during.threads == before.threads + 1
    assert during.descriptors == before.descriptors + 1
    assert 10 < before.memory_mib < 10_000


def test_a_process_that_has_ended_has_no_resources(start_python):
    process = start_python("-c", "")
    process.end()
    assert resources_of(process._process.pid) is None
