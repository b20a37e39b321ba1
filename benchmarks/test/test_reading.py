# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Every frame of a source is read and scored in each pass; how fast, no test asserts."""

from __future__ import annotations

from benchmarks.reading import run, table
from uncertainty_depth.config import SourceConfig
from uncertainty_depth.frames.source import open_source


def test_times_are_of_every_frame() -> None:
    source = open_source("synthetic:worlds=1,frames=3,width=64,height=48", SourceConfig())
    times = run(source, rounds=2)
    assert times.frames == 3
    for spread in times[1:]:
        assert 0 < spread.minimum <= spread.median <= spread.maximum
    assert f"| rooms | 3 | {times.reading_ms} |" in table("rooms", times)
