# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Metrics over all frames, from the state of `OnlineMetrics`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uncertainty_depth.metrics.baselines import CANDIDATES
from uncertainty_depth.metrics.candidate import (
    by_statistic,
    no_metrics,
    score_metrics,
    size_metrics,
)
from uncertainty_depth.metrics.depth import depth_means
from uncertainty_depth.metrics.distributions import DISTRIBUTIONS
from uncertainty_depth.metrics.pooled_candidate import PooledCandidate
from uncertainty_depth.metrics.pooled_errors import PooledConstant, PooledErrors, one_value
from uncertainty_depth.metrics.sparsification import poggi_areas
from uncertainty_depth.metrics.state import State

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
        "n_merci": one_value(candidate.plain(alphas)),
        "n_merci_withdrawn": one_value(candidate.withdrawn(alphas)),
        "n_merci_trimmed": one_value(candidate.trimmed(alphas)),
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
