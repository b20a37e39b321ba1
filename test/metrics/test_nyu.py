# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Online against exact metrics on real NYU frames.

Predicted by the shipped network, and by the mean and spread of other NYU frames at each pixel.
"""

import os
from functools import cache
from pathlib import Path

import cv2
import numpy as np
import pytest

import uncertainty_depth
from uncertainty_depth.config import EvaluationConfig, PredictorConfig
from uncertainty_depth.inference.predictor import Predictor
from uncertainty_depth.metrics import (
    OnlineMetrics,
    auce,
    merci,
    n_merci,
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


@cache
def demo():
    return Predictor(MODEL, PredictorConfig(device="cpu"))


def by_network(name):
    """The model of the demo, far from the worlds it was trained on."""
    image = cv2.imread(str(Path(FOLDER) / "nyuv2" / "rgb" / f"{int(name):04d}.jpg"))[..., ::-1]
    prediction = demo().predict(np.ascontiguousarray(image), int(name))
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


def test_sums_are_exact_and_n_merci_within_a_thousandth(scored):
    metrics, figures, (depth, sigma, truth) = scored
    error = np.abs(depth - truth)
    found = metrics.compute()
    for baseline, values in (("constant", np.ones_like(depth)), ("proportional_to_depth", depth)):
        expected = n_merci(error, values)
        assert found["baselines"][baseline]["n_merci"] == pytest.approx(expected, rel=1e-3)
    assert found["uncertainty"]["n_merci"] == pytest.approx(n_merci(error, sigma), rel=1e-3)
    assert found["uncertainty"]["merci"] == pytest.approx(merci(error, sigma), rel=1e-3)
    assert found["uncertainty"]["auce"] == pytest.approx(auce(error, sigma), rel=1e-9)
    for name in ("abs_rel", "rmse", "a1"):
        mean = np.mean([frame["uncertainty"]["ause"][name] for frame in figures])
        assert found["uncertainty"]["ause"][name] == pytest.approx(mean, rel=1e-12)
