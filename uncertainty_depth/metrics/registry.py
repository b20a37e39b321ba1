# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Every metric on depth and sigma, once: name, unit, better direction, and computation.

`compute` takes sums of blocks of frames with a leading axis, see `state`. A metric's value is
`compute` of the sum of all blocks; its interval comes from the same function on a thousand
weighted sums. Everything that shows metrics iterates over `METRICS`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from uncertainty_depth.metrics.calibration import (
    area_of_miscoverage,
    mean_interval_score,
    of_distribution,
)
from uncertainty_depth.metrics.depth import PER_KM
from uncertainty_depth.metrics.from_sums import (
    ALPHA,
    NO_GROUPS_BY_SIGMA,
    NO_N_MERCI_AT_DISTANCE,
    NO_SIZE_OF_BASELINE,
    NO_SPEARMAN,
    SIGMA_GROUPS,
    at_distance,
    coverage_by_sigma,
    covered_share,
    covered_shares,
    deviation,
    ence,
    half_width,
    max_error_at,
    mean,
    merci,
    n_merci_at,
    n_merci_at_distance,
    nll,
    or_infinite,
    per_image,
    root_mean,
    scores,
    spearman,
    why_no_error_at,
    why_no_n_merci,
    why_no_ratio,
)
from uncertainty_depth.metrics.metric import (
    HIGHER,
    LOWER,
    METRES,
    NOT_JUDGED,
    NOT_NEGATIVE,
    SHARE,
    Metric,
    SigmaKind,
)
from uncertainty_depth.metrics.state import DISTANCE, DISTRIBUTION_NAMES, SIGMA_NAMES, Sums

COVERAGE_LEVELS = (68, 95)
"""Confidence levels, per cent, whose coverage is a metric itself."""
_EIGEN = "Eigen et al. 2014"
_UHRIG = "Uhrig et al. 2017"
_POGGI = "Poggi et al. 2020"
_GEIFMAN = "Geifman and El-Yaniv 2017"
_MOUKARI = "Moukari et al. 2019"
_GUSTAFSSON = "Gustafsson et al. 2020"
_GNEITING = "Gneiting and Raftery 2007"
_STATISTICS = {"abs_rel": ("abs_rel", ""), "rmse": ("rmse", METRES), "a1": ("1 - a1", "")}
"""Label and unit of each of `STATISTICS`, in their order."""
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
                compute=partial(covered_share, distribution, percent),
                label=f"coverage {percent} % ({title})",
                meaning=f"size: errors in the {percent} % interval")
            for percent in COVERAGE_LEVELS
        ),
        metric(of_distribution("uncertainty.nll", distribution), unit="nats", better=LOWER,
            compute=partial(nll, distribution), label=f"NLL ({title})",
            meaning="size and order: negative log likelihood"),
        metric(of_distribution("uncertainty.crps", distribution), unit=METRES, better=LOWER,
            limits=NOT_NEGATIVE,
            compute=lambda sums: scores(distribution, sums)[0] / sums["pixels"],
            label=f"CRPS ({title})", meaning="size and order: reduces to MAE if sigma is 0",
            source=_GNEITING),
        metric(of_distribution("uncertainty.interval_score_95", distribution), unit=METRES,
            better=LOWER, limits=NOT_NEGATIVE,
            compute=lambda sums: mean_interval_score(
                half_width(distribution, sums), scores(distribution, sums)[1] / sums["pixels"]
            ),
            label=f"interval score 95 % ({title})",
            meaning="size and order: width of the interval and 40 times the error beyond it",
            source=_GNEITING),
        metric(of_distribution("uncertainty.mpiw_95", distribution), unit=METRES,
            limits=NOT_NEGATIVE,
            compute=lambda sums: 2 * half_width(distribution, sums),
            label=f"interval width 95 % ({title})", meaning="mean; read it with the coverage"),
        metric(f"{of_distribution('uncertainty.coverage_95', distribution)}_by_sigma",
            better=0.95, limits=SHARE, in_percent=True,
            compute=partial(coverage_by_sigma, distribution),
            label=f"coverage 95 % by sigma ({title})",
            meaning="of ten groups of as many pixels, by ascending sigma",
            reason=NO_GROUPS_BY_SIGMA,
            groups=tuple(str(number) for number in range(1, SIGMA_GROUPS + 1))),
    )


