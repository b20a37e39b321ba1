# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""95 % intervals of the metrics of a summary, by a block bootstrap over frames."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.evaluation.bootstrap import Interval
from uncertainty_depth.evaluation.estimates import Estimates
from uncertainty_depth.evaluation.frame_pixels import INTERVAL_LEVELS, LAWS
from uncertainty_depth.evaluation.frame_table import flatten
from uncertainty_depth.evaluation.unit_sums import SCORES
from uncertainty_depth.metrics.depth import PER_KM
from uncertainty_depth.metrics.proper_scores import NOMINAL_WIDTHS
from uncertainty_depth.metrics.sparsification_variants import POGGI

Floats = NDArray[np.float64]
Rows = Callable[[], Floats]


def intervals(
    estimates: Estimates, summary: Mapping[str, Any], alpha: float
) -> dict[str, Interval]:
    """Return the interval of each metric that can be resampled, by dotted name.

    The rankings of all pixels together (`ause_pooled`, `spearman`), the trimmed n-MeRCI and silog
    cannot: they are missing. An interval lies around the value of the summary: where replicates
    come from coarser bins than the metric itself, they give the spread alone.

    Args:
        estimates: of the frames of the summary.
        summary: of these frames, as `Evaluation.summary` returns it.
        alpha: of n-MeRCI.
    """
    values = flatten(summary)
    by_name = {}
    for name, rows in replicates(estimates, alpha).items():
        value = values[name]
        if math.isfinite(value):
            spread = estimates.interval(rows())
            low = value + spread.low - spread.value
            high = value + spread.high - spread.value
            by_name[name] = Interval(value, low, high)
    return by_name


def replicates(estimates: Estimates, alpha: float) -> dict[str, Rows]:
    """Return what computes the sample and the replicates of each metric, by dotted name."""
    mean = estimates.mean
    rows: dict[str, Rows] = {
        "scored_fraction": estimates.scored_fraction,
        "depth.mae": partial(mean, "error"),
        "depth.abs_rel": partial(mean, "abs_rel"),
        "depth.sq_rel": partial(mean, "sq_rel"),
        "depth.rmse": estimates.rmse,
        "depth.rmse_log": partial(_root_mean, estimates, "squared_log"),
        "depth.imae": partial(mean, "inverse", scale=PER_KM),
        "depth.irmse": partial(_root_mean, estimates, "squared_inverse", PER_KM),
        "depth.a1": estimates.a1,
        "depth.a2": partial(mean, "accurate2"),
        "depth.a3": partial(mean, "accurate3"),
    }
    of_sigma = {**_order(estimates, alpha), **_size(estimates)}
    return rows | {f"uncertainty.{name}": metric for name, metric in of_sigma.items()}


def _order(estimates: Estimates, alpha: float) -> dict[str, Rows]:
    rows: dict[str, Rows] = {
        "n_merci": partial(estimates.n_merci, alpha),
        "n_merci_withdrawn": partial(estimates.n_merci_withdrawn, alpha),
        "merci": partial(estimates.merci, alpha),
    }
    for statistic in POGGI.errors:
        rows[f"ause.{statistic}"] = partial(_ause, estimates, statistic)
        rows[f"aurg.{statistic}"] = partial(estimates.aurg, statistic)
    return rows


def _size(estimates: Estimates) -> dict[str, Rows]:
    rows: dict[str, Rows] = {name: partial(estimates.mean, name) for name in SCORES}
    for law in LAWS:
        suffix = "" if law == "gaussian" else f"_{law}"
        rows[f"auce{suffix}"] = partial(estimates.auce, law)
        rows[f"nll{suffix}"] = partial(estimates.nll, law)
        width = 2 * NOMINAL_WIDTHS[law]
        rows[f"mpiw_95{suffix}"] = partial(estimates.mean, "sigma", scale=width)
        for level in INTERVAL_LEVELS:
            name = f"coverage_{100 * level:.0f}{suffix}"
            rows[name] = partial(estimates.coverage, law, level)
    return rows


def _ause(estimates: Estimates, statistic: str) -> Floats:
    return estimates.ause(statistic)["method"]


def _root_mean(estimates: Estimates, name: str, scale: float = 1.0) -> Floats:
    return scale * np.sqrt(estimates.mean(name))
