# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What the metrics are computed from: sums over blocks with a leading axis, see `state`.

Values are (R,) unless stated otherwise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.metrics.bins import Bins, first_bin_sums
from uncertainty_depth.metrics.calibration import (
    DISTRIBUTIONS,
    HALF_WIDTHS,
    NOMINAL_WIDTHS,
    area_of_miscoverage,
    crps_sum,
    excess_sum,
)
from uncertainty_depth.metrics.merci import error_ratio, normalised, rescaled_mean
from uncertainty_depth.metrics.metric import Compute, percent_text
from uncertainty_depth.metrics.state import (
    DEPTH_RATIO,
    DEPTH_RATIO_SUMS,
    DISTANCE_ERROR,
    DISTANCE_RATIO,
    DISTRIBUTION_NAMES,
    ERROR,
    RATIO,
    SIGMA,
    SIGMA_NAMES,
    Sums,
)

ALPHA = 0.95
"""Fraction of the pixels whose error the scaled sigma of n-MeRCI must cover."""
SIGMA_GROUPS = 10


def mean(name: str, over: str = "pixels", factor: float = 1.0) -> Compute:
    """Return the metric that divides one sum by another."""
    return lambda sums: factor * (sums[name] / sums[over])


def root_mean(name: str, over: str = "pixels", factor: float = 1.0) -> Compute:
    """Return the metric that takes the root of one sum over another."""
    return lambda sums: factor * np.sqrt(sums[name] / sums[over])


def deviation(name: str, over: str = "pixels") -> Compute:
    """Return the standard deviation, from a sum and its squares' sum."""

    def compute(sums: Sums) -> Floats:
        variance = sums[f"squared_{name}"] / sums[over] - (sums[name] / sums[over]) ** 2
        return np.sqrt(np.maximum(variance, 0.0))

    return compute


def or_infinite(compute: Compute) -> Compute:
    """Return a metric by logarithm or inverse, infinite if a depth is not positive."""
    return lambda sums: np.where(sums["no_depth"] > 0, np.inf, compute(sums))


def per_image(name: str, statistic: int | None = None) -> Compute:
    """Return the mean over the images in a table by sigma, and by statistic if there are."""

    def compute(sums: Sums) -> Floats:
        table = sums[name][:, SIGMA_NAMES.index(sums.sigma_name)]
        return (table if statistic is None else table[:, statistic]) / sums["frames"]

    return compute


def spearman(sums: Sums) -> Floats:
    """Return the mean rank correlation over the images that have one."""
    row = SIGMA_NAMES.index(sums.sigma_name)
    return sums["spearman"][:, row] / sums["spearmans"][:, row]


class _OfSigma(NamedTuple):
    """Names of the sums that belong to one sigma; the constant sigma is 1 m."""

    ratio: str  # its ratio to the error: sum, histogram and extremes
    bins: Bins
    sigma: str  # sum of sigma
    log_sigma: str = ""
    zeros: str = ""  # pixels whose sigma is 0, which have no logarithm
    infinite: str = ""  # pixels whose ratio is infinite


OF = {
    "predicted": _OfSigma("ratio", RATIO, "sigma", "log_sigma", "no_sigma", "certain_errors"),
    "constant": _OfSigma("error", ERROR, "pixels"),
    "proportional_to_depth": _OfSigma(
        "depth_ratio", DEPTH_RATIO, "depth", "log_depth", "no_depth", "no_depth"
    ),
}


def _sum_or_zero(sums: Sums, name: str) -> Floats:
    return sums[name] if name else np.zeros_like(sums["pixels"])


FEW_OPEN = 1e-3
"""So few ratios in an open bin change no share by more than the bins do."""
Resolved = tuple[Floats, Floats]
"""The smallest and the largest value that a histogram's bins resolve, (R,) each."""


