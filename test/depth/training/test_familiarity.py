# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Unfamiliarity: small for frames like the training's, large for others, kept with the model."""

import logging
from dataclasses import replace

import numpy as np
import pytest
import torch

from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.errors import ModelError, SourceError
from uncertainty_depth.core.records import DepthPrediction, Frame
from uncertainty_depth.depth import familiarity
from uncertainty_depth.depth.familiarity import WARNING_FRAMES, Familiarity, pooled
from uncertainty_depth.depth.model_folder.writing import export_half
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.depth.training.familiarity import add_familiarity, fit
from uncertainty_depth.depth.training.frames import TrainingFrames
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.judgement import GREEN, GREY, RED, Check
from uncertainty_depth.report.verdict import judge


def gaussian(count: int, seed: int, shift: float = 0.0) -> np.ndarray:
    """Return correlated features with different scales, (count, 12)."""
    rng = np.random.default_rng(seed)
    mixing = np.random.default_rng(0).normal(size=(12, 12)) * np.logspace(-1, 1, 12)
    return rng.normal(size=(count, 12)) @ mixing + shift


def test_about_one_in_a_hundred_frames_like_the_training_s_is_above_one():
    fitted = fit(gaussian(2000, 1))
    assert (fitted.scores(gaussian(4000, 3)) > 1).mean() == pytest.approx(0.01, abs=0.008)
    assert (fitted.scores(gaussian(100, 4, shift=300.0)) > 1).all()


def test_a_few_odd_frames_do_not_make_all_frames_familiar():
    odd = gaussian(1000, 1)
    odd[::20] = gaussian(50, 5, shift=300.0)
    assert fit(odd).threshold < 1.2 * fit(gaussian(1000, 1)).threshold


def worlds(count: int, seed: int, shift: float = 0.0) -> np.ndarray:
    """Return features for ten frames in each of these worlds, which differ more than their frames.

    Worlds fill all directions, and the frames of one hardly any.
    """
    rng = np.random.default_rng(seed)
    places = np.repeat(rng.normal(size=(count, 40)), 10, axis=0)
    return places + 0.05 * rng.normal(size=places.shape) + shift


def test_a_world_that_the_training_has_not_seen_is_familiar_and_another_kind_is_not():
    fitted = fit(worlds(80, 1))
    assert (fitted.scores(worlds(200, 2)) > 1).mean() < 0.05
    assert (fitted.scores(worlds(20, 3, shift=2.0)) > 1).mean() > 0.95


def test_few_places_like_the_training_s_exceed_the_limits_for_places():
    fitted = fit(worlds(150, 1))
    means = fitted.scores(worlds(1000, 2)).reshape(1000, 10).mean(axis=1)
    assert (means > fitted.places[0]).mean() == pytest.approx(0.1, abs=0.05)
    assert (means > fitted.places[1]).mean() == pytest.approx(0.01, abs=0.01)
    others = fitted.scores(worlds(20, 3, shift=0.7)).reshape(20, 10)
    assert (others > 1).mean() < 0.3, "few frames are strange by themselves"
    assert (others.mean(axis=1) > fitted.places[0]).mean() > 0.6


def test_the_distance_is_mahalanobis_of_the_shrunk_covariance():
    training = gaussian(500, 1)
    fitted = fit(training)
    mean = training.mean(axis=0)
    deviation = training.std(axis=0)
    covariance = 0.9 * np.cov(((training - mean) / deviation).T) + 0.1 * np.eye(12)
    others = (gaussian(5, 3) - mean) / deviation
    expected = np.sqrt(np.einsum("ni,ij,nj->n", others, np.linalg.inv(covariance), others))
    distances = fitted.scores(gaussian(5, 3)) * fitted.threshold
    np.testing.assert_allclose(distances, expected, rtol=1e-3)


def test_a_feature_that_never_changes_does_no_harm():
    training = np.concatenate([gaussian(100, 1), np.zeros((100, 1))], axis=1)
    assert np.isfinite(fit(training).scores(training)).all()


def test_too_few_frames_are_refused():
    with pytest.raises(SourceError, match="3 frames; expected at least 20"):
        fit(gaussian(3, 1))


def test_maps_and_states_are_pooled_over_their_pixels():
    shallow = torch.arange(24.0).view(1, 2, 3, 4)
    deep = torch.ones(1, 1, 2, 2)
    deviation = np.std(np.arange(12))
    expected = [[5.5, 17.5, deviation, deviation]]
    np.testing.assert_allclose(pooled((shallow, deep)), expected, rtol=1e-6)
    np.testing.assert_allclose(pooled((shallow,)), expected, rtol=1e-6)
    states = torch.arange(24.0).view(1, 2, 12).transpose(1, 2)  # (B, N, C)
    np.testing.assert_allclose(pooled(((states, states), (3, 4)))[0, :2], [5.5, 17.5])


