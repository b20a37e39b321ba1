# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The benchmark of engines times what is installed, by turns."""

from __future__ import annotations

import numpy as np

from benchmarks import engines


def test_every_engine_of_the_demo_is_timed_against_torch() -> None:
    seconds = engines.measure("demo", samples=2, rounds=2)
    assert "torch fp32" in seconds
    assert all(durations.shape == (2,) and (durations > 0).all() for durations in seconds.values())


def test_the_fastest_engine_is_recommended() -> None:
    seconds = {"torch fp32": np.array([2.0, 4.0]), "openvino bf16": np.array([1.0, 1.0])}
    assert engines.table(seconds).splitlines()[2:] == [
        "| torch fp32 | 3000.0 | 1.00 (1.00 to 1.00) |",
        "| openvino bf16 | 1000.0 | 0.38 (0.25 to 0.50) |",
        "",
        "fastest: --engine openvino --precision bf16",
    ]
