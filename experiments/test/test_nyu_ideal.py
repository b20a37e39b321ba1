# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Drawn truths have the distribution that sigma stands for, and score accordingly."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from experiments.nyu_ideal import NOISE, RECIPES, draw_truths, score_random_truth
from experiments.nyu_passes import Passes, load_networks
from experiments.nyu_search import SmallFrames
from uncertainty_depth.metrics import OnlineMetrics

SHAPE = (200, 200)
KNOWN = np.ones(SHAPE, bool)


@pytest.fixture
def maps():
    rng = np.random.default_rng(1)
    return rng.uniform(4.0, 6.0, SHAPE).astype(np.float32), rng.uniform(0.05, 0.5, SHAPE).astype(
        np.float32
    )


@pytest.mark.parametrize(
    ("kind", "distribution"),
    [("Laplace", stats.laplace(scale=np.sqrt(0.5))), ("normal", stats.norm())],
)
def test_the_scaled_errors_have_the_distribution_and_unit_variance(maps, kind, distribution):
    depth, sigma = maps
    scaled = ((draw_truths(depth, sigma, KNOWN, 0)[kind] - depth) / sigma).ravel()
    assert distribution.std() == pytest.approx(1)
    assert stats.kstest(scaled, distribution.cdf).pvalue > 1e-3


def test_draws_differ_between_frames_and_keep_what_is_unknown(maps):
    known = KNOWN.copy()
    known[:50] = False
    first, again, other = (draw_truths(*maps, known, seed) for seed in (0, 0, 1))
    for kind in NOISE:
        assert_array_equal(np.isfinite(first[kind]), known)
        assert_array_equal(first[kind], again[kind])
        assert not np.array_equal(first[kind], other[kind], equal_nan=True)


def test_no_drawn_depth_is_below_zero():
    for truth in draw_truths(
        np.full(SHAPE, 0.1, np.float32), np.full(SHAPE, 1.0, np.float32), KNOWN, 0
    ).values():
        assert np.nanmin(truth) > 0
        assert np.isnan(truth).any()


def test_a_normal_truth_is_covered_as_it_should(maps):
    metrics = OnlineMetrics()
    metrics.update(*maps, draw_truths(*maps, KNOWN, 0)["normal"])
    assert metrics.compute()["uncertainty"]["auce"] < 0.01


def test_the_measured_truth_is_scored_beside_the_drawn_ones(nyu_models):
    rng = np.random.default_rng(0)
    frames = SmallFrames(
        [rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)],
        [rng.uniform(1, 9, (32, 32)).astype(np.float16)],
    )
    passes = Passes(load_networks(nyu_models / "models" / "multi_epochs_laplace-0"))
    found = score_random_truth(passes, RECIPES, frames)
    passes.look_at(frames.images[0], 0)
    for title, recipe in RECIPES.items():
        alone = OnlineMetrics()
        alone.update(*passes.maps(recipe), frames.truths[0].astype(np.float32))
        assert set(found[title]) == {"measured", *NOISE}
        assert_allclose(
            found[title]["measured"]["uncertainty"]["ause"]["rmse"],
            alone.compute()["uncertainty"]["ause"]["rmse"],
        )
