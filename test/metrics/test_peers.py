# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The same metrics from other packages, and what differs where their definitions do.

torch-uncertainty is loaded from its one file: importing the package asks for torchvision, which
this project does without.
"""

import importlib.metadata
import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch

from uncertainty_depth.metrics import auce, crps, interval_score, nll, sparsification


@pytest.fixture
def torch_uncertainty_ause():
    """The AUSE class, as installed."""
    pytest.importorskip("torchmetrics", reason="torchmetrics is not installed")
    found = importlib.util.find_spec("torch_uncertainty")
    if found is None:
        pytest.skip("torch-uncertainty is not installed")
    path = Path(found.submodule_search_locations[0]) / "metrics" / "sparsification.py"
    specification = importlib.util.spec_from_file_location(
        "torch_uncertainty_sparsification", path
    )
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.AUSE


def test_torch_uncertaintys_sparsification_is_ilgs_at_every_pixel(pixels, torch_uncertainty_ause):
    """Since 0.13 it is the mean error of the rest over that of all.

    It has N steps where ours has 100. Before (0.3 ... 0.12) it was the *sum* of the errors of the
    rest, as a fraction of the whole: another metric under the same name. The fraction of pixels
    that is left leads from one to the other.
    """
    depth, sigma, ground_truth = pixels
    error = np.abs(depth - ground_truth)
    peer = torch_uncertainty_ause()
    peer.update(torch.from_numpy(sigma), torch.from_numpy(error))
    removal, oracle = (curve.numpy().astype(np.float64) for curve in peer.partial_compute())
    ours = sparsification(depth, sigma, ground_truth, "mae", "ilg")
    removed = len(error) - (100 - np.arange(100)) * len(error) // 100
    sums = tuple(map(int, importlib.metadata.version("torch-uncertainty").split(".")[:2])) < (
        0,
        13,
    )
    left = 1 - removed / len(error) if sums else 1.0
    np.testing.assert_allclose(removal[removed] / left, ours.sparsification, rtol=1e-5)
    np.testing.assert_allclose(oracle[removed] / left, ours.oracle, rtol=1e-5)
    if not sums:
        assert float(peer.compute()) == pytest.approx(ours.ause, rel=0.02)


def test_uncertainty_toolbox_has_the_same_likelihood_and_miscalibration(pixels):
    toolbox = pytest.importorskip(
        "uncertainty_toolbox", reason="uncertainty-toolbox is not installed"
    )
    depth, sigma, ground_truth = pixels
    error = np.abs(depth - ground_truth)
    assert nll(error, sigma) == pytest.approx(
        toolbox.nll_gaussian(depth, sigma, ground_truth, scaled=True), rel=1e-10
    )
    assert crps(error, sigma) == pytest.approx(
        toolbox.crps_gaussian(depth, sigma, ground_truth), rel=1e-10
    )
    # Its interval score is the mean over the levels 0.01 ... 0.99.
    scores = [interval_score(error, sigma, level) for level in np.arange(1, 100) / 100]
    assert np.mean(scores) == pytest.approx(
        toolbox.interval_score(depth, sigma, ground_truth), rel=1e-10
    )
    # Its area has levels 0 ... 1 in 100 parts and a polygon's exact area, which cuts where the
    # curve crosses the diagonal.
    assert auce(error, sigma) == pytest.approx(
        toolbox.miscalibration_area(depth, sigma, ground_truth, num_bins=101), abs=2e-3
    )
