# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""How far the HMC reference of a toy problem can be trusted.

NUTS, 4 chains of 250 samples, each after 1,000 of warm-up from its own start (the paper: one of
1,000 samples), so that their agreement can be tested.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.hmc import Posterior, split_r_hat
from experiments.posterior_methods import Problem


def mixing(
    posterior: Posterior, problem: Problem, values: NDArray, inside: NDArray[np.bool_]
) -> dict[str, Any]:
    """Return diagnostics of the HMC reference.

    Args:
        posterior: of two chains or more.
        problem: has the distances.
        values: (chains, samples, P, ...) that the predictions are computed from.
        inside: (P,) which points are among the training points.

    Returns:
        floor: distances of the second half of the chains from the first, below which differences
        say nothing. R-hat of the energy, and of `values` as median and max over the points inside
        and outside. Number of diverged samples, and gradients per sample.
    """
    samples = posterior.pooled()
    r_hat = split_r_hat(values)
    half = len(posterior.predictions) // 2 * posterior.predictions.shape[1]
    return {
        "floor": problem.distance(
            problem.predict(samples[:half]), problem.predict(samples[half:])
        ),
        "energy": float(split_r_hat(posterior.energy)),
        "inside": [float(np.median(r_hat[inside])), float(r_hat[inside].max())],
        "outside": [float(np.median(r_hat[~inside])), float(r_hat[~inside].max())],
        "diverged": int(posterior.diverging.sum()),
        "steps": float(posterior.steps.mean()),
    }
