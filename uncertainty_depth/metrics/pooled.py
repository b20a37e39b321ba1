# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Metrics of everything seen, read off the state of `OnlineMetrics`."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from uncertainty_depth.metrics.arrays import Floats, Integers
from uncertainty_depth.metrics.baselines import CANDIDATES
from uncertainty_depth.metrics.bins import first_bin_sums, kept_with_ties
from uncertainty_depth.metrics.calibration import correlation_of_counts
from uncertainty_depth.metrics.candidate import (
    by_statistic,
    candidate_nll,
    no_metrics,
    score_metrics,
    size_metrics,
)
from uncertainty_depth.metrics.depth import depth_means
from uncertainty_depth.metrics.distributions import DISTRIBUTIONS, HALF_WIDTHS
from uncertainty_depth.metrics.frame import STATISTICS
from uncertainty_depth.metrics.merci import normalised, order_number, rescaled_mean
from uncertainty_depth.metrics.proper_scores import ScoreSums, binned_score_sums
from uncertainty_depth.metrics.sparsification import POGGI, poggi_areas, statistic
from uncertainty_depth.metrics.state import (
    CANDIDATE_SUMS,
    DEPTH_SUMS,
    ERROR,
    ERROR_SUMS,
    JOINT_ERROR,
    JOINT_SIGMA,
    RATIO,
    RATIO_SUMS,
    State,
)
from uncertainty_depth.metrics.withdrawal import withdrawn_counts

SUMS_OF = {"abs_rel": "relative", "rmse": "squared", "a1": "inaccurate"}


class PooledErrors:
    """The errors of a state with at least one pixel."""

    def __init__(self, state: State) -> None:
        self.tables = state.tables
        self.pixels = int(self.tables["counts"][0])
        sums = self.tables["depth_sums"].tolist()
        self.sums = dict(zip(DEPTH_SUMS, sums, strict=True))
        self.mae = self.sums["mae"] / self.pixels

    def order_numbers(self, alphas: Floats) -> Integers:
        """Number of pixels that cover each fraction."""
        return np.array([order_number(alpha, self.pixels) for alpha in alphas])

    def order_statistics(self, numbers: Integers) -> Floats:
        """Order statistics of the error, counted from 1."""
        extremes = float(self.tables["error.least"][0]), float(self.tables["error.greatest"][0])
        return ERROR.order_statistics(self.tables["error.count"], numbers, extremes)

    @cached_property
    def coarse_counts(self) -> Integers:
        """Pixels in the bins of `ERROR_SUMS`."""
        return ERROR.coarse_counts(self.tables["error.count"], ERROR_SUMS)

    def first_sums(self, table: str, numbers: Integers) -> Floats:
        """Sums, from a table in the bins of `ERROR_SUMS`, over the smallest errors."""
        return first_bin_sums(self.coarse_counts, self.tables[table], numbers)

    @cached_property
    def oracles(self) -> Floats:
        """Raw pooled oracle curve of each statistic, (3, K)."""
        return np.stack([self._abs_rel_oracle(), self._rmse_oracle(), self._a1_oracle()])

    def _abs_rel_oracle(self) -> Floats:
        counts = self.tables["relative.count"]
        kept = kept_with_ties(counts, POGGI.fractions, self.tables["relative.single"])
        return first_bin_sums(counts, self.tables["relative.relative"], kept) / kept

    def _rmse_oracle(self) -> Floats:
        counts = self.tables["error.count"]
        kept = kept_with_ties(counts, POGGI.fractions, self.tables["error.single"])
        return np.sqrt(first_bin_sums(counts, self.tables["error.squared"], kept) / kept)

    def _a1_oracle(self) -> Floats:
        counts = self.tables["factor.count"]
        kept = kept_with_ties(counts, POGGI.fractions, self.tables["factor.single"])
        return np.maximum(kept - self.sums["a1"], 0) / kept


