# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Every metric of depth and sigma, once: name, unit, better direction, and computation.

`compute` takes sums of blocks of frames with a leading axis, see `state`. A metric's value is
`compute` of the sum of all blocks; its interval comes from the same function on a thousand
weighted sums. Everything that shows metrics iterates over `METRICS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

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
    mean_interval_score,
    of_distribution,
)
from uncertainty_depth.metrics.depth import PER_KM
from uncertainty_depth.metrics.merci import error_ratio, normalised, rescaled_mean
from uncertainty_depth.metrics.sparsification import POGGI
from uncertainty_depth.metrics.state import (
    DEPTH_RATIO,
    DEPTH_RATIO_SUMS,
    DISTANCE,
    DISTANCE_ERROR,
    DISTANCE_RATIO,
    DISTRIBUTION_NAMES,
    ERROR,
    RATIO,
    SIGMA,
    SIGMA_NAMES,
    Sums,
)

BASELINES = SIGMA_NAMES[1:]
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


def percent_text(share: float, decimals: int = 1, sign: str = "") -> str:
    """Return a share as every table and sentence writes it: `69.3 %`, and `0 %` for 0.0."""
    text = f"{100 * share:{sign}.{decimals}f}"
    return f"{text} %" if float(text) else "0 %"


def _distance(best: float, value: float) -> float:
    return abs(value - best)


class SigmaKind(Enum):
    """What the sigma of a depth is."""

    METRES = "metres"
    RANK = "rank"
    """Without a unit: it has an order, and no size."""
    NONE = "none"
    """The depth is alone."""


NOT_JUDGED = {
    SigmaKind.RANK: (
        "the confidence has no unit: it ranks the pixels, and has no AUCE, coverage or NLL until "
        "`calibrate` has put it in metres (--sigma-map)"
    ),
    SigmaKind.NONE: (
        "the depth has no confidence: there is no sigma to judge until `calibrate` has fitted one "
        "(--sigma-map)"
    ),
}
"""Why a metric is not judged that is not of this kind of sigma."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One metric.

    Attributes:
        name: dotted, as in `summary.json`.
        compute: from `Sums` to (R,) values, or (R, K) for the K `groups`.
        label: title in tables.
        unit: "" for a pure number, "count" for an integer.
        better: "lower", "higher", "" for neither, or the value that is best.
        limits: its smallest and largest possible value; intervals end there.
        in_percent: whether tables write it in per cent.
        meaning: for the reader of a table.
        source: the definition's source; empty if it needs none.
        over: "pixels" of all images, the mean over "images", or a statistic over "frames".
        is_size: whether it compares sigma's size with the errors, so that sigma must be in metres;
            all others are the same for a multiple of sigma.
        distribution: of the error, whose intervals it is about; empty if it is about none.
        groups: names of the parts of a metric that is a list.
        has_baselines: whether the trivial baselines have it too, if it is a metric of sigma and
            not a list.
        reason: returns why it is not a number over scored frames; None if that is always one.
    """

    name: str = field(kw_only=False)
    compute: Compute
    label: str
    unit: str = ""
    better: str | float = ""
    limits: tuple[float, float] = ANY
    in_percent: bool = False
    meaning: str = ""
    source: str = ""
    over: str = "pixels"
    is_size: bool = False
    distribution: str = ""
    groups: tuple[str, ...] = ()
    has_baselines: bool = True
    reason: Callable[[Sums], str] | None = None

    @property
    def is_of_sigma(self) -> bool:
        """Whether the trivial baselines have it too."""
        is_list = bool(self.groups)
        return self.name.startswith("uncertainty.") and self.has_baselines and not is_list

    @property
    def needs_sigma(self) -> bool:
        """Whether a depth alone has it not."""
        of_sigma = self.name.startswith("uncertainty.") or self.name == "by_distance.n_merci"
        return of_sigma or self.is_size

    def is_judged(self, kind: SigmaKind) -> bool:
        """Return whether a sigma of this kind has it."""
        if kind is SigmaKind.NONE:
            return not self.needs_sigma
        return kind is SigmaKind.METRES or not self.is_size

    def values(self, sums: Sums) -> Floats:
        """Return (R,) or (R, K) values; NaN if the metric is undefined."""
        with np.errstate(all="ignore"):
            return self.compute(sums)

    def best_of(self, values: Sequence[float]) -> float:
        """Return the best of some values, NaN left out; NaN if neither direction is better."""
        numbers = [value for value in values if not math.isnan(value)]
        if not numbers or self.better == "":
            return math.nan
        if isinstance(self.better, float):
            return min(numbers, key=partial(_distance, self.better))
        return max(numbers) if self.better == HIGHER else min(numbers)

    def text(self, value: float, sign: str = "") -> str:
        """Return a value as every table writes it: in per cent, or in 4 digits or so.

        Args:
            value: of this metric, or a difference of two.
            sign: "+" shows the sign of a positive value too.
        """
        if self.in_percent:
            return percent_text(value, sign=sign)
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
    """Return the mean over the images of a table by sigma, and by statistic if there are."""

    def compute(sums: Sums) -> Floats:
        table = sums[name][:, SIGMA_NAMES.index(sums.sigma_name)]
        return (table if statistic is None else table[:, statistic]) / sums["frames"]

    return compute


def _spearman(sums: Sums) -> Floats:
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


_OF = {
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


def _resolution(sums: Sums, name: str, bins: Bins) -> tuple[Bins, Resolved]:
    """Return the bins that a histogram's values are in, and what they resolve."""
    if name != "ratio":
        every = np.ones_like(sums["pixels"])
        return bins, (every * bins.edges[1], every * bins.edges[-2])
    low = sums["ratio_low"] + (bins.low - RATIO.low)
    high = -sums["-ratio_high"] + (bins.high - RATIO.high)
    return bins.at(sums.ratio_exponent), (np.exp2(low), np.exp2(high))


def _order_statistic(sums: Sums, of: _OfSigma, share: float) -> Floats:
    """Return the smallest ratio that at least a share of the pixels do not exceed.

    It is NaN if it lies in an open bin, unless an extreme says which value it is.
    """
    counts = sums[f"{of.ratio}s"]
    pixels = counts.sum(axis=-1)
    number = np.ceil(share * pixels)
    bins, resolved = _resolution(sums, of.ratio, of.bins)
    infinite = _sum_or_zero(sums, of.infinite)
    values = bins.order_statistics(counts, number[:, None], sums["exact"], infinite, resolved)
    least = -sums[f"-min_{of.ratio}"]
    greatest = sums[f"max_{of.ratio}"]
    inside = np.clip(values[:, 0], least, np.maximum(least, greatest))
    is_extreme = (pixels > 0) & ((number == pixels) | (least == greatest))
    return np.where(is_extreme, greatest, inside)


def max_error_at(share: float, sums: Sums) -> Floats:
    """Return the largest of the smallest errors that make up a share of all, metres."""
    return _order_statistic(sums, _OF["constant"], share)


def ratio_quantile(sums: Sums, share: float) -> Floats:
    """Return the factor on sigma at which a share of the errors is covered."""
    return _order_statistic(sums, _OF[sums.sigma_name], share)


def _below(sums: Sums, values: Floats) -> Floats:
    """Return how many ratios are at most these, (R, K) or (K,): (R, K).

    It is NaN if a value lies in an open bin with more than `FEW_OPEN` of the ratios.
    """
    of = _OF[sums.sigma_name]
    counts = sums[f"{of.ratio}s"]
    bins, (low, high) = _resolution(sums, of.ratio, of.bins)
    pixels = counts.sum(axis=-1)
    below, up_to = bins.below(counts, np.stack((low, high), axis=-1)).T
    too_small = below - sums["exact"] > FEW_OPEN * pixels
    too_large = pixels - up_to - _sum_or_zero(sums, of.infinite) > FEW_OPEN * pixels
    is_open = (values < low[:, None]) & too_small[:, None]
    is_open |= (values >= high[:, None]) & too_large[:, None]
    return np.where(is_open, math.nan, bins.below(counts, values))


def share_below(factor: float, sums: Sums) -> Floats:
    """Return the share of the errors within a factor times sigma."""
    return _below(sums, np.array([factor]))[..., 0] / sums["pixels"]


def _mean_sigma(sums: Sums) -> Floats:
    return sums[_OF[sums.sigma_name].sigma] / sums["pixels"]


def n_merci_at(alpha: float, sums: Sums) -> Floats:
    """Return n-MeRCI over all pixels at an alpha."""
    mae = sums["error"] / sums["pixels"]
    max_error = max_error_at(alpha, sums)
    return normalised(ratio_quantile(sums, alpha), _mean_sigma(sums), mae, max_error)


# The size of sigma. A baseline's size is the most likely one on the very pixels it is scored on.


def _power_mean(sums: Sums, distribution: str) -> tuple[Floats, Floats]:
    """Return the mean power of the finite ratios at scale 1, and how many there are."""
    of = _OF[sums.sigma_name]
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
    """Return the share of the errors in the interval of each level, (R, 99)."""
    pixels = sums["pixels"][:, None]
    if sums.sigma_name == "predicted":
        return sums["covered"][:, DISTRIBUTION_NAMES.index(distribution)] / pixels
    return (
        _below(sums, HALF_WIDTHS[distribution] * _sigma_scale(distribution, sums)[:, None])
        / pixels
    )


def _covered_share(distribution: str, percent: int, sums: Sums) -> Floats:
    return covered_shares(distribution, sums)[:, percent - 1]


def auce_by(half_widths: Floats, sums: Sums) -> Floats:
    """Return AUCE of intervals of these (99,) half widths in sigmas, which were measured."""
    return area_of_miscoverage(_below(sums, half_widths) / sums["pixels"][:, None])


def _nll(distribution: str, sums: Sums) -> Floats:
    of = _OF[sums.sigma_name]
    claimed = DISTRIBUTIONS[distribution]
    scale = _sigma_scale(distribution, sums)
    power, finite = _power_mean(sums, distribution)
    mean_log = _sum_or_zero(sums, of.log_sigma) / sums["pixels"] + np.log(scale)
    values = claimed.nll(mean_log, power / scale**claimed.power)
    values = np.where((_sum_or_zero(sums, of.zeros) > 0) | (scale == 0), -np.inf, values)
    values = np.where(finite < sums["pixels"], np.inf, values)
    return np.where(sums["pixels"] > 0, values, math.nan)


def _scores(distribution: str, sums: Sums) -> tuple[Floats, Floats]:
    """Return the sums of CRPS and of the errors beyond the 95 % interval."""
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


def _half_width(distribution: str, sums: Sums) -> Floats:
    return NOMINAL_WIDTHS[distribution] * _sigma_scale(distribution, sums) * _mean_sigma(sums)


# By size of sigma and by distance, (R, K).


def _sigma_group(name: str, row: int | None, sums: Sums) -> Floats:
    """Return the sums over ten groups of as many pixels each, by ascending sigma.

    A group is NaN if it begins or ends in an open bin, unless all sigmas in it are 0.
    """
    counts = sums["by_sigma.pixels"]
    values = sums[name] if row is None else sums[name][:, row]
    pixels = counts.sum(axis=-1, keepdims=True)
    numbers = pixels * np.arange(1, SIGMA_GROUPS + 1) / SIGMA_GROUPS
    first = counts[:, :1]
    is_mixed = (numbers < first) & (first > sums["no_sigma"][:, None])
    is_open = (numbers > pixels - counts[:, -1:]) & (numbers < pixels)
    ends = np.where(is_mixed | is_open, math.nan, first_bin_sums(counts, values, numbers))
    return np.diff(ends, prepend=0.0)


def _coverage_by_sigma(distribution: str, sums: Sums) -> Floats:
    covered = _sigma_group("by_sigma.covered", DISTRIBUTION_NAMES.index(distribution), sums)
    return covered / (sums["pixels"][:, None] / SIGMA_GROUPS)


def _ence(sums: Sums) -> Floats:
    claimed = np.sqrt(_sigma_group("by_sigma.squared_sigma", None, sums))
    found = np.sqrt(_sigma_group("by_sigma.squared_error", None, sums))
    return (np.abs(claimed - found) / claimed).mean(axis=-1)


def _at_distance(name: str) -> Compute:
    return _mean(f"distance.{name}", "distance.pixels")


def _n_merci_at_distance(sums: Sums) -> Floats:
    quantiles = []
    infinite = sums["distance.certain_errors"]
    for name, bins, never in (("error", DISTANCE_ERROR, 0), ("ratio", DISTANCE_RATIO, 1)):
        counts = sums[f"distance.{name}s"]
        pixels = counts.sum(axis=-1, keepdims=True)
        number = np.ceil(ALPHA * pixels)
        bins, (low, high) = _resolution(sums, name, bins)
        resolved = low[:, None], high[:, None]
        zeros = sums["distance.exact"]
        found = bins.order_statistics(counts, number, zeros, never * infinite, resolved)
        # Of few pixels it is the largest, of which the bin alone is known.
        quantiles.append(np.where(number < pixels, found, math.nan)[..., 0])
    max_error, factor = quantiles
    sigma = _at_distance("sigma")(sums)
    mae = _at_distance("error")(sums)
    return normalised(factor, sigma, mae, max_error)


# Why a metric of scored frames is not a number.


def _why_ratio(sums: Sums) -> str:
    """Return why the quantile of n-MeRCI's ratio is unknown; empty if it is known."""
    if not math.isnan(ratio_quantile(sums, ALPHA)[0]):
        return ""
    of = _OF[sums.sigma_name]
    _, (low, high) = _resolution(sums, of.ratio, of.bins)
    covered = f"{percent_text(ALPHA, 0)} of the errors are covered by a factor on sigma"
    if of.ratio == "ratio":
        return (
            f"{covered} that is too unlike the first frame's to be resolved: it is not within "
            f"{low[0]:.2g} to {high[0]:.2g}"
        )
    return f"{covered} beyond what is resolved, {low[0]:.2g} to {high[0]:.2g}"


def _why_error_at(share: float, sums: Sums) -> str:
    """Return why the largest of this share of the errors is unknown; empty if it is known."""
    if not math.isnan(max_error_at(share, sums)[0]):
        return ""
    errors = f"{percent_text(share, 0)} of the errors are"
    if sums["errors"][0, 0] > share * sums["pixels"][0] - 1:
        return f"{errors} below {ERROR.edges[1]:.1g} m, where none is resolved"
    return f"{errors} not below {ERROR.edges[-2]:.0f} m, beyond which none is resolved"


def _why_n_merci(sums: Sums) -> str:
    unknown = _why_error_at(ALPHA, sums) or _why_ratio(sums)
    return unknown or "the errors that count are all equal"


def _why_by_distance(_: Sums) -> str:
    return (
        "there are fewer than 20 pixels, their errors or the ratio to sigma are beyond what is "
        "resolved, or the errors that count are all equal"
    )


def _why_by_sigma(_: Sums) -> str:
    return (
        f"too many sigmas are beyond what is resolved, {SIGMA.edges[1]:.1g} to "
        f"{SIGMA.edges[-2]:.0f} m"
    )


def _why_size_of_baseline(_: Sums) -> str:
    return f"the errors are below {ERROR.edges[1]:.1g} m, where none is resolved"


def _why_spearman(_: Sums) -> str:
    return "sigma or the error is the same everywhere"


# The entries.

_EIGEN = "Eigen et al. 2014"
_UHRIG = "Uhrig et al. 2017"
_POGGI = "Poggi et al. 2020"
_GEIFMAN = "Geifman and El-Yaniv 2017"
_MOUKARI = "Moukari et al. 2019"
_GUSTAFSSON = "Gustafsson et al. 2020"
_GNEITING = "Gneiting and Raftery 2007"
_STATISTICS = {"abs_rel": ("abs_rel", ""), "rmse": ("rmse", METRES), "a1": ("1 - a1", "")}
_EDGES = [f"{edge:g}" for edge in DISTANCE.edges[1:-1]]
_DISTANCES = (
    f"under_{_EDGES[0]}m",
    *(f"{low}_{high}m" for low, high in pairwise(_EDGES)),
    f"over_{_EDGES[-1]}m",
)


# fmt: off
def _size_metrics(distribution: str) -> tuple[Metric, ...]:
    title = distribution.title()
    metric = partial(Metric, is_size=True, distribution=distribution)
    return (
        metric(of_distribution("uncertainty.auce", distribution), better=LOWER, limits=SHARE,
            compute=lambda sums: area_of_miscoverage(covered_shares(distribution, sums)),
            label=f"AUCE ({title})",
            meaning="size: average difference between claimed and actual coverage",
            source=_GUSTAFSSON),
        *(
            metric(of_distribution(f"uncertainty.coverage_{percent}", distribution),
                better=percent / 100, limits=SHARE, in_percent=True,
                compute=partial(_covered_share, distribution, percent),
                label=f"coverage {percent} % ({title})",
                meaning=f"size: errors in the {percent} % interval")
            for percent in COVERAGE_LEVELS
        ),
        metric(of_distribution("uncertainty.nll", distribution), unit="nats", better=LOWER,
            compute=partial(_nll, distribution), label=f"NLL ({title})",
            meaning="size and order: negative log likelihood"),
        metric(of_distribution("uncertainty.crps", distribution), unit=METRES, better=LOWER,
            limits=NOT_NEGATIVE,
            compute=lambda sums: _scores(distribution, sums)[0] / sums["pixels"],
            label=f"CRPS ({title})", meaning="size and order: reduces to MAE if sigma is 0",
            source=_GNEITING),
        metric(of_distribution("uncertainty.interval_score_95", distribution), unit=METRES,
            better=LOWER, limits=NOT_NEGATIVE,
            compute=lambda sums: mean_interval_score(
                _half_width(distribution, sums), _scores(distribution, sums)[1] / sums["pixels"]
            ),
            label=f"interval score 95 % ({title})",
            meaning="size and order: width of the interval and 40 times the error beyond it",
            source=_GNEITING),
        metric(of_distribution("uncertainty.mpiw_95", distribution), unit=METRES,
            limits=NOT_NEGATIVE,
            compute=lambda sums: 2 * _half_width(distribution, sums),
            label=f"interval width 95 % ({title})", meaning="mean; read it with the coverage"),
        metric(f"{of_distribution('uncertainty.coverage_95', distribution)}_by_sigma",
            better=0.95, limits=SHARE, in_percent=True,
            compute=partial(_coverage_by_sigma, distribution),
            label=f"coverage 95 % by sigma ({title})",
            meaning="of ten groups of as many pixels, by ascending sigma", reason=_why_by_sigma,
            groups=tuple(str(number) for number in range(1, SIGMA_GROUPS + 1))),
    )


METRICS: tuple[Metric, ...] = (
    Metric("pixels", unit="count", compute=lambda sums: sums["pixels"], label="pixels scored"),
    Metric("scored_fraction", better=HIGHER, limits=SHARE,
        compute=_mean("pixels", "known_pixels"), label="scored fraction",
        meaning="pixels scored / pixels with ground truth"),
    Metric("depth.mae", unit=METRES, better=LOWER, limits=NOT_NEGATIVE, compute=_mean("error"),
        label="MAE", meaning="mean error"),
    Metric("depth.bias", unit=METRES, better=0.0, compute=_mean("signed_error"), label="bias",
        meaning="mean of prediction minus ground truth"),
    *(
        Metric(f"depth.p{percent}", unit=METRES, better=LOWER, limits=NOT_NEGATIVE,
            compute=partial(max_error_at, percent / 100), label=f"{percent} % error",
            meaning=f"{percent} % of the errors are at most this",
            reason=partial(_why_error_at, percent / 100))
        for percent in (95, 99)
    ),
    Metric("depth.abs_rel", better=LOWER, limits=NOT_NEGATIVE, compute=_mean("abs_rel"),
        label="abs_rel", meaning="mean error / ground truth", source=_EIGEN),
    Metric("depth.sq_rel", unit=METRES, better=LOWER, limits=NOT_NEGATIVE,
        compute=_mean("sq_rel"), label="sq_rel", meaning="mean squared error / ground truth",
        source=_EIGEN),
    Metric("depth.rmse", unit=METRES, better=LOWER, limits=NOT_NEGATIVE,
        compute=_root_mean("squared_error"), label="rmse",
        meaning="root of the mean squared error", source=_EIGEN),
    Metric("depth.rmse_log", better=LOWER, limits=NOT_NEGATIVE,
        compute=_or_infinite(_root_mean("squared_log")), label="rmse_log",
        meaning="rmse of the natural logarithm; infinite if a depth is not positive",
        source=_EIGEN),
    Metric("depth.silog", better=LOWER, limits=NOT_NEGATIVE,
        compute=_or_infinite(_deviation("log")), label="silog",
        meaning="deviation of ln d - ln g, without KITTI's factor 100", source=_EIGEN),
    Metric("depth.imae", unit="1/km", better=LOWER, limits=NOT_NEGATIVE,
        compute=_or_infinite(_mean("inverse", factor=PER_KM)), label="iMAE",
        meaning="mean error of the inverse depth", source=_UHRIG),
    Metric("depth.irmse", unit="1/km", better=LOWER, limits=NOT_NEGATIVE,
        compute=_or_infinite(_root_mean("squared_inverse", factor=PER_KM)), label="iRMSE",
        meaning="root of the mean squared error of the inverse depth", source=_UHRIG),
    Metric("depth.within_10_percent", better=HIGHER, limits=SHARE,
        compute=_mean("within_10_percent"), label="within 10 %",
        meaning="share of the pixels with an error of at most a tenth of the ground truth"),
    *(
        Metric(f"depth.{name}", better=HIGHER, limits=SHARE, compute=_mean(name), label=name,
            meaning=f"share of the pixels within a factor of {factor} of the ground truth",
            source=_EIGEN)
        for name, factor in {"a1": "1.25", "a2": "1.25^2", "a3": "1.25^3"}.items()
    ),
    *(
        Metric(f"uncertainty.ause.{name}", unit=_STATISTICS[name][1], better=LOWER,
            limits=NOT_NEGATIVE, compute=_per_image("ause", place),
            label=f"AUSE {_STATISTICS[name][0]}",
            meaning="order: extra error compared with a perfect ranking when the most uncertain "
            "pixels are removed", source=_POGGI, over="images")
        for place, name in enumerate(POGGI.errors)
    ),
    *(
        Metric(f"uncertainty.aurg.{name}", unit=_STATISTICS[name][1], better=HIGHER,
            compute=_per_image("aurg", place), label=f"AURG {_STATISTICS[name][0]}",
            meaning="order: gain over random removal", source=_POGGI, over="images")
        for place, name in enumerate(POGGI.errors)
    ),
    Metric("uncertainty.aurc", unit=METRES, better=LOWER, limits=NOT_NEGATIVE,
        compute=_per_image("aurc"), label="AURC",
        meaning="order: mean error of the pixels kept, over all shares kept", source=_GEIFMAN,
        over="images"),
    Metric("uncertainty.spearman", better=HIGHER, limits=(-1.0, 1.0), compute=_spearman,
        label="Spearman",
        meaning="order: rank correlation of sigma and error, over the images that have one",
        over="images", reason=_why_spearman),
    Metric("uncertainty.n_merci", better=LOWER, compute=partial(n_merci_at, ALPHA),
        label="n-MeRCI",
        meaning="length of error bars that cover 95 %: 0: perfect, 1: no better than a constant",
        source=_MOUKARI, reason=_why_n_merci),
    Metric("uncertainty.merci", unit=METRES, better=LOWER, limits=NOT_NEGATIVE,
        compute=lambda sums: rescaled_mean(ratio_quantile(sums, ALPHA), _mean_sigma(sums)),
        label="MeRCI", meaning="mean length of error bars that cover 95 %", source=_MOUKARI,
        reason=_why_ratio),
    *_size_metrics("gaussian"),
    *_size_metrics("laplace"),
    Metric("uncertainty.ence", better=LOWER, limits=NOT_NEGATIVE, compute=_ence, label="ENCE",
        meaning="size: mean of |claimed - found deviation| / claimed over ten groups by sigma",
        source="Levi et al. 2022", is_size=True, has_baselines=False, reason=_why_by_sigma),
    Metric("by_distance.pixels", unit="count", compute=lambda sums: sums["distance.pixels"],
        label="pixels", groups=_DISTANCES),
    Metric("by_distance.bias", unit=METRES, better=0.0, compute=_at_distance("signed_error"),
        label="bias", meaning="mean of d - g", groups=_DISTANCES),
    Metric("by_distance.mae", unit=METRES, better=LOWER, limits=NOT_NEGATIVE,
        compute=_at_distance("error"), label="MAE", meaning="mean error", groups=_DISTANCES),
    Metric("by_distance.sigma", unit=METRES, limits=NOT_NEGATIVE, compute=_at_distance("sigma"),
        label="sigma", meaning="mean", groups=_DISTANCES, is_size=True),
    Metric("by_distance.coverage_95", better=0.95, limits=SHARE, compute=_at_distance("covered"),
        label="coverage 95 % (Gaussian)", groups=_DISTANCES, is_size=True, distribution="gaussian",
        in_percent=True),
    Metric("by_distance.coverage_95_laplace", better=0.95, limits=SHARE,
        compute=_at_distance("covered_laplace"), label="coverage 95 % (Laplace)",
        groups=_DISTANCES, is_size=True, distribution="laplace", in_percent=True),
    Metric("by_distance.n_merci", better=LOWER, compute=_n_merci_at_distance, label="n-MeRCI",
        meaning="over these pixels", groups=_DISTANCES, reason=_why_by_distance),
    Metric("by_distance.repeatability", unit=METRES, better=LOWER, limits=NOT_NEGATIVE,
        compute=_root_mean("distance.squared_change", "distance.still_pixels", math.sqrt(0.5)),
        label="repeatability",
        meaning="deviation of a pixel over frames of a camera that stands still",
        groups=_DISTANCES),
    Metric("scale.mean_factor", better=1.0, limits=NOT_NEGATIVE,
        compute=lambda sums: np.exp(sums["log_scale"] / sums["scales"]), label="scale",
        meaning="geometric mean over the frames of the median of ground truth / depth",
        over="frames"),
    Metric("scale.scale_deviation", better=LOWER, limits=NOT_NEGATIVE,
        compute=_deviation("log_scale", "scales"), label="scale deviation",
        meaning="deviation of the logarithm of the frames' scales", over="frames"),
    Metric("scale.scale_jump", better=LOWER, limits=NOT_NEGATIVE,
        compute=_mean("scale_jump", "scale_jumps"), label="scale jump",
        meaning="mean change of that logarithm from frame to frame", over="frames"),
    Metric("scale.pixel_deviation", better=LOWER, limits=NOT_NEGATIVE,
        compute=lambda sums: np.sqrt(
            sums["log_within_frame"] / (sums["pixels"] - sums["no_depth"])
        ),
        label="pixel deviation",
        meaning="deviation of ln d - ln g within a frame: what no scale could mend",
        over="frames"),
    Metric("unfamiliarity.frames", unit="count", compute=lambda sums: sums["familiarities"],
        label="frames whose unfamiliarity is known", over="frames"),
    Metric("unfamiliarity.mean", better=LOWER, limits=NOT_NEGATIVE,
        compute=_mean("unfamiliarity", "familiarities"), label="unfamiliarity",
        meaning="how unlike the training's the images are", over="frames"),
    Metric("unfamiliarity.max", better=LOWER, limits=NOT_NEGATIVE,
        compute=lambda sums: np.where(
            sums["familiarities"] > 0, sums["max_unfamiliarity"], math.nan
        ),
        label="highest unfamiliarity", over="frames"),
    Metric("unfamiliarity.fraction_above_1", better=LOWER, limits=SHARE,
        compute=_mean("unfamiliar", "familiarities"), label="unfamiliar frames",
        meaning="share of the frames above 1, the limit of the training's own", over="frames"),
)
# fmt: on
BY_NAME = {metric.name: metric for metric in METRICS}
BY_VALUE = {name: metric for metric in METRICS for name in metric.names()}
"""The metric of each dotted name of a value."""


def baseline_name(baseline: str, metric: Metric) -> str:
    """Return the dotted name of a metric of a trivial baseline."""
    return f"baselines.{baseline}.{metric.name.removeprefix('uncertainty.')}"


def flat_values(
    sums: Sums, kind: SigmaKind = SigmaKind.METRES, of_frame: bool = False
) -> dict[str, float]:
    """Return the first row of every metric by dotted name, NaN for none.

    Args:
        sums: of all frames, or of one.
        kind: of the sigma; the metrics that it has not are NaN.
        of_frame: a row of the table of frames: only metrics that are one number, of the trivial
            baselines only the rankings, which are per image, and the scale and the unfamiliarity;
            none of sigma for a depth alone.
    """
    values: dict[str, float] = {}
    for metric in METRICS:
        if of_frame and (metric.groups or metric.over == "frames"):
            continue
        names = metric.names()
        if not metric.is_judged(kind):
            if not (of_frame and kind is SigmaKind.NONE):
                values |= dict.fromkeys(names, math.nan)
            continue
        row = np.atleast_1d(metric.values(sums)[0]).tolist()
        is_whole = metric.unit == "count" and not of_frame
        values |= zip(names, map(int, row) if is_whole else row, strict=True)
    for baseline in BASELINES:
        of_baseline = sums.of(baseline)
        for metric in METRICS:
            if metric.is_of_sigma and not (of_frame and metric.over != "images"):
                values[baseline_name(baseline, metric)] = float(metric.values(of_baseline)[0])
    if of_frame:
        values["scale"] = float(BY_NAME["scale.mean_factor"].values(sums)[0])
        values["unfamiliarity"] = float(BY_NAME["unfamiliarity.mean"].values(sums)[0])
    return values


def undefined(sums: Sums, kind: SigmaKind = SigmaKind.METRES) -> dict[str, str]:
    """Return why metrics are not numbers, by the dotted name of each value that is none.

    Args:
        sums: over scored frames.
        kind: of the sigma.
    """
    reasons: dict[str, str] = {}
    for metric in METRICS:
        if not metric.is_judged(kind):
            reasons |= dict.fromkeys(metric.names(), NOT_JUDGED[kind])
            continue
        if metric.reason is None:
            continue
        values = np.atleast_1d(metric.values(sums)[0])
        unknown = np.isnan(values)
        if metric.name.startswith("by_distance."):
            unknown &= sums["distance.pixels"][0] > 0
        names = [
            name for name, is_unknown in zip(metric.names(), unknown, strict=True) if is_unknown
        ]
        reasons |= dict.fromkeys(names, metric.reason(sums)) if names else {}
    for baseline in BASELINES:
        of_baseline = sums.of(baseline)
        for metric in METRICS:
            if metric.is_of_sigma and np.isnan(metric.values(of_baseline)[0]):
                reason = metric.reason or _why_size_of_baseline
                reasons[baseline_name(baseline, metric)] = reason(of_baseline)
    return reasons


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
        for key in path[:-1] if metric and is_numbered(metric) else path:
            place = place.setdefault(key, {})
        if metric and is_numbered(metric):
            place.setdefault(path[-1], []).append(value)
        else:
            place[last] = value
    return result


def is_numbered(metric: Metric) -> bool:
    """Return whether the groups of a metric are numbers from 1: a list in `summary.json`."""
    return bool(metric.groups) and metric.groups[0].isdecimal()


def flatten(metrics: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """Return nested metrics by dotted name: {"ause": {"rmse": 1}} becomes {"ause.rmse": 1}.

    Items of a list are numbered from 1.
    """
    flat: dict[str, float] = {}
    for key, value in metrics.items():
        if isinstance(value, list):
            value = {str(number): item for number, item in enumerate(value, 1)}
        flat |= (
            flatten(value, f"{prefix}{key}.")
            if isinstance(value, Mapping)
            else {prefix + key: value}
        )
    return flat
