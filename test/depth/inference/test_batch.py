# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Images of several cameras in one batch get the maps that each gets alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from uncertainty_depth.core.config import PredictorConfig
from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.records import DepthPrediction, Frame, SampleRange
from uncertainty_depth.depth import familiarity
from uncertainty_depth.depth.familiarity import Familiarity
from uncertainty_depth.depth.model_folder.folder import read
from uncertainty_depth.depth.predictor import Predictor

RTOL = 1e-5
"""float32 sums in another order; of a batch of 1, none."""
STAMP = 1_700_000_000_123_456_789


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, make_model) -> Path:
    """Return two members with a canonical focal length and random weights, and a familiarity."""
    path = make_model(
        tmp_path_factory.mktemp("model"),
        "multi_epochs",
        head="laplace",
        canonical_focal_length=0.8,
    )
    features = 2 * sum(read(path).load("m0").encoder.backbone.channels[:-1])  # not the deepest map
    familiarity.write(
        path, Familiarity(np.zeros(features, np.float32), np.eye(features) + 0.0, 10.0)
    )
    return path


def observation(seed: int, width: int, height: int, focal_length: float) -> Frame:
    rng = np.random.default_rng(seed)
    image = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    intrinsics = np.array(
        [[focal_length, 0, width / 2], [0, focal_length, height / 2], [0, 0, 1.0]]
    )
    return Frame(STAMP + seed, "", Camera(width, height, intrinsics), image)


OBSERVATIONS = [
    observation(0, 120, 90, 100.0),
    observation(1, 80, 64, 50.0),
    observation(2, 64, 100, 80.0),
]


def assert_close(one: DepthPrediction, other: DepthPrediction) -> None:
    np.testing.assert_allclose(one.depth_m, other.depth_m, rtol=RTOL)
    np.testing.assert_allclose(one.sigma_m, other.sigma_m, rtol=20 * RTOL)
    assert one.unfamiliarity == pytest.approx(other.unfamiliarity, rel=RTOL)


METHODS = ["mc_dropout", "multi_epochs", "deterministic"]


@pytest.mark.parametrize("method", METHODS)
def test_each_image_of_a_batch_gets_the_maps_it_gets_alone(folder: Path, method: str) -> None:
    predictor = Predictor(folder, PredictorConfig(method=method, samples=3, device="cpu"))
    samples = SampleRange(1, 2) if method != "deterministic" else None
    together = predictor.predict_batch(OBSERVATIONS, samples)
    assert len(together) == 3
    for one, prediction in zip(OBSERVATIONS, together, strict=True):
        alone = predictor.predict(one.image, one.stamp_ns, one.camera, samples)
        assert prediction.depth_m.shape == one.image.shape[:2]
        assert_close(prediction, alone)
    scores = {prediction.unfamiliarity for prediction in together}
    assert len(scores) == 3


def test_the_noise_of_an_image_is_its_own(folder: Path) -> None:
    predictor = Predictor(folder, PredictorConfig(method="mc_dropout", samples=2, device="cpu"))
    first = OBSERVATIONS[0]
    later = Frame(STAMP + 9, "", first.camera, first.image)
    same, other = predictor.predict_batch([first, later])
    assert_close(same, predictor.predict(first.image, first.stamp_ns, first.camera))
    assert not np.allclose(same.depth_m, other.depth_m, rtol=100 * RTOL)


def test_a_batch_of_one_is_the_same_to_the_last_bit_and_one_of_none_is_empty(folder: Path) -> None:
    predictor = Predictor(folder, PredictorConfig(method="mc_dropout", samples=2, device="cpu"))
    one = OBSERVATIONS[0]
    (together,) = predictor.predict_batch([one])
    alone = predictor.predict(one.image, one.stamp_ns, one.camera)
    assert np.array_equal(together.depth_m, alone.depth_m)
    assert np.array_equal(together.sigma_m, alone.sigma_m)
    assert predictor.predict_batch([]) == []


def test_what_is_no_image_is_refused_with_the_whole_batch(folder: Path) -> None:
    predictor = Predictor(folder, PredictorConfig(samples=2, device="cpu"))
    bad = Frame(0, "", None, np.zeros((4, 5), np.uint8))
    with pytest.raises(MessageError, match=r"image has shape \(4, 5\)"):
        predictor.predict_batch([OBSERVATIONS[0], bad])