class PooledCandidate:
    """The predicted sigma, or a baseline that is proportional to a map, of everything seen."""

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
        """Order statistics of `error / sigma`, counted from 1, of all pixels or of `counts`."""
        counts = self.tables["ratio.count"] if counts is None else counts
        extremes = float(self.tables["ratio.least"][0]), float(self.tables["ratio.greatest"][0])
        return RATIO[self.name].order_statistics(counts, numbers, extremes)

    def plain(self, alphas: Floats) -> Floats:
        """n-MeRCI over all pixels at each alpha."""
        numbers = self.errors.order_numbers(alphas)
        largest = self.errors.order_statistics(numbers)
        return normalised(self.ratios(numbers), self.mean_sigma, self.errors.mae, largest)

    def withdrawn(self, alphas: Floats) -> Floats:
        """n-MeRCI without the pixels with the largest errors, at each alpha."""
        return np.array([self._withdrawn(alpha) for alpha in alphas])

    def _withdrawn(self, alpha: float) -> float:
        errors = self.errors
        kept = order_number(alpha, errors.pixels)
        number = np.array([order_number(alpha, kept)])
        limit = float(errors.order_statistics(np.array([kept]))[0])
        above = withdrawn_counts(
            self.joint, self.sigma_limits, JOINT_ERROR.edges, errors.pixels - kept, limit,
            RATIO[self.name].edges,
        )  # fmt: skip
        counts = self.tables["ratio.count"]
        remaining = np.maximum.accumulate(np.maximum(np.cumsum(counts) - above, 0.0))
        factor = self.ratios(number, np.diff(remaining, prepend=0.0))
        mean_sigma = _one(self._sigma_of_smallest_errors(np.array([kept]))) / kept
        mae = _one(errors.first_sums("error.absolute", np.array([kept]))) / kept
        return float(normalised(factor, mean_sigma, mae, errors.order_statistics(number))[0])

    def _sigma_of_smallest_errors(self, numbers: Integers) -> Floats:
        return first_bin_sums(self.errors.coarse_counts, self.tables["error.sigma"], numbers)

    def trimmed(self, alphas: Floats) -> Floats:
        """n-MeRCI without the pixels with the largest error / sigma, at each alpha."""
        numbers = self.errors.order_numbers(alphas)
        bins = RATIO[self.name]
        counts = bins.coarse_counts(self.tables["ratio.count"], RATIO_SUMS[self.name])
        mean_sigma = first_bin_sums(counts, self.tables["ratio.sigma"], numbers) / numbers
        mae = first_bin_sums(counts, self.tables["ratio.error"], numbers) / numbers
        total = np.cumsum(counts)
        place = np.searchsorted(total, numbers)
        largest = np.maximum.accumulate(self.tables["ratio.max_error"])
        mostly_kept = 2 * (total[place] - numbers) < counts[place]
        max_error = np.where(mostly_kept, largest[place], largest[np.maximum(place - 1, 0)])
        return normalised(self.ratios(numbers), mean_sigma, mae, max_error)

    def merci(self, alpha: float) -> float:
        """Mean length of the error bars."""
        factor = self.ratios(self.errors.order_numbers(np.array([alpha])))
        return _one(rescaled_mean(factor, self.mean_sigma))

    @cached_property
    def removal(self) -> Floats:
        """Raw pooled removal curve of each statistic, (3, K)."""
        counts = self.tables["sigma.count"]
        kept = kept_with_ties(counts, POGGI.fractions, self.tables["sigma.single"])
        means = [
            first_bin_sums(counts, self.tables[f"sigma.{SUMS_OF[name]}"], kept) / kept
            for name in STATISTICS
        ]
        return np.stack([statistic(*pair) for pair in zip(STATISTICS, means, strict=True)])

    def scale(self, distribution: str) -> float:
        """The factor on sigma at which its size is judged: the most likely one of a baseline."""
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
        """Mean negative log likelihood."""
        scale = self.scale(distribution)
        return candidate_nll(self.errors.pixels, self.sums, distribution, scale)

    def scores(self, distribution: str) -> ScoreSums:
        """Sums of the scores; exact for the predicted sigma."""
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


