# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The arrays that the plots show, from the same sums as the metrics."""

from __future__ import annotations

from typing import Any

import numpy as np

from uncertainty_depth.metrics import registry
from uncertainty_depth.metrics.block import CANDIDATES, DISTANCE, ERROR, LAWS
from uncertainty_depth.metrics.blocks import Sums
from uncertainty_depth.metrics.distributions import CONFIDENCE_LEVELS
from uncertainty_depth.metrics.merci import ALPHAS
from uncertainty_depth.metrics.sparsification import curves as closed_curves
from uncertainty_depth.metrics.sparsification_variants import POGGI


def curves(sums: Sums) -> dict[str, Any]:
    """Return the curves of the plots, for the predicted sigma and each trivial baseline.

    Args:
        sums: of all frames, one row.

    Returns:
        "alpha", "pixels", "variant", and by name of the plot

        - "sparsification": statistic -> {"fractions", "oracle", "random", candidate -> curve,
          "ause": candidate -> area}, means over the images;
        - "n_merci": {"alphas", "tail", candidate -> curve}; "tail" is where the largest error
          covered exceeds the mean error;
        - "reliability" and "reliability_laplace": {"levels", candidate -> fraction covered};
        - "by_distance": {"edges", metric -> values}, see the registry.

        Only "pixels" and "variant" when no pixel was seen.
    """
    pixels = int(sums["pixels"][0])
    if not pixels:
        return {"pixels": 0, "variant": POGGI.title}
    by_candidate = {name: sums.of(name) for name in CANDIDATES}
    reliability = {
        law: {name: registry.covered_shares(law, of)[0] for name, of in by_candidate.items()}
        for law in LAWS
    }
    max_error = [registry.order_statistic(sums, "error", ERROR, alpha)[0] for alpha in ALPHAS]
    return {
        "pixels": pixels,
        "alpha": sums.alpha,
        "variant": POGGI.title,
        "sparsification": {name: _sparsification(sums, name) for name in POGGI.errors},
        "n_merci": {
            "alphas": ALPHAS,
            "tail": np.array(max_error) > sums["error"][0] / pixels,
            **{name: _n_merci(of) for name, of in by_candidate.items()},
        },
        "reliability": {"levels": CONFIDENCE_LEVELS, **reliability["gaussian"]},
        "reliability_laplace": {"levels": CONFIDENCE_LEVELS, **reliability["laplace"]},
        "by_distance": _by_distance(sums),
    }


def _n_merci(sums: Sums) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.array([registry.n_merci_at(alpha, sums)[0] for alpha in ALPHAS])


def _sparsification(sums: Sums, name: str) -> dict[str, Any]:
    row = POGGI.errors.index(name)
    frames = sums["frames"][0]
    oracle = sums["oracle"][0, row] / frames
    of_candidates = {
        candidate: closed_curves(POGGI, name, sums["removal"][0, place, row] / frames, oracle)
        for place, candidate in enumerate(CANDIDATES)
    }
    method = of_candidates["method"]
    return {
        "fractions": method.fractions,
        "oracle": method.oracle,
        "random": method.random,
        **{candidate: curve.sparsification for candidate, curve in of_candidates.items()},
        "ause": {candidate: curve.ause for candidate, curve in of_candidates.items()},
    }


def _by_distance(sums: Sums) -> dict[str, Any]:
    values = {
        metric.name.removeprefix("by_distance."): metric.values(sums)[0]
        for metric in registry.METRICS
        if metric.name.startswith("by_distance.")
    }
    return {"edges": DISTANCE.edges, **values}