def resolution(sums: Sums, name: str, bins: Bins) -> tuple[Bins, Resolved]:
    """Return the bins that a histogram's values are in, and what they resolve."""
    if name != "ratio":
        every = np.ones_like(sums["pixels"])
        return bins, (every * bins.edges[1], every * bins.edges[-2])
    low = sums["ratio_low"] + (bins.low - RATIO.low)
    high = -sums["-ratio_high"] + (bins.high - RATIO.high)
    return bins.at(sums.ratio_exponent), (np.exp2(low), np.exp2(high))


def _order_statistic(sums: Sums, of: _OfSigma, share: float) -> Floats:
    """Return the smallest ratio that a share of pixels do not exceed; NaN if not resolved."""
    counts = sums[f"{of.ratio}s"]
    pixels = counts.sum(axis=-1)
    number = np.ceil(share * pixels)
    bins, resolved = resolution(sums, of.ratio, of.bins)
    infinite = _sum_or_zero(sums, of.infinite)
    values = bins.order_statistics(counts, number[:, None], sums["exact"], infinite, resolved)
    least = -sums[f"-min_{of.ratio}"]
    greatest = sums[f"max_{of.ratio}"]
    inside = np.clip(values[:, 0], least, np.maximum(least, greatest))
    is_extreme = (pixels > 0) & ((number == pixels) | (least == greatest))
    return np.where(is_extreme, greatest, inside)


def max_error_at(share: float, sums: Sums) -> Floats:
    """Return the largest among the smallest errors that make up a share, metres."""
    return _order_statistic(sums, OF["constant"], share)


def ratio_quantile(sums: Sums, share: float) -> Floats:
    """Return the factor on sigma that covers a share of the errors."""
    return _order_statistic(sums, OF[sums.sigma_name], share)


def _below(sums: Sums, values: Floats) -> Floats:
    """Return how many ratios are at most these, (R, K) or (K,): (R, K); NaN if not resolved."""
    of = OF[sums.sigma_name]
    counts = sums[f"{of.ratio}s"]
    bins, (low, high) = resolution(sums, of.ratio, of.bins)
    pixels = counts.sum(axis=-1)
    below, up_to = bins.below(counts, np.stack((low, high), axis=-1)).T
    too_small = below - sums["exact"] > FEW_OPEN * pixels
    too_large = pixels - up_to - _sum_or_zero(sums, of.infinite) > FEW_OPEN * pixels
    is_open = (values < low[:, None]) & too_small[:, None]
    is_open |= (values >= high[:, None]) & too_large[:, None]
    return np.where(is_open, math.nan, bins.below(counts, values))


def share_below(factor: float, sums: Sums) -> Floats:
    """Return what share of the errors lies within a factor times sigma."""
    return _below(sums, np.array([factor]))[..., 0] / sums["pixels"]


def mean_sigma(sums: Sums) -> Floats:
    """Return the mean sigma, metres."""
    return sums[OF[sums.sigma_name].sigma] / sums["pixels"]


def merci(sums: Sums) -> Floats:
    """Return MeRCI over all pixels, metres."""
    return rescaled_mean(ratio_quantile(sums, ALPHA), mean_sigma(sums))


def n_merci_at(alpha: float, sums: Sums) -> Floats:
    """Return n-MeRCI over all pixels at an alpha."""
    mae = sums["error"] / sums["pixels"]
    max_error = max_error_at(alpha, sums)
    return normalised(ratio_quantile(sums, alpha), mean_sigma(sums), mae, max_error)


# The size of sigma. A baseline's size is the most likely one on the very pixels it is scored on.


def _power_mean(sums: Sums, distribution: str) -> tuple[Floats, Floats]:
    """Return the finite ratios' mean power at scale 1, and how many there are."""
    of = OF[sums.sigma_name]
    finite = sums["pixels"] - _sum_or_zero(sums, of.infinite)
    power = of.ratio if DISTRIBUTIONS[distribution].power == 1 else f"squared_{of.ratio}"
    return sums[power] / finite, finite


def _sigma_scale(distribution: str, sums: Sums) -> Floats:
    """Return the factor on sigma at which its size is judged."""
    power, finite = _power_mean(sums, distribution)
    if sums.sigma_name == "predicted":
        return np.ones_like(power)
    return np.where(finite > 0, DISTRIBUTIONS[distribution].likely_scale(power), 0.0)


