"""The arrays that the plots show, read off the state of `OnlineMetrics`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uncertainty_depth.metrics.arrays import Floats, Integers
from uncertainty_depth.metrics.distributions import DISTRIBUTIONS, LEVELS
from uncertainty_depth.metrics.intervals import ENOUGH_PIXELS
from uncertainty_depth.metrics.merci import ALPHAS, normalised, order_number
from uncertainty_depth.metrics.pooled import Candidate, PooledErrors, candidates
from uncertainty_depth.metrics.sparsification import POGGI
from uncertainty_depth.metrics.sparsification import curves as closed_curves
from uncertainty_depth.metrics.state import State

READINGS = ("plain", "withdrawn", "trimmed")
UNRESOLVED = 0.25
"""An interval's n-MeRCI is blank where the width of its cells could move it by more than this
fraction of it, or by more than this."""


def curves(state: State, alpha: float) -> dict[str, Any]:
    """What the plots show, for the predicted sigma and each baseline (the `CANDIDATES`).

    Returns:
        "alpha", "pixels", "variant", and by name of the plot

        - "sparsification": statistic -> {"fractions", "oracle", "random", candidate -> curve,
          "ause": candidate -> area};
        - "n_merci": {"alphas", "tail", reading -> {candidate -> curve}} of the plain, withdrawn and
          trimmed readings; "tail" is where the largest error covered exceeds the mean error;
        - "reliability" and "reliability_laplace": {"levels", candidate -> fraction covered};
        - "intervals": see `interval_curves`, of the predicted sigma.

        Only "pixels" and "variant" when no pixel was seen.
    """
    if not state.tables["counts"][0]:
        return {"pixels": 0, "variant": POGGI.title}
    errors = PooledErrors(state)
    scored = candidates(errors)
    return {
        "pixels": errors.pixels,
        "alpha": alpha,
        "variant": POGGI.title,
        "sparsification": {name: _sparsification(scored, errors, name) for name in POGGI.errors},
        "n_merci": _n_merci(scored, errors),
        **{_reliability_key(name): _reliability(scored, name) for name in DISTRIBUTIONS},
        "intervals": interval_curves(state, alpha),
    }


def _reliability_key(distribution: str) -> str:
    return "reliability" if distribution == "gaussian" else f"reliability_{distribution}"


def _reliability(scored: dict[str, Candidate], distribution: str) -> dict[str, Any]:
    covered = {name: candidate.covered[distribution] for name, candidate in scored.items()}
    return {"levels": LEVELS, **covered}


def _n_merci(scored: dict[str, Candidate], errors: PooledErrors) -> dict[str, Any]:
    readings = {
        reading: {name: getattr(candidate, reading)(ALPHAS) for name, candidate in scored.items()}
        for reading in READINGS
    }
    largest = errors.order_statistics(errors.order_numbers(ALPHAS))
    return {"alphas": ALPHAS, "tail": largest > errors.mae, **readings}


def _sparsification(
    scored: dict[str, Candidate], errors: PooledErrors, name: str
) -> dict[str, Any]:
    row = POGGI.errors.index(name)
    of_candidates = {
        candidate: closed_curves(POGGI, name, one.removal[row], errors.oracles[row])
        for candidate, one in scored.items()
    }
    method = of_candidates["method"]
    return {
        "fractions": method.fractions,
        "oracle": method.oracle,
        "random": method.random,
        **{candidate: curve.sparsification for candidate, curve in of_candidates.items()},
        "ause": {candidate: curve.ause for candidate, curve in of_candidates.items()},
    }


def interval_curves(state: State, alpha: float) -> dict[str, Any]:
    """Metrics per depth interval of the predicted sigma.

    Returns:
        "edges" (K + 1,) metres, and of each interval "pixels", "mae", "n_merci"; NaN where an
        interval is empty, and "n_merci" also where the cells do not resolve it. "enough": pixels
        that an interval needs to be shown; "unresolved": how many with as many pixels are blank.
    """
    tables = state.tables
    pixels = tables["interval.count"]
    with np.errstate(invalid="ignore"):
        mae = tables["interval.error"] / pixels
        sigma = tables["interval.sigma"] / pixels
    numbers = np.array([order_number(alpha, int(count)) for count in pixels])
    largest, largest_width = _order_statistics(state, "error", numbers)
    factor, factor_width = _order_statistics(state, "ratio", numbers)
    merci = normalised(factor, sigma, mae, largest)
    with np.errstate(invalid="ignore", divide="ignore"):
        span = np.abs(largest - mae)
        doubt = (factor_width * sigma + np.abs(merci) * largest_width) / 2 / span
        resolved = doubt <= UNRESOLVED * np.maximum(np.abs(merci), 1)
    return {
        "edges": state.intervals.edges,
        "pixels": pixels,
        "mae": mae,
        "n_merci": np.where(resolved, merci, math.nan),
        "enough": ENOUGH_PIXELS,
        "unresolved": int((~resolved & (pixels >= ENOUGH_PIXELS)).sum()),
    }


def _order_statistics(state: State, name: str, numbers: Integers) -> tuple[Floats, Floats]:
    table = state.tables[f"interval.{name}_bins"]
    span = state.tables[f"interval.{name}_span"]
    return state.interval_bins(name).order_statistics(table, span, numbers)
