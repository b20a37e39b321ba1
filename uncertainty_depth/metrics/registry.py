# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Every metric of depth and of its sigma, once: name, unit, which way is better, and how.

`compute` takes sums of blocks of frames with a leading axis, see `block` and `blocks`. The value
of a metric is `compute` of the sum of all blocks, its interval comes from `compute` of a thousand
weighted sums: the same function. Whatever shows metrics iterates over `METRICS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from uncertainty_depth.metrics.arrays import Floats
from uncertainty_depth.metrics.bins import Bins, first_bin_sums
from uncertainty_depth.metrics.block import (
    CANDIDATES,
    DEPTH_RATIO,
    DISTANCE,
    DISTANCE_ERROR,
    DISTANCE_RATIO,
    ERROR,
    LAWS,
    RATIO,
)
from uncertainty_depth.metrics.blocks import Sums
from uncertainty_depth.metrics.calibration import area_of_miscoverage
from uncertainty_depth.metrics.depth import PER_KM
from uncertainty_depth.metrics.distributions import DISTRIBUTIONS, HALF_WIDTHS
from uncertainty_depth.metrics.merci import normalised, rescaled_mean
from uncertainty_depth.metrics.proper_scores import (
    NOMINAL_WIDTHS,
    binned_score_sums,
    mean_interval_score,
)
from uncertainty_depth.metrics.sparsification_variants import POGGI

BASELINES = CANDIDATES[1:]
SIGMA_GROUPS = 10
COVERAGE_LEVELS = (68, 95)
"""Confidence levels, per cent, whose coverage is a metric of its own."""
METRES = "m"
LOWER = "lower"
HIGHER = "higher"
SHARE = (0.0, 1.0)
NOT_NEGATIVE = (0.0, math.inf)
ANY = (-math.inf, math.inf)


@dataclass(frozen=True)
class Metric:
    """One metric.

    Attributes:
        name: dotted, as in `summary.json`.
        unit: "" for a pure number, "count" for an integer.
        better: "lower", "higher", "" for neither, or the value that is best.
        compute: from `Sums` to (R,) values, or (R, K) for the K `groups`.
        label: title in tables.
        meaning: for the reader of a table.
        source: of the definition; empty for what needs none.
        over: "pixels" of all images, the mean over "images", or a statistic over "frames".
        is_size: it compares the size of sigma with the errors, so sigma must be in metres.
        groups: names of the parts of a metric that is a list.
        has_baselines: the trivial baselines have it too, if it is of sigma and no list.
        limits: the least and the greatest value that it can have; intervals end there.
    """

    name: str
    unit: str
    better: str | float
    compute: Callable[[Sums], Floats]
    label: str
    meaning: str = ""
    source: str = ""
    over: str = "pixels"
    is_size: bool = False
    groups: tuple[str, ...] = ()
    has_baselines: bool = True
    limits: tuple[float, float] = ANY

    @property
    def is_of_sigma(self) -> bool:
        """Whether the trivial baselines have it too."""
        is_of_sigma = self.name.startswith("uncertainty.") and not self.groups
        return is_of_sigma and self.has_baselines

    def values(self, sums: Sums) -> Floats:
        """Return (R,) or (R, K) values; NaN where the metric is not defined."""
        with np.errstate(all="ignore"):
            return self.compute(sums)

    def names(self) -> tuple[str, ...]:
        """Return the dotted name of each value."""
        return tuple(f"{self.name}.{group}" for group in self.groups) or (self.name,)


# What the metrics are made of. (R,) unless said otherwise.


def _mean(name: str, sums: Sums, over: str = "pixels", factor: float = 1.0) -> Floats:
    return factor * (sums[name] / sums[over])


def _or_infinite(values: Floats, sums: Sums) -> Floats:
    """Return values of logarithm or inverse, infinite if a depth is not positive."""
    return np.where(sums["no_depth"] > 0, np.inf, values)


def _log_root_mean(sums: Sums) -> Floats:
    return _or_infinite(np.sqrt(_mean("squared_log", sums)), sums)


def _silog(sums: Sums) -> Floats:
    variance = _mean("squared_log", sums) - _mean("log", sums) ** 2
    return _or_infinite(np.sqrt(np.maximum(variance, 0.0)), sums)


def _inverse(sums: Sums) -> Floats:
    return _or_infinite(_mean("inverse", sums, factor=PER_KM), sums)


def _inverse_root_mean(sums: Sums) -> Floats:
    return _or_infinite(PER_KM * np.sqrt(_mean("squared_inverse", sums)), sums)


def _per_image(name: str, sums: Sums, statistic: int | None = None) -> Floats:
    """Return the mean over the images of a table by candidate, and by statistic if there are."""
    table = sums[name][:, CANDIDATES.index(sums.candidate)]
    return (table if statistic is None else table[:, statistic]) / sums["frames"]


def _spearman(sums: Sums) -> Floats:
    row = CANDIDATES.index(sums.candidate)
    return sums["spearman"][:, row] / sums["spearmans"][:, row]


_RATIOS: dict[str, tuple[str, Bins]] = {
    "method": ("ratio", RATIO),
    "constant": ("error", ERROR),
    "proportional_to_depth": ("depth_ratio", DEPTH_RATIO),
}
"""Name and bins of error / sigma of each candidate; the constant sigma is 1 m."""


def order_statistic(sums: Sums, name: str, bins: Bins, share: float) -> Floats:
    """Return the smallest value that at least a share of the pixels do not exceed."""
    counts = sums[f"{name}s"]
    numbers = np.ceil(share * counts.sum(axis=-1, keepdims=True))
    least = -sums[f"-min_{name}"]
    return bins.order_statistics(counts, numbers, least, sums[f"max_{name}"])[..., 0]


def ratio_quantile(sums: Sums, share: float) -> Floats:
    """Return the factor on sigma at which a share of the errors is covered."""
    return order_statistic(sums, *_RATIOS[sums.candidate], share)


def share_below(factor: float, sums: Sums) -> Floats:
    """Return the share of the errors within a factor times sigma."""
    name, bins = _RATIOS[sums.candidate]
    counts = sums[f"{name}s"]
    return bins.below(counts, np.array([factor]))[..., 0] / sums["pixels"]


def _sigma_sum(sums: Sums) -> Floats:
    names = {"method": "sigma", "constant": "pixels", "proportional_to_depth": "depth"}
    return sums[names[sums.candidate]]


def _merci(sums: Sums) -> Floats:
    factor = ratio_quantile(sums, sums.alpha)
    return rescaled_mean(factor, _sigma_sum(sums) / sums["pixels"])


def n_merci_at(alpha: float, sums: Sums) -> Floats:
    """Return n-MeRCI over all pixels for another alpha."""
    max_error = order_statistic(sums, "error", ERROR, alpha)
    factor = ratio_quantile(sums, alpha)
    return normalised(factor, _sigma_sum(sums) / sums["pixels"], _mean("error", sums), max_error)


def _n_merci(sums: Sums) -> Floats:
    return n_merci_at(sums.alpha, sums)


# The size of sigma. That of a baseline is the most likely one on the very pixels it is scored on.


def _power_mean(sums: Sums, law: str) -> tuple[Floats, Floats]:
    """Return the mean power of the finite ratios at scale 1, and how many there are."""
    name = _RATIOS[sums.candidate][0]
    infinite = {"method": sums["certain_errors"], "proportional_to_depth": sums["no_depth"]}
    finite = sums["pixels"] - infinite.get(sums.candidate, 0.0)
    return sums[name if DISTRIBUTIONS[law].power == 1 else f"squared_{name}"] / finite, finite


def sigma_scale(law: str, sums: Sums) -> Floats:
    """Return the factor on sigma at which its size is judged."""
    power, finite = _power_mean(sums, law)
    if sums.candidate == "method":
        return np.ones_like(power)
    return np.where(finite > 0, DISTRIBUTIONS[law].likely_scale(power, 1), 0.0)


def covered_shares(law: str, sums: Sums) -> Floats:
    """Return the share of the errors in the interval of each level, (R, 99)."""
    pixels = sums["pixels"][:, None]
    if sums.candidate == "method":
        return sums["covered"][:, LAWS.index(law)] / pixels
    name, bins = _RATIOS[sums.candidate]
    widths = HALF_WIDTHS[law] * sigma_scale(law, sums)[:, None]
    return bins.below(sums[f"{name}s"], widths) / pixels


def _auce(law: str, sums: Sums) -> Floats:
    return area_of_miscoverage(covered_shares(law, sums))


def _coverage(law: str, percent: int, sums: Sums) -> Floats:
    if sums.candidate == "method":
        return sums["covered"][:, LAWS.index(law), percent - 1] / sums["pixels"]
    return covered_shares(law, sums)[:, percent - 1]


def _nll(law: str, sums: Sums) -> Floats:
    distribution = DISTRIBUTIONS[law]
    scale = sigma_scale(law, sums)
    power, finite = _power_mean(sums, law)
    none = np.zeros_like(power)
    logs = {"method": sums["log_sigma"], "proportional_to_depth": sums["log_depth"]}
    zeros = {"method": sums["no_sigma"], "proportional_to_depth": sums["no_depth"]}
    mean_log = logs.get(sums.candidate, none) / sums["pixels"] + np.log(scale)
    values = distribution.nll(mean_log, power / scale**distribution.power)
    values = np.where((zeros.get(sums.candidate, none) > 0) | (scale == 0), -np.inf, values)
    values = np.where(finite < sums["pixels"], np.inf, values)
    return np.where(sums["pixels"] > 0, values, math.nan)


def _scores(law: str, sums: Sums) -> tuple[Floats, Floats]:
    """Return the sums of CRPS and of the errors beyond the 95 % interval."""
    if sums.candidate == "method":
        row = LAWS.index(law)
        return sums["crps"][:, row], sums["excess"][:, row]
    if sums.candidate == "constant":
        sigma = sums["errors"]
        error = sigma * ERROR.centres
    else:
        error = sums["by_depth_ratio.error"]
        sigma = sums["by_depth_ratio.depth"]
    scales = sigma_scale(law, sums).tolist()
    rows = [
        binned_score_sums(errors, sigmas, DISTRIBUTIONS[law], scale)
        for errors, sigmas, scale in zip(error, sigma, scales, strict=True)
    ]
    crps, excess = np.array(rows).reshape(-1, 2).T
    return crps, excess


def _crps(law: str, sums: Sums) -> Floats:
    return _scores(law, sums)[0] / sums["pixels"]


def _half_width(law: str, sums: Sums) -> Floats:
    return NOMINAL_WIDTHS[law] * sigma_scale(law, sums) * _sigma_sum(sums) / sums["pixels"]


def _interval_score(law: str, sums: Sums) -> Floats:
    return mean_interval_score(_half_width(law, sums), _scores(law, sums)[1] / sums["pixels"])


def _interval_width(law: str, sums: Sums) -> Floats:
    return 2 * _half_width(law, sums)


# By size of sigma and by distance, (R, K).


def _sigma_group(name: str, row: int | None, sums: Sums) -> Floats:
    """Return the sums over ten groups of as many pixels each, by ascending sigma."""
    counts = sums["by_sigma.pixels"]
    values = sums[name] if row is None else sums[name][:, row]
    numbers = counts.sum(axis=-1, keepdims=True) * np.arange(1, SIGMA_GROUPS + 1) / SIGMA_GROUPS
    return np.diff(first_bin_sums(counts, values, numbers), prepend=0.0)


def _coverage_by_sigma(law: str, sums: Sums) -> Floats:
    covered = _sigma_group("by_sigma.covered", LAWS.index(law), sums)
    return covered / (sums["pixels"][:, None] / SIGMA_GROUPS)


def _ence(sums: Sums) -> Floats:
    claimed = np.sqrt(_sigma_group("by_sigma.squared_sigma", None, sums))
    found = np.sqrt(_sigma_group("by_sigma.squared_error", None, sums))
    return (np.abs(claimed - found) / claimed).mean(axis=-1)


def _at_distance(name: str, sums: Sums, over: str = "pixels") -> Floats:
    return sums[f"distance.{name}"] / sums[f"distance.{over}"]


def _n_merci_at_distance(sums: Sums) -> Floats:
    quantiles = {}
    for name, bins in (("errors", DISTANCE_ERROR), ("ratios", DISTANCE_RATIO)):
        counts = sums[f"distance.{name}"]
        numbers = np.ceil(sums.alpha * counts.sum(axis=-1, keepdims=True))
        limits = np.zeros(counts.shape[:-1]), np.full(counts.shape[:-1], np.inf)
        quantile = bins.order_statistics(counts, numbers, *limits)[..., 0]
        quantiles[name] = np.where(quantile > 0, quantile, math.nan)  # too small for the bins
    mae = _at_distance("error", sums)
    return normalised(quantiles["ratios"], _at_distance("sigma", sums), mae, quantiles["errors"])


def _repeatability(sums: Sums) -> Floats:
    return np.sqrt(_at_distance("squared_change", sums, "still_pixels") / 2)


# Over frames.


def _scale(sums: Sums) -> Floats:
    return np.exp(_mean("log_scale", sums, "scales"))


def _scale_deviation(sums: Sums) -> Floats:
    mean = _mean("log_scale", sums, "scales")
    return np.sqrt(np.maximum(_mean("squared_log_scale", sums, "scales") - mean**2, 0.0))


def _pixel_deviation(sums: Sums) -> Floats:
    return np.sqrt(sums["log_within_frame"] / (sums["pixels"] - sums["no_depth"]))


def _highest_unfamiliarity(sums: Sums) -> Floats:
    return np.where(sums["familiarities"] > 0, sums["max_unfamiliarity"], math.nan)


# The entries.

_EIGEN = "Eigen et al. 2014"
_UHRIG = "Uhrig et al. 2017"
_POGGI = "Poggi et al. 2020"
_GNEITING = "Gneiting and Raftery 2007"
_FACTORS = {"a1": "1.25", "a2": "1.25^2", "a3": "1.25^3"}
_STATISTICS = {"abs_rel": ("abs_rel", ""), "rmse": ("rmse", METRES), "a1": ("1 - a1", "")}


def _depth_metrics() -> Iterator[Metric]:
    yield Metric(
        "depth.mae",
        METRES,
        LOWER,
        partial(_mean, "error"),
        "MAE",
        "mean error",
        limits=NOT_NEGATIVE,
    )
    yield Metric(
        "depth.bias", METRES, 0.0, partial(_mean, "signed_error"), "bias",
        "mean of prediction minus ground truth",
    )  # fmt: skip
    yield Metric(
        "depth.abs_rel", "", LOWER, partial(_mean, "abs_rel"), "abs_rel",
        "mean error / ground truth", _EIGEN, limits=NOT_NEGATIVE,
    )  # fmt: skip
    yield Metric(
        "depth.sq_rel", METRES, LOWER, partial(_mean, "sq_rel"), "sq_rel",
        "mean squared error / ground truth", _EIGEN, limits=NOT_NEGATIVE,
    )  # fmt: skip
    yield Metric(
        "depth.rmse", METRES, LOWER, lambda sums: np.sqrt(_mean("squared_error", sums)), "rmse",
        "root of the mean squared error", _EIGEN, limits=NOT_NEGATIVE,
    )  # fmt: skip
    yield Metric(
        "depth.rmse_log", "", LOWER, _log_root_mean, "rmse_log",
        "the same of the natural logarithm; infinite if a depth is not positive", _EIGEN,
        limits=NOT_NEGATIVE,
    )  # fmt: skip
    yield Metric(
        "depth.silog", "", LOWER, _silog, "silog",
        "deviation of ln d - ln g, without KITTI's factor 100", _EIGEN, limits=NOT_NEGATIVE,
    )  # fmt: skip
    yield Metric(
        "depth.imae",
        "1/km",
        LOWER,
        _inverse,
        "iMAE",
        "mean error of the inverse depth",
        _UHRIG,
        limits=NOT_NEGATIVE,
    )
    yield Metric(
        "depth.irmse", "1/km", LOWER, _inverse_root_mean, "iRMSE",
        "root of the mean squared error of the inverse depth", _UHRIG, limits=NOT_NEGATIVE,
    )  # fmt: skip
    yield Metric(
        "depth.within_10_percent", "", HIGHER, partial(_mean, "within_10_percent"),
        "within 10 %", "share of the pixels with an error of at most a tenth of the ground truth",
        limits=SHARE,
    )  # fmt: skip
    for name, factor in _FACTORS.items():
        meaning = f"share of the pixels within a factor of {factor} of the ground truth"
        yield Metric(
            f"depth.{name}", "", HIGHER, partial(_mean, name), name, meaning, _EIGEN, limits=SHARE
        )


def _order_metrics() -> Iterator[Metric]:
    for place, name in enumerate(POGGI.errors):
        text, unit = _STATISTICS[name]
        yield Metric(
            f"uncertainty.ause.{name}", unit, LOWER, partial(_per_image, "ause", statistic=place),
            f"AUSE {text}", "order: error above the best order's when uncertain pixels go", _POGGI,
            over="images",
        )  # fmt: skip
    for place, name in enumerate(POGGI.errors):
        text, unit = _STATISTICS[name]
        yield Metric(
            f"uncertainty.aurg.{name}", unit, HIGHER, partial(_per_image, "aurg", statistic=place),
            f"AURG {text}", "order: gain over random removal, which has +1 % itself", _POGGI,
            over="images",
        )  # fmt: skip
    yield Metric(
        "uncertainty.aurc", METRES, LOWER, partial(_per_image, "aurc"), "AURC",
        "order: mean error of the pixels kept, over all shares kept",
        "Geifman and El-Yaniv 2017", over="images", limits=NOT_NEGATIVE,
    )  # fmt: skip
    yield Metric(
        "uncertainty.spearman", "", HIGHER, _spearman, "Spearman",
        "order: rank correlation of sigma and error, over the images that have one",
        over="images", limits=(-1.0, 1.0),
    )  # fmt: skip
    yield Metric(
        "uncertainty.n_merci", "", LOWER, _n_merci, "n-MeRCI",
        "length of error bars that cover 95 %: 0 is sigma = error, 1 a constant",
        "Moukari et al. 2019",
    )  # fmt: skip
    yield Metric(
        "uncertainty.merci", METRES, LOWER, _merci, "MeRCI",
        "mean length of error bars that cover 95 %", "Moukari et al. 2019", limits=NOT_NEGATIVE,
    )  # fmt: skip


def _size_metrics(law: str) -> Iterator[Metric]:
    suffix = "" if law == "gaussian" else f"_{law}"
    groups = tuple(str(number) for number in range(1, SIGMA_GROUPS + 1))

    def metric(
        name: str, unit: str, better: str | float, compute: Callable[[Sums], Floats],
        label: str, meaning: str, source: str = "", groups: tuple[str, ...] = (),
        limits: tuple[float, float] = ANY,
    ) -> Metric:  # fmt: skip
        return Metric(
            f"uncertainty.{name.format(suffix)}", unit, better, compute,
            f"{label} ({law.title()})", meaning, source, is_size=True, groups=groups,
            limits=limits,
        )  # fmt: skip

    yield metric(
        "auce{}", "", LOWER, partial(_auce, law), "AUCE",
        "size: mean gap between coverage and level", "Gustafsson et al. 2020", limits=SHARE,
    )  # fmt: skip
    for percent in COVERAGE_LEVELS:
        yield metric(
            f"coverage_{percent}{{}}", "", percent / 100, partial(_coverage, law, percent),
            f"coverage {percent} %", f"size: errors in the {percent} % interval", limits=SHARE,
        )  # fmt: skip
    yield metric(
        "nll{}", "nats", LOWER, partial(_nll, law), "NLL",
        "size and order: negative log likelihood",
    )  # fmt: skip
    yield metric(
        "crps{}", METRES, LOWER, partial(_crps, law), "CRPS",
        "size and order: the error of a certain claim", _GNEITING, limits=NOT_NEGATIVE,
    )  # fmt: skip
    yield metric(
        "interval_score_95{}", METRES, LOWER, partial(_interval_score, law), "interval score 95 %",
        "size and order: width of the interval and 40 times the error beyond it", _GNEITING,
        limits=NOT_NEGATIVE,
    )  # fmt: skip
    yield metric(
        "mpiw_95{}", METRES, "", partial(_interval_width, law), "interval width 95 %",
        "mean; read it with the coverage", limits=NOT_NEGATIVE,
    )  # fmt: skip
    yield metric(
        "coverage_95{}_by_sigma", "", 0.95, partial(_coverage_by_sigma, law),
        "coverage 95 % by sigma", "of ten groups of as many pixels, by ascending sigma",
        groups=groups, limits=SHARE,
    )  # fmt: skip


def _distance_metrics() -> Iterator[Metric]:
    edges = [f"{edge:g}" for edge in DISTANCE.edges[1:-1]]
    between = [f"{low}_{high}m" for low, high in pairwise(edges)]
    groups = (f"under_{edges[0]}m", *between, f"over_{edges[-1]}m")

    def metric(
        name: str, unit: str, better: str | float, compute: Callable[[Sums], Floats],
        label: str, meaning: str = "", is_size: bool = False,
        limits: tuple[float, float] = ANY,
    ) -> Metric:  # fmt: skip
        return Metric(
            f"by_distance.{name}", unit, better, compute, label, meaning, is_size=is_size,
            groups=groups, limits=limits,
        )  # fmt: skip

    yield metric("pixels", "count", "", lambda sums: sums["distance.pixels"], "pixels")
    yield metric(
        "bias", METRES, 0.0, partial(_at_distance, "signed_error"), "bias", "mean of d - g"
    )
    yield metric(
        "mae",
        METRES,
        LOWER,
        partial(_at_distance, "error"),
        "MAE",
        "mean error",
        limits=NOT_NEGATIVE,
    )
    yield metric(
        "sigma",
        METRES,
        "",
        partial(_at_distance, "sigma"),
        "sigma",
        "mean",
        is_size=True,
        limits=NOT_NEGATIVE,
    )
    for law, suffix in (("gaussian", ""), ("laplace", "_laplace")):
        yield metric(
            f"coverage_95{suffix}", "", 0.95, partial(_at_distance, f"covered{suffix}"),
            f"coverage 95 % ({law.title()})", is_size=True, limits=SHARE,
        )  # fmt: skip
    yield metric("n_merci", "", LOWER, _n_merci_at_distance, "n-MeRCI", "over these pixels")
    yield metric(
        "repeatability", METRES, LOWER, _repeatability, "repeatability",
        "deviation of a pixel over frames of a camera that stands still", limits=NOT_NEGATIVE,
    )  # fmt: skip


def _frame_metrics() -> Iterator[Metric]:
    def metric(
        name: str, unit: str, better: str | float, compute: Callable[[Sums], Floats],
        label: str, meaning: str = "",
        limits: tuple[float, float] = ANY,
    ) -> Metric:  # fmt: skip
        return Metric(name, unit, better, compute, label, meaning, over="frames", limits=limits)

    yield metric(
        "scale.scale", "", 1.0, _scale, "scale",
        "geometric mean over the frames of the median of ground truth / depth",
        limits=NOT_NEGATIVE,
    )  # fmt: skip
    yield metric(
        "scale.scale_deviation", "", LOWER, _scale_deviation, "scale deviation",
        "deviation of the logarithm of the frames' scales", limits=NOT_NEGATIVE,
    )  # fmt: skip
    yield metric(
        "scale.scale_jump", "", LOWER, partial(_mean, "scale_jump", over="scale_jumps"),
        "scale jump", "mean change of that logarithm from frame to frame", limits=NOT_NEGATIVE,
    )  # fmt: skip
    yield metric(
        "scale.pixel_deviation", "", LOWER, _pixel_deviation, "pixel deviation",
        "deviation of ln d - ln g within a frame: what no scale could mend", limits=NOT_NEGATIVE,
    )  # fmt: skip
    yield metric(
        "unfamiliarity.frames", "count", "", lambda sums: sums["familiarities"],
        "frames whose unfamiliarity is known",
    )  # fmt: skip
    yield metric(
        "unfamiliarity.mean", "", LOWER, partial(_mean, "unfamiliarity", over="familiarities"),
        "unfamiliarity", "how unlike the training's the images are", limits=NOT_NEGATIVE,
    )  # fmt: skip
    yield metric(
        "unfamiliarity.max",
        "",
        LOWER,
        _highest_unfamiliarity,
        "highest unfamiliarity",
        "",
        limits=NOT_NEGATIVE,
    )
    yield metric(
        "unfamiliarity.fraction_above_1", "", LOWER,
        partial(_mean, "unfamiliar", over="familiarities"), "unfamiliar frames",
        "share of the frames above 1, the limit of the training's own", limits=SHARE,
    )  # fmt: skip


METRICS: tuple[Metric, ...] = (
    Metric("pixels", "count", "", lambda sums: sums["pixels"], "pixels scored"),
    Metric(
        "scored_fraction", "", HIGHER, partial(_mean, "pixels", over="known_pixels"),
        "scored fraction", "pixels scored / pixels with ground truth", limits=SHARE,
    ),
    *_depth_metrics(),
    *_order_metrics(),
    *_size_metrics("gaussian"),
    *_size_metrics("laplace"),
    Metric(
        "uncertainty.ence", "", LOWER, _ence, "ENCE",
        "size: mean of |claimed - found deviation| / claimed over ten groups by sigma",
        "Levi et al. 2022", is_size=True, has_baselines=False, limits=NOT_NEGATIVE,
    ),
    *_distance_metrics(),
    *_frame_metrics(),
)  # fmt: skip
BY_NAME = {metric.name: metric for metric in METRICS}
BY_VALUE = {name: metric for metric in METRICS for name in metric.names()}
"""The metric of each dotted name of a value."""


def baseline_name(baseline: str, metric: Metric) -> str:
    """Return the dotted name of a metric of a trivial baseline."""
    return f"baselines.{baseline}.{metric.name.removeprefix('uncertainty.')}"


def flat_values(sums: Sums, without_size: bool = False) -> dict[str, float]:
    """Return the first row of every metric by dotted name, NaN for none.

    Args:
        sums: of all frames.
        without_size: sigma has no unit: its metrics of size are NaN.
    """
    values: dict[str, float] = {}
    for metric in METRICS:
        names = metric.names()
        if without_size and metric.is_size:
            values |= dict.fromkeys(names, math.nan)
            continue
        row = np.atleast_1d(metric.values(sums)[0]).tolist()
        values |= zip(names, map(int, row) if metric.unit == "count" else row, strict=True)
    for baseline in BASELINES:
        of_baseline = sums.of(baseline)
        for metric in METRICS:
            if metric.is_of_sigma:
                values[baseline_name(baseline, metric)] = float(metric.values(of_baseline)[0])
    return values


def frame_values(sums: Sums, without_size: bool = False) -> dict[str, float]:
    """Return the metrics of one frame by dotted name: a row of the table of frames.

    Those of one number each, its scale and its unfamiliarity; of the trivial baselines the
    rankings alone, which are per image.
    """
    values: dict[str, float] = {}
    for metric in METRICS:
        if not metric.groups and metric.over != "frames":
            is_undefined = without_size and metric.is_size
            values[metric.name] = math.nan if is_undefined else float(metric.values(sums)[0])
    for baseline in BASELINES:
        of_baseline = sums.of(baseline)
        for metric in METRICS:
            if metric.is_of_sigma and metric.over == "images":
                values[baseline_name(baseline, metric)] = float(metric.values(of_baseline)[0])
    values["scale"] = float(BY_NAME["scale.scale"].values(sums)[0])
    values["unfamiliarity"] = float(BY_NAME["unfamiliarity.mean"].values(sums)[0])
    return values


def nested(values: Mapping[str, float]) -> dict[str, Any]:
    """Return values by dotted name as the nested mapping of `summary.json`."""
    result: dict[str, Any] = {}
    for name, value in values.items():
        metric = BY_VALUE.get(name)
        *path, last = metric.name.split(".") if metric and metric.groups else name.split(".")
        if metric and metric.groups:
            path = [*path, last]
            last = name.removeprefix(f"{metric.name}.")
        place = result
        for key in path:
            place = place.setdefault(key, {})
        place[last] = value
    return result


def flatten(metrics: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """Return nested metrics by dotted name: {"ause": {"rmse": 1}} becomes {"ause.rmse": 1}."""
    flat: dict[str, float] = {}
    for key, value in metrics.items():
        flat |= (
            flatten(value, f"{prefix}{key}.")
            if isinstance(value, Mapping)
            else {prefix + key: value}
        )
    return flat


def markdown() -> str:
    """Return the table of all metrics for the reference page."""
    rows = [
        "| name | unit | better | over | what | source |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for metric in METRICS:
        better = f"{metric.better:g}" if isinstance(metric.better, float) else metric.better
        name = f"`{metric.name}`" + (f" ({len(metric.groups)} values)" if metric.groups else "")
        what = metric.meaning or metric.label
        cells = (name, metric.unit, better, metric.over, what.replace("|", "\\|"), metric.source)
        rows.append(f"| {' | '.join(cells)} |".replace("  ", " "))
    return "\n".join(rows)
