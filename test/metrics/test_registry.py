# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The contract of every metric: a naive reference, and the same value however frames are added."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from test.metrics.conftest import drawn, metrics_of
from uncertainty_depth.metrics import (
    auce,
    aurc,
    coverage,
    crps,
    depth_errors,
    interval_score,
    merci,
    mpiw,
    n_merci,
    nll,
    sparsification,
    spearman,
)
from uncertainty_depth.metrics.online import OnlineMetrics
from uncertainty_depth.metrics.registry import (
    BASELINES,
    METRICS,
    baseline_name,
    flatten,
    undefined,
)
from uncertainty_depth.metrics.state import MAX_BLOCKS, Sums

DISTRIBUTIONS = {"gaussian": "", "laplace": "_laplace"}
EDGES = [0, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, math.inf]
HISTOGRAM = {
    "depth.p95": 2e-3,
    "depth.p99": 2e-3,
    "uncertainty.n_merci": 2e-3,
    "uncertainty.merci": 2e-3,
    "uncertainty.ence": 0.02,
    "uncertainty.coverage_95_by_sigma": 0.02,
    "uncertainty.coverage_95_laplace_by_sigma": 0.02,
    "by_distance.n_merci": 0.06,
}
"""Relative error of what is read off a histogram; everything else is exact to 1e-9."""


def together(frames):
    return [np.concatenate(values).astype(np.float64) for values in zip(*frames, strict=True)]


def over_pixels(compute):
    """A reference that takes error and sigma at all pixels."""

    def reference(frames):
        depth, sigma, truth = together(frames)
        return compute(np.abs(depth - truth), sigma)

    return reference


def mean_over_images(compute):
    def reference(frames):
        values = [compute(*frame) for frame in frames]
        defined = [value for value in values if not math.isnan(value)]
        return np.mean(defined) if defined else math.nan

    return reference


def by_distance(compute):
    def reference(frames):
        depth, sigma, truth = together(frames)
        values = []
        for low, high in itertools.pairwise(EDGES):
            inside = (truth >= low) & (truth < high)
            values.append(
                compute(depth[inside], sigma[inside], truth[inside]) if inside.any() else math.nan
            )
        return values

    return reference


def covered(distribution):
    def compute(depth, sigma, truth):
        return coverage(np.abs(depth - truth), sigma, 0.95, distribution)

    return compute


def tenths(frames):
    """Errors and sigmas in ten equally large groups, by ascending sigma."""
    depth, sigma, truth = together(frames)
    order = np.argsort(sigma, kind="stable")
    return zip(
        np.array_split(np.abs(depth - truth)[order], 10),
        np.array_split(sigma[order], 10),
        strict=True,
    )


def coverage_by_sigma(distribution):
    return lambda frames: [coverage(*group, 0.95, distribution) for group in tenths(frames)]


def ence(frames):
    gaps = []
    for error, sigma in tenths(frames):
        claimed, found = np.sqrt(np.mean(sigma**2)), np.sqrt(np.mean(error**2))
        gaps.append(abs(claimed - found) / claimed)
    return np.mean(gaps)


def logs_of_scales(frames):
    return np.array([np.log(np.median(truth / depth)) for depth, _, truth in frames])


def pixel_deviation(frames):
    squares = [
        ((np.log(depth / truth) - np.log(depth / truth).mean()) ** 2).sum()
        for depth, _, truth in frames
    ]
    return np.sqrt(sum(squares) / sum(len(depth) for depth, _, _ in frames))


def ranked(statistic, area):
    return mean_over_images(lambda *frame: getattr(sparsification(*frame, statistic), area))


