# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A sigma over all frames, whose order and ratios are in the tables of a state."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from uncertainty_depth.metrics.arrays import Floats, Integers
from uncertainty_depth.metrics.bins import first_bin_sums, remaining_with_ties
from uncertainty_depth.metrics.calibration import correlation_of_counts
from uncertainty_depth.metrics.candidate import candidate_nll
from uncertainty_depth.metrics.distributions import DISTRIBUTIONS, HALF_WIDTHS
from uncertainty_depth.metrics.merci import normalised, order_number, rescaled_mean
from uncertainty_depth.metrics.proper_scores import ScoreSums, binned_score_sums
from uncertainty_depth.metrics.removal_curves import statistic
from uncertainty_depth.metrics.sorted_pixels import STATISTICS
from uncertainty_depth.metrics.sparsification_variants import POGGI
from uncertainty_depth.metrics.state import (
    CANDIDATE_SUMS,
    JOINT_ERROR,
    JOINT_SIGMA,
    RATIO,
    RATIO_SUMS,
)

if TYPE_CHECKING:
    from uncertainty_depth.metrics.pooled import PooledErrors

SUMS_OF = {"abs_rel": "relative", "rmse": "squared", "a1": "inaccurate"}
LOG_LIMITS = (-690.0, 690.0)


class PooledCandidate:
    """The predicted sigma, or a baseline that is proportional to a map, over all frames."""

    def __init__(self, name: str, errors: PooledErrors) -> None:
        self.name = name
        self.errors = errors
        self.tables = {
            key.removeprefix(f"{name}."): table
            for key, table in errors.tables.items()
            if key.startswith(f"{name}.")
        }
        sums = self.tables["sums"].tolist()
        self.sums = dict(zip(CANDIDATE_SUMS, sums, strict=True))
        self.mean_sigma = self.sums["sigma"] / errors.pixels

    def ratios(self, numbers: Integers, counts: np.ndarray | None = None) -> Floats:
        """Return order statistics of `error / sigma`, from 1, of all pixels or of `counts`."""
        counts = self.tables["ratio.count"] if counts is None else counts
        extremes = float(self.tables["ratio.least"][0]), float(self.tables["ratio.greatest"][0])
        return RATIO[self.name].order_statistics(counts, numbers, extremes)

    def plain(self, alphas: Floats) -> Floats:
        """Return n-MeRCI over all pixels at each alpha."""
        numbers = self.errors.order_numbers(alphas)
        max_errors = self.errors.order_statistics(numbers)
        return normalised(self.ratios(numbers), self.mean_sigma, self.errors.mae, max_errors)

    def withdrawn(self, alphas: Floats) -> Floats:
        """Return n-MeRCI without the pixels with the largest errors, at each alpha."""
        return np.array([self._withdrawn(alpha) for alpha in alphas])

    def _withdrawn(self, alpha: float) -> float:
        errors = self.errors
        remaining = order_number(alpha, errors.pixels)
        remaining_numbers = np.array([remaining])
        number = np.array([order_number(alpha, remaining)])
        limit = errors.order_statistics(remaining_numbers).item()
        above = withdrawn_counts(
            self.joint, self.sigma_limits, JOINT_ERROR.edges, errors.pixels - remaining, limit,
            RATIO[self.name].edges,
        )  # fmt: skip
        counts = self.tables["ratio.count"]
        remaining_counts = np.maximum.accumulate(np.maximum(np.cumsum(counts) - above, 0.0))
        factor = self.ratios(number, np.diff(remaining_counts, prepend=0.0))
        sigma_sum = first_bin_sums(
            errors.coarse_counts, self.tables["error.sigma"], remaining_numbers
        )
        error_sum = first_bin_sums(
            errors.coarse_counts, errors.tables["error.absolute"], remaining_numbers
        )
        mean_sigma = sigma_sum.item() / remaining
        mae = error_sum.item() / remaining
        return float(normalised(factor, mean_sigma, mae, errors.order_statistics(number))[0])

    def trimmed(self, alphas: Floats) -> Floats:
        """Return n-MeRCI without the pixels with the largest error / sigma, at each alpha."""
        numbers = self.errors.order_numbers(alphas)
        bins = RATIO[self.name]
        counts = bins.coarse_counts(self.tables["ratio.count"], RATIO_SUMS[self.name])
        mean_sigma = first_bin_sums(counts, self.tables["ratio.sigma"], numbers) / numbers
        mae = first_bin_sums(counts, self.tables["ratio.error"], numbers) / numbers
        total = np.cumsum(counts)
        place = np.searchsorted(total, numbers)
        running_max = np.maximum.accumulate(self.tables["ratio.max_error"])
        includes_max = 2 * (total[place] - numbers) < counts[place]
        max_error = np.where(
            includes_max, running_max[place], running_max[np.maximum(place - 1, 0)]
        )
        return normalised(self.ratios(numbers), mean_sigma, mae, max_error)

    def merci(self, alpha: float) -> float:
        """Return the mean length of the error bars, metres."""
        factor = self.ratios(self.errors.order_numbers(np.array([alpha])))
        return rescaled_mean(factor, self.mean_sigma).item()

    @cached_property
    def removal(self) -> Floats:
        """Raw pooled removal curve of each statistic, (3, K)."""
        counts = self.tables["sigma.count"]
        remaining = remaining_with_ties(counts, POGGI.fractions, self.tables["sigma.single"])
        means = [
            first_bin_sums(counts, self.tables[f"sigma.{SUMS_OF[name]}"], remaining) / remaining
            for name in STATISTICS
        ]
        return np.stack([statistic(*pair) for pair in zip(STATISTICS, means, strict=True)])

    def scale(self, distribution: str) -> float:
        """Return the factor on sigma for its metrics of size: a baseline's most likely one."""
        if self.name == "method":
            return 1.0
        return DISTRIBUTIONS[distribution].likely_scale(
            self.sums[distribution], self.sums["finite"]
        )

    @cached_property
    def covered(self) -> dict[str, Floats]:
        """Fraction covered at each level, by distribution; exact for the predicted sigma."""
        pixels = self.errors.pixels
        if self.name == "method":
            return dict(zip(DISTRIBUTIONS, self.tables["covered"] / pixels, strict=True))
        bins = RATIO[self.name]
        counts = self.tables["ratio.count"]
        return {
            name: bins.below(counts, widths * self.scale(name)) / pixels
            for name, widths in HALF_WIDTHS.items()
        }

    def nll(self, distribution: str) -> float:
        """Return the mean negative log likelihood, nats."""
        scale = self.scale(distribution)
        return candidate_nll(self.errors.pixels, self.sums, distribution, scale)

    def scores(self, distribution: str) -> ScoreSums:
        """Return the sums of the scores; exact for the predicted sigma."""
        if self.name == "method":
            return ScoreSums(*self.tables["scores"][list(DISTRIBUTIONS).index(distribution)])
        law = DISTRIBUTIONS[distribution]
        error = self.tables["ratio.error"]
        return binned_score_sums(error, self.tables["ratio.sigma"], law, self.scale(distribution))

    @cached_property
    def joint(self) -> Integers:
        """Pixels by sigma (rows, ascending) and error (columns)."""
        span = self.tables["joint_span"][0]
        return JOINT_SIGMA[self.name].ordered(self.tables["joint"], span)

    @cached_property
    def sigma_limits(self) -> tuple[Floats, Floats]:
        """Lower and upper limit of the rows of `joint`, metres."""
        span = self.tables["joint_span"][0]
        return JOINT_SIGMA[self.name].row_limits(self.tables["sigma.count"], span)

    @property
    def spearman(self) -> float:
        """Rank correlation of sigma and error, from their joint histogram."""
        return correlation_of_counts(self.joint.astype(np.float64))


