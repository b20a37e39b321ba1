# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The same metrics by other libraries, and by a plain loop: what ours are timed against."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from uncertainty_depth.metrics import auce, brier, ece, nll, sparsification, spearman

Pixels = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]

AUSE = "torch-uncertainty AUSE *"
LOOP = "percentile and mask per step *"
CALIBRATION = "uncertainty-toolbox area *"
LIKELIHOOD = "uncertainty-toolbox NLL *"
TOGETHER = (AUSE, LOOP, CALIBRATION, LIKELIHOOD)


class Case(NamedTuple):
    """One of our functions and its peer, on the same pixels."""

    label: str
    ours: Callable[[], Any]
    peer: str
    theirs: Callable[[], Any]


def cases(pixels: Pixels) -> Iterator[Case]:
    """Yield what is timed; nothing for a peer that is not installed."""
    yield from _order(pixels)
    if importlib.util.find_spec("uncertainty_toolbox"):
        yield from _size(pixels)
    if importlib.util.find_spec("sklearn"):
        yield from _probability(pixels)
    from scipy.stats import spearmanr

    depth, sigma, truth = pixels
    error = np.abs(depth - truth)
    yield Case(
        "Spearman",
        lambda: spearman(sigma, error),
        "scipy spearmanr",
        lambda: spearmanr(sigma, error),
    )


def _order(pixels: Pixels) -> Iterator[Case]:
    depth, sigma, truth = pixels
    error = np.abs(depth - truth)
    peer = torch_uncertainty_ause()
    if peer is not None:
        yield Case(
            "AUSE, ilg",
            lambda: sparsification(*pixels, "mae", "ilg").ause,
            AUSE,
            lambda: _peer_ause(peer, sigma, error),
        )
    yield Case(
        "AUSE and AURG, poggi, three errors",
        lambda: [sparsification(*pixels, name) for name in REDUCED],
        LOOP,
        lambda: poggi_loop(*pixels),
    )


def _size(pixels: Pixels) -> Iterator[Case]:
    import uncertainty_toolbox as toolbox

    depth, sigma, truth = pixels
    error = np.abs(depth - truth)
    yield Case(
        "AUCE",
        lambda: auce(error, sigma),
        CALIBRATION,
        lambda: _toolbox_area(toolbox, pixels),
    )
    yield Case(
        "NLL",
        lambda: nll(error, sigma),
        LIKELIHOOD,
        lambda: toolbox.nll_gaussian(depth, sigma, truth),
    )


def _probability(pixels: Pixels) -> Iterator[Case]:
    from sklearn.calibration import calibration_curve
    from sklearn.metrics import brier_score_loss

    depth, sigma, truth = pixels
    outlier = (np.abs(depth - truth) > 0.1 * truth).astype(np.int64)
    probability = np.exp(-sigma)
    yield Case(
        "Brier score",
        lambda: brier(probability, outlier),
        "scikit-learn Brier score",
        lambda: brier_score_loss(outlier, probability),
    )
    yield Case(  # the peer is without the mean over its bins that makes the curve the error
        "ECE, two classes",
        lambda: ece(probability, outlier),
        "scikit-learn calibration curve",
        lambda: calibration_curve(outlier, probability, n_bins=10),
    )


def _root_mean(values: NDArray) -> float:
    return float(np.sqrt(values.mean()))


def _fraction_inaccurate(values: NDArray) -> float:
    return float((values >= 1.25).mean())


REDUCED: dict[str, Callable[[NDArray], float]] = {
    "abs_rel": np.mean,
    "rmse": _root_mean,
    "a1": _fraction_inaccurate,
}


def poggi_loop(depth: NDArray, sigma: NDArray, ground_truth: NDArray) -> dict[str, float]:
    """Return AUSE the way the published evaluation of Poggi et al. computes it.

    A percentile and a mask for each of 50 steps, for sigma and each oracle.
    """
    error = np.abs(ground_truth - depth)
    values = {
        "abs_rel": error / ground_truth,
        "rmse": error**2,
        "a1": np.maximum(ground_truth / depth, depth / ground_truth),
    }
    masks = [sigma <= -np.percentile(-sigma, 2 * step) for step in range(50)]
    areas = {}
    for name, reduce in REDUCED.items():
        oracle = [
            reduce(values[name][-values[name] >= np.percentile(-values[name], 2 * step)])
            for step in range(50)
        ]
        removal = [reduce(values[name][mask]) for mask in masks]
        areas[name] = (
            float(sum(removal) - sum(oracle)) / 50
        )  # both curves start and end alike: the trapezoid is the mean
    return areas


def torch_uncertainty_ause() -> type | None:
    """Return the AUSE class from the installed file: the package itself asks for torchvision.

    None where it or torchmetrics is not installed.
    """
    spec = importlib.util.find_spec("torch_uncertainty")
    if (
        spec is None
        or not spec.submodule_search_locations
        or importlib.util.find_spec("torchmetrics") is None
    ):
        return None
    path = Path(spec.submodule_search_locations[0]) / "metrics" / "sparsification.py"
    specification = importlib.util.spec_from_file_location(
        "torch_uncertainty_sparsification", path
    )
    module = importlib.util.module_from_spec(specification)  # type: ignore[arg-type]
    specification.loader.exec_module(module)  # type: ignore[union-attr]
    return module.AUSE


def _peer_ause(peer: type, sigma: NDArray, error: NDArray) -> float:
    metric = peer()
    metric.update(torch.from_numpy(sigma), torch.from_numpy(error))
    return float(metric.compute())


def _toolbox_area(toolbox: Any, pixels: Pixels) -> float:
    """As a loop over the levels, its faster form: the vectorised one takes twice as long."""
    return toolbox.miscalibration_area(*pixels, num_bins=99, vectorized=False)
