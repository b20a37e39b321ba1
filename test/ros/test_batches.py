# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Where memory runs out, fewer samples are computed at a time; the result is the same."""

from __future__ import annotations

import logging

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from test.ros.conftest import FakePredictor, red
from uncertainty_depth.config import PredictorConfig
from uncertainty_depth.errors import ConfigError, MessageError
from uncertainty_depth.records import Observation, SampleRange
from uncertainty_depth.ros.batches import Batches, check_budget

CPU = RuntimeError("[enforce fail at alloc_cpu.cpp:75] DefaultCPUAllocator: can't allocate memory")
GPU = RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB.\nGPU 0 has ...")


class Small:
    """Takes only so many samples at a time."""

    def __init__(self, error, fits, **options):
        self.config = PredictorConfig(**options)
        self.error = error
        self.fits = fits
        self.tried = []

    def predict_batch(self, observations, samples, widen):
        self.tried.append(min(self.config.chunk, self.config.samples))
        if self.tried[-1] > self.fits:
            raise self.error
        return ["maps"]


def predict(predictor):
    (result,) = Batches(predictor).predict(["an image"], None)
    return result


@pytest.mark.parametrize("error", [CPU, GPU, MemoryError()])
@pytest.mark.parametrize(("fits", "expected"), [(8, [6]), (4, [6, 3]), (1, [6, 3, 1])])
def test_samples_at_a_time_are_halved_until_they_fit(error, fits, expected, caplog):
    predictor = Small(error, fits, samples=6, chunk=100)
    with caplog.at_level(logging.WARNING):
        assert predict(predictor) == predict(predictor) == "maps"  # the lower chunk is kept
    assert predictor.tried == [*expected, expected[-1]]
    assert predictor.config.samples == 6
    assert len(caplog.records) == len(expected) - 1


def test_a_sample_that_does_not_fit_is_one_reason():
    error = predict(Small(GPU, 0, samples=8, chunk=8))
    assert isinstance(error, MessageError)
    assert error.reason == "out_of_memory"
    assert str(error).endswith("2.00 GiB.")


def test_other_failures_are_not_tried_again():
    predictor = Small(RuntimeError("shapes do not match"), 0)
    assert predict(predictor) is predictor.error
    assert len(predictor.tried) == 1


def test_a_budget_is_refused_where_fewer_passes_are_another_sigma():
    with pytest.raises(ConfigError, match="frame_budget_ms is 50, but the sigma of tta"):
        check_budget("tta", 50.0)
    check_budget("tta", 0.0)
    check_budget("mc_dropout", 50.0)


def test_a_budget_is_for_the_batch_and_memory_that_runs_out_halves_it():
    batches = Batches(FakePredictor(PredictorConfig(samples=8, chunk=1)))
    for _ in range(12):
        count = batches.choose(40.0, 4).count
        batches.finished(SampleRange(0, count), 4, 4.0 * (1 + count))
    assert batches.choose(40.0, 4).count == pytest.approx(8, abs=1)
    assert batches.choose(20.0, 4).count == pytest.approx(4, abs=1)
    assert batches.choose(20.0, 2).count == pytest.approx(8, abs=1)

    class SmallBatch(FakePredictor):
        def predict_batch(self, observations, samples=None, widen=True):
            self.batches.append(len(observations))
            if len(observations) > 2:
                raise RuntimeError("CUDA out of memory")
            return super().predict_batch(observations, samples, widen)

    small = SmallBatch(PredictorConfig(samples=8))
    batches = Batches(small)
    samples = batches.choose(0.0, 4)
    images = [Observation(red(value), value) for value in range(4)]
    for _ in range(2):
        results = batches.predict(images, samples)
        assert [result.depth_m[0, 0] for result in results] == [0, 1, 2, 3]
    sizes = [size for size in small.batches if isinstance(size, int)]
    assert sizes == [4, 2, 2, 2, 2]  # once too large, never again
