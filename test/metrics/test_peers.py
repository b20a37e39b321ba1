# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The same metrics from another package, and what differs where its definitions do."""

import numpy as np
import pytest

from uncertainty_depth.metrics import auce, crps, interval_score, nll


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