def withdrawn_counts(
    joint: Integers,
    sigma_limits: tuple[Floats, Floats],
    error_edges: Floats,
    withdrawn: int,
    limit: float,
    ratio_edges: Floats,
) -> Floats:
    """Return how many withdrawn pixels have a ratio below each bin's upper edge, approximately.

    Withdrawn are the pixels with the largest errors. They are taken from the columns of a joint
    histogram, the last of these in proportion, and each cell is spread evenly over the logarithm
    of the ratios that it can hold.

    Args:
        joint: (R, C) pixels by sigma and error.
        sigma_limits: lower and upper limit of each row, (R,) each, metres.
        error_edges: (C + 1,) metres.
        withdrawn: how many.
        limit: the smallest error withdrawn, metres.
        ratio_edges: (B + 1,) edges of the ratio bins.

    Returns:
        (B,) numbers of pixels, ascending.
    """
    columns = joint.sum(axis=0)
    larger = np.concatenate((np.cumsum(columns[::-1])[::-1][1:], [0]))
    withdrawn_columns = np.clip(withdrawn - larger, 0, columns)
    fraction = withdrawn_columns / np.maximum(columns, 1)
    rows, places = np.nonzero(joint * (fraction > 0))
    weight = joint[rows, places] * fraction[places]
    log_lower_sigma, log_upper_sigma = map(_logarithm, sigma_limits)
    log_error = _logarithm(error_edges)
    log_lower_error = np.maximum(log_error, _logarithm(np.array([limit]))[0])
    lowest = np.minimum(log_lower_error[places], log_error[places + 1]) - log_upper_sigma[rows]
    highest = log_error[places + 1] - log_lower_sigma[rows]
    return _ramps(lowest, np.maximum(highest, lowest + 1e-9), weight, _logarithm(ratio_edges[1:]))


def _logarithm(values: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.clip(np.log(values), *LOG_LIMITS)


def _ramps(start: Floats, end: Floats, height: Floats, positions: Floats) -> Floats:
    """Return the sum, at ascending positions, of ramps from 0 at each start to their height."""
    slope = height / (end - start)
    knots = np.concatenate((start, end))
    order = np.argsort(knots)
    knots = knots[order]
    slopes = np.cumsum(np.concatenate((slope, -slope))[order])
    values = np.concatenate(([0.0], np.cumsum(slopes[:-1] * np.diff(knots))))
    if not len(knots):
        return np.zeros(len(positions))
    return np.interp(positions, knots, values)
