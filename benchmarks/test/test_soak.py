# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The soak test: what counts as growth, and a run of seconds with real processes."""

from __future__ import annotations

import csv

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from benchmarks import soak
from benchmarks.soak import growth
from uncertainty_depth.core.model_location import model_path
from uncertainty_depth.ros.diagnostics import Resources


def test_what_grows_after_the_warm_up_is_named():
    steady = [Resources(500.0, 9, 30)] * 20 + [Resources(100.0, 9, 20)] * 80
    assert growth("node", steady).excesses == []
    leaking = [Resources(100.0 + index, 9, 20 + index // 4) for index in range(100)]
    memory, descriptors = growth("node", leaking).excesses
    assert memory == "node: memory_mib grew from 132.5 to 186.5, by more than 20"
    assert "descriptors grew from 28 to 41" in descriptors
    with pytest.raises(ValueError, match="2 samples"):
        growth("node", leaking[:2])


def test_seconds_of_soak_on_the_real_graph(tmp_path, monkeypatch):
    """Caches still fill in so short a time: it judges threads and descriptors only."""
    warm = Resources(memory_mib=1000.0, threads=8, descriptors=16)
    monkeypatch.setattr(soak, "ALLOWED", warm)
    lines = list(soak.run(0.05, model_path("demo"), tmp_path))
    assert lines[-1] == "nothing grew"
    rows = list(csv.DictReader((tmp_path / "resources.csv").open()))
    assert {row["process"] for row in rows} == {"depth_node", "evaluator_node", "player"}
    assert len(rows) == 9
    assert (tmp_path / "report" / "report.html").exists()
