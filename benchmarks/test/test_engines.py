# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The table of engines holds what was measured."""

from benchmarks import engines
from uncertainty_depth.config import NetworkConfig


def test_every_ratio_is_to_the_plain_pass_of_its_round(monkeypatch):
    network = NetworkConfig(backbone="tiny", decoder_width=16, input_size=(64, 48))
    monkeypatch.setattr(engines, "CANDIDATES", (("torch", "fp32"), ("missing", "fp32")))
    rows = engines.run(2, network)
    assert rows[0].label == engines.PLAIN
    assert rows[0].ratio == (1.0, 1.0, 1.0)
    for row in rows:
        assert 0 < row.ratio.minimum <= row.ratio.median <= row.ratio.maximum
    assert {row.label.partition(",")[0] for row in rows} == {"torch fp32"}
    assert engines.table(rows).count("\n") == len(rows) + 3
