# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Scores of a correct sigma: the truth drawn around the predicted depth with this sigma.

A reference, and no bound: errors of lighter tails than the drawn ones, or that vary more than
sigma does, score better. Where a sigma scores as well on the measured depth as on the drawn one,
its order is about as good as its contrast allows, and only more contrast could improve it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from experiments.nyu_data import Splits
from experiments.nyu_methods import Settings, model_name
from experiments.nyu_passes import Passes, load_networks
from experiments.nyu_recipes import Recipe, dropout
from experiments.nyu_scores import METRICS
from experiments.nyu_search import SmallFrames, select
from experiments.runner import resume
from uncertainty_depth.metrics import OnlineMetrics
from uncertainty_depth.model_folder.folder import read
from uncertainty_depth.training.frames import read_frames

VARIANT = "multi_epochs_laplace"
RECIPES = {"snapshots + Laplace head": Recipe(VARIANT), "dropout + Laplace head": dropout(VARIANT)}
Ideal = dict[str, list[dict[str, Any]]]


def laplace_noise(rng: np.random.Generator, sigma: NDArray) -> NDArray:
    """Return Laplace errors of this standard deviation."""
    return rng.laplace(0.0, sigma / np.sqrt(2))


def normal_noise(rng: np.random.Generator, sigma: NDArray) -> NDArray:
    """Return Gaussian errors of this standard deviation."""
    return rng.normal(0.0, sigma)


NOISE: dict[str, Callable[[np.random.Generator, NDArray], NDArray]] = {
    "Laplace": laplace_noise,
    "normal": normal_noise,
}


def ideal(output: Path, splits: Splits, settings: Settings, seeds: int) -> Ideal:
    """Return recipe to one mapping per seed of "measured" or noise to a summary.

    Summaries are those of `OnlineMetrics` on the test frames of the recipe search.
    """
    names = {f"ideal_{VARIANT}-{seed}": seed for seed in range(seeds)}
    frames = lru_cache(maxsize=1)(lambda: read_frames(splits.test, settings.network.input_size))

    def pieces(name: str) -> dict[str, Any]:
        trained = read(output / "models" / model_name(VARIANT, names[name])).training
        return {
            "metrics": METRICS,
            "training": trained,
            "recipes": [recipe.key for recipe in RECIPES.values()],
            "frames": [len(splits.test), settings.search_every],
        }

    def compute(name: str) -> dict[str, Any]:
        indices = range(0, len(frames()), settings.search_every)
        networks = load_networks(output / "models" / model_name(VARIANT, names[name]))
        return score_random_truth(Passes(networks), RECIPES, select(frames(), indices))

    results = resume(output / "results", names, pieces, compute, "nyu: ideal")
    return {title: list(map(itemgetter(title), results)) for title in RECIPES}


def score_random_truth(
    passes: Passes, recipes: Mapping[str, Recipe], frames: SmallFrames
) -> dict[str, dict[str, Any]]:
    """Return recipe to "measured" or noise to a summary against that truth."""
    metrics = {}
    for title in recipes:
        for source in ("measured", *NOISE):
            metrics[title, source] = OnlineMetrics()
    images = tqdm(frames.images, desc="nyu: ideal", unit="frame")
    for stamp, (image, truth) in enumerate(zip(images, frames.truths, strict=True)):
        passes.look_at(image, stamp)
        for title, recipe in recipes.items():
            depth, sigma = passes.maps(recipe)
            truths = draw_truths(depth, sigma, np.isfinite(truth), stamp)
            truths["measured"] = truth.astype(np.float32)
            for source, values in truths.items():
                metrics[title, source].update(depth, sigma, values)
    scores: dict[str, dict[str, Any]] = {}
    for (title, source), online in metrics.items():
        scores.setdefault(title, {})[source] = online.compute()
    return scores


def draw_truths(
    depth: NDArray[np.float32], sigma: NDArray[np.float32], valid: NDArray[np.bool_], seed: int
) -> dict[str, NDArray[np.float32]]:
    """Draw a truth (h, w) of mean `depth` and standard deviation `sigma` for each noise.

    In metres; NaN where no truth is `valid`, or the value is not above 0.
    """
    truths = {}
    for name, noise in NOISE.items():
        truth = (depth + noise(np.random.default_rng(seed), sigma)).astype(np.float32)
        truths[name] = np.where(valid & (truth > 0), truth, np.float32(np.nan))
    return truths