_share = partial(Metric, limits=SHARE)
_error = partial(Metric, better=LOWER, limits=NOT_NEGATIVE)
_metres = partial(_error, unit=METRES)
_by_distance = partial(Metric, groups=_DISTANCES)
METRICS: tuple[Metric, ...] = (
    Metric("pixels", unit="count", compute=lambda sums: sums["pixels"], label="pixels scored"),
    _share("scored_fraction", better=HIGHER, compute=mean("pixels", "known_pixels"),
        label="scored fraction", meaning="pixels scored / pixels with ground truth"),
    _metres("depth.mae", compute=mean("error"), label="MAE", meaning="mean error"),
    Metric("depth.bias", unit=METRES, better=0.0, compute=mean("signed_error"), label="bias",
        meaning="mean of prediction minus ground truth"),
    *(
        _metres(f"depth.p{percent}", compute=partial(max_error_at, percent / 100),
            label=f"{percent} % error", meaning=f"{percent} % of the errors are at most this",
            reason=partial(why_no_error_at, percent / 100))
        for percent in (95, 99)
    ),
    _error("depth.abs_rel", compute=mean("abs_rel"), label="abs_rel",
        meaning="mean error / ground truth", source=_EIGEN),
    _metres("depth.sq_rel", compute=mean("sq_rel"), label="sq_rel",
        meaning="mean squared error / ground truth", source=_EIGEN),
    _metres("depth.rmse", compute=root_mean("squared_error"), label="rmse",
        meaning="root of the mean squared error", source=_EIGEN),
    _error("depth.rmse_log", compute=or_infinite(root_mean("squared_log")), label="rmse_log",
        meaning="rmse of the natural logarithm; infinite if a depth is not positive",
        source=_EIGEN),
    _error("depth.silog", compute=or_infinite(deviation("log")), label="silog",
        meaning="deviation of ln d - ln g, without KITTI's factor 100", source=_EIGEN),
    _error("depth.imae", unit="1/km", compute=or_infinite(mean("inverse", factor=PER_KM)),
        label="iMAE", meaning="mean error of the inverse depth", source=_UHRIG),
    _error("depth.irmse", unit="1/km",
        compute=or_infinite(root_mean("squared_inverse", factor=PER_KM)), label="iRMSE",
        meaning="root of the mean squared error of the inverse depth", source=_UHRIG),
    _share("depth.within_10_percent", better=HIGHER, compute=mean("within_10_percent"),
        label="within 10 %",
        meaning="share of the pixels with an error of at most a tenth of the ground truth"),
    *(
        _share(f"depth.{name}", better=HIGHER, compute=mean(name), label=name,
            meaning=f"share of the pixels within a factor of {factor} of the ground truth",
            source=_EIGEN)
        for name, factor in {"a1": "1.25", "a2": "1.25^2", "a3": "1.25^3"}.items()
    ),
    *(
        _error(f"uncertainty.ause.{name}", unit=unit, compute=per_image("ause", index),
            label=f"AUSE {label}", source=_POGGI, over="images",
            meaning="order: extra error compared with a perfect ranking when the most uncertain "
            "pixels are removed")
        for index, (name, (label, unit)) in enumerate(_STATISTICS.items())
    ),
    *(
        Metric(f"uncertainty.aurg.{name}", unit=unit, better=HIGHER,
            compute=per_image("aurg", index), label=f"AURG {label}", source=_POGGI,
            over="images", meaning="order: gain over random removal")
        for index, (name, (label, unit)) in enumerate(_STATISTICS.items())
    ),
    _metres("uncertainty.aurc", compute=per_image("aurc"), label="AURC", over="images",
        meaning="order: mean error of the pixels kept, over all shares kept", source=_GEIFMAN),
    Metric("uncertainty.spearman", better=HIGHER, limits=(-1.0, 1.0), compute=spearman,
        label="Spearman", over="images", reason=NO_SPEARMAN,
        meaning="order: rank correlation of sigma and error, over the images that have one"),
    Metric("uncertainty.n_merci", better=LOWER, compute=partial(n_merci_at, ALPHA),
        label="n-MeRCI", source=_MOUKARI, reason=why_no_n_merci,
        meaning="length of error bars that cover 95 %: 0: perfect, 1: no better than a constant"),
    _metres("uncertainty.merci", compute=merci, label="MeRCI", source=_MOUKARI,
        meaning="mean length of error bars that cover 95 %", reason=why_no_ratio),
    *_size_metrics("gaussian"),
    *_size_metrics("laplace"),
    _error("uncertainty.ence", compute=ence, label="ENCE", source="Levi et al. 2022",
        meaning="size: mean of |claimed - found deviation| / claimed over ten groups by sigma",
        is_size=True, has_baselines=False, reason=NO_GROUPS_BY_SIGMA),
    _by_distance("by_distance.pixels", unit="count",
        compute=lambda sums: sums["distance.pixels"], label="pixels"),
    _by_distance("by_distance.bias", unit=METRES, better=0.0,
        compute=at_distance("signed_error"), label="bias", meaning="mean of d - g"),
    _by_distance("by_distance.mae", unit=METRES, better=LOWER, limits=NOT_NEGATIVE,
        compute=at_distance("error"), label="MAE", meaning="mean error"),
    _by_distance("by_distance.sigma", unit=METRES, limits=NOT_NEGATIVE,
        compute=at_distance("sigma"), label="sigma", meaning="mean", is_size=True),
    *(
        _by_distance(of_distribution("by_distance.coverage_95", distribution), better=0.95,
            limits=SHARE, compute=at_distance(of_distribution("covered", distribution)),
            label=f"coverage 95 % ({distribution.title()})", is_size=True,
            distribution=distribution, in_percent=True)
        for distribution in DISTRIBUTION_NAMES
    ),
    _by_distance("by_distance.n_merci", better=LOWER, compute=n_merci_at_distance,
        label="n-MeRCI", meaning="over these pixels", reason=NO_N_MERCI_AT_DISTANCE),
    _by_distance("by_distance.repeatability", unit=METRES, better=LOWER, limits=NOT_NEGATIVE,
        compute=root_mean("distance.squared_change", "distance.still_pixels", math.sqrt(0.5)),
        label="repeatability",
        meaning="deviation of a pixel over frames of a camera that stands still"),
    Metric("scale.mean_factor", better=1.0, limits=NOT_NEGATIVE, over="frames", label="scale",
        compute=lambda sums: np.exp(sums["log_scale"] / sums["scales"]),
        meaning="geometric mean over the frames of the median of ground truth / depth"),
    _error("scale.scale_deviation", over="frames", compute=deviation("log_scale", "scales"),
        label="scale deviation", meaning="deviation of the logarithm of the frames' scales"),
    _error("scale.scale_jump", over="frames", compute=mean("scale_jump", "scale_jumps"),
        label="scale jump", meaning="mean change of that logarithm from frame to frame"),
    _error("scale.pixel_deviation", over="frames", label="pixel deviation",
        compute=lambda sums: np.sqrt(
            sums["log_within_frame"] / (sums["pixels"] - sums["no_depth"])
        ),
        meaning="deviation of ln d - ln g within a frame: what no scale could mend"),
    Metric("unfamiliarity.frames", unit="count", over="frames",
        compute=lambda sums: sums["familiarities"], label="frames whose unfamiliarity is known"),
    _error("unfamiliarity.mean", over="frames", label="unfamiliarity",
        compute=mean("unfamiliarity", "familiarities"),
        meaning="how unlike the training's the images are"),
    _error("unfamiliarity.max", over="frames", label="highest unfamiliarity",
        compute=lambda sums: np.where(
            sums["familiarities"] > 0, sums["max_unfamiliarity"], math.nan
        )),
    _share("unfamiliarity.fraction_above_1", better=LOWER, over="frames",
        compute=mean("unfamiliar", "familiarities"), label="unfamiliar frames",
        meaning="share of the frames above 1, the limit of the training's own"),
)
# fmt: on
BY_NAME = {metric.name: metric for metric in METRICS}
BY_VALUE = {name: metric for metric in METRICS for name in metric.names()}
"""The metric behind each value's dotted name."""


