# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The bench compares both ways on the same images; how fast the machine is, no test asserts."""

from __future__ import annotations

from uncertainty_depth.bench import cameras
from uncertainty_depth.config import NetworkConfig


def test_a_row_for_each_model_method_and_number_of_cameras() -> None:
    network = NetworkConfig(backbone="tiny", decoder_width=16, input_size=(80, 64))
    rows = cameras.run(repetitions=1, network=network)
    assert [row.cameras for row in rows] == [2, 4] * 4
    assert len({(row.model, row.method) for row in rows}) == 4
    for row in rows:
        assert row.one_by_one_ms.minimum > 0
        assert row.ratio.minimum == row.ratio.maximum > 0
    text = cameras.table(rows)
    assert f"| {rows[-1].ratio} |" in text
    assert len(text.splitlines()) == 2 + len(rows) + 2
