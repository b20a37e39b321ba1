# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Online against exact metrics on real NYU frames.

Predicted by the shipped network, and by the mean and spread of other NYU frames at each pixel.
"""

import itertools
import os
from pathlib import Path

import cv2
import numpy as np
import pytest

import uncertainty_depth
from uncertainty_depth.config import EvaluationConfig, PredictorConfig, SourceConfig
from uncertainty_depth.frames.source import open_source
from uncertainty_depth.inference.predictor import Predictor
from uncertainty_depth.metrics import (
    OnlineMetrics,
    by_depth,
    merci,
    n_merci,
    n_merci_curve,
    sparsification,
    spearman,
    valid_pixels,
)

FOLDER = os.environ.get("UNCERTAINTY_DEPTH_DATA")
pytestmark = pytest.mark.skipif(not FOLDER, reason="UNCERTAINTY_DEPTH_DATA is not set")
MODEL = Path(uncertainty_depth.__file__).parent / "models" / "demo"
CROP = (slice(22, 236), slice(20, 301))


def read(name):
    depth = (
        cv2.imread(
            str(Path(FOLDER) / "nyuv2" / "depth" / f"{int(name):04d}.png"), cv2.IMREAD_UNCHANGED
        )[CROP].astype(np.float32)
        / 1000
    )
    return np.where(depth > 0, depth, np.nan)


def names(split, step):
    return (Path(FOLDER) / "nyuv2" / f"{split}.txt").read_text().split()[::step]


def by_statistics(name):
    """Without a network: errors are large, skewed and full of the ties of quantised depth."""
    known = np.stack([read(other) for other in names("train", 40)])
    return np.nanmean(known, axis=0), np.nanstd(known, axis=0)


def by_network(name):
    """The model of the demo, far from the worlds it was trained on."""
    image = cv2.imread(str(Path(FOLDER) / "nyuv2" / "rgb" / f"{int(name):04d}.jpg"))[..., ::-1]
    prediction = Predictor(MODEL, PredictorConfig(device="cpu")).predict(
        np.ascontiguousarray(image), int(name)
    )
    return prediction.depth_m[CROP], prediction.sigma_m[CROP]


@pytest.fixture(
    scope="module", params=[by_statistics, by_network], ids=lambda predict: predict.__name__
)
def frames(request):
    return [(*request.param(name), read(name)) for name in names("test", 60)]


@pytest.fixture(scope="module")
def scored(frames):
    metrics = OnlineMetrics(EvaluationConfig(max_depth=10.0))
    figures = [metrics.update(*frame) for frame in frames]
    together = [
        np.concatenate([frame[k].reshape(-1) for frame in frames]).astype(np.float64)
        for k in range(3)
    ]
    valid = np.isfinite(together).all(axis=0) & (together[2] >= 0.1) & (together[2] <= 10)
    return metrics, figures, [values[valid] for values in together]


ALPHAS = np.arange(1, 21) / 20


def sigmas(depth, sigma):
    return {"method": sigma, "proportional_to_depth": depth, "constant": np.ones_like(depth)}


def test_n_merci_at_every_alpha_is_within_its_bound(scored):
    metrics, _, (depth, sigma, truth) = scored
    error = np.abs(depth - truth)
    drawn = metrics.curves()["n_merci"]["plain"]
    largest = np.quantile(error, ALPHAS, method="inverted_cdf")
    for name, values in sigmas(depth, sigma).items():
        expected = n_merci_curve(error, values)
        lengths = np.array([merci(error, values, alpha) for alpha in ALPHAS])
        bound = 2.0**-10 * (lengths + np.abs(expected) * largest) / np.abs(largest - error.mean())
        assert (np.abs(drawn[name] - expected) <= bound).all(), name


def test_trimmed_n_merci_is_that_of_an_alpha_next_to_it(scored):
    metrics, _, (depth, sigma, truth) = scored
    error = np.abs(depth - truth)
    drawn = metrics.curves()["n_merci"]["trimmed"]
    around = np.clip(ALPHAS[:, None] + np.linspace(-2e-3, 2e-3, 5), None, 1.0)
    for name, values in sigmas(depth, sigma).items():
        near = n_merci_curve(error, values, around.reshape(-1), trimmed=True).reshape(around.shape)
        assert (near.min(axis=1) * (1 - 5e-3) <= drawn[name]).all(), name
        assert (drawn[name] <= near.max(axis=1) * (1 + 5e-3)).all(), name


def test_the_metrics_of_the_summary_are_within_a_thousandth_and_withdrawn_within_two(scored):
    metrics, _, (depth, sigma, truth) = scored
    error = np.abs(depth - truth)
    found = metrics.compute()["uncertainty"]
    assert found["n_merci"] == pytest.approx(n_merci(error, sigma), rel=1e-3)
    assert found["n_merci_withdrawn"] == pytest.approx(
        n_merci(error, sigma, withdrawn=True), rel=2e-3
    )
    assert found["n_merci_trimmed"] == pytest.approx(n_merci(error, sigma, trimmed=True), rel=1e-3)


@pytest.mark.parametrize("error", ["abs_rel", "rmse", "a1"])
def test_pooled_and_per_image_sparsification(scored, error):
    metrics, figures, (depth, sigma, truth) = scored
    found = metrics.compute()["uncertainty"]
    exact = sparsification(depth, sigma, truth, error)
    assert found["ause_pooled"][error] == pytest.approx(exact.ause, rel=1e-3)
    assert found["aurg_pooled"][error] == pytest.approx(
        exact.aurg, rel=1e-3, abs=1e-3 * exact.random[0]
    )
    assert found["ause"][error] == pytest.approx(
        np.mean([frame["uncertainty"]["ause"][error] for frame in figures]), rel=1e-12
    )


def test_rank_correlation(scored):
    metrics, _, (depth, sigma, truth) = scored
    assert metrics.compute()["uncertainty"]["spearman"] == pytest.approx(
        spearman(sigma, np.abs(depth - truth)), abs=2e-3
    )


def check_intervals(metrics, depth, sigma, truth):
    """Check n-MeRCI per depth interval: within 5 % of the exact one, and blanks are counted."""
    found = metrics.curves()["intervals"]
    exact = by_depth(np.abs(depth - truth), sigma, truth, 0.1)
    first = round(found["edges"][0] / 0.1)
    number = len(exact.pixels) - first
    expected = exact.n_merci[first:]
    enough = exact.pixels[first:] >= exact.enough
    np.testing.assert_array_equal(found["pixels"][:number], exact.pixels[first:])
    shown = enough & np.isfinite(found["n_merci"][:number])
    assert enough.sum() - shown.sum() == found["unresolved"] <= 0.05 * enough.sum()
    np.testing.assert_allclose(found["n_merci"][:number][shown], expected[shown], rtol=0.05)
    means = found["n_merci"][:number][shown].mean(), expected[shown].mean()
    assert means[0] == pytest.approx(means[1], rel=0.01)


def test_intervals_of_real_indoor_errors(frames):
    for max_depth in (10.0, 80.0):
        metrics = OnlineMetrics(EvaluationConfig(max_depth=max_depth))
        pixels = []
        for frame in frames:
            metrics.update(*frame)
            pixels.append(valid_pixels(*frame, 0.1, max_depth))
        together = [
            np.concatenate(values).astype(np.float64) for values in zip(*pixels, strict=True)
        ]
        check_intervals(metrics, *together)


def test_intervals_of_real_street_errors():
    """Errors within an interval are all alike: n-MeRCI is a small difference."""
    drive = next(Path(FOLDER).glob("kitti_raw/*/*_sync"), None)
    if drive is None:
        pytest.skip("no KITTI drive")
    predictor = Predictor(MODEL, PredictorConfig(device="cpu"))
    metrics = OnlineMetrics()
    pixels = []
    for frame in itertools.islice(open_source(f"kitti:{drive}", SourceConfig()), 6):
        prediction = predictor.predict(frame.image, frame.stamp_ns)
        maps = prediction.depth_m, prediction.sigma_m, frame.ground_truth_m
        metrics.update(*maps)
        pixels.append(valid_pixels(*maps, 0.1, 80.0))
    together = [np.concatenate(values).astype(np.float64) for values in zip(*pixels, strict=True)]
    check_intervals(metrics, *together)
