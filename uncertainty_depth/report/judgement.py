# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Checks for the verdict's lines depth, order and size.

Depth is compared with depths that ignore the image, sigma with the trivial baselines.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.array_types import Floats
from uncertainty_depth.metrics.bootstrap import ROUGH_SPREAD, Interval, Resampled
from uncertainty_depth.metrics.calibration import (
    DISTRIBUTIONS,
    NORMAL_LIMIT,
    SIZE_TOLERANCE,
    folded_normal,
    of_distribution,
)
from uncertainty_depth.metrics.depth import A1_FACTOR
from uncertainty_depth.metrics.from_sums import auce_by, ratio_quantile, share_below
from uncertainty_depth.metrics.metric import NOT_NEGATIVE, SHARE, Compute, Metric, percent_text
from uncertainty_depth.metrics.registry import BASELINES, BY_NAME, COVERAGE_LEVELS
from uncertainty_depth.metrics.sparsification import STATISTICS
from uncertainty_depth.metrics.state import BLOCK_GRID, MAX_LOG_ERROR, TRUTH, Sums
from uncertainty_depth.report.model_facts import (
    distribution_of_model,
    half_widths_of,
    is_recorded,
    median_depth_of,
)

GREEN = "green"
RED = "red"
GREY = "grey"
MIN_BLOCKS = 5
"""With fewer blocks no line is green, whatever its intervals."""
NEGLIGIBLE = 0.01
"""A gain below this fraction of the baseline's metric does not count as better.

If the whole interval is below half of it, the metric is certainly no better.
"""
SPEARMAN_SIZE = 0.5
SPEARMAN_MARGIN = 0.02
"""Margin for Spearman, absolute: a constant sigma's is 0."""
AUCE_TOLERANCE = 0.05
CRPS_TOLERANCE = 0.05
"""Fraction of the baseline's CRPS."""
FAR_BEYOND = 6
"""Sigmas; a Gaussian has two errors in a thousand million beyond them."""
FEW_FAR_BEYOND = 0.001
FEW_FAR_OFF = 0.001
BOUNDED_LOG = f"rmse_log (errors capped at {math.exp(MAX_LOG_ERROR):.0f}x)"
SCORED = "scored fraction"
SCORED_ENOUGH = 0.99
SCORED_AT_ALL = 0.9
BASELINE_NAMES = {
    "constant": "a constant sigma",
    "proportional_to_depth": "sigma ~ depth",
}


class Outcome(StrEnum):
    """How a metric compares with its reference."""

    BETTER = "better"
    EQUAL = "equal"
    """No difference that matters."""
    WORSE = "worse"
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class Check:
    """The outcome when one metric is judged.

    Attributes:
        outcome: against a reference that it is to beat; None without one.
        value: the metric's; None if it has none.
        interval: the metric's 95 % interval.
        difference: 95 % interval for metric minus reference; None without a reference.
    """

    name: str
    color: str
    text: str
    value: float | None = None
    interval: tuple[float, float] | None = None
    difference: tuple[float, float] | None = None
    outcome: Outcome | None = None


WORDS = {
    Outcome.BETTER: "beats",
    Outcome.EQUAL: "is no better than",
    Outcome.WORSE: "is worse than",
    Outcome.UNCLEAR: "is not clearly better than",
}


def depth_checks(sample: Resampled, model: Mapping[str, Any]) -> list[Check]:
    """Check whether the depth is better than one that ignores the image.

    Both metrics are bounded: errors at a few mismatched pixels, which every stereo camera has,
    decide rmse, and say nothing about the others.
    """
    a1 = -sample.rows(BY_NAME["depth.a1"])
    rmse_log = sample.rows(bounded_rmse_log)
    best_a1 = -sample.rows(constant_a1)
    constant_log = sample.rows(constant_bounded_rmse_log)
    against = "the best constant depth"
    checks = scored_checks(sample, model, RED)
    checks.append(_beats("a1", sample, a1, best_a1, against, SHARE))
    bounded = _beats(BOUNDED_LOG, sample, rmse_log, constant_log, against, NOT_NEGATIVE)
    far_off = 1 - float(BY_NAME["depth.a3"].values(sample.total)[0])
    if far_off > FEW_FAR_OFF:
        words = f"; {percent_text(far_off)} of the depths are off by about 2x or more (1 - a3)"
        bounded = replace(bounded, text=bounded.text + words)
    checks.append(bounded)
    median_m = median_depth_of(model)
    if median_m is not None:
        against = "the median depth of training"
        median_log = sample.rows(median_map(median_m))
        checks.append(_beats(BOUNDED_LOG, sample, rmse_log, median_log, against, NOT_NEGATIVE))
    return checks


