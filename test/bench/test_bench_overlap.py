# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The benchmark of overlapping parts accounts for all of the time in sequence."""

import numpy as np
import pytest

from uncertainty_depth.bench.overlap import run, table
from uncertainty_depth.records import DepthPrediction, Frame


class Source:
    name = "three"

    def __len__(self):
        return 3

    def __iter__(self):
        for number in range(3):
            truth = np.full((20, 30), 2.0, np.float32)
            yield Frame(number, np.zeros((20, 30, 3), np.uint8), None, truth, f"{number}")


class Predictor:
    calls = 0

    def predict(self, image, stamp_ns, camera=None):
        self.calls += 1
        return DepthPrediction(np.ones((20, 30), np.float32), np.ones((20, 30), np.float32))


def test_every_round_times_each_part_and_the_whole():
    predictor = Predictor()
    rounds = run(Source(), predictor, rounds=2)
    assert len(rounds) == 2
    assert predictor.calls == 3 * 2 * 3, "and one round that is not counted"
    for one in rounds:
        assert min(one) > 0
        assert one.in_sequence == pytest.approx(one.reading + one.predicting + one.scoring)
        assert one.slowest_part < one.in_sequence
    assert "| overlapped / in sequence |" in table("three", rounds)
