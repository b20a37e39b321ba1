# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""tta against views predicted one by one, and against networks whose depth is known."""

from __future__ import annotations

import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from experiments import methods  # noqa: F401  registers them
from experiments.augmented_views import (
    VIEWS,
    AugmentedViews,
    View,
    predict_view,
)
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.training import NetworkConfig
from uncertainty_depth.core.model_location import SHIPPED_MODEL
from uncertainty_depth.depth.networks.depth_network import NetworkOutput
from uncertainty_depth.depth.networks.hourglass import Hourglass
from uncertainty_depth.depth.predictor import Predictor

STAMP = 1_700_000_000_123_456_789
ALL = PredictorConfig(samples=len(VIEWS))
POST = PredictorConfig(samples=2)
IMAGE = torch.rand(1, 3, 40, 60, generator=torch.Generator().manual_seed(0))
SYMMETRIC = torch.cat([IMAGE, IMAGE.flip(-1)], dim=-1)


@pytest.fixture(scope="module")
def network() -> Hourglass:
    torch.manual_seed(0)
    config = NetworkConfig(backbone="tiny", decoder_width=16, head="laplace")
    return Hourglass(config).eval()


class Brightness:
    """A network whose depth is its pixels' brightness: it knows no left, no right and no size."""

    def __init__(self, canonical: float = 0.0) -> None:
        self.config = SimpleNamespace(canonical_focal_length=canonical, head="none")
        self.inputs: list[torch.Tensor] = []

    def __call__(self, image):
        self.inputs.append(image)
        return NetworkOutput(1.0 + image[:, :3].mean(1, keepdim=True), None)

    def variance(self, output):
        return None


def test_a_symmetric_image_has_no_variance_but_the_networks_own_asymmetry(network):
    """Both views are the same pixels, so the deviation is half the depth's own asymmetry."""
    depth = network(SYMMETRIC).depth_m[0, 0].detach()
    estimate = AugmentedViews(network).estimate(SYMMETRIC, STAMP, POST)
    torch.testing.assert_close(estimate.epistemic.sqrt(), (depth - depth.flip(-1)).abs() / 2)
    torch.testing.assert_close(estimate.depth_m, estimate.depth_m.flip(-1))
    plain = AugmentedViews(Brightness()).estimate(SYMMETRIC, STAMP, POST)
    assert not plain.epistemic.any()


def test_depth_is_the_mean_of_the_views(network):
    with torch.no_grad():
        outputs = [predict_view(network, IMAGE, view) for view in VIEWS]
    depths = np.array([output.depth_m[0, 0].double().numpy() for output in outputs])
    scales = np.array([output.scale_m[0, 0].double().numpy() for output in outputs])
    estimate = AugmentedViews(network).estimate(IMAGE, STAMP, ALL)
    np.testing.assert_allclose(estimate.depth_m, depths.mean(0), rtol=1e-5)
    np.testing.assert_allclose(estimate.epistemic, depths.var(0), rtol=1e-3, atol=1e-9)
    np.testing.assert_allclose(estimate.aleatoric, (2 * scales**2).mean(0), rtol=1e-4)
    assert depths.var(0).min() > 0


def test_nothing_is_random_and_more_samples_than_views_are_all_views(network):
    estimator = AugmentedViews(network)
    reference = estimator.estimate(IMAGE, STAMP, ALL)
    other = estimator.estimate(IMAGE, STAMP + 1, replace(ALL, samples=99, seed=5))
    assert all(map(torch.equal, other[:3], reference[:3]))
    assert estimator.passes(replace(ALL, samples=99)) == len(VIEWS)


@pytest.mark.parametrize("view", VIEWS[2:])
def test_other_views_change_the_input_and_come_back_at_the_images_size(view):
    network = Brightness()
    output = predict_view(network, IMAGE, view)
    assert output.depth_m.shape == (1, 1, 40, 60)
    given = network.inputs[0].flip(-1) if view.flip else network.inputs[0]
    assert given.shape[-2:] == (round(40 * view.scale), round(60 * view.scale))
    assert given.min() >= 0
    assert given.max() <= 1
    assert given.shape != IMAGE.shape or not torch.equal(given, IMAGE)


@pytest.mark.parametrize(("canonical", "factor"), [(0.0, 1.0), (1.2, 0.8)])
def test_a_smaller_image_changes_the_unit_of_canonical_depth_alone(canonical, factor):
    """Metres stay metres; what a canonical camera sees in fewer pixels is farther."""
    network = Brightness(canonical)
    constant = torch.full((1, 4, 40, 60), 0.5)
    output = predict_view(network, constant, View(scale=0.8))
    torch.testing.assert_close(output.depth_m, torch.full((1, 1, 40, 60), 1.5 * factor))
    torch.testing.assert_close(network.inputs[0][:, 3:], torch.full((1, 1, 32, 48), 0.5 / factor))


def test_sparse_depth_is_never_mixed_with_the_unknown():
    network = Brightness()
    sparse = torch.zeros(1, 1, 40, 60)
    sparse[..., ::3, ::4] = 2.0
    image = torch.cat([IMAGE, sparse], dim=1)
    for view in VIEWS:
        predict_view(network, image, view)
        assert set(network.inputs[-1][:, 3].unique().tolist()) == {0.0, 2.0}


def test_it_serves_any_model(tmp_path):
    """The views of one network, whatever its members were trained for; nothing is random."""
    folder = tmp_path / "model"
    shutil.copytree(SHIPPED_MODEL, folder)
    config = PredictorConfig(method="tta", device="cpu", samples=3)
    predictor = Predictor(folder, config)
    image = np.random.default_rng(0).integers(0, 256, (48, 64, 3), dtype=np.uint8)
    found = predictor.predict(image, STAMP)
    assert predictor.method == "tta"
    assert predictor.passes == 3
    assert (found.sigma_m > 0).mean() > 0.9
    assert np.array_equal(found.sigma_m, Predictor(folder, config).predict(image, STAMP).sigma_m)