REFERENCES = {
    "pixels": lambda frames: sum(len(depth) for depth, _, _ in frames),
    "scored_fraction": lambda frames: 1.0,
    "depth.within_10_percent": lambda frames: np.mean(
        np.abs(together(frames)[0] - together(frames)[2]) <= 0.1 * together(frames)[2]
    ),
    **{
        f"depth.p{percent}": over_pixels(
            lambda error, _, share=percent / 100: np.quantile(error, share, method="inverted_cdf")
        )
        for percent in (95, 99)
    },
    "depth.bias": lambda frames: (together(frames)[0] - together(frames)[2]).mean(),
    **{
        f"depth.{name}": lambda frames, name=name: depth_errors(*together(frames)[::2])[name]
        for name in depth_errors([1.0], [1.0])
    },
    **{
        f"uncertainty.{area}.{statistic}": ranked(statistic, area)
        for area in ("ause", "aurg")
        for statistic in ("abs_rel", "rmse", "a1")
    },
    "uncertainty.aurc": mean_over_images(lambda d, s, g: aurc(np.abs(d - g), s)),
    "uncertainty.spearman": mean_over_images(lambda d, s, g: spearman(s, np.abs(d - g))),
    "uncertainty.n_merci": over_pixels(n_merci),
    "uncertainty.merci": over_pixels(merci),
    "uncertainty.ence": ence,
    **{
        f"uncertainty.{name.format(suffix)}": over_pixels(
            lambda error, sigma, compute=compute, distribution=distribution: compute(
                error, sigma, distribution
            )
        )
        for distribution, suffix in DISTRIBUTIONS.items()
        for name, compute in {
            "auce{}": auce,
            "coverage_68{}": lambda error, sigma, distribution: coverage(
                error, sigma, 0.68, distribution
            ),
            "coverage_95{}": lambda error, sigma, distribution: coverage(
                error, sigma, 0.95, distribution
            ),
            "nll{}": nll,
            "crps{}": crps,
            "interval_score_95{}": lambda e, s, distribution: interval_score(
                e, s, 0.95, distribution
            ),
            "mpiw_95{}": lambda error, sigma, distribution: mpiw(sigma, 0.95, distribution),
        }.items()
    },
    **{
        f"uncertainty.coverage_95{suffix}_by_sigma": coverage_by_sigma(distribution)
        for distribution, suffix in DISTRIBUTIONS.items()
    },
    "by_distance.pixels": lambda frames: np.histogram(together(frames)[2], EDGES)[0],
    "by_distance.bias": by_distance(lambda d, s, g: (d - g).mean()),
    "by_distance.mae": by_distance(lambda d, s, g: np.abs(d - g).mean()),
    "by_distance.sigma": by_distance(lambda d, s, g: s.mean()),
    "by_distance.coverage_95": by_distance(covered("gaussian")),
    "by_distance.coverage_95_laplace": by_distance(covered("laplace")),
    "by_distance.n_merci": by_distance(lambda d, s, g: n_merci(np.abs(d - g), s)),
    "by_distance.repeatability": lambda frames: [math.nan] * (len(EDGES) - 1),
    "scale.mean_factor": lambda frames: np.exp(logs_of_scales(frames).mean()),
    "scale.scale_deviation": lambda frames: logs_of_scales(frames).std(),
    "scale.scale_jump": lambda frames: np.abs(np.diff(logs_of_scales(frames))).mean(),
    "scale.pixel_deviation": pixel_deviation,
    "unfamiliarity.frames": lambda frames: 0,
    "unfamiliarity.mean": lambda frames: math.nan,
    "unfamiliarity.max": lambda frames: math.nan,
    "unfamiliarity.fraction_above_1": lambda frames: math.nan,
}


def smooth():
    return [drawn(20_000, seed) for seed in range(5)]


def tied():
    """Sigma in whole centimetres: many equals."""
    return [(d, np.maximum(np.round(s, 2), 0.01), g) for d, s, g in smooth()]


def constant():
    return [(d, np.full_like(s, 0.7), g) for d, s, g in smooth()]


def certain():
    """A tenth of the sigmas is 0, some with an error, some without."""
    frames = []
    for depth, sigma, truth in smooth():
        sigma[::10] = 0.0
        depth[::20] = truth[::20]
        frames.append((depth, sigma, truth))
    return frames


def nine_decades():
    frames = []
    for seed, (_, _, truth) in enumerate(smooth()):
        rng = np.random.default_rng(seed)
        error = 10.0 ** rng.uniform(-8, 0, truth.size) * truth
        sigma = error * rng.lognormal(0, 1, truth.size)
        frames.append((truth + error, sigma, truth))
    return frames


DATA = (smooth, tied, constant, certain, nine_decades)


@pytest.fixture(scope="module", params=DATA, ids=lambda make: make.__name__)
def scored(request):
    frames = request.param()
    return request.param, frames, metrics_of(frames)


