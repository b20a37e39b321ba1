# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Every metric of depth and sigma, once: name, unit, better direction, and computation.

`compute` takes sums of blocks of frames with a leading axis, see `state`. A metric's value is
`compute` of the sum of all blocks; its interval comes from the same function on a thousand
weighted sums. Everything that shows metrics iterates over `METRICS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from uncertainty_depth.metrics.arrays import Floats
from uncertainty_depth.metrics.bins import Bins, first_bin_sums
from uncertainty_depth.metrics.calibration import (
    DISTRIBUTIONS,
    HALF_WIDTHS,
    NOMINAL_WIDTHS,
    area_of_miscoverage,
    crps_sum,
    excess_sum,
    mean_interval_score,
    of_law,
)
from uncertainty_depth.metrics.depth import PER_KM
from uncertainty_depth.metrics.merci import error_ratio, normalised, rescaled_mean
from uncertainty_depth.metrics.sparsification import POGGI
from uncertainty_depth.metrics.state import (
    CANDIDATES,
    DEPTH_RATIO,
    DISTANCE,
    DISTANCE_ERROR,
    DISTANCE_RATIO,
    ERROR,
    LAWS,
    RATIO,
    Sums,
)

BASELINES = CANDIDATES[1:]
ALPHA = 0.95
"""Fraction of the pixels whose error the scaled sigma of n-MeRCI must cover."""
SIGMA_GROUPS = 10
COVERAGE_LEVELS = (68, 95)
"""Confidence levels, per cent, whose coverage is a metric of its own."""
METRES = "m"
LOWER = "lower"
HIGHER = "higher"
SHARE = (0.0, 1.0)
NOT_NEGATIVE = (0.0, math.inf)
ANY = (-math.inf, math.inf)
Compute = Callable[[Sums], Floats]


@dataclass(frozen=True)
class Metric:
    """One metric.

    Attributes:
        name: dotted, as in `summary.json`.
        unit: "" for a pure number, "count" for an integer.
        better: "lower", "higher", "" for neither, or the value that is best.
        limits: its smallest and largest possible value; intervals end there.
        compute: from `Sums` to (R,) values, or (R, K) for the K `groups`.
        label: title in tables.
        meaning: for the reader of a table.
        source: the definition's source; empty if it needs none.
        over: "pixels" of all images, the mean over "images", or a statistic over "frames".
        is_size: whether it compares sigma's size with the errors, so that sigma must be in metres.
        law: distribution of the error whose intervals it is about; empty if it is about none.
        groups: names of the parts of a metric that is a list.
        has_baselines: whether the trivial baselines have it too, if it is a metric of sigma and
            not a list.
    """

    name: str
    unit: str
    better: str | float
    limits: tuple[float, float]
    compute: Compute
    label: str
    meaning: str = ""
    source: str = ""
    over: str = "pixels"
    is_size: bool = False
    law: str = ""
    groups: tuple[str, ...] = ()
    has_baselines: bool = True

    @property
    def is_of_sigma(self) -> bool:
        """Whether the trivial baselines have it too."""
        is_list = bool(self.groups)
        return self.name.startswith("uncertainty.") and self.has_baselines and not is_list

    def values(self, sums: Sums) -> Floats:
        """Return (R,) or (R, K) values; NaN if the metric is undefined."""
        with np.errstate(all="ignore"):
            return self.compute(sums)

    def text(self, value: float, sign: str = "") -> str:
        """Return a value as every table writes it: coverage in per cent, others in 4 digits or so.

        Args:
            value: of this metric, or a difference of two.
            sign: "+" shows the sign of a positive value too.
        """
        if "coverage" in self.name:
            return f"{value:{sign}.1%}"
        size = abs(value)
        if not size < 10**5:  # infinite, undefined, or of a scale that is out of the question
            return f"{value:{sign}.2g}"
        decimals = 4 if size < 10 else 2 if size < 100 else 1
        return f"{round(value, decimals) + 0.0:{sign}.{decimals}f}"  # -0.0 + 0.0 is 0.0

    def names(self) -> tuple[str, ...]:
        """Return the dotted name of each value."""
        return tuple(f"{self.name}.{group}" for group in self.groups) or (self.name,)


# What the metrics are computed from, (R,) unless stated otherwise.


def _mean(name: str, over: str = "pixels", factor: float = 1.0) -> Compute:
    return lambda sums: factor * (sums[name] / sums[over])


def _root_mean(name: str, over: str = "pixels", factor: float = 1.0) -> Compute:
    return lambda sums: factor * np.sqrt(sums[name] / sums[over])


def _deviation(name: str, over: str = "pixels") -> Compute:
    def compute(sums: Sums) -> Floats:
        variance = sums[f"squared_{name}"] / sums[over] - (sums[name] / sums[over]) ** 2
        return np.sqrt(np.maximum(variance, 0.0))

    return compute


def _or_infinite(compute: Compute) -> Compute:
    """Return a metric of logarithm or inverse, infinite if a depth is not positive."""
    return lambda sums: np.where(sums["no_depth"] > 0, np.inf, compute(sums))


def _per_image(name: str, statistic: int | None = None) -> Compute:
    """Return the mean over the images of a table by candidate, and by statistic if there are."""

    def compute(sums: Sums) -> Floats:
        table = sums[name][:, CANDIDATES.index(sums.candidate)]
        return (table if statistic is None else table[:, statistic]) / sums["frames"]

    return compute


def _spearman(sums: Sums) -> Floats:
    row = CANDIDATES.index(sums.candidate)
    return sums["spearman"][:, row] / sums["spearmans"][:, row]


class _OfCandidate(NamedTuple):
    """Names of what differs between the candidates; the constant sigma is 1 m."""

    ratio: str  # its ratio to the error: sum, histogram and extremes
    bins: Bins
    sigma: str  # sum of sigma
    log_sigma: str = ""
    zeros: str = ""  # pixels whose sigma is 0, which have no logarithm
    infinite: str = ""  # pixels whose ratio is infinite


_OF = {
    "method": _OfCandidate("ratio", RATIO, "sigma", "log_sigma", "no_sigma", "certain_errors"),
    "constant": _OfCandidate("error", ERROR, "pixels"),
    "proportional_to_depth": _OfCandidate(
        "depth_ratio", DEPTH_RATIO, "depth", "log_depth", "no_depth", "no_depth"
    ),
}


def _sum_or_zero(sums: Sums, name: str) -> Floats:
    return sums[name] if name else np.zeros_like(sums["pixels"])


def _order_statistic(sums: Sums, name: str, bins: Bins, share: float) -> Floats:
    """Return the smallest value that at least a share of the pixels do not exceed."""
    counts = sums[f"{name}s"]
    numbers = np.ceil(share * counts.sum(axis=-1, keepdims=True))
    least = -sums[f"-min_{name}"]
    return bins.order_statistics(counts, numbers, least, sums[f"max_{name}"])[..., 0]


def max_error_at(share: float, sums: Sums) -> Floats:
    """Return the largest of the smallest errors that make up a share of all, metres."""
    return _order_statistic(sums, "error", ERROR, share)


def ratio_quantile(sums: Sums, share: float) -> Floats:
    """Return the factor on sigma at which a share of the errors is covered."""
    of = _OF[sums.candidate]
    return _order_statistic(sums, of.ratio, of.bins, share)


def share_below(factor: float, sums: Sums) -> Floats:
    """Return the share of the errors within a factor times sigma."""
    of = _OF[sums.candidate]
    return of.bins.below(sums[f"{of.ratio}s"], np.array([factor]))[..., 0] / sums["pixels"]


def _mean_sigma(sums: Sums) -> Floats:
    return sums[_OF[sums.candidate].sigma] / sums["pixels"]


def n_merci_at(alpha: float, sums: Sums) -> Floats:
    """Return n-MeRCI over all pixels at an alpha."""
    mae = sums["error"] / sums["pixels"]
    max_error = max_error_at(alpha, sums)
    return normalised(ratio_quantile(sums, alpha), _mean_sigma(sums), mae, max_error)


# The size of sigma. A baseline's size is the most likely one on the very pixels it is scored on.


def _power_mean(sums: Sums, law: str) -> tuple[Floats, Floats]:
    """Return the mean power of the finite ratios at scale 1, and how many there are."""
    of = _OF[sums.candidate]
    finite = sums["pixels"] - _sum_or_zero(sums, of.infinite)
    power = of.ratio if DISTRIBUTIONS[law].power == 1 else f"squared_{of.ratio}"
    return sums[power] / finite, finite


def _sigma_scale(law: str, sums: Sums) -> Floats:
    """Return the factor on sigma at which its size is judged."""
    power, finite = _power_mean(sums, law)
    if sums.candidate == "method":
        return np.ones_like(power)
    return np.where(finite > 0, DISTRIBUTIONS[law].likely_scale(power), 0.0)


def covered_shares(law: str, sums: Sums) -> Floats:
    """Return the share of the errors in the interval of each level, (R, 99)."""
    pixels = sums["pixels"][:, None]
    if sums.candidate == "method":
        return sums["covered"][:, LAWS.index(law)] / pixels
    of = _OF[sums.candidate]
    widths = HALF_WIDTHS[law] * _sigma_scale(law, sums)[:, None]
    return of.bins.below(sums[f"{of.ratio}s"], widths) / pixels


def auce_by(half_widths: Floats, sums: Sums) -> Floats:
    """Return AUCE of intervals of these (99,) half widths in sigmas: measured, of no law."""
    of = _OF[sums.candidate]
    covered = of.bins.below(sums[f"{of.ratio}s"], half_widths)
    return area_of_miscoverage(covered / sums["pixels"][:, None])


def _nll(law: str, sums: Sums) -> Floats:
    of = _OF[sums.candidate]
    distribution = DISTRIBUTIONS[law]
    scale = _sigma_scale(law, sums)
    power, finite = _power_mean(sums, law)
    mean_log = _sum_or_zero(sums, of.log_sigma) / sums["pixels"] + np.log(scale)
    values = distribution.nll(mean_log, power / scale**distribution.power)
    values = np.where((_sum_or_zero(sums, of.zeros) > 0) | (scale == 0), -np.inf, values)
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
        sigma = sums["by_depth_ratio.depth"]
        error = sums["by_depth_ratio.error"]
    rows = []
    for errors, sigmas, scale in zip(error, sigma, _sigma_scale(law, sums).tolist(), strict=True):
        occupied = (errors > 0) | (sigmas > 0)
        errors = errors[occupied]
        sigmas = sigmas[occupied]
        ratios = error_ratio(errors, sigmas)
        crps = crps_sum(errors, sigmas, ratios, DISTRIBUTIONS[law], scale)
        rows.append((crps, excess_sum(errors, sigmas, scale * NOMINAL_WIDTHS[law])))
    table = np.array(rows).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _half_width(law: str, sums: Sums) -> Floats:
    return NOMINAL_WIDTHS[law] * _sigma_scale(law, sums) * _mean_sigma(sums)


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


def _at_distance(name: str) -> Compute:
    return _mean(f"distance.{name}", "distance.pixels")


def _n_merci_at_distance(sums: Sums) -> Floats:
    quantiles = {}
    for name, bins in (("errors", DISTANCE_ERROR), ("ratios", DISTANCE_RATIO)):
        counts = sums[f"distance.{name}"]
        numbers = np.ceil(ALPHA * counts.sum(axis=-1, keepdims=True))
        limits = np.zeros(counts.shape[:-1]), np.full(counts.shape[:-1], np.inf)
        quantile = bins.order_statistics(counts, numbers, *limits)[..., 0]
        quantiles[name] = np.where(quantile > 0, quantile, math.nan)  # too small for the bins
    max_error = np.where(np.isfinite(quantiles["errors"]), quantiles["errors"], math.nan)
    sigma = _at_distance("sigma")(sums)
    mae = _at_distance("error")(sums)
    return normalised(quantiles["ratios"], sigma, mae, max_error)


# The entries: name, unit, which way is better, limits, how, label, meaning, source.

_EIGEN = "Eigen et al. 2014"
_UHRIG = "Uhrig et al. 2017"
_POGGI = "Poggi et al. 2020"
_GEIFMAN = "Geifman and El-Yaniv 2017"
_MOUKARI = "Moukari et al. 2019"
_GUSTAFSSON = "Gustafsson et al. 2020"
_GNEITING = "Gneiting and Raftery 2007"
_STATISTICS = {"abs_rel": ("abs_rel", ""), "rmse": ("rmse", METRES), "a1": ("1 - a1", "")}
Row = tuple[Any, ...]

# fmt: off
_PIXELS: tuple[Row, ...] = (
    ("pixels", "count", "", ANY, lambda sums: sums["pixels"], "pixels scored"),
    ("scored_fraction", "", HIGHER, SHARE, _mean("pixels", "known_pixels"), "scored fraction",
     "pixels scored / pixels with ground truth"),
)
_DEPTH: tuple[Row, ...] = (
    ("mae", METRES, LOWER, NOT_NEGATIVE, _mean("error"), "MAE", "mean error"),
    ("bias", METRES, 0.0, ANY, _mean("signed_error"), "bias",
     "mean of prediction minus ground truth"),
    ("abs_rel", "", LOWER, NOT_NEGATIVE, _mean("abs_rel"), "abs_rel",
     "mean error / ground truth", _EIGEN),
    ("sq_rel", METRES, LOWER, NOT_NEGATIVE, _mean("sq_rel"), "sq_rel",
     "mean squared error / ground truth", _EIGEN),
    ("rmse", METRES, LOWER, NOT_NEGATIVE, _root_mean("squared_error"), "rmse",
     "root of the mean squared error", _EIGEN),
    ("rmse_log", "", LOWER, NOT_NEGATIVE, _or_infinite(_root_mean("squared_log")), "rmse_log",
     "rmse of the natural logarithm; infinite if a depth is not positive", _EIGEN),
    ("silog", "", LOWER, NOT_NEGATIVE, _or_infinite(_deviation("log")), "silog",
     "deviation of ln d - ln g, without KITTI's factor 100", _EIGEN),
    ("imae", "1/km", LOWER, NOT_NEGATIVE, _or_infinite(_mean("inverse", factor=PER_KM)), "iMAE",
     "mean error of the inverse depth", _UHRIG),
    ("irmse", "1/km", LOWER, NOT_NEGATIVE,
     _or_infinite(_root_mean("squared_inverse", factor=PER_KM)), "iRMSE",
     "root of the mean squared error of the inverse depth", _UHRIG),
    ("within_10_percent", "", HIGHER, SHARE, _mean("within_10_percent"), "within 10%",
     "share of the pixels with an error of at most a tenth of the ground truth"),
    *(
        (name, "", HIGHER, SHARE, _mean(name), name,
         f"share of the pixels within a factor of {factor} of the ground truth", _EIGEN)
        for name, factor in {"a1": "1.25", "a2": "1.25^2", "a3": "1.25^3"}.items()
    ),
)
_ORDER: tuple[Row, ...] = (
    *(
        (f"ause.{name}", _STATISTICS[name][1], LOWER, NOT_NEGATIVE, _per_image("ause", place),
         f"AUSE {_STATISTICS[name][0]}",
         "order: error above a perfect ranking's as uncertain pixels go", _POGGI)
        for place, name in enumerate(POGGI.errors)
    ),
    *(
        (f"aurg.{name}", _STATISTICS[name][1], HIGHER, ANY, _per_image("aurg", place),
         f"AURG {_STATISTICS[name][0]}",
         "order: gain over random removal, which has +1% itself", _POGGI)
        for place, name in enumerate(POGGI.errors)
    ),
    ("aurc", METRES, LOWER, NOT_NEGATIVE, _per_image("aurc"), "AURC",
     "order: mean error of the pixels kept, over all shares kept", _GEIFMAN),
    ("spearman", "", HIGHER, (-1.0, 1.0), _spearman, "Spearman",
     "order: rank correlation of sigma and error, over the images that have one"),
)
_MERCI: tuple[Row, ...] = (
    ("n_merci", "", LOWER, ANY, partial(n_merci_at, ALPHA), "n-MeRCI",
     "length of error bars that cover 95%: 0 is sigma = error, 1 a constant", _MOUKARI),
    ("merci", METRES, LOWER, NOT_NEGATIVE,
     lambda sums: rescaled_mean(ratio_quantile(sums, ALPHA), _mean_sigma(sums)), "MeRCI",
     "mean length of error bars that cover 95%", _MOUKARI),
)
_ENCE: tuple[Row, ...] = (
    ("ence", "", LOWER, NOT_NEGATIVE, _ence, "ENCE",
     "size: mean of |claimed - found deviation| / claimed over ten groups by sigma",
     "Levi et al. 2022"),
)


def _size_metrics(law: str) -> Iterator[Metric]:
    rows: tuple[Row, ...] = (
        ("auce", "", LOWER, SHARE,
         lambda sums: area_of_miscoverage(covered_shares(law, sums)), "AUCE",
         "size: mean gap between coverage and level", _GUSTAFSSON),
        *(
            (f"coverage_{percent}", "", percent / 100, SHARE,
             lambda sums, level=percent - 1: covered_shares(law, sums)[:, level],
             f"coverage {percent}%", f"size: errors in the {percent}% interval")
            for percent in COVERAGE_LEVELS
        ),
        ("nll", "nats", LOWER, ANY, partial(_nll, law), "NLL",
         "size and order: negative log likelihood"),
        ("crps", METRES, LOWER, NOT_NEGATIVE,
         lambda sums: _scores(law, sums)[0] / sums["pixels"], "CRPS",
         "size and order: the error of a certain claim", _GNEITING),
        ("interval_score_95", METRES, LOWER, NOT_NEGATIVE,
         lambda sums: mean_interval_score(
             _half_width(law, sums), _scores(law, sums)[1] / sums["pixels"]),
         "interval score 95%",
         "size and order: width of the interval and 40 times the error beyond it", _GNEITING),
        ("mpiw_95", METRES, "", NOT_NEGATIVE, lambda sums: 2 * _half_width(law, sums),
         "interval width 95%", "mean; read it with the coverage"),
    )
    for name, *row in rows:
        row[4] = f"{row[4]} ({law.title()})"  # the label
        yield from _entries("uncertainty.", [(of_law(name, law), *row)], is_size=True, law=law)
    yield Metric(
        f"{of_law('uncertainty.coverage_95', law)}_by_sigma", "", 0.95, SHARE,
        partial(_coverage_by_sigma, law), f"coverage 95% by sigma ({law.title()})",
        "of ten groups of as many pixels, by ascending sigma",
        is_size=True, law=law, groups=tuple(str(number) for number in range(1, SIGMA_GROUPS + 1)),
    )


_BY_DISTANCE: tuple[Row, ...] = (
    ("pixels", "count", "", ANY, lambda sums: sums["distance.pixels"], "pixels"),
    ("bias", METRES, 0.0, ANY, _at_distance("signed_error"), "bias", "mean of d - g"),
    ("mae", METRES, LOWER, NOT_NEGATIVE, _at_distance("error"), "MAE", "mean error"),
    ("sigma", METRES, "", NOT_NEGATIVE, _at_distance("sigma"), "sigma", "mean"),
    ("coverage_95", "", 0.95, SHARE, _at_distance("covered"), "coverage 95% (Gaussian)"),
    ("coverage_95_laplace", "", 0.95, SHARE, _at_distance("covered_laplace"),
     "coverage 95% (Laplace)"),
    ("n_merci", "", LOWER, ANY, _n_merci_at_distance, "n-MeRCI", "over these pixels"),
    ("repeatability", METRES, LOWER, NOT_NEGATIVE,
     _root_mean("distance.squared_change", "distance.still_pixels", math.sqrt(0.5)),
     "repeatability", "deviation of a pixel over frames of a camera that stands still"),
)
_FRAMES: tuple[Row, ...] = (
    ("scale.scale", "", 1.0, NOT_NEGATIVE,
     lambda sums: np.exp(sums["log_scale"] / sums["scales"]), "scale",
     "geometric mean over the frames of the median of ground truth / depth"),
    ("scale.scale_deviation", "", LOWER, NOT_NEGATIVE, _deviation("log_scale", "scales"),
     "scale deviation", "deviation of the logarithm of the frames' scales"),
    ("scale.scale_jump", "", LOWER, NOT_NEGATIVE, _mean("scale_jump", "scale_jumps"),
     "scale jump", "mean change of that logarithm from frame to frame"),
    ("scale.pixel_deviation", "", LOWER, NOT_NEGATIVE,
     lambda sums: np.sqrt(sums["log_within_frame"] / (sums["pixels"] - sums["no_depth"])),
     "pixel deviation", "deviation of ln d - ln g within a frame: what no scale could mend"),
    ("unfamiliarity.frames", "count", "", ANY, lambda sums: sums["familiarities"],
     "frames whose unfamiliarity is known"),
    ("unfamiliarity.mean", "", LOWER, NOT_NEGATIVE, _mean("unfamiliarity", "familiarities"),
     "unfamiliarity", "how unlike the training's the images are"),
    ("unfamiliarity.max", "", LOWER, NOT_NEGATIVE,
     lambda sums: np.where(sums["familiarities"] > 0, sums["max_unfamiliarity"], math.nan),
     "highest unfamiliarity"),
    ("unfamiliarity.fraction_above_1", "", LOWER, SHARE, _mean("unfamiliar", "familiarities"),
     "unfamiliar frames", "share of the frames above 1, the limit of the training's own"),
)
# fmt: on


def _entries(prefix: str, rows: Iterable[Row], **options: Any) -> Iterator[Metric]:
    return (Metric(f"{prefix}{name}", *row, **options) for name, *row in rows)


def _distance_metrics() -> Iterator[Metric]:
    edges = [f"{edge:g}" for edge in DISTANCE.edges[1:-1]]
    between = [f"{low}_{high}m" for low, high in pairwise(edges)]
    groups = (f"under_{edges[0]}m", *between, f"over_{edges[-1]}m")
    for row in _BY_DISTANCE:
        law = {"coverage_95": "gaussian", "coverage_95_laplace": "laplace"}.get(row[0], "")
        is_size = row[0] == "sigma" or law != ""
        yield from _entries("by_distance.", [row], is_size=is_size, law=law, groups=groups)


METRICS: tuple[Metric, ...] = (
    *_entries("", _PIXELS),
    *_entries("depth.", _DEPTH),
    *_entries("uncertainty.", _ORDER, over="images"),
    *_entries("uncertainty.", _MERCI),
    *_size_metrics("gaussian"),
    *_size_metrics("laplace"),
    *_entries("uncertainty.", _ENCE, is_size=True, has_baselines=False),
    *_distance_metrics(),
    *_entries("", _FRAMES, over="frames"),
)
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

    They are the single-number metrics, the scale and the unfamiliarity. The trivial baselines have
    only their rankings, which are per image.
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
