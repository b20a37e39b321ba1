# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The plots' arrays, from the same sums as the metrics."""

from __future__ import annotations

from typing import Any

import numpy as np

from uncertainty_depth.metrics.arrays import Floats
from uncertainty_depth.metrics.calibration import CONFIDENCE_LEVELS
from uncertainty_depth.metrics.merci import ALPHAS
from uncertainty_depth.metrics.registry import (
    BY_NAME,
    METRICS,
    covered_shares,
    max_error_at,
    n_merci_at,
)
from uncertainty_depth.metrics.sparsification import POGGI
from uncertainty_depth.metrics.state import CANDIDATES, DISTANCE, PLOTTED_FRACTIONS, Sums


def curves(sums: Sums) -> dict[str, Any]:
    """Return the curves of the plots, for the predicted sigma and each trivial baseline.

    Args:
        sums: of all frames, one row.

    Returns:
        "alpha", "pixels", "variant", and by name of the plot

        - "sparsification": statistic -> {"fractions", "oracle", "random", candidate -> curve,
          "ause": candidate -> area}, means over the images;
        - "n_merci": {"alphas", "tail", candidate -> curve}; "tail" is the part in which the
          largest covered error exceeds the mean error;
        - "reliability" and "reliability_laplace": {"levels", candidate -> fraction covered};
        - "by_distance": {"edges", metric -> values}, see the registry.

        Only "pixels" and "variant" when no pixel was seen.
    """
    pixels = int(sums["pixels"][0])
    if not pixels:
        return {"pixels": 0, "variant": POGGI.title}
    of = {name: sums.of(name) for name in CANDIDATES}
    with np.errstate(all="ignore"):
        max_error = np.array([max_error_at(alpha, sums)[0] for alpha in ALPHAS])
        n_merci = {
            name: np.array([n_merci_at(alpha, own)[0] for alpha in ALPHAS])
            for name, own in of.items()
        }
    reliability = {
        law: {
            "levels": CONFIDENCE_LEVELS,
            **{name: covered_shares(law, own)[0] for name, own in of.items()},
        }
        for law in ("gaussian", "laplace")
    }
    by_distance = {
        metric.name.removeprefix("by_distance."): metric.values(sums)[0]
        for metric in METRICS
        if metric.name.startswith("by_distance.")
    }
    return {
        "pixels": pixels,
        "alpha": sums.alpha,
        "variant": POGGI.title,
        "sparsification": {name: _sparsification(of, name) for name in POGGI.errors},
        "n_merci": {
            "alphas": ALPHAS,
            "tail": max_error > sums["error"][0] / pixels,
            **n_merci,
        },
        "reliability": reliability["gaussian"],
        "reliability_laplace": reliability["laplace"],
        "by_distance": {"edges": DISTANCE.edges, **by_distance},
    }


def _sparsification(of: dict[str, Sums], statistic: str) -> dict[str, Any]:
    sums = of["method"]
    row = POGGI.errors.index(statistic)
    frames = sums["frames"][0]
    oracle: Floats = sums["oracle"][0, row] / frames
    method, by_depth = sums["removal"][0, :, row] / frames
    random = np.full_like(oracle, oracle[0])
    ause = BY_NAME[f"uncertainty.ause.{statistic}"]
    return {
        "fractions": POGGI.fractions[PLOTTED_FRACTIONS],
        "oracle": oracle,
        "random": random,
        "method": method,
        "constant": random,
        "proportional_to_depth": by_depth,
        "ause": {name: float(ause.values(own)[0]) for name, own in of.items()},
    }