def test_every_metric_has_a_reference():
    assert set(REFERENCES) == {metric.name for metric in METRICS}


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_the_value_is_the_references(scored, metric):
    make, frames, metrics = scored
    with np.errstate(all="ignore"):
        expected = REFERENCES[metric.name](frames)
    found = metric.values(metrics.total())[0]
    limits = {"rtol": HISTOGRAM.get(metric.name, 1e-9), "atol": 1e-12}
    if metric.name in ("by_distance.n_merci", "uncertainty.ence") and make is not smooth:
        limits["rtol"] = 0.2  # coarse bins of ties
    if metric.name == "by_distance.n_merci":
        few = REFERENCES["by_distance.pixels"](frames) < 500
        expected = np.where(few, found, expected)
    if metric.name.endswith("merci") and make is certain:
        limits["rtol"] = 0.2 if metric.groups else 0.01  # the quantile is the last finite ratio
    if metric.name.endswith("_by_sigma") and make is not smooth:
        limits["atol"] = 0.1  # a group ends within a bin where sigmas are equal
    if (metric.name == "uncertainty.ence" or metric.name.endswith("_by_sigma")) and (
        make is nine_decades
    ):
        unknown = np.isnan(found)  # sigmas below 0.06 mm are in one bin
        assert all(
            name in undefined(metrics.total())
            for name in np.array(metric.names())[np.atleast_1d(unknown)]
        )
        expected = np.where(unknown, found, expected)
    if metric.name == "uncertainty.ence" and make is certain:
        assert math.isinf(found) or math.isnan(found)
        return
    if metric.name == "by_distance.n_merci" and make is nine_decades:
        return  # close to its pole, where the mean error is the quantile, it means nothing
    assert_allclose(found, expected, **limits)


@pytest.mark.parametrize("baseline", BASELINES)
def test_a_baselines_size_is_that_of_the_most_likely_scale(scored, baseline):
    """The method has no such help; rankings and n-MeRCI need no scale."""
    _, frames, metrics = scored
    found = flatten(metrics.compute())
    of_baseline = [
        (depth, np.ones_like(depth) if baseline == "constant" else depth, truth)
        for depth, _, truth in frames
    ]
    depth, sigma, truth = together(of_baseline)
    ratio = np.abs(depth - truth) / sigma
    scale = {"gaussian": np.sqrt(np.mean(ratio**2)), "laplace": np.sqrt(2) * ratio.mean()}
    for metric in METRICS:
        if not metric.is_of_sigma:
            continue
        distribution = "laplace" if metric.name.endswith("_laplace") else "gaussian"
        factor = scale[distribution] if metric.is_size else 1.0
        scaled = [(depth, factor * sigma, truth) for depth, sigma, truth in of_baseline]
        value = found[baseline_name(baseline, metric)]
        limit = 1e-9 if metric.over == "images" else 3e-3
        assert_allclose(
            value, REFERENCES[metric.name](scaled), rtol=limit, atol=3e-4, err_msg=metric.name
        )


def test_parts_merged_in_any_order_agree():
    """But for scale_jump, which is not counted between parts."""
    frames = [drawn(300, seed) for seed in range(150)]
    parts = [metrics_of(frames[:3]), metrics_of(frames[3:140]), metrics_of(frames[140:])]
    whole = flatten(metrics_of(frames).compute())
    for order in itertools.permutations(range(3)):
        merged = OnlineMetrics()
        for place in order:
            merged.merge(parts[place])
        found = flatten(merged.compute())
        for name, value in whole.items():
            if name != "scale.scale_jump":
                assert_allclose(found[name], value, rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("number", [MAX_BLOCKS, MAX_BLOCKS + 1, 300])
def test_blocks_are_merged_in_pairs_and_hold_every_frame(number):
    frames = [drawn(50, seed) for seed in range(number)]
    metrics = metrics_of(frames)
    assert len(metrics.blocks) <= MAX_BLOCKS
    assert metrics.frames == number
    for name in ("depth.mae", "uncertainty.ause.rmse", "uncertainty.auce"):
        found = flatten(metrics.compute())[name]
        assert found == pytest.approx(REFERENCES[name](frames), rel=1e-9)
    assert metrics.blocks.table().nbytes < 5_800_000


@pytest.fixture(scope="module")
def twelve_frames():
    return metrics_of([drawn(400, seed) for seed in range(12)])


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_the_interval_comes_from_the_function_of_the_value(metric, twelve_frames):
    metrics = twelve_frames
    blocks = metrics.blocks.table()
    weights = np.random.default_rng(0).multinomial(12, np.full(12, 1 / 12), 5).astype(float)
    rows = metric.values(Sums(blocks, np.vstack((np.ones(12), weights))))
    assert_allclose(rows[0], metric.values(metrics.total())[0], rtol=1e-9)
    for row, times in zip(rows[1:], weights, strict=True):
        again = blocks.repeat(times.astype(int))
        assert_allclose(row, metric.values(Sums(again))[0], rtol=1e-9, atol=1e-12)
