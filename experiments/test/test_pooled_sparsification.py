# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The sparsification of all pixels together, against its sources."""

import importlib.metadata
import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.integrate import trapezoid

from experiments.pooled_sparsification import pooled_sparsification

ERRORS = ("rmse", "mae")


@pytest.fixture
def pixels():
    """Depth, sigma and ground truth of 3,000 pixels."""
    rng = np.random.default_rng(7)
    truth = rng.uniform(1, 20, 3000)
    sigma = truth * rng.uniform(0.02, 0.2, 3000)
    return truth + rng.normal(0, sigma), sigma, truth


@pytest.fixture
def torch_uncertainty_ause():
    """The AUSE class, from its one file: importing the package asks for torchvision."""
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


def naive_kept_number(depth, sigma, truth, error):
    """Sort, keep a number of pixels, divide by the first value."""
    is_rmse = error == "rmse"
    values = (truth - depth) ** 2 if is_rmse else np.abs(truth - depth)
    fractions = np.arange(start=0.0, stop=1.0, step=0.01) if is_rmse else np.arange(100) / 100
    numbers = [
        int((1.0 - f) * len(values)) if is_rmse else (100 - step) * len(values) // 100
        for step, f in enumerate(fractions)
    ]
    curves = []
    for key in (sigma, values):
        means = [values[np.argsort(key)][:number].mean() for number in numbers]
        curves.append(np.sqrt(means) if is_rmse else np.array(means))
    return fractions, curves[0] / curves[0][0], curves[1] / curves[1][0], np.ones(100)


@pytest.mark.parametrize("error", ERRORS)
def test_sparsification_follows_its_source(pixels, error):
    fractions, removal, oracle, random = naive_kept_number(*pixels, error)
    result = pooled_sparsification(*pixels, error)
    curves = (result.fractions, result.sparsification, result.oracle, result.random)
    for curve, expected in zip(curves, (fractions, removal, oracle, random), strict=True):
        np.testing.assert_allclose(curve, expected, rtol=1e-10, atol=1e-12)
    area = trapezoid(removal - oracle, fractions)
    assert result.ause == pytest.approx(area, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("error", ERRORS)
def test_equal_sigmas_count_as_in_any_order(pixels, error):
    """A constant removes at random."""
    depth, sigma, truth = pixels
    order = np.random.default_rng(1).permutation(len(depth))
    steps = np.ceil(sigma)
    found, shuffled = (
        pooled_sparsification(depth[some], steps[some], truth[some], error)
        for some in (slice(None), order)
    )
    assert shuffled.ause == pytest.approx(found.ause, rel=1e-12)
    constant = pooled_sparsification(depth, np.full_like(depth, 0.3), truth, error)
    assert constant.aurg == pytest.approx(0, abs=1e-12)
    assert pooled_sparsification([2.0], [0.1], [1.0], error).ause == pytest.approx(0)
    assert np.isnan(pooled_sparsification([], [], [], error).ause)


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
    ours = pooled_sparsification(depth, sigma, ground_truth, "mae")
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


def test_another_error_has_no_such_curve():
    with pytest.raises(ValueError, match="error is 'a1'; expected one of 'rmse', 'mae'"):
        pooled_sparsification([1.0], [1.0], [1.0], "a1")
