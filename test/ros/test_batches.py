# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""If memory runs out, images are predicted one by one; the result is the same."""

from __future__ import annotations

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from test.ros.conftest import FakePredictor, red
from uncertainty_depth.core.config import PredictorConfig
from uncertainty_depth.core.device_errors import DeviceLostError
from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.records import Frame, SampleRange
from uncertainty_depth.ros.batches import Batches

OUT_OF_MEMORY = MessageError("out_of_memory", "the memory of cuda is too small for a frame")


class Failing:
    """Raises the same error for every batch."""

    def __init__(self, error):
        self.error = error
        self.tried = 0

    def predict_batch(self, observations, samples):
        self.tried += 1
        raise self.error


@pytest.mark.parametrize("error", [OUT_OF_MEMORY, RuntimeError("shapes do not match")])
def test_an_image_that_fails_alone_is_not_tried_again(error):
    predictor = Failing(error)
    (result,) = Batches(predictor).predict(["an image"], None)
    assert predictor.tried == 1
    assert result is error


def test_a_gpu_that_is_lost_ends_the_batch():
    with pytest.raises(DeviceLostError):
        Batches(Failing(DeviceLostError("cuda is lost"))).predict(["an image", "another"], None)


def test_a_budget_is_for_the_batch_and_memory_that_runs_out_splits_it():
    batches = Batches(FakePredictor(PredictorConfig(samples=8)))
    for _ in range(12):
        count = batches.choose(40.0, 4).count
        batches.finished(SampleRange(0, count), 4, 4.0 * (1 + count))
    assert batches.choose(40.0, 4).count == pytest.approx(8, abs=1)
    assert batches.choose(20.0, 4).count == pytest.approx(4, abs=1)
    assert batches.choose(20.0, 2).count == pytest.approx(8, abs=1)

    class SmallBatch(FakePredictor):
        def predict_batch(self, observations, samples=None):
            self.batches.append(len(observations))
            if len(observations) > 2:
                raise OUT_OF_MEMORY
            return super().predict_batch(observations, samples)

    small = SmallBatch(PredictorConfig(samples=8))
    batches = Batches(small)
    samples = batches.choose(0.0, 4)
    images = [Frame(value, "", None, red(value)) for value in range(4)]
    for _ in range(2):
        results = batches.predict(images, samples)
        assert [result.depth_m[0, 0] for result in results] == [0, 1, 2, 3]
    sizes = [size for size in small.batches if isinstance(size, int)]
    assert sizes == [4, *[1] * 8]  # once too large, never again
