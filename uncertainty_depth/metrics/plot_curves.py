# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The arrays that the plots show, read off the state of `OnlineMetrics`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uncertainty_depth.metrics.arrays import Floats, Integers
from uncertainty_depth.metrics.distributions import CONFIDENCE_LEVELS
from uncertainty_depth.metrics.interval_bins import grouped
from uncertainty_depth.metrics.intervals import ENOUGH_PIXELS
from uncertainty_depth.metrics.merci import ALPHAS, normalised, order_number
from uncertainty_depth.metrics.pooled import Candidate, PooledErrors, candidates
from uncertainty_depth.metrics.sparsification import curves as closed_curves
from uncertainty_depth.metrics.sparsification_variants import POGGI
from uncertainty_depth.metrics.state import State

PLOTTED = 60
SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
UNRESOLVED = 0.25
"""An interval's n-MeRCI is blank where the width of its cells could move it by more than this
fraction of it, or by more than this."""


def curves(state: State, alpha: float) -> dict[str, Any]:
    """Return the curves of the plots, for the predicted sigma and each of the `CANDIDATES`.

    Returns:
        "alpha", "pixels", "variant", and by name of the plot

        - "sparsification": statistic -> {"fractions", "oracle", "random", candidate -> curve,
          "ause": candidate -> area};
        - "n_merci": {"alphas", "tail", reading -> {candidate -> curve}} of the plain, withdrawn
          and trimmed readings; "tail" is where the largest error covered exceeds the mean error;
        - "reliability" and "reliability_laplace": {"levels", candidate -> fraction covered};
        - "intervals" and, as wide as the range and the number of pixels ask for,
          "plotted_intervals": see `interval_curves`, of the predicted sigma.

        Only "pixels" and "variant" when no pixel was seen.
    """
    if not state.tables["counts"][0]:
        return {"pixels": 0, "variant": POGGI.title}
    errors = PooledErrors(state)
    scored = candidates(errors)
    pixels = state.tables["interval.count"]
    return {
        "pixels": errors.pixels,
        "alpha": alpha,
        "variant": POGGI.title,
        "sparsification": {name: _sparsification(scored, errors, name) for name in POGGI.errors},
        "n_merci": _n_merci(scored, errors),
        "reliability": _reliability(scored, "gaussian"),
        "reliability_laplace": _reliability(scored, "laplace"),
        "intervals": interval_curves(state, alpha),
        "plotted_intervals": interval_curves(state, alpha, plotted_size(pixels)),
    }


def _reliability(scored: dict[str, Candidate], distribution: str) -> dict[str, Any]:
    covered = {name: candidate.covered[distribution] for name, candidate in scored.items()}
    return {"levels": CONFIDENCE_LEVELS, **covered}


def _n_merci(scored: dict[str, Candidate], errors: PooledErrors) -> dict[str, Any]:
    max_error = errors.order_statistics(errors.order_numbers(ALPHAS))
    return {
        "alphas": ALPHAS,
        "tail": max_error > errors.mae,
        "plain": {name: candidate.plain(ALPHAS) for name, candidate in scored.items()},
        "withdrawn": {name: candidate.withdrawn(ALPHAS) for name, candidate in scored.items()},
        "trimmed": {name: candidate.trimmed(ALPHAS) for name, candidate in scored.items()},
    }


def _sparsification(
    scored: dict[str, Candidate], errors: PooledErrors, name: str
) -> dict[str, Any]:
    row = POGGI.errors.index(name)
    of_candidates = {
        candidate: closed_curves(POGGI, name, metrics.removal[row], errors.oracles[row])
        for candidate, metrics in scored.items()
    }
    method = of_candidates["method"]
    return {
        "fractions": method.fractions,
        "oracle": method.oracle,
        "random": method.random,
        **{candidate: curve.sparsification for candidate, curve in of_candidates.items()},
        "ause": {candidate: curve.ause for candidate, curve in of_candidates.items()},
    }


def interval_curves(state: State, alpha: float, size: int = 1) -> dict[str, Any]:
    """Return metrics per depth interval of the predicted sigma.

    Args:
        state: with at least one pixel.
        alpha: fraction of the pixels to cover.
        size: number of neighbouring intervals put together.

    Returns:
        "edges" (K + 1,) metres, and of each interval "pixels", "mae", "n_merci"; NaN where an
        interval is empty, and "n_merci" also where the cells do not resolve it. "enough": pixels
        that an interval needs to be shown; "unresolved": how many with as many pixels are blank.
    """
    tables = state.tables
    starts = np.arange(0, state.intervals.number, size)
    pixels = np.add.reduceat(tables["interval.count"], starts)
    with np.errstate(invalid="ignore"):
        mae = np.add.reduceat(tables["interval.error"], starts) / pixels
        sigma = np.add.reduceat(tables["interval.sigma"], starts) / pixels
    numbers = np.array([order_number(alpha, int(count)) for count in pixels])
    max_error, max_error_width = _order_statistics(state, "error", numbers, size)
    factor, factor_width = _order_statistics(state, "ratio", numbers, size)
    merci = normalised(factor, sigma, mae, max_error)
    with np.errstate(invalid="ignore", divide="ignore"):
        span = np.abs(max_error - mae)
        doubt = (factor_width * sigma + np.abs(merci) * max_error_width) / 2 / span
        resolved = doubt <= UNRESOLVED * np.maximum(np.abs(merci), 1)
    edges = state.intervals.edges
    return {
        "edges": np.append(edges[starts], edges[-1]),
        "pixels": pixels,
        "mae": mae,
        "n_merci": np.where(resolved, merci, math.nan),
        "enough": ENOUGH_PIXELS,
        "unresolved": int((~resolved & (pixels >= ENOUGH_PIXELS)).sum()),
    }


def plotted_size(pixels: Integers) -> int:
    """Return how many neighbouring intervals to merge for a plot.

    The fewest that leave at most `PLOTTED` intervals between the nearest and the farthest pixel,
    most of them with enough pixels.
    """
    filled = np.flatnonzero(pixels)
    pixels_of_span = pixels[filled[0] : filled[-1] + 1]
    for size in SIZES:
        together = np.add.reduceat(pixels_of_span, np.arange(0, len(pixels_of_span), size))
        if len(together) <= PLOTTED and np.median(together[together > 0]) >= ENOUGH_PIXELS:
            return size
    return SIZES[-1]


def _order_statistics(
    state: State, name: str, numbers: Integers, size: int
) -> tuple[Floats, Floats]:
    bins = state.interval_bins(name)
    table = state.tables[f"interval.{name}_bins"]
    span = state.tables[f"interval.{name}_span"]
    return bins.order_statistics(*grouped(bins, table, span, size), numbers)
