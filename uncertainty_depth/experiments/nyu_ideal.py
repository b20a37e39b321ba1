# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What a sigma would score if it were right: the truth drawn around the predicted depth, with sigma as its standard deviation.

A reference, and no bound: errors of lighter tails than the drawn ones, or that vary more than sigma does, score better. Where a sigma does as well
on the measured depth as on the drawn one, its order is about as good as its contrast allows, and what could gain is more of that: a
sigma that tells easy pixels from hard ones more sharply.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from uncertainty_depth.experiments.nyu_data import Splits
from uncertainty_depth.experiments.nyu_methods import Settings, model_name
from uncertainty_depth.experiments.nyu_recipes import Recipe, dropout
from uncertainty_depth.experiments.nyu_scores import METRICS
from uncertainty_depth.experiments.nyu_search import Passes, SmallFrames, load_networks, taken
from uncertainty_depth.experiments.runner import resume
from uncertainty_depth.metrics import OnlineMetrics
from uncertainty_depth.model_folder.folder import read
from uncertainty_depth.training.frames import read_frames

VARIANT = "multi_epochs_laplace"
RECIPES = {"snapshots + Laplace head": Recipe(VARIANT), "dropout + Laplace head": dropout(VARIANT)}
NOISE: dict[str, Callable[[np.random.Generator, NDArray], NDArray]] = {
    "Laplace": lambda rng, sigma: rng.laplace(0.0, sigma / np.sqrt(2)),
    "normal": lambda rng, sigma: rng.normal(0.0, sigma),
}
Ideal = dict[str, list[dict[str, Any]]]


def ideal(output: Path, splits: Splits, settings: Settings, seeds: int) -> Ideal:
    """Recipe to {"measured" or kind of noise: summary of `OnlineMetrics`} for each seed, on the test frames that the recipe search shows."""
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
        shown = taken(frames(), range(0, len(frames()), settings.search_every))
        return score_drawn(
            Passes(load_networks(output / "models" / model_name(VARIANT, names[name]))),
            RECIPES,
            shown,
        )

    found = resume(output / "results", names, pieces, compute, "nyu: ideal")
    return {title: [one[title] for one in found] for title in RECIPES}


def score_drawn(
    passes: Passes, recipes: Mapping[str, Recipe], frames: SmallFrames
) -> dict[str, dict[str, Any]]:
    """Recipe to summary against the measured depth, and against depths drawn around the predicted one."""
    scores = {title: {kind: OnlineMetrics() for kind in ("measured", *NOISE)} for title in recipes}
    for stamp, (image, truth) in enumerate(
        zip(tqdm(frames.images, desc="nyu: ideal", unit="frame"), frames.truths, strict=True)
    ):
        passes.look_at(image, stamp)
        for title, recipe in recipes.items():
            depth, sigma = passes.maps(recipe)
            truths = {
                "measured": truth.astype(np.float32),
                **drawn(depth, sigma, np.isfinite(truth), stamp),
            }
            for kind, each in truths.items():
                scores[title][kind].update(depth, sigma, each)
    return {
        title: {kind: metrics.compute() for kind, metrics in each.items()}
        for title, each in scores.items()
    }


def drawn(
    depth: NDArray[np.float32], sigma: NDArray[np.float32], known: NDArray[np.bool_], seed: int
) -> dict[str, NDArray[np.float32]]:
    """Kind of noise to a truth (h, w) of mean `depth` and standard deviation `sigma`, metres; NaN where none is `known`, or it is not above 0."""
    truths = {}
    for kind, noise in NOISE.items():
        truth = (depth + noise(np.random.default_rng(seed), sigma)).astype(np.float32)
        truths[kind] = np.where(known & (truth > 0), truth, np.float32(np.nan))
    return truths
