# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Whether anything predicts where the 95 % interval fails, against closed forms."""

import numpy as np
import pytest
from scipy.stats import laplace, norm

from uncertainty_depth.metrics.conditional import MAX_FRAMES, PixelSample, excess_risk
from uncertainty_depth.metrics.frame import ScoredPixels

SHAPE = (24, 30)
FRAMES = MAX_FRAMES


def sample_of(errors_at, frames=FRAMES, draw=np.random.Generator.standard_normal):
    """Return the kept pixels of frames whose error is `errors_at` sigmas, by depth and place."""
    sample = PixelSample()
    rows, columns = np.indices(SHAPE)
    for index in range(frames):
        random = np.random.default_rng([index, 1])
        depth = np.exp(random.uniform(0, 2, SHAPE))
        sigma = 0.01 * depth * random.uniform(0.5, 2, SHAPE)
        error = sigma * draw(random, SHAPE) * errors_at(depth, rows, columns)
        sample.add(ScoredPixels(depth, sigma, depth + error, 0.01, 100))
    return sample.frames()


def gap(factor):
    """Return how far the Gaussian 95 % interval of a sigma too small by a factor is from 95 %."""
    return abs(0.95 - (2 * norm.cdf(norm.ppf(0.975) / factor) - 1))


CASES = {
    "right": (lambda depth, rows, columns: 1, 0),
    "a corner": (
        lambda depth, rows, columns: np.where((rows < 12) & (columns < 15), 3, 1),
        gap(3) / 4,
    ),
    "near": (lambda depth, rows, columns: np.where(depth < np.e, 2, 1), gap(2) / 2),
    "too much and too little": (
        lambda depth, rows, columns: np.where(rows < 12, 0.5, 1.1785),
        (gap(0.5) + gap(1.1785)) / 2,
    ),
    "everywhere": (lambda depth, rows, columns: 1.5, gap(1.5)),
}


@pytest.mark.parametrize("case", CASES)
def test_it_is_the_mean_distance_of_the_foreseeable_coverage_from_95_percent(case):
    errors_at, expected = CASES[case]
    assert excess_risk(sample_of(errors_at), "gaussian") == pytest.approx(expected, abs=0.01)


def test_an_interval_that_covers_95_percent_of_all_may_fail_where_that_can_be_told():
    """Coverage alone calls it right."""
    frames = sample_of(CASES["too much and too little"][0])
    covered = frames[:, 4] <= norm.ppf(0.975)
    assert covered.mean() == pytest.approx(0.95, abs=0.01)
    assert excess_risk(frames, "gaussian") > 0.04


def test_a_failure_that_nothing_foretells_is_not_found():
    """The scale of sigma drifts: neither place nor depth nor sigma tells where it is too small."""
    right = sample_of(lambda *_: 1)
    excess = []
    for seed in range(6):
        random = np.random.default_rng(seed)
        log = np.zeros(FRAMES)
        for index in range(1, FRAMES):
            log[index] = 0.8 * log[index - 1] + random.normal(0, 0.3)
        frames = right.copy()
        frames[:, 4] *= np.exp(log)[:, None]
        covered = (frames[:, 4] <= norm.ppf(0.975)).mean(axis=1)
        assert covered.std() > 0.05
        excess.append(excess_risk(frames, "gaussian") - abs(covered.mean() - 0.95))
    assert max(excess) < 0.01


def test_the_interval_is_of_the_distribution_of_the_error():
    def draw(random, shape):
        return random.laplace(0, np.sqrt(0.5), shape)

    frames = sample_of(lambda *_: 1.5, draw=draw)
    width = laplace.ppf(0.975, scale=np.sqrt(0.5))
    expected = 0.95 - (1 - 2 * laplace.sf(width / 1.5, scale=np.sqrt(0.5)))
    assert excess_risk(frames, "laplace") == pytest.approx(expected, abs=0.012)


def test_all_covered_all_missed_and_numbers_beyond_float32_are_values():
    frames = sample_of(lambda *_: 1, frames=20)
    for ratio, expected in ((0, 0.05), (9, 0.95)):
        frames[:, 4] = ratio
        assert excess_risk(frames, "gaussian") == pytest.approx(expected)
    sample = PixelSample()
    for _ in range(10):
        truth = np.full(SHAPE, 4.0)
        sample.add(ScoredPixels(truth, truth * 1e300, truth, 0.1, 80))
        sample.add(ScoredPixels(truth, truth * 0, truth + 1, 0.1, 80))
    assert np.isfinite(excess_risk(sample.frames(), "gaussian")).all()


def test_memory_is_bounded_and_the_frames_are_spread_over_the_run():
    sample = PixelSample()
    number = 3 * MAX_FRAMES
    for index in range(number):
        depth = np.full((8, 10), 1.0 + index)
        sample.add(ScoredPixels(depth, depth, depth, 0.1, 1e6))
    kept = sample.frames()[:, 1, 0] - 1
    assert MAX_FRAMES // 2 <= len(kept) <= MAX_FRAMES
    assert len(set(np.diff(kept))) == 1
    assert kept[-1] > 0.9 * number
