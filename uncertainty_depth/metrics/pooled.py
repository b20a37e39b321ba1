# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Metrics over all frames, from the state of `OnlineMetrics`: of the errors, and of each sigma.

A constant sigma is here, for its metrics depend on the errors alone.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from uncertainty_depth.metrics.arrays import Floats, Integers
from uncertainty_depth.metrics.baselines import CANDIDATES
from uncertainty_depth.metrics.bins import first_bin_sums, remaining_with_ties
from uncertainty_depth.metrics.candidate import (
    by_statistic,
    candidate_nll,
    no_metrics,
    score_metrics,
    size_metrics,
)
from uncertainty_depth.metrics.depth import depth_means
from uncertainty_depth.metrics.distributions import DISTRIBUTIONS, HALF_WIDTHS
from uncertainty_depth.metrics.merci import normalised, order_number
from uncertainty_depth.metrics.pooled_candidate import PooledCandidate
from uncertainty_depth.metrics.proper_scores import ScoreSums, binned_score_sums
from uncertainty_depth.metrics.sparsification import poggi_areas
from uncertainty_depth.metrics.sparsification_variants import POGGI
from uncertainty_depth.metrics.state import (
    DEPTH_SUMS,
    ERROR,
    ERROR_SUMS,
    State,
)


class PooledErrors:
    """The errors of a state with at least one pixel."""

    def __init__(self, state: State) -> None:
        self.tables = state.tables
        self.pixels = int(self.tables["counts"][0])
        sums = self.tables["depth_sums"].tolist()
        self.sums = dict(zip(DEPTH_SUMS, sums, strict=True))
        self.mae = self.sums["mae"] / self.pixels

    def order_numbers(self, alphas: Floats) -> Integers:
        """Return the number of pixels that cover each fraction."""
        return np.array([order_number(alpha, self.pixels) for alpha in alphas])

    def order_statistics(self, numbers: Integers) -> Floats:
        """Return order statistics of the error, counted from 1."""
        extremes = float(self.tables["error.least"][0]), float(self.tables["error.greatest"][0])
        return ERROR.order_statistics(self.tables["error.count"], numbers, extremes)

    @cached_property
    def coarse_counts(self) -> Integers:
        """Pixels in the bins of `ERROR_SUMS`."""
        return ERROR.coarse_counts(self.tables["error.count"], ERROR_SUMS)

    @cached_property
    def oracles(self) -> Floats:
        """Raw pooled oracle curve of each statistic, (3, K)."""
        abs_rel = self._mean_of_remaining("relative", "relative")
        rmse = np.sqrt(self._mean_of_remaining("error", "squared"))
        remaining = self._remaining("factor")
        inaccurate = np.maximum(remaining - self.sums["a1"], 0) / remaining
        return np.stack([abs_rel, rmse, inaccurate])

    def _mean_of_remaining(self, name: str, sums: str) -> Floats:
        """Return the mean of a table of sums over the pixels left at each fraction removed."""
        counts = self.tables[f"{name}.count"]
        remaining = self._remaining(name)
        return first_bin_sums(counts, self.tables[f"{name}.{sums}"], remaining) / remaining

    def _remaining(self, name: str) -> Integers:
        """Return the pixels left at each fraction removed, those with the largest values first."""
        counts = self.tables[f"{name}.count"]
        return remaining_with_ties(counts, POGGI.fractions, self.tables[f"{name}.single"])


class PooledConstant:
    """A constant sigma over all frames: its ratios are the errors, all pixels tie."""

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
        """Return n-MeRCI over all pixels: 1, or NaN where the errors are equal."""
        max_error = self.errors.order_statistics(self.errors.order_numbers(alphas))
        return normalised(max_error, 1.0, self.errors.mae, max_error)

    def withdrawn(self, alphas: Floats) -> Floats:
        """Return n-MeRCI without the pixels with the largest errors."""
        numbers = self.errors.order_numbers(alphas)
        pairs = zip(alphas, numbers, strict=True)
        return self._one_unless_equal(np.array([order_number(*pair) for pair in pairs]))

    def trimmed(self, alphas: Floats) -> Floats:
        """Return n-MeRCI without the pixels with the largest error / sigma."""
        return self._one_unless_equal(self.errors.order_numbers(alphas))

    def _one_unless_equal(self, numbers: Integers) -> Floats:
        max_error = self.errors.order_statistics(numbers)
        min_error = self.errors.order_statistics(np.ones_like(numbers))
        return np.where((max_error == min_error) | (max_error == 0), math.nan, 1.0)

    def merci(self, alpha: float) -> float:
        """Return the mean length of the error bars, metres."""
        number = self.errors.order_numbers(np.array([alpha]))
        return self.errors.order_statistics(number).item()

    @property
    def removal(self) -> Floats:
        """Raw pooled removal curve of each statistic, (3, K)."""
        return np.repeat(self.errors.oracles[:, :1], len(POGGI.fractions), axis=1)

    def scale(self, distribution: str) -> float:
        """Return the most likely sigma, metres."""
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
        """Return the mean negative log likelihood, nats."""
        scale = self.scale(distribution)
        return candidate_nll(self.errors.pixels, self.sums, distribution, scale)

    def scores(self, distribution: str) -> ScoreSums:
        """Return the sums of the scores."""
        errors = self.errors
        law = DISTRIBUTIONS[distribution]
        sigma = errors.coarse_counts.astype(np.float64)
        return binned_score_sums(
            errors.tables["error.absolute"], sigma, law, self.scale(distribution)
        )


Candidate = PooledCandidate | PooledConstant


def candidates(errors: PooledErrors) -> dict[str, Candidate]:
    """Return the predicted sigma and the baselines, by name."""
    return {
        name: PooledConstant(errors) if name == "constant" else PooledCandidate(name, errors)
        for name in CANDIDATES
    }


def candidate_metrics(candidate: Candidate, alpha: float) -> dict[str, Any]:
    """Return the mapping under "uncertainty"; per-image metrics are the mean over the frames."""
    errors = candidate.errors
    alphas = np.array([alpha])
    frames = errors.tables["counts"][1]
    ause, aurg = errors.tables["areas"][CANDIDATES.index(candidate.name)] / frames
    ause_pooled, aurg_pooled = poggi_areas(candidate.removal, errors.oracles)
    return {
        "n_merci": candidate.plain(alphas).item(),
        "n_merci_withdrawn": candidate.withdrawn(alphas).item(),
        "n_merci_trimmed": candidate.trimmed(alphas).item(),
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
    """Return the nested mapping of `summary.json`."""
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
