# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Scores of a map, and when it is rejected.

What decides is bounded: a pixel with a gross error moves the difference between two maps' CRPS
by no more than their sigmas differ, and a coverage by one pixel. The likelihood is shown and
decides nothing: in a Gaussian's, a few dozen mismatched pixels outweigh all others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.metrics import auce, coverage, crps, nll

Scores = dict[str, float]
LABELS = {
    "crps": "CRPS (m)",
    "auce": "AUCE",
    "coverage_68": "coverage at 68 %",
    "coverage_95": "coverage at 95 %",
    "nll": "NLL",
}
CRPS_MARGIN = 0.005
"""By how much CRPS may be above the reference's, as a fraction of it."""
MAX_MISCOVERAGE = 0.03
"""By how much coverage at 95 % may be off, mean over the parts."""


def scores_of_sigma(
    error: NDArray[np.float64], sigma: NDArray[np.floating], distribution: str
) -> Scores:
    """Return the scores of (N,) sigmas for (N,) absolute errors, metres.

    Args:
        error: absolute errors.
        sigma: standard deviations.
        distribution: "gaussian" or "laplace", what sigma is the standard deviation of.
    """
    levels = np.array([0.68, 0.95])
    covered = np.asarray(coverage(error, sigma, levels, distribution=distribution))
    return {
        "crps": crps(error, sigma, distribution),
        "nll": nll(error, sigma, distribution=distribution),
        "auce": auce(error, sigma, distribution=distribution),
        "coverage_68": float(covered[0]),
        "coverage_95": float(covered[1]),
        "miscoverage_95": abs(float(covered[1]) - 0.95),
    }


def mean_scores(score_sets: Sequence[Mapping[str, float]]) -> Scores:
    """Return the mean of each score; of miscoverage, too, so that opposite signs do not cancel."""
    means = {}
    for name in score_sets[0]:
        means[name] = float(np.mean([score_set[name] for score_set in score_sets]))
    return means


def rejections(
    reference: Mapping[str, float], scores: Mapping[str, float], replaces: bool
) -> dict[str, str]:
    """Return why a map is rejected: the reason by the score's name; empty for a good map.

    Args:
        reference: scores of what the map must not be worse than.
        scores: of the map, on the same pixels.
        replaces: whether the reference is served if the map is not. Then a coverage that is off
            by more than `MAX_MISCOVERAGE`, but nearer, is still an improvement.
    """
    reasons = {}
    if not scores["crps"] <= reference["crps"] * (1 + CRPS_MARGIN):
        reasons["crps"] = f"CRPS {scores['crps']:.4g} m, reference {reference['crps']:.4g} m"
    miscoverage = scores["miscoverage_95"]
    is_nearer = replaces and miscoverage <= reference["miscoverage_95"]
    if not (miscoverage <= MAX_MISCOVERAGE or is_nearer):
        reasons["coverage_95"] = (
            f"its 95 % interval holds {scores['coverage_95']:.1%}"
            f"{_spread(scores)}, reference {reference['coverage_95']:.1%}"
        )
    return reasons


def _spread(scores: Mapping[str, float]) -> str:
    """Return how far single parts are off if their mean alone does not show it."""
    miscoverage = scores["miscoverage_95"]
    if math.isclose(abs(scores["coverage_95"] - 0.95), miscoverage, abs_tol=5e-4):
        return ""
    return f" (parts are off by {100 * miscoverage:.1f} points)"