def order_checks(sample: Resampled, model: Mapping[str, Any]) -> list[Check]:
    """Check whether sigma ranks the errors better than the better trivial baseline.

    One that ranks as well is grey: a right sigma that is a function of the depth alone cannot rank
    better than depth does.

    Ranks and the share of inaccurate pixels are judged, since both are bounded. AUSE with abs_rel
    or rmse depends on a few gross errors, which even a good stereo camera's sigma cannot know.
    The inaccurate pixels alone make no line red: they may be few, and near ones if the right sigma
    grows more slowly than the depth.
    """
    checks = scored_checks(sample, model, GREY)
    spearman = BY_NAME["uncertainty.spearman"]
    # A constant sigma has no ranks, hence no correlation.
    reference = np.fmax(sample.rows(spearman, "proportional_to_depth"), 0.0)
    against = BASELINE_NAMES["proportional_to_depth" if reference[0] > 0 else "constant"]
    predicted = np.nan_to_num(sample.rows(spearman))
    spread = SPEARMAN_SIZE, SPEARMAN_MARGIN
    limits = spearman.limits
    ranks = _beats(spearman.label, sample, -predicted, -reference, against, limits, spread, GREY)
    checks.append(ranks)
    inaccurate = BY_NAME["uncertainty.ause.a1"]
    predicted = sample.rows(inaccurate)
    best, against = _better({name: sample.rows(inaccurate, name) for name in BASELINES})
    if predicted[0] or best[0]:  # else all pixels are accurate, or none is: nothing to rank
        limits = inaccurate.limits
        check = _beats(inaccurate.label, sample, predicted, best, against, limits, equal=GREY)
        is_doubt = check.color == RED and ranks.color != RED
        checks.append(replace(check, color=GREY) if is_doubt else check)
    if is_recorded(model) and any(check.outcome is Outcome.EQUAL for check in checks):
        checks[-1] = replace(checks[-1], text=f"{checks[-1].text}; enough for a camera")
    worse = []
    for statistic in STATISTICS:
        metric = BY_NAME[f"uncertainty.ause.{statistic}"]
        lowest = min(metric.values(sample.total.of(name))[0] for name in BASELINES)
        if metric.values(sample.total)[0] > lowest:
            worse.append(metric.label)
    if worse and all(check.color == GREEN for check in checks):
        words = "a few gross errors that sigma does not know of make"
        text = f"{checks[-1].text}; {words} {' and '.join(worse)} worse"
        checks[-1] = replace(checks[-1], text=text)
    return checks


def size_checks(sample: Resampled, model: Mapping[str, Any]) -> list[Check]:
    """Check whether sigma's intervals cover as many errors as they claim."""
    distribution = distribution_of_model(model)
    checks = scored_checks(sample, model, GREY)
    checks += [_coverage_check(sample, distribution, percent) for percent in COVERAGE_LEVELS]
    for name in ("crps", "auce"):  # bounded: a few mismatched pixels decide a likelihood
        metric = BY_NAME[of_distribution(f"uncertainty.{name}", distribution)]
        fitted, against = _better({name: sample.rows(metric, name) for name in BASELINES})
        tolerance = AUCE_TOLERANCE if name == "auce" else CRPS_TOLERANCE * float(fitted[0])
        scale = 0.1 if name == "auce" else 2 * CRPS_TOLERANCE * float(fitted[0])
        if name == "auce" and (widths := half_widths_of(model)) is not None:
            measured = "AUCE (measured intervals)"
            metric = replace(metric, label=measured, compute=partial(auce_by, widths))
            # Like for like: a baseline whose intervals are measured on these data has none.
            fitted, against = np.zeros_like(fitted), "measured intervals"
        predicted = sample.rows(metric)
        checks.append(_no_worse(metric, sample, predicted, fitted, against, tolerance, scale))
    return checks