BASELINES = SIGMA_NAMES[1:]


def baseline_name(baseline: str, metric: Metric) -> str:
    """Return the dotted name of a trivial baseline's metric."""
    return f"baselines.{baseline}.{metric.name.removeprefix('uncertainty.')}"


def flat_values(
    sums: Sums, kind: SigmaKind = SigmaKind.METRES, of_frame: bool = False
) -> dict[str, float]:
    """Return every metric's first row by dotted name, NaN for none.

    Args:
        sums: over all frames, or one.
        kind: sigma's; the metrics that it has not are NaN.
        of_frame: a row in the table of frames: only metrics that are one number, of the trivial
            baselines only the rankings, which are per image, and the scale and the unfamiliarity;
            none on sigma for a depth alone.
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
    """Return why metrics over scored frames are no numbers, by each such value's dotted name."""
    found: dict[str, str] = {}
    for metric in METRICS:
        if not metric.is_judged(kind):
            found |= dict.fromkeys(metric.names(), NOT_JUDGED[kind])
            continue
        if not metric.reason:
            continue
        values = np.atleast_1d(metric.values(sums)[0])
        unknown = np.isnan(values)
        if metric.name.startswith("by_distance."):
            unknown &= sums["distance.pixels"][0] > 0
        names = [
            name for name, is_unknown in zip(metric.names(), unknown, strict=True) if is_unknown
        ]
        found |= dict.fromkeys(names, metric.why_none(sums)) if names else {}
    for baseline in BASELINES:
        of_baseline = sums.of(baseline)
        for metric in METRICS:
            if metric.is_of_sigma and np.isnan(metric.values(of_baseline)[0]):
                reason = metric.why_none(of_baseline) or NO_SIZE_OF_BASELINE
                found[baseline_name(baseline, metric)] = reason
    return found


def nested(values: Mapping[str, float]) -> dict[str, Any]:
    """Return values by dotted name as the nested mapping in `summary.json`."""
    result: dict[str, Any] = {}
    for name, value in values.items():
        metric = BY_VALUE.get(name)
        group = name.removeprefix(f"{metric.name}.") if metric and metric.groups else ""
        *path, last = name.removesuffix(f".{group}").split(".")
        branch = result
        for key in path:
            branch = branch.setdefault(key, {})
        if group.isdecimal():  # numbered from 1
            branch.setdefault(last, []).append(value)
        elif group:
            branch.setdefault(last, {})[group] = value
        else:
            branch[last] = value
    return result


def flatten(metrics: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """Return nested metrics by dotted name: {"ause": {"rmse": 1}} becomes {"ause.rmse": 1}.

    Items in a list are numbered from 1.
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