def covered_shares(distribution: str, sums: Sums) -> Floats:
    """Return what share of the errors lies in each level's interval, (R, 99)."""
    pixels = sums["pixels"][:, None]
    if sums.sigma_name == "predicted":
        return sums["covered"][:, DISTRIBUTION_NAMES.index(distribution)] / pixels
    return (
        _below(sums, HALF_WIDTHS[distribution] * _sigma_scale(distribution, sums)[:, None])
        / pixels
    )


def covered_share(distribution: str, percent: int, sums: Sums) -> Floats:
    """Return what share of the errors lies in one level's interval."""
    return covered_shares(distribution, sums)[:, percent - 1]


def auce_by(half_widths: Floats, sums: Sums) -> Floats:
    """Return AUCE for intervals with these measured (99,) half widths in sigmas."""
    return area_of_miscoverage(_below(sums, half_widths) / sums["pixels"][:, None])


def nll(distribution: str, sums: Sums) -> Floats:
    """Return the mean negative log likelihood, nats."""
    of = OF[sums.sigma_name]
    claimed = DISTRIBUTIONS[distribution]
    scale = _sigma_scale(distribution, sums)
    power, finite = _power_mean(sums, distribution)
    mean_log = _sum_or_zero(sums, of.log_sigma) / sums["pixels"] + np.log(scale)
    values = claimed.nll(mean_log, power / scale**claimed.power)
    values = np.where((_sum_or_zero(sums, of.zeros) > 0) | (scale == 0), -np.inf, values)
    values = np.where(finite < sums["pixels"], np.inf, values)
    return np.where(sums["pixels"] > 0, values, math.nan)


def scores(distribution: str, sums: Sums) -> tuple[Floats, Floats]:
    """Return the summed CRPS, and the summed errors beyond the 95 % interval."""
    if sums.sigma_name == "predicted":
        row = DISTRIBUTION_NAMES.index(distribution)
        return sums["crps"][:, row], sums["excess"][:, row]
    if sums.sigma_name == "constant":
        sigma = sums["errors"]
        error = sigma * ERROR.centres
        bins = ERROR
    else:
        sigma = sums["by_depth_ratio.depth"]
        error = sums["by_depth_ratio.error"]
        bins = DEPTH_RATIO_SUMS
    rows = []
    for errors, sigmas, scale in zip(
        error, sigma, _sigma_scale(distribution, sums).tolist(), strict=True
    ):
        if 0 < scale < bins.edges[1]:  # hardly an error is resolved
            rows.append((math.nan, math.nan))
            continue
        occupied = (errors > 0) | (sigmas > 0)
        errors = errors[occupied]
        sigmas = sigmas[occupied]
        ratios = error_ratio(errors, sigmas)
        crps = crps_sum(errors, sigmas, ratios, DISTRIBUTIONS[distribution], scale)
        rows.append((crps, excess_sum(errors, sigmas, scale * NOMINAL_WIDTHS[distribution])))
    table = np.array(rows).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def half_width(distribution: str, sums: Sums) -> Floats:
    """Return the 95 % interval's mean half width, metres."""
    return NOMINAL_WIDTHS[distribution] * _sigma_scale(distribution, sums) * mean_sigma(sums)


# By sigma's size and by distance, (R, K).


def _sigma_group(name: str, row: int | None, sums: Sums) -> Floats:
    """Return the sums over ten equal groups, by ascending sigma; NaN if not resolved."""
    counts = sums["by_sigma.pixels"]
    values = sums[name] if row is None else sums[name][:, row]
    pixels = counts.sum(axis=-1, keepdims=True)
    numbers = pixels * np.arange(1, SIGMA_GROUPS + 1) / SIGMA_GROUPS
    first = counts[:, :1]
    is_mixed = (numbers < first) & (first > sums["no_sigma"][:, None])
    is_open = (numbers > pixels - counts[:, -1:]) & (numbers < pixels)
    ends = np.where(is_mixed | is_open, math.nan, first_bin_sums(counts, values, numbers))
    return np.diff(ends, prepend=0.0)