def scored_checks(sample: Resampled, model: Mapping[str, Any], worst: str) -> list[Check]:
    """Check that 99 % of the ground truth has a prediction; `worst` is the color below 90 %.

    A network predicts every pixel unless it avoids some. A camera's depth has holes, which every
    consumer sees: they are reported beside the verdict, for a requirement to judge.
    """
    metric = BY_NAME["scored_fraction"]
    interval = sample.interval(sample.rows(metric), limits=metric.limits)
    if is_recorded(model) or interval.value >= SCORED_ENOUGH:
        return []
    color = worst if interval.value < SCORED_AT_ALL else GREY
    text = f"only {percent_text(interval.value)} of the ground truth has a prediction"
    return [_check(SCORED, color, text, interval)]


def _better(rows: Mapping[str, Floats]) -> tuple[Floats, str]:
    """Return the minimum over the baselines in each replicate, and the sample's by name."""
    name = min(rows, key=lambda baseline: np.nan_to_num(rows[baseline][0], nan=np.inf))
    return np.fmin.reduce(list(rows.values())), BASELINE_NAMES[name]


def _beats(
    name: str,
    sample: Resampled,
    predicted: Floats,
    reference: Floats,
    against: str,
    limits: tuple[float, float],
    size_and_margin: tuple[float, float] | None = None,
    equal: str = RED,
) -> Check:
    """Check that a metric is lower than its reference; red if it is certainly higher.

    `equal` is the color if a relevant gain is excluded, and a relevant loss too unless it is red.
    """
    of_reference = abs(float(reference[0]))
    size, margin = size_and_margin or (of_reference, NEGLIGIBLE * of_reference)
    difference = sample.interval(predicted - reference, size)
    if difference.high < 0 and difference.low < -margin:
        outcome = Outcome.BETTER
    elif difference.low > 0 and (difference.high > margin or equal == RED):
        outcome = Outcome.WORSE
    elif (
        difference.low > -margin / 2
        if equal == RED
        else -margin <= difference.low and difference.high <= margin
    ):
        outcome = Outcome.EQUAL
    else:
        outcome = Outcome.UNCLEAR
    color = {Outcome.BETTER: GREEN, Outcome.WORSE: RED, Outcome.EQUAL: equal}.get(outcome, GREY)
    word = WORDS[outcome] if outcome is not Outcome.EQUAL or equal == RED else "says no more than"
    sign = -1 if reference[0] < 0 or predicted[0] < 0 else 1
    interval = sample.interval(sign * predicted, limits=limits)
    text = f"{name} {interval.text()} {word} {against} ({sign * reference[0]:.3f})"
    check = _check(f"{name} against {against}", color, text, interval, difference)
    return replace(check, outcome=outcome)


def _no_worse(
    metric: Metric,
    sample: Resampled,
    predicted: Floats,
    fitted: Floats,
    against: str,
    tolerance: float,
    scale: float,
) -> Check:
    """Check that a metric is at most `tolerance` above a baseline that has seen the truth."""
    difference = sample.interval(predicted - fitted, scale)
    allowed = f"{tolerance:.2g}"
    if difference.high < tolerance:
        color = GREEN
        word = "beats" if difference.high < 0 else f"is less than {allowed} worse than"
    elif difference.low > tolerance:
        color = RED
        word = f"is more than {allowed} worse than"
    else:
        color = GREY
        word = f"may be more than {allowed} worse than"
    name = metric.label
    interval = sample.interval(predicted, limits=metric.limits)
    text = f"{name} {interval.text()} {word} {against} fitted to these data ({fitted[0]:.3f})"
    return _check(f"{name} against {against}", color, text, interval, difference)


def _coverage_check(sample: Resampled, distribution: str, percent: int) -> Check:
    level = percent / 100
    metric = BY_NAME[of_distribution(f"uncertainty.coverage_{percent}", distribution)]
    coverage = sample.interval(sample.rows(metric), limits=metric.limits)
    width = DISTRIBUTIONS[distribution].half_widths(level)
    with np.errstate(divide="ignore"):
        log_factor = np.log(sample.rows(partial(ratio_quantile, share=level)) / width)
    spread = math.log(1 + ROUGH_SPREAD) / ROUGH_SPREAD
    factor = sample.interval(log_factor, spread)
    limit = math.log(SIZE_TOLERANCE)
    if -limit < factor.low and factor.high < limit:
        color = GREEN
    elif factor.low > limit or factor.high < -limit:
        color = RED
    else:
        color = GREY
    covered = coverage.text_in_percent()
    text = (
        f"{percent_text(level, 0)} intervals cover {covered} of the errors: sigma "
        f"{_factor_text(factor)}"
    )
    beyond = 1 - float(share_below(FAR_BEYOND, sample.total)[0])
    if level == max(COVERAGE_LEVELS) / 100 and color == GREEN and beyond > FEW_FAR_BEYOND:
        text += f"; {percent_text(beyond)} of the errors lie beyond {FAR_BEYOND} sigma"
    return _check(f"coverage at {percent_text(level, 0)} ({distribution})", color, text, coverage)


