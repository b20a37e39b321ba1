# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Why a metric over scored frames is not a number."""

from __future__ import annotations

import math

from uncertainty_depth.metrics import from_sums
from uncertainty_depth.metrics.from_sums import ALPHA
from uncertainty_depth.metrics.metric import percent_text
from uncertainty_depth.metrics.state import ERROR, SIGMA, Sums


def ratio(sums: Sums) -> str:
    """Return why n-MeRCI's ratio has no known quantile; empty if it has."""
    if not math.isnan(from_sums.ratio_quantile(sums, ALPHA)[0]):
        return ""
    of = from_sums.OF[sums.sigma_name]
    _, (low, high) = from_sums.resolution(sums, of.ratio, of.bins)
    covered = f"{percent_text(ALPHA, 0)} of the errors are covered by a factor on sigma"
    if of.ratio == "ratio":
        return (
            f"{covered} that is too unlike the first frame's to be resolved: it is not within "
            f"{low[0]:.2g} to {high[0]:.2g}"
        )
    return f"{covered} beyond what is resolved, {low[0]:.2g} to {high[0]:.2g}"


def error_at(share: float, sums: Sums) -> str:
    """Return why the largest among this share of errors is unknown; empty if it is known."""
    if not math.isnan(from_sums.max_error_at(share, sums)[0]):
        return ""
    errors = f"{percent_text(share, 0)} of the errors are"
    if sums["errors"][0, 0] > share * sums["pixels"][0] - 1:
        return f"{errors} below {ERROR.edges[1]:.1g} m, where none is resolved"
    return f"{errors} not below {ERROR.edges[-2]:.0f} m, beyond which none is resolved"


def n_merci(sums: Sums) -> str:
    """Return why n-MeRCI is not a number."""
    unknown = error_at(ALPHA, sums) or ratio(sums)
    return unknown or "the errors that count are all equal"


def by_distance(_: Sums) -> str:
    """Return why n-MeRCI in a distance range is not a number."""
    return (
        "there are fewer than 20 pixels, their errors or the ratio to sigma are beyond what is "
        "resolved, or the errors that count are all equal"
    )


def by_sigma(_: Sums) -> str:
    """Return why a metric by groups of sigma is not a number."""
    return (
        f"too many sigmas are beyond what is resolved, {SIGMA.edges[1]:.1g} to "
        f"{SIGMA.edges[-2]:.0f} m"
    )


def size_of_baseline(_: Sums) -> str:
    """Return why a baseline's sigma cannot be judged by its size."""
    return f"the errors are below {ERROR.edges[1]:.1g} m, where none is resolved"


def spearman(_: Sums) -> str:
    """Return why no image has a rank correlation."""
    return "sigma or the error is the same everywhere"
