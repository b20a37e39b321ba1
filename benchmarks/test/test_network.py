# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The bench times what it says it times; how fast that is, no test asserts."""

import math

from benchmarks.network import run, table
from uncertainty_depth.config import NetworkConfig, PredictorConfig


def test_rows_hold_the_ratios_of_their_own_times():
    network = NetworkConfig(backbone="tiny", decoder_width=16, input_size=(64, 48))
    rows = run(1, PredictorConfig(samples=3, chunk=2, device="cpu"), network)
    assert [row.method for row in rows] == ["mc_dropout", "multi_epochs"]
    for row in rows:
        milliseconds = row.milliseconds.median
        assert math.isclose(row.of_naive.median, milliseconds / row.naive_ms.median, rel_tol=1e-9)
        assert math.isclose(row.of_floor.median, milliseconds / row.floor_ms.median, rel_tol=1e-9)
        assert f"| {row.of_floor} |" in table(rows)