def flat(count: int, seed: int) -> list[np.ndarray]:
    """Return grey images with soft gradients, (64, 80, 3) uint8."""
    rng = np.random.default_rng(seed)
    ramp = np.linspace(-1, 1, 80)[None, :, None] * np.ones((64, 1, 3))
    return [
        np.uint8(120 + 20 * rng.uniform(-1, 1) + 30 * rng.uniform(-1, 1) * ramp)
        for _ in range(count)
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, make_model):
    """Return a model with random weights that is familiar with flat grey images."""
    path = tmp_path_factory.mktemp("model")
    make_model(path, members=("best",), training={"source": "flat"})
    frames = TrainingFrames(images=flat(90, 1), depths_m=[np.ones((64, 80), np.float16)] * 90)
    add_familiarity(path, frames, "cpu")
    return path


def noisy() -> np.ndarray:
    return np.random.default_rng(5).integers(0, 256, (64, 80, 3), dtype=np.uint8)


def test_a_prediction_says_how_unfamiliar_its_frame_is(folder):
    predictor = Predictor(folder, PredictorConfig(samples=2, device="cpu"))
    known = [predictor.predict(image).unfamiliarity for image in flat(20, 2)]
    assert np.mean([score <= 1 for score in known]) > 0.8
    assert predictor.predict(noisy()).unfamiliarity > 3 * max(known)


def test_unfamiliar_images_are_reported_once(folder, caplog):
    predictor = Predictor(folder, PredictorConfig(samples=2, device="cpu"))
    with caplog.at_level(logging.WARNING):
        for _ in range(WARNING_FRAMES - 1):
            predictor.predict(noisy())
        assert "unlike those of the training" not in caplog.text
        for _ in range(WARNING_FRAMES):
            predictor.predict(noisy())
    assert caplog.text.count("unlike those of the training") == 1


def test_another_engine_gives_no_unfamiliarity(folder):
    pytest.importorskip("onnxruntime")
    config = PredictorConfig(samples=2, device="cpu", engine="onnxruntime")
    predictor = Predictor(folder, config)
    assert predictor.predict(noisy()).unfamiliarity is None


def test_a_model_without_it_says_nothing(folder, tmp_path):
    copy = export_half(folder, tmp_path / "half")
    assert Predictor(copy, PredictorConfig(device="cpu")).predict(noisy()).unfamiliarity > 1
    (copy / "familiarity.safetensors").unlink()
    assert Predictor(copy, PredictorConfig(device="cpu")).predict(noisy()).unfamiliarity is None


def of_three(size: int) -> Familiarity:
    return Familiarity(np.zeros(3, np.float32), np.eye(size, dtype=np.float32), 1.0, (0.8, 0.9))


def test_the_familiarity_of_another_network_is_refused(folder, tmp_path):
    copy = export_half(folder, tmp_path / "half")
    familiarity.write(copy, of_three(3))
    with pytest.raises(ModelError, match="the model's familiarity 3"):
        Predictor(copy, PredictorConfig(device="cpu"))
    familiarity.write(copy, of_three(2))
    with pytest.raises(ModelError, match="expected a square matrix of as many features"):
        Predictor(copy, PredictorConfig(device="cpu"))
    (copy / "familiarity.safetensors").write_bytes(b"damaged")
    with pytest.raises(ModelError, match="damaged"):
        Predictor(copy, PredictorConfig(device="cpu"))


def domain_check(scores: tuple[float | None, ...], model: dict) -> Check:
    evaluation = Evaluation()
    random = np.random.default_rng(0)
    for stamp, score in enumerate(scores):
        truth = random.uniform(1, 5, (8, 8)).astype(np.float32)
        made = DepthPrediction(1.1 * truth, 0.1 * truth, unfamiliarity=score)
        evaluation.add(Frame(stamp, str(stamp), ground_truth_m=truth, prediction=made))
    line = next(line for line in judge(evaluation, model, None).lines if line.name == "domain")
    return line.checks[0]


def test_the_verdict_compares_the_mean_with_places_like_the_training_s():
    def color(*scores: float | None) -> str:
        return domain_check(scores, {"familiar_places": [0.84, 0.91]}).color

    assert color(None, *(0.5, 0.9) * 50, 1.2) == GREEN
    assert color(*(0.86, 0.9) * 50) == GREY, "a street without a frame above 1"
    assert color(*(0.9, 0.96, 1.02) * 40) == RED, "most frames are below 1"
    assert color(*(0.5,) * 99, *(3.0,) * 51) == RED
    assert color(1.1, 0.9) == GREY
    text = domain_check((0.5,) * 99 + (1.2,), {"familiar_places": [0.84, 0.91]}).text
    assert "above 1 in 1 % of 100 frames" in text
    assert "90 % below 0.84, 99 % below 0.91" in text


def test_a_familiarity_without_places_still_scores_frames(tmp_path):
    familiarity.write(tmp_path, replace(of_three(3), places=None))
    again = familiarity.read(tmp_path)
    assert again.places is None
    assert again.scores(np.full((1, 3), 2.0)) == pytest.approx([2 * 3**0.5])


def test_unfamiliarity_is_grey_if_its_usual_values_are_not_known():
    check = domain_check((0.5,) * 40, {})
    assert check.color == GREY
    assert "not known which" in check.text


def test_a_model_says_what_is_usual_in_places_like_the_training_s(folder):
    described = Predictor(folder, PredictorConfig(device="cpu")).describe()
    assert 0 < described["familiar_places"][0] <= described["familiar_places"][1]
