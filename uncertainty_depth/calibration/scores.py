# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Scores of a map: a proper score first, then likelihood and coverage."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from uncertainty_depth.calibration.sample import Sample, sigma_and_error
from uncertainty_depth.calibration.sigma_map import SigmaMap
from uncertainty_depth.metrics import auce, coverage, nll

Scores = dict[str, float]
LABELS = {
    "crps": "CRPS (m)",
    "nll": "NLL",
    "auce": "AUCE",
    "coverage_68": "coverage at 68 %",
    "coverage_95": "coverage at 95 %",
}
MARGINS = {"crps": 0.0005, "nll": 0.005, "auce": 0.005, "coverage_95": 0.01}
"""By how much each may be worse before a map counts as harmful, in its own unit."""


def scores(sample: Sample, sigma_map: SigmaMap, distribution: str) -> Scores:
    """Return the scores of mapped sigma, of all pixels of a sample together.

    Args:
        sample: raw sigma and errors.
        sigma_map: what is scored.
        distribution: "gaussian" or "laplace", what sigma is the standard deviation of.
    """
    raw, error = sigma_and_error([sample])
    return scores_of_sigma(error, sigma_map(raw), distribution)


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


def mean_over_folds(folds: Sequence[Mapping[str, Scores]]) -> dict[str, Scores]:
    """Return the mean scores of each map over the parts that it was left out of in turn."""
    means = {}
    for name in folds[0]:
        means[name] = mean_scores([fold[name] for fold in folds])
    return means


def harmed(before: Mapping[str, float], after: Mapping[str, float]) -> list[str]:
    """Return the names of the scores by which `after` is worse, beyond `MARGINS`."""
    names = {name: name for name in MARGINS} | {"coverage_95": "miscoverage_95"}
    return [name for name, key in names.items() if _rise(before[key], after[key]) > MARGINS[name]]


def _rise(before: float, after: float) -> float:
    """Return the difference; 0 where both are the same infinity, or `before` is unknown."""
    if before == after or math.isnan(before):
        return 0.0
    return math.inf if math.isnan(after) else after - before


def crps(
    error: NDArray[np.floating], sigma: NDArray[np.floating], distribution: str = "gaussian"
) -> float:
    """Return the mean continuous ranked probability score, metres; 0 is a certain, right claim.

    The CRPS is proper, and grows with the error itself where the likelihood of a Gaussian grows
    with its square: a few gross errors do not decide which map is chosen. Closed forms: Gneiting
    and Raftery, "Strictly Proper Scoring Rules, Prediction, and Estimation", JASA 2007, for the
    Gaussian; Jordan, Krueger and Lerch, "Evaluating Probabilistic Forecasts with scoringRules",
    JSS 2019, for the Laplace distribution.

    Args:
        error: (N,) absolute errors, metres.
        sigma: (N,) standard deviations, metres, zero allowed.
        distribution: "gaussian" or "laplace".
    """
    positive = sigma > 0
    ratio = np.divide(error, sigma, out=np.zeros_like(error), where=positive)
    if distribution == "laplace":
        scale = sigma / math.sqrt(2)
        spread = scale * (np.exp(-math.sqrt(2) * ratio) - 0.75)
        return float((error + spread).mean())
    density = np.exp(-(ratio**2) / 2) / math.sqrt(2 * math.pi)
    inside = np.where(positive, 2 * ndtr(ratio) - 1, 1.0)
    return float((error * inside + sigma * (2 * density - 1 / math.sqrt(math.pi))).mean())