def _factor_text(log_factor: Interval) -> str:
    if math.isnan(log_factor.value):
        return "is off by a factor that is not resolved: too unlike the first frame's"
    if math.isinf(log_factor.value):
        return "is far too small"
    word = "small" if log_factor.value > 0 else "large"
    low, high = sorted(math.exp(abs(limit)) for limit in (log_factor.low, log_factor.high))
    if log_factor.low < 0 < log_factor.high:
        return (
            f"is right to within {high:.2f}x"
            if high < SIZE_TOLERANCE
            else f"could be off by up to {high:.2f}x"
        )
    factor = math.exp(abs(log_factor.value))
    return f"is {factor:.2f}x too {word} ({low:.2f}x to {high:.2f}x)"


def _check(
    name: str, color: str, text: str, interval: Interval, difference: Interval | None = None
) -> Check:
    between = (difference.low, difference.high) if difference else None
    return Check(name, color, text, interval.value, (interval.low, interval.high), between)


def bounded_rmse_log(sums: Sums) -> Floats:
    """Return rmse_log with errors of at most `MAX_LOG_ERROR`, which a depth of 0 has too."""
    return np.sqrt(sums["bounded_log"] / sums["pixels"])


def constant_bounded_rmse_log(sums: Sums) -> Floats:
    """Return a constant depth's lowest `bounded_rmse_log`, among the edges in `TRUTH`."""
    log_truth = np.log(TRUTH.centres[1:-1])
    log_error = np.abs(np.log(TRUTH.edges[1:-1]) - log_truth[:, None])
    squared = np.minimum(log_error, MAX_LOG_ERROR) ** 2
    counts = sums["truths"][:, 1:-1]
    return np.sqrt((counts @ squared).min(axis=-1) / counts.sum(axis=-1))


def constant_a1(sums: Sums) -> Floats:
    """Return a constant depth's highest a1, among the edges in `TRUTH`."""
    edges = TRUTH.edges[1:-1]
    counts = sums["truths"]
    within = TRUTH.below(counts, A1_FACTOR * edges) - TRUTH.below(counts, edges / A1_FACTOR)
    return within.max(axis=-1) / counts.sum(axis=-1)


def outside(low: float, high: float) -> Compute:
    """Return a function that computes the fraction of ground truth outside [low, high] metres."""

    def compute(sums: Sums) -> Floats:
        counts = sums["truths"]
        below = TRUTH.below(counts, np.array([low, high]))
        share = 1 - (below[..., 1] - below[..., 0]) / counts.sum(axis=-1)
        return np.clip(share, 0.0, 1.0)

    return compute


def median_map(median_m: NDArray[np.float64]) -> Compute:
    """Return what computes `bounded_rmse_log` for a depth that is the same in every frame.

    Its log errors are taken for normally distributed: their mean square follows from sums by cell,
    and from it the bounded squares' mean. Of (16, 20) cells four are merged here; pixels do
    not count if none of the four is known.
    """
    rows, columns = BLOCK_GRID
    cells = np.where(median_m > 0, median_m, np.nan).reshape(rows, 2, columns, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a cell without any depth is NaN
        log_depth = np.log(np.nanmedian(cells, axis=(1, 3)).reshape(-1))
    known = np.isfinite(log_depth)
    log_depth = log_depth[known]

    def compute(sums: Sums) -> Floats:
        pixels = sums["cell.pixels"][:, known]
        total = sums["cell.squared_log_truth"][:, known] + pixels * log_depth**2
        total = total - 2 * log_depth * sums["cell.log_truth"][:, known]
        deviation = np.sqrt(np.maximum(total.sum(axis=1) / pixels.sum(axis=1), 0.0))
        with np.errstate(divide="ignore"):
            bound = np.clip(np.nan_to_num(MAX_LOG_ERROR / deviation), 0.0, NORMAL_LIMIT)
        density, within = folded_normal(bound)
        return deviation * np.sqrt(within - bound * density + bound**2 * (1 - within))

    return compute