class PooledConstant:
    """A constant sigma of everything seen: its ratios are the errors, all pixels tie."""

    name = "constant"
    spearman = math.nan

    def __init__(self, errors: PooledErrors) -> None:
        self.errors = errors
        self.sums = {
            "sigma": float(errors.pixels),
            "log_sigma": 0.0,
            "finite": float(errors.pixels),
            "gaussian": errors.sums["squared"],
            "laplace": errors.sums["mae"],
        }

    def plain(self, alphas: Floats) -> Floats:
        """n-MeRCI over all pixels: 1, or NaN where the errors that count are equal."""
        largest = self.errors.order_statistics(self.errors.order_numbers(alphas))
        return normalised(largest, 1.0, self.errors.mae, largest)

    def withdrawn(self, alphas: Floats) -> Floats:
        """n-MeRCI without the pixels with the largest errors."""
        kept = self.errors.order_numbers(alphas)
        pairs = zip(alphas, kept, strict=True)
        return self._one_unless_equal(np.array([order_number(*pair) for pair in pairs]))

    def trimmed(self, alphas: Floats) -> Floats:
        """n-MeRCI without the pixels with the largest error / sigma."""
        return self._one_unless_equal(self.errors.order_numbers(alphas))

    def _one_unless_equal(self, numbers: Integers) -> Floats:
        largest = self.errors.order_statistics(numbers)
        smallest = self.errors.order_statistics(np.ones_like(numbers))
        return np.where((largest == smallest) | (largest == 0), math.nan, 1.0)

    def merci(self, alpha: float) -> float:
        """Mean length of the error bars."""
        return _one(self.errors.order_statistics(self.errors.order_numbers(np.array([alpha]))))

    @property
    def removal(self) -> Floats:
        """Raw pooled removal curve of each statistic, (3, K)."""
        return np.repeat(self.errors.oracles[:, :1], len(POGGI.fractions), axis=1)

    def scale(self, distribution: str) -> float:
        """The most likely sigma, metres."""
        return DISTRIBUTIONS[distribution].likely_scale(
            self.sums[distribution], self.errors.pixels
        )

    @property
    def covered(self) -> dict[str, Floats]:
        """Fraction covered at each level, by distribution."""
        counts = self.errors.tables["error.count"]
        return {
            name: ERROR.below(counts, widths * self.scale(name)) / self.errors.pixels
            for name, widths in HALF_WIDTHS.items()
        }

    def nll(self, distribution: str) -> float:
        """Mean negative log likelihood."""
        scale = self.scale(distribution)
        return candidate_nll(self.errors.pixels, self.sums, distribution, scale)

    def scores(self, distribution: str) -> ScoreSums:
        """Sums of the scores."""
        errors = self.errors
        law = DISTRIBUTIONS[distribution]
        sigma = errors.coarse_counts.astype(np.float64)
        return binned_score_sums(
            errors.tables["error.absolute"], sigma, law, self.scale(distribution)
        )


Candidate = PooledCandidate | PooledConstant


def _one(values: Floats) -> float:
    return float(values.reshape(-1)[0])


def candidates(errors: PooledErrors) -> dict[str, Candidate]:
    """The predicted sigma and the baselines, by name."""
    return {
        name: PooledConstant(errors) if name == "constant" else PooledCandidate(name, errors)
        for name in CANDIDATES
    }


def candidate_metrics(candidate: Candidate, alpha: float) -> dict[str, Any]:
    """The mapping under "uncertainty"; per-image metrics are the mean over the frames."""
    errors = candidate.errors
    alphas = np.array([alpha])
    frames = errors.tables["counts"][1]
    ause, aurg = errors.tables["areas"][CANDIDATES.index(candidate.name)] / frames
    ause_pooled, aurg_pooled = poggi_areas(candidate.removal, errors.oracles)
    return {
        "n_merci": _one(candidate.plain(alphas)),
        "n_merci_withdrawn": _one(candidate.withdrawn(alphas)),
        "n_merci_trimmed": _one(candidate.trimmed(alphas)),
        "merci": candidate.merci(alpha),
        "ause": by_statistic(ause),
        "aurg": by_statistic(aurg),
        "ause_pooled": by_statistic(ause_pooled),
        "aurg_pooled": by_statistic(aurg_pooled),
        **size_metrics(candidate.covered, {name: candidate.nll(name) for name in DISTRIBUTIONS}),
        **score_metrics(
            errors.pixels,
            {name: candidate.scores(name) for name in DISTRIBUTIONS},
            {name: candidate.scale(name) * candidate.sums["sigma"] for name in DISTRIBUTIONS},
        ),
        "spearman": candidate.spearman,
    }


def summary(state: State, alpha: float) -> dict[str, Any]:
    """The nested mapping that `summary.json` holds."""
    pixels, _, known_pixels = state.tables["counts"].tolist()
    scored_fraction = pixels / known_pixels if known_pixels else math.nan
    if not pixels:
        return no_metrics(scored_fraction)
    errors = PooledErrors(state)
    metrics = {
        name: candidate_metrics(candidate, alpha) for name, candidate in candidates(errors).items()
    }
    return {
        "pixels": pixels,
        "scored_fraction": scored_fraction,
        "depth": depth_means(errors.sums, pixels),
        "uncertainty": metrics.pop("method"),
        "baselines": metrics,
    }
