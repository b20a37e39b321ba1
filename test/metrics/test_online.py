# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The one-pass accumulator against the exact functions on everything it has seen.

On smooth data, on adversarial data, in any chunks.
"""

import dataclasses
import inspect
import itertools
import math
import re
import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from uncertainty_depth.cli import main as cli
from uncertainty_depth.cli.demo import MODEL as DEMO
from uncertainty_depth.config import EvaluationConfig
from uncertainty_depth.errors import ConfigError, SourceError
from uncertainty_depth.metrics import (
    OnlineMetrics,
    auce,
    by_depth,
    coverage,
    crps,
    depth_errors,
    interval_score,
    merci,
    mpiw,
    n_merci,
    n_merci_curve,
    nll,
    sparsification,
    spearman,
)
from uncertainty_depth.metrics.baselines import noisy_depth
from uncertainty_depth.metrics.merci import (
    error_ratio,
    normalised,
    order_number,
    smallest_errors,
)
from uncertainty_depth.metrics.state import JOINT_ERROR, JOINT_SIGMA

SCORES = [
    f"{name}{suffix}"
    for name in ("crps", "interval_score_95", "mpiw_95")
    for suffix in ("", "_laplace")
]
LIMIT = 2.0**-10  # relative error of an order statistic


def flatten(mapping, prefix=""):
    """Nested mapping to one level."""
    for key, value in mapping.items():
        yield from (
            flatten(value, f"{prefix}{key}.")
            if isinstance(value, dict)
            else [(prefix + key, value)]
        )


def exact_metrics(depth, sigma, ground_truth, alpha=0.95, fitted=False):
    """The mapping under "uncertainty" by the exact public functions, one by one."""
    error = np.abs(depth - ground_truth)
    laplace_sigma = sigma
    if fitted:
        sigma = sigma * math.sqrt(np.mean((error / sigma) ** 2))
        laplace_sigma = sigma * math.sqrt(2) * np.mean(error / sigma)
    curves = {
        name: sparsification(depth, sigma, ground_truth, name)
        for name in ("abs_rel", "rmse", "a1")
    }
    ause, aurg = (
        {name: getattr(curve, kind) for name, curve in curves.items()} for kind in ("ause", "aurg")
    )
    return {
        "n_merci": n_merci(error, sigma, alpha),
        "n_merci_withdrawn": n_merci(error, sigma, alpha, withdrawn=True),
        "n_merci_trimmed": n_merci(error, sigma, alpha, trimmed=True),
        "merci": merci(error, sigma, alpha),
        "ause": ause,
        "aurg": aurg,
        "ause_pooled": ause,
        "aurg_pooled": aurg,
        "auce": auce(error, sigma),
        "coverage_68": coverage(error, sigma, 0.68),
        "coverage_95": coverage(error, sigma, 0.95),
        "nll": nll(error, sigma),
        "auce_laplace": auce(error, laplace_sigma, "laplace"),
        "coverage_68_laplace": coverage(error, laplace_sigma, 0.68, "laplace"),
        "coverage_95_laplace": coverage(error, laplace_sigma, 0.95, "laplace"),
        "nll_laplace": nll(error, laplace_sigma, "laplace"),
        **{
            f"{name}{suffix}": value
            for law, suffix, scaled in (
                ("gaussian", "", sigma),
                ("laplace", "_laplace", laplace_sigma),
            )
            for name, value in (
                ("crps", crps(error, scaled, law)),
                ("interval_score_95", interval_score(error, scaled, 0.95, law)),
                ("mpiw_95", mpiw(scaled, 0.95, law)),
            )
        },
        "spearman": spearman(sigma, error),
    }


def candidates(depth, sigma, ground_truth):
    """The predicted sigma and the baselines at any scale, as plain arrays."""
    return {
        "method": sigma,
        "constant": np.ones_like(depth),
        "proportional_to_depth": depth,
        "proportional_to_depth_noisy": noisy_depth(depth, ground_truth),
    }


def scored(summary):
    return {"method": summary["uncertainty"], **summary["baselines"]}


def merci_bound(error, sigma, alpha, value):
    """How far n-MeRCI may be off when lambda and the largest error are, see `online`."""
    largest = np.quantile(error, alpha, method="inverted_cdf")
    term = (
        LIMIT * merci(error, sigma, alpha)
        + 2.0**-20 * sigma.mean()
        + abs(value) * (LIMIT * largest + 2.0**-24)
    )
    return 1.01 * term / abs(largest - error.mean()) + 1e-12


def test_a_frames_metrics_are_those_of_the_exact_functions(pixels, convert):
    figures = OnlineMetrics().update(*map(convert, pixels))
    depth, _, ground_truth = pixels
    assert figures["pixels"] == depth.size
    assert figures["depth"] == pytest.approx(depth_errors(depth, ground_truth), rel=1e-12)
    for name, sigma in candidates(*pixels).items():
        expected = exact_metrics(depth, sigma, ground_truth, fitted=name != "method")
        for (key, value), (_, reference) in zip(
            flatten(scored(figures)[name]), flatten(expected), strict=True
        ):
            # The baselines' merci is that of any scale.
            assert value == pytest.approx(reference, rel=1e-9, abs=1e-12, nan_ok=True), (name, key)


@pytest.mark.parametrize("seed", range(5))
def test_a_frame_with_equal_errors_and_ratios_is_scored_as_by_the_exact_functions(seed):
    rng = np.random.default_rng(seed)
    ground_truth = rng.choice([2.0, 4.0], 3000)
    depth = ground_truth + rng.choice([0.25, 0.5, 1.0], 3000, p=[0.4, 0.5, 0.1])
    sigma = rng.choice([0.125, 0.25, 0.5, 1.0, 2.0], 3000)
    metrics = OnlineMetrics().update(depth, sigma, ground_truth)
    expected = dict(flatten(exact_metrics(depth, sigma, ground_truth)))
    assert dict(flatten(metrics["uncertainty"])) == pytest.approx(expected, rel=1e-9)


def test_an_update_needs_the_documented_memory_for_each_pixel(make_pixels):
    pixels = make_pixels(20_000, 0)
    metrics = OnlineMetrics()
    metrics.update(*pixels)
    tracemalloc.start()
    metrics.update(*pixels)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak <= 220 * 20_000


def test_everything_seen_against_the_exact_functions_on_all_of_it(make_pixels):
    parts = [make_pixels(8000, seed) for seed in range(6)]
    together = tuple(np.concatenate(values) for values in zip(*parts, strict=True))
    metrics = OnlineMetrics()
    frames = [metrics.update(*part) for part in parts]
    summary = metrics.compute()
    depth, _, ground_truth = together
    assert summary["depth"] == pytest.approx(depth_errors(depth, ground_truth), rel=1e-12)
    for name, sigma in candidates(*together).items():
        expected = exact_metrics(depth, sigma, ground_truth, fitted=name != "method")
        found = scored(summary)[name]
        for key, limit in (
            ("n_merci", 1e-3),
            ("n_merci_withdrawn", 1e-3),
            ("merci", 1e-3),
            ("n_merci_trimmed", 1e-3),
        ):
            assert found[key] == pytest.approx(expected[key], rel=limit), (name, key)
        for key in ("ause_pooled", "aurg_pooled"):
            assert found[key] == pytest.approx(expected[key], rel=1e-3, abs=2e-5), (name, key)
        for key in ("ause", "aurg"):
            means = {
                item: np.mean([scored(frame)[name][key][item] for frame in frames])
                for item in ("abs_rel", "rmse", "a1")
            }
            assert found[key] == pytest.approx(means, rel=1e-12)
        assert found["auce"] == pytest.approx(
            expected["auce"], abs=1e-12 if name == "method" else 1e-4
        )
        assert found["spearman"] == pytest.approx(expected["spearman"], abs=2e-3, nan_ok=True)
        assert found["nll"] == pytest.approx(expected["nll"], rel=1e-12)
        for key in SCORES:
            limit = 1e-12 if name == "method" else 1e-5
            assert found[key] == pytest.approx(expected[key], rel=limit), (name, key)


def nine_decades(rng):
    truth = 10 ** rng.uniform(-1, 1.8, 4000)
    return truth + 10 ** rng.uniform(-7, 2, 4000), 10 ** rng.uniform(-6, 3, 4000), truth


ADVERSARIAL = {
    "ties": lambda rng: (
        rng.choice([1.0, 2.0, 4.0], 4000),
        rng.choice([0.1, 0.2, 0.4], 4000),
        rng.choice([1.0, 3.0], 4000),
    ),
    "few ties in a smooth sigma": lambda rng: (
        rng.uniform(1, 5, 4000),
        np.maximum(rng.uniform(0, 1, 4000), 0.4),
        rng.uniform(1, 5, 4000),
    ),
    "half precision sigma": lambda rng: (
        rng.uniform(1, 5, 4000),
        rng.uniform(0.1, 1, 4000).astype("f2").astype("f8"),
        rng.uniform(1, 5, 4000),
    ),
    "zero sigma": lambda rng: (rng.uniform(1, 5, 4000), np.zeros(4000), rng.uniform(1, 5, 4000)),
    "some zero sigma": lambda rng: (
        rng.uniform(1, 5, 4000),
        rng.choice([0.0, 1.0], 4000, p=[0.02, 0.98]),
        rng.uniform(1, 5, 4000),
    ),
    "no error": lambda rng: (np.full(500, 2.0), rng.uniform(0, 1, 500), np.full(500, 2.0)),
    "constant sigma": lambda rng: (
        rng.uniform(1, 5, 4000),
        np.full(4000, 0.3),
        rng.uniform(1, 5, 4000),
    ),
    "sigma is the error": lambda rng: (lambda d, g: (d, np.abs(d - g), g))(
        rng.uniform(1, 5, 4000), rng.uniform(1, 5, 4000)
    ),
    "nine decades": nine_decades,
    "one pixel": lambda rng: (np.array([2.0]), np.array([0.1]), np.array([1.5])),
    "two pixels": lambda rng: (np.array([2.0, 3.0]), np.array([0.1, 0.4]), np.array([1.5, 4.5])),
    "all pixels equal": lambda rng: (np.full(700, 2.1), np.full(700, 0.1), np.full(700, 1.7)),
    "depth that is not positive": lambda rng: (
        rng.normal(1, 1, 4000),
        rng.uniform(0.1, 1, 4000),
        rng.uniform(1, 5, 4000),
    ),
}


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_the_bounds_hold_on_adversarial_data(name):
    depth, sigma, ground_truth = ADVERSARIAL[name](np.random.default_rng(3))
    error = np.abs(depth - ground_truth)
    metrics = OnlineMetrics()
    metrics.update(depth, sigma, ground_truth)
    found = metrics.compute()["uncertainty"]
    alphas = np.arange(1, 21) / 20
    curve = metrics.curves()["n_merci"]["plain"]["method"]
    for alpha, value, expected in zip(
        alphas, curve, n_merci_curve(error, sigma, alphas), strict=True
    ):
        if np.isfinite(expected):
            assert abs(value - expected) <= merci_bound(error, sigma, alpha, expected), alpha
        else:
            assert np.array_equal(value, expected, equal_nan=True), alpha
    assert found["merci"] == pytest.approx(merci(error, sigma), rel=LIMIT)
    exact = exact_metrics(depth, sigma, ground_truth)
    assert found["auce"] == pytest.approx(exact["auce"], abs=1e-12)
    assert found["nll"] == pytest.approx(exact["nll"], rel=1e-11)
    for item, area in exact["ause"].items():
        full = sparsification(depth, sigma, ground_truth, item).random[0]
        # Each threshold keeps at most the pixels of one bin too many or too few, see `online`.
        assert found["ause_pooled"][item] == pytest.approx(area, abs=0.01 * full + 1e-12), item


def rank_share(values, bins):
    """Root of the share of the variance of the ranks that lies between bins."""
    ranks = rankdata(values) - (len(values) + 1) / 2
    _, place, counts = np.unique(bins, return_inverse=True, return_counts=True)
    means = np.bincount(place, ranks) / counts
    return math.sqrt(np.sum(counts * means**2) / max(np.sum(ranks**2), 1e-300))


def spearman_bound(name, key, error, exact):
    """The documented one: the arc cosine is off by at most the sum of those of the shares."""
    window = JOINT_SIGMA[name]
    index = window.bins.index(key)
    rows = index >> window.shift(np.array([index.min(), index.max()]))
    columns = JOINT_ERROR.index(error)
    angle = (
        sum(math.acos(min(rank_share(*pair), 1.0)) for pair in ((key, rows), (error, columns)))
        + 1e-7
    )
    middle = math.acos(np.clip(exact, -1, 1))
    return math.cos(min(middle + angle, math.pi)), math.cos(max(middle - angle, 0.0))


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_spearman_aurg_trimmed_and_baselines_on_adversarial_data(name):
    depth, sigma, ground_truth = ADVERSARIAL[name](np.random.default_rng(3))
    error = np.abs(depth - ground_truth)
    metrics = OnlineMetrics()
    exact = scored(metrics.update(depth, sigma, ground_truth))
    found = scored(metrics.compute())
    keys = {
        "method": ("method", np.asarray(sigma, dtype=float)),
        "proportional_to_depth": ("proportional_to_depth", np.maximum(depth, 0.0)),
        "proportional_to_depth_noisy": (
            "proportional_to_depth_noisy",
            noisy_depth(np.maximum(depth, 0.0), ground_truth),
        ),
    }
    for candidate, expected in exact.items():
        for key in ("n_merci", "merci", "auce", "nll", "auce_laplace"):
            assert found[candidate][key] == pytest.approx(
                expected[key], rel=2e-3, abs=1e-4, nan_ok=True
            ), (candidate, key)
        assert found[candidate]["n_merci_trimmed"] == pytest.approx(
            expected["n_merci_trimmed"], rel=5e-3, abs=1e-4, nan_ok=True
        ), candidate
        for key in SCORES:
            assert found[candidate][key] == pytest.approx(expected[key], rel=1e-5, abs=1e-9), (
                candidate,
                key,
            )
        for item, area in expected["aurg"].items():
            full = sparsification(depth, sigma, ground_truth, item).random[0]
            assert found[candidate]["aurg_pooled"][item] == pytest.approx(
                area, abs=0.01 * full + 1e-12
            ), (candidate, item)
        value = found[candidate]["spearman"]
        reference = expected["spearman"]
        assert math.isnan(value) == math.isnan(reference), candidate
        if not math.isnan(reference):
            low, high = spearman_bound(*keys[candidate], error, reference)
            assert low <= value <= high, candidate
            limit = 2e-2 if name == "nine decades" else 5e-3
            assert value == pytest.approx(reference, abs=limit), candidate


def withdrawn_n_merci(error, sigma, off):
    """n-MeRCI without the largest errors whose lambda covers `off` pixels more than it should."""
    kept = smallest_errors(error, order_number(0.95, len(error)))
    error = error[kept]
    sigma = sigma[kept]
    number = order_number(0.95, len(error))
    ratios = np.sort(error_ratio(error, sigma))
    factor = ratios[np.clip(number + off, 1, len(error)) - 1]
    return normalised(factor, sigma.mean(), error.mean(), np.sort(error)[number - 1])


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_withdrawn_n_merci_covers_a_fraction_next_to_its_own(name):
    """Within 0.1 % of the pixels; 2 % where sigmas, or sigmas and errors, span nine decades."""
    depth, sigma, ground_truth = ADVERSARIAL[name](np.random.default_rng(3))
    depth = np.maximum(depth, 0.0)
    error = np.abs(depth - ground_truth)
    metrics = OnlineMetrics()
    metrics.update(depth, sigma, ground_truth)
    off = math.ceil((0.02 if name == "nine decades" else 1e-3) * len(error))
    for candidate, found in scored(metrics.compute()).items():
        values = candidates(depth, sigma, ground_truth)[candidate]
        low, high = (withdrawn_n_merci(error, values, step) for step in (-off, off))
        if not math.isfinite(low):
            assert found["n_merci_withdrawn"] == pytest.approx(float(low), nan_ok=True)
            continue
        assert low - 4e-3 * abs(low) <= found["n_merci_withdrawn"], candidate
        assert found["n_merci_withdrawn"] <= high + 4e-3 * abs(high), candidate


@pytest.mark.parametrize(
    ("spread", "limit"),
    [(0.02, 4e-3), (0.08, 1e-3), (0.5, 1e-3), (3, 1e-3), (60, 1e-3), (1e4, 1e-3)],
)
def test_spearman_however_little_or_much_sigma_spreads(spread, limit):
    rng = np.random.default_rng(0)
    share = rng.uniform(size=40_000)
    sigma = 0.3 * (1 + spread) ** share
    error = np.abs(0.1 * rng.normal(size=40_000)) + 0.3 * share
    ground_truth = rng.uniform(1, 9, 40_000)
    metrics = OnlineMetrics()
    for part in np.array_split(
        np.argsort(np.abs(share - 0.5)), 7
    ):  # from the middle outwards: the rows grow coarser on the way
        metrics.update((ground_truth + error)[part], sigma[part], ground_truth[part])
    assert metrics.compute()["uncertainty"]["spearman"] == pytest.approx(
        spearman(sigma, error), abs=limit
    )


def test_rows_coarsen_alike_in_every_order(convert):
    rng = np.random.default_rng(0)
    parts = [
        tuple(
            map(
                convert,
                (
                    rng.uniform(1, 5, 500) * scale,
                    rng.uniform(1, 2, 500) * scale,
                    rng.uniform(1, 5, 500),
                ),
            )
        )
        for scale in (1, 1e-3, 40)
    ]
    merged = []
    for order in itertools.permutations(range(3)):
        together = OnlineMetrics()
        single = OnlineMetrics()
        for place in order:
            single.update(*parts[place])
            other = OnlineMetrics()
            other.update(*parts[place])
            together.merge(other)
        together.merge(OnlineMetrics())
        merged += [together._state.tables, single._state.tables]
    for name in ("method.joint", "proportional_to_depth.joint"):
        assert merged[0][name].sum() == 1500
        for other in merged[1:]:
            np.testing.assert_array_equal(other[name], merged[0][name])


def test_baselines_are_scaled_by_the_pixels_with_a_finite_ratio_in_a_frame_and_online():
    depth, sigma, ground_truth = ADVERSARIAL["depth that is not positive"](
        np.random.default_rng(3)
    )
    metrics = OnlineMetrics()
    frame = metrics.update(depth, sigma, ground_truth)
    for name, figures in metrics.compute()["baselines"].items():
        expected = frame["baselines"][name]
        assert figures["auce"] == pytest.approx(expected["auce"], abs=1e-3)
        assert figures["nll"] == pytest.approx(expected["nll"], rel=1e-12)


@pytest.mark.parametrize(
    "name", ["ties", "constant sigma", "sigma is the error", "all pixels equal", "one pixel"]
)
def test_ties_keep_the_trimmed_reading_close(name):
    """Which of many equal ratios stay no bounded state can know; all else is within the bound."""
    depth, sigma, ground_truth = ADVERSARIAL[name](np.random.default_rng(3))
    metrics = OnlineMetrics()
    metrics.update(depth, sigma, ground_truth)
    expected = n_merci(np.abs(depth - ground_truth), sigma, trimmed=True)
    np.testing.assert_allclose(
        metrics.compute()["uncertainty"]["n_merci_trimmed"], expected, rtol=0.02, atol=4e-3
    )


def same(first, second, rtol=1e-12):
    """Equal but for the figures that depend on what one image is."""
    for (key, value), (_, other) in zip(flatten(first), flatten(second), strict=True):
        if ".ause." not in key and ".aurg." not in key:
            assert value == pytest.approx(other, rel=rtol, abs=1e-13, nan_ok=True), key


@pytest.mark.parametrize("sizes", [[1], [999, 1], [3, 500, 2, 40]])
def test_chunks_and_at_once_agree(pixels, sizes):
    whole = OnlineMetrics()
    chunked = OnlineMetrics()
    whole.update(*pixels)
    start = 0
    for size in itertools.chain(sizes, itertools.repeat(1000)):
        if start >= pixels[0].size:
            break
        chunked.update(*(values[start : start + size] for values in pixels))
        start += size
    same(whole.compute(), chunked.compute())
    for name, table in whole._state.tables.items():
        if name not in ("counts", "areas"):  # of the frames: a chunk is one
            np.testing.assert_allclose(
                chunked._state.tables[name], table, rtol=1e-12, atol=1e-13, err_msg=name
            )


def test_merging_in_any_order_agrees(make_pixels):
    parts = []
    for seed in range(3):
        parts.append(OnlineMetrics())
        parts[-1].update(*make_pixels(2000, seed))
    results = []
    for order in itertools.permutations(range(3)):
        merged = OnlineMetrics()
        for place in order:
            merged.merge(parts[place])
        results.append(merged)
    sequential = OnlineMetrics()
    for seed in range(3):
        sequential.update(*make_pixels(2000, seed))
    for merged in results:
        same(merged.compute(), sequential.compute())
        assert merged.compute()["uncertainty"]["ause"] == pytest.approx(
            sequential.compute()["uncertainty"]["ause"], rel=1e-12
        )
        assert (
            (merged.pixels, merged.frames) == (sequential.pixels, sequential.frames) == (6000, 3)
        )


def test_numpy_and_torch_states_merge(pixels, convert):
    here = OnlineMetrics()
    there = OnlineMetrics()
    here.update(*pixels)
    there.update(*map(convert, pixels))
    same(here.compute(), there.compute(), rtol=1e-10)
    here.merge(there)
    there.merge(here)
    assert (here.pixels, there.pixels) == (2 * pixels[0].size, 3 * pixels[0].size)
    there.update(*pixels)
    same(there.compute()["depth"], here.compute()["depth"], rtol=1e-10)


def test_maps_are_masked_and_frames_without_a_valid_pixel_change_nothing(pixels):
    depth, sigma, ground_truth = (values.reshape(50, 60).astype(np.float32) for values in pixels)
    holes = ground_truth.copy()
    holes[::2] = np.nan
    metrics = OnlineMetrics()
    assert metrics.update(depth, sigma, np.full_like(depth, np.nan)) is None
    assert metrics.update(depth, np.full_like(depth, -1), ground_truth) is None
    assert (metrics.pixels, metrics.frames) == (0, 0)
    figures = metrics.update(
        torch.from_numpy(depth), torch.from_numpy(sigma), torch.from_numpy(holes)
    )
    assert figures["pixels"] == metrics.pixels == depth[1::2].size
    expected = OnlineMetrics().update(depth[1::2], sigma[1::2], ground_truth[1::2])
    same(figures, expected, rtol=1e-10)


def test_nothing_seen_is_nan_everywhere_in_the_same_mapping(pixels):
    empty = OnlineMetrics().compute()
    figures = OnlineMetrics().update(*pixels)
    assert [key for key, _ in flatten(empty)] == [key for key, _ in flatten(figures)]
    assert empty["pixels"] == 0
    assert all(math.isnan(value) for key, value in flatten(empty) if key != "pixels")


def test_reset_forgets(pixels):
    metrics = OnlineMetrics()
    metrics.update(*pixels)
    metrics.reset()
    assert metrics.pixels == 0
    metrics.update(*pixels)
    fresh = OnlineMetrics()
    fresh.update(*pixels)
    same(metrics.compute(), fresh.compute(), rtol=0)


@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"max_depth": 10.0},
        {"max_depth": 300.0, "depth_bin_width": 1.0},
        {"max_depth": 200.0, "depth_bin_width": 0.1},
    ],
)
def test_the_state_stays_within_8_mb_however_much_it_sees(make_pixels, limits):
    metrics = OnlineMetrics(EvaluationConfig(**limits))
    before = metrics.nbytes
    for seed in range(3):
        metrics.update(*make_pixels(20_000, seed))
    assert metrics.nbytes == before <= 8_000_000


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        (
            {"depth_bin_width": 0.01},
            "depth_bin_width is 0.01; expected at least 0.023 for depths from min_depth, 0.1, to "
            "max_depth, 80.0",
        ),
        (
            {"max_depth": 1000.0},
            "depth_bin_width is 0.1; expected at least 0.28 for depths from min_depth, 0.1, to "
            "max_depth, 1000.0",
        ),
        ({"max_depth": 1e308}, "depth_bin_width is 0.1; expected at least 2.8e+304"),
        (
            {"min_depth": 5.0, "max_depth": 1.0},
            "min_depth is 5.0; expected less than max_depth, 1.0",
        ),
        ({"max_depth": math.inf}, "max_depth is inf; expected a finite number of metres"),
        ({"min_depth": math.nan}, "min_depth is nan; expected a finite number of metres"),
        (
            {"depth_bin_width": math.inf},
            "depth_bin_width is inf; expected a finite number of metres",
        ),
        ({"depth_bin_width": 0.0}, "depth_bin_width is 0.0; expected more than 0"),
    ],
)
def test_limits_that_cannot_be_held_are_refused(limits, sentence):
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        OnlineMetrics(EvaluationConfig(**limits))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--max-depth", "1000"], "depth_bin_width is 0.1; expected at least 0.28"),
        (
            ["--min-depth", "5", "--max-depth", "1"],
            "min_depth is 5.0; expected less than max_depth, 1.0",
        ),
        (["--max-depth", "inf"], "max_depth is inf; expected at most"),
    ],
)
def test_the_command_refuses_such_limits_in_a_sentence(options, words, tmp_path, capsys):
    arguments = [
        "evaluate",
        "synthetic:worlds=1,frames=1",
        "--model",
        str(DEMO),
        "--output",
        str(tmp_path / "report"),
    ]
    assert cli.main([*arguments, *options]) == 1
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith(f"uncertainty-depth: {words}")


@given(st.floats(0, 10), st.floats(100, 1e6), st.floats(1e-4, 0.02))
def test_the_interval_that_a_refusal_names_fits(min_depth, max_depth, depth_bin_width):
    config = EvaluationConfig(
        min_depth=min_depth, max_depth=max_depth, depth_bin_width=depth_bin_width
    )
    with pytest.raises(ConfigError) as refused:
        OnlineMetrics(config)
    named = float(re.search(r"at least (\S+)", str(refused.value))[1])
    assert OnlineMetrics(dataclasses.replace(config, depth_bin_width=named)).nbytes <= 8_000_000


def test_intervals_against_the_exact_function(make_pixels):
    depth, sigma, ground_truth = make_pixels(100_000)
    config = EvaluationConfig(max_depth=60.0, depth_bin_width=2.0)
    metrics = OnlineMetrics(config)
    metrics.update(depth, sigma, ground_truth)
    found = metrics.curves()["intervals"]
    expected = by_depth(np.abs(depth - ground_truth), sigma, ground_truth, 2.0)
    np.testing.assert_allclose(found["edges"][:31], expected.edges)
    np.testing.assert_array_equal(found["pixels"][:30], expected.pixels)
    np.testing.assert_allclose(found["mae"][:30], expected.mae, rtol=1e-12)
    np.testing.assert_allclose(found["n_merci"][:30], expected.n_merci, rtol=1e-2)


def test_the_default_intervals_against_the_exact_function(make_pixels):
    """The limits are what was measured with these pixels, see docs/metrics.md."""
    depth, sigma, ground_truth = make_pixels(1_000_000)
    metrics = OnlineMetrics()
    metrics.update(depth, sigma, ground_truth)
    found = metrics.curves()["intervals"]
    expected = by_depth(np.abs(depth - ground_truth), sigma, ground_truth, 0.1)
    enough = np.flatnonzero(expected.pixels >= expected.enough)
    places = enough - 1  # online, the first interval is that of min_depth
    np.testing.assert_array_equal(found["edges"][places], expected.edges[enough])
    np.testing.assert_array_equal(found["pixels"][places], expected.pixels[enough])
    np.testing.assert_allclose(found["mae"][places], expected.mae[enough], rtol=1e-12)
    off = np.abs(found["n_merci"][places] / expected.n_merci[enough] - 1)
    assert off.max() < 0.07
    assert np.quantile(off, 0.95) < 0.04
    assert np.median(off) < 0.012
    assert found["n_merci"][places].mean() == pytest.approx(expected.mean_n_merci, rel=3e-3)


def test_curves_are_those_of_the_figures(pixels):
    metrics = OnlineMetrics()
    metrics.update(*pixels)
    curves = metrics.curves()
    summary = metrics.compute()
    for name, figures in scored(summary).items():
        for statistic, drawn in curves["sparsification"].items():
            assert drawn["ause"][name] == pytest.approx(figures["ause_pooled"][statistic])
            assert len(drawn[name]) == len(drawn["oracle"]) == len(drawn["fractions"]) == 51
        for reading, key in (("plain", "n_merci"), ("trimmed", "n_merci_trimmed")):
            assert curves["n_merci"][reading][name][18] == pytest.approx(figures[key])
        assert (np.diff(curves["reliability"][name]) >= 0).all()
    assert curves["pixels"] == metrics.pixels
    assert OnlineMetrics().curves()["pixels"] == 0


def test_a_saved_state_goes_on(pixels, convert, tmp_path):
    metrics = OnlineMetrics(EvaluationConfig(alpha=0.9))
    metrics.update(*map(convert, pixels))
    metrics.save(tmp_path / "state.npz")
    loaded = OnlineMetrics.load(tmp_path / "state.npz")
    assert loaded.config == metrics.config
    same(loaded.compute(), metrics.compute(), rtol=0)
    for each in (loaded, metrics):
        each.update(*map(convert, pixels))
    same(loaded.compute(), metrics.compute(), rtol=1e-12)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state.npz"]


def test_states_that_score_something_else_do_not_merge(pixels):
    first = OnlineMetrics()
    second = OnlineMetrics(EvaluationConfig(max_depth=10.0))
    with pytest.raises(ValueError, match=r"other has max_depth 10\.0; expected 80\.0, as here"):
        first.merge(second)
    first.merge(OnlineMetrics(dataclasses.replace(EvaluationConfig(), example_frames=0)))


def test_damaged_files_are_named(pixels, tmp_path):
    path = tmp_path / "state.npz"
    with pytest.raises(SourceError, match=r"state\.npz does not exist"):
        OnlineMetrics.load(path)
    metrics = OnlineMetrics()
    metrics.update(*pixels)
    metrics.save(path)
    content = path.read_bytes()
    for damaged in (b"", content[: len(content) // 2], b"hello"):
        path.write_bytes(damaged)
        with pytest.raises(SourceError, match="is not a complete metrics state"):
            OnlineMetrics.load(path)
    np.savez(path, header=np.array('{"format": 5, "config": {}}'))
    with pytest.raises(
        SourceError, match="has format 5; expected 4: it was written by a newer version"
    ):
        OnlineMetrics.load(path)
    np.savez(path, header=np.array('{"format": 1, "config": {}}'))
    with pytest.raises(SourceError, match="has format 1; expected 4: an older version wrote it"):
        OnlineMetrics.load(path)
    np.savez(path, header=np.array([{"an": "object"}], dtype=object))
    with pytest.raises(SourceError, match="is not a complete metrics state"):
        OnlineMetrics.load(path)
    np.savez(path, header=np.array('{"format": 4, "config": {}}'), counts=np.zeros(2))
    with pytest.raises(SourceError, match="is not a complete metrics state"):
        OnlineMetrics.load(path)


@pytest.mark.filterwarnings("ignore")
def test_a_flipped_byte_anywhere_is_a_source_error_or_changes_nothing(pixels, tmp_path):
    path = tmp_path / "state.npz"
    metrics = OnlineMetrics()
    metrics.update(*pixels)
    metrics.save(path)
    content = path.read_bytes()
    expected = metrics.compute()
    rng = np.random.default_rng(0)
    refusals = []
    ends = [
        *range(0, 120, 4),
        *range(len(content) - 200, len(content), 4),
    ]  # the header of the first member and the directory of all
    for place in [*ends, *rng.integers(0, len(content), 30)]:
        path.write_bytes(
            content[:place]
            + bytes([content[place] ^ int(rng.integers(1, 256))])
            + content[place + 1 :]
        )
        try:
            same(OnlineMetrics.load(path).compute(), expected, rtol=0)
        except SourceError as error:
            refusals.append(str(error))
    assert len(refusals) > 50
    assert all(str(path) in sentence for sentence in refusals)


def test_an_option_of_another_version_is_a_source_error(tmp_path):
    path = tmp_path / "state.npz"
    OnlineMetrics().save(path)
    with np.load(path) as file:
        members = dict(file)
    for config in ('{"colour": 1}', '{"min_depth": 9.0, "max_depth": 1.0}', '{"alpha": 2.0}', "3"):
        np.savez(path, **{**members, "header": np.array(f'{{"format": 4, "config": {config}}}')})
        with pytest.raises(SourceError, match="is not a complete metrics state"):
            OnlineMetrics.load(path)


def test_the_fraction_of_ground_truth_scored_in_a_frame_and_in_all(pixels):
    depth, sigma, ground_truth = (values.copy() for values in pixels)
    metrics = OnlineMetrics()
    assert metrics.update(depth, sigma, ground_truth)["scored_fraction"] == 1
    depth[:1000] = np.nan
    assert metrics.update(depth, sigma, ground_truth)["scored_fraction"] == pytest.approx(2 / 3)
    assert metrics.compute()["scored_fraction"] == pytest.approx(5 / 6)
    assert metrics.update(np.full_like(depth, np.nan), sigma, ground_truth) is None
    assert metrics.compute()["scored_fraction"] == pytest.approx(5 / 9)


def test_a_tensor_is_scored_against_an_array_with_holes(pixels):
    depth, sigma, ground_truth = pixels
    ground_truth = ground_truth.copy()
    ground_truth[::3] = np.nan
    metrics = OnlineMetrics()
    expected = OnlineMetrics().update(depth, sigma, ground_truth)
    assert metrics.update(torch.tensor(depth), torch.tensor(sigma), ground_truth) == expected
    tracked = torch.tensor(depth, requires_grad=True)
    assert metrics.update(tracked, sigma, ground_truth) == expected
    half = torch.tensor(depth).bfloat16()
    rounded = OnlineMetrics().update(half.double().numpy(), sigma, ground_truth)
    assert metrics.update(half, sigma, ground_truth) == rounded


def test_options_are_keywords_of_the_same_config():
    assert OnlineMetrics(max_depth=10).config == EvaluationConfig(max_depth=10.0)
    assert OnlineMetrics(EvaluationConfig(alpha=0.9), min_depth=1).config.alpha == 0.9
    assert "max_depth" in inspect.signature(OnlineMetrics).parameters
    with pytest.raises(ConfigError, match="unknown option 'max_dept'"):
        OnlineMetrics(max_dept=10)
    with pytest.raises(ConfigError, match=r"max_depth is -1\.0"):
        OnlineMetrics(max_depth=-1)


def test_alpha_is_checked_when_the_accumulator_is_made():
    config = EvaluationConfig()
    object.__setattr__(config, "alpha", 1.5)
    with pytest.raises(ValueError, match=r"alpha is 1.5; expected a number in \(0, 1\]"):
        OnlineMetrics(config)


@pytest.mark.parametrize("step", [1e-3, 4e-3, 0.1, 100 / 65535, "float16"])
def test_a_sigma_stored_in_steps_keeps_its_groups_of_equals(make_pixels, step):
    depth, sigma, ground_truth = make_pixels(40_000)
    stored = (
        sigma.astype("f2").astype("f8") if step == "float16" else np.round(sigma / step) * step
    )
    metrics = OnlineMetrics()
    metrics.update(depth, stored, ground_truth)
    for name, area in metrics.compute()["uncertainty"]["ause_pooled"].items():
        exact = sparsification(depth, stored, ground_truth, name)
        assert area == pytest.approx(exact.ause, abs=2e-4 * exact.random[0]), name


def test_depth_and_ground_truth_in_millimetres_leave_pooled_sparsification_exact(make_pixels):
    depth, sigma, ground_truth = make_pixels(40_000)
    depth = np.round(depth, 3)
    ground_truth = np.round(ground_truth, 3)
    metrics = OnlineMetrics()
    metrics.update(depth, sigma, ground_truth)
    for name, area in metrics.compute()["uncertainty"]["ause_pooled"].items():
        exact = sparsification(depth, sigma, ground_truth, name)
        assert area == pytest.approx(exact.ause, abs=3e-4 * exact.random[0]), name


def test_the_noise_of_the_third_baseline_is_lognormal_and_tells_nothing_of_the_error(make_pixels):
    depth, _, ground_truth = make_pixels(40_000)
    noise = np.log(noisy_depth(depth, ground_truth) / depth)
    assert noise.mean() == pytest.approx(0, abs=5e-3)
    assert noise.std() == pytest.approx(0.25, rel=0.02)
    assert abs(spearman(np.exp(noise), np.abs(depth - ground_truth))) < 0.02


def test_plotted_intervals_are_those_of_wider_ones(make_pixels):
    depth, sigma, ground_truth = make_pixels(30_000)
    metrics = OnlineMetrics(EvaluationConfig(min_depth=0.0))
    metrics.update(depth, sigma, ground_truth)
    found = metrics.curves()["plotted_intervals"]
    width = found["edges"][1] - found["edges"][0]
    assert 0.5 < width <= 2
    exact = by_depth(np.abs(depth - ground_truth), sigma, ground_truth, width)
    filled = slice(0, len(exact.pixels) - 1)
    np.testing.assert_array_equal(found["pixels"][filled], exact.pixels[filled])
    np.testing.assert_allclose(found["mae"][filled], exact.mae[filled])
    np.testing.assert_allclose(found["n_merci"][filled], exact.n_merci[filled], rtol=0.08)