def coverage_by_sigma(distribution: str, sums: Sums) -> Floats:
    """Return the 95 % interval's coverage in ten groups by sigma, (R, 10)."""
    covered = _sigma_group("by_sigma.covered", DISTRIBUTION_NAMES.index(distribution), sums)
    return covered / (sums["pixels"][:, None] / SIGMA_GROUPS)


def ence(sums: Sums) -> Floats:
    """Return ENCE over ten groups by sigma."""
    claimed = np.sqrt(_sigma_group("by_sigma.squared_sigma", None, sums))
    found = np.sqrt(_sigma_group("by_sigma.squared_error", None, sums))
    return (np.abs(claimed - found) / claimed).mean(axis=-1)


def at_distance(name: str) -> Compute:
    """Return the metric that is the mean in each distance range, (R, K)."""
    return mean(f"distance.{name}", "distance.pixels")


def n_merci_at_distance(sums: Sums) -> Floats:
    """Return n-MeRCI in each distance range, (R, K)."""
    quantiles = []
    infinite = sums["distance.certain_errors"]
    for name, bins, never in (("error", DISTANCE_ERROR, 0), ("ratio", DISTANCE_RATIO, 1)):
        counts = sums[f"distance.{name}s"]
        pixels = counts.sum(axis=-1, keepdims=True)
        number = np.ceil(ALPHA * pixels)
        bins, (low, high) = resolution(sums, name, bins)
        resolved = low[:, None], high[:, None]
        zeros = sums["distance.exact"]
        found = bins.order_statistics(counts, number, zeros, never * infinite, resolved)
        # With few pixels it is the largest, whose bin alone is known.
        quantiles.append(np.where(number < pixels, found, math.nan)[..., 0])
    max_error, factor = quantiles
    sigma = at_distance("sigma")(sums)
    mae = at_distance("error")(sums)
    return normalised(factor, sigma, mae, max_error)


# Why a metric over scored frames is not a number.


def why_no_ratio(sums: Sums) -> str:
    """Return why n-MeRCI's ratio has no known quantile; empty if it has."""
    if not math.isnan(ratio_quantile(sums, ALPHA)[0]):
        return ""
    of = OF[sums.sigma_name]
    _, (low, high) = resolution(sums, of.ratio, of.bins)
    covered = f"{percent_text(ALPHA, 0)} of the errors are covered by a factor on sigma"
    if of.ratio == "ratio":
        return (
            f"{covered} that is too unlike the first frame's to be resolved: it is not within "
            f"{low[0]:.2g} to {high[0]:.2g}"
        )
    return f"{covered} beyond what is resolved, {low[0]:.2g} to {high[0]:.2g}"


def why_no_error_at(share: float, sums: Sums) -> str:
    """Return why the largest among this share of errors is unknown; empty if it is known."""
    if not math.isnan(max_error_at(share, sums)[0]):
        return ""
    errors = f"{percent_text(share, 0)} of the errors are"
    if sums["errors"][0, 0] > share * sums["pixels"][0] - 1:
        return f"{errors} below {ERROR.edges[1]:.1g} m, where none is resolved"
    return f"{errors} not below {ERROR.edges[-2]:.0f} m, beyond which none is resolved"


def why_no_n_merci(sums: Sums) -> str:
    """Return why n-MeRCI is not a number."""
    unknown = why_no_error_at(ALPHA, sums) or why_no_ratio(sums)
    return unknown or "the errors that count are all equal"


NO_N_MERCI_AT_DISTANCE = (
    "there are fewer than 20 pixels, their errors or the ratio to sigma are beyond what is "
    "resolved, or the errors that count are all equal"
)
NO_GROUPS_BY_SIGMA = (
    f"too many sigmas are beyond what is resolved, {SIGMA.edges[1]:.1g} to {SIGMA.edges[-2]:.0f} m"
)
NO_SIZE_OF_BASELINE = f"the errors are below {ERROR.edges[1]:.1g} m, where none is resolved"
NO_SPEARMAN = "sigma or the error is the same everywhere"
