# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The recipe search: all recipes scored on held-out frames, and on the test split.

Scores are at the network's size. Recipes are chosen on the held-out frames of the training split.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from experiments.nyu_data import Splits
from experiments.nyu_methods import Settings, model_name, trained_seeds
from experiments.nyu_passes import Passes, load_networks
from experiments.nyu_recipes import Question, Recipe
from experiments.nyu_scores import METRICS
from experiments.runner import resume
from uncertainty_depth.calibration.fit import NETWORK
from uncertainty_depth.calibration.run import BLOCKS, choose, fit_to
from uncertainty_depth.calibration.sample import PIXELS_PER_FRAME, Sample
from uncertainty_depth.calibration.sigma_map import SigmaMap
from uncertainty_depth.config import CalibrationConfig
from uncertainty_depth.metrics import OnlineMetrics, valid_pixels
from uncertainty_depth.model_folder.folder import read
from uncertainty_depth.training.frames import TrainingFrames, read_frames, split

CALIBRATION = CalibrationConfig()
FITTED = {"scale": "scale", "affine": "affine 100%", "isotonic": "isotonic 100%"}
RecipeScores = dict[str, list[dict[str, Any]]]


class SmallFrames(NamedTuple):
    """Frames at the network's size: (h, w, 3) uint8 images, and (h, w) metres with NaN."""

    images: Sequence[NDArray[np.uint8]]
    truths: Sequence[NDArray[np.float16]]


def search(
    output: Path, splits: Splits, questions: Sequence[Question], settings: Settings, seeds: int
) -> RecipeScores:
    """Return recipe key to the scores of each seed it was trained with.

    Scores are {"validation": summary, "test": summary, "calibrated": {map: summary}}, summaries
    those of `OnlineMetrics`. The test split is reported, and no choice depends on it.
    """
    recipes, calibrated = collect(questions)
    size = settings.network.input_size
    frames = lru_cache(maxsize=1)(
        lambda: (read_frames(splits.train, size), read_frames(splits.test, size))
    )
    names: dict[str, tuple[str, int]] = {}
    for variant, variant_seeds in trained_seeds(seeds).items():
        if variant in recipes:
            names |= {f"search_{variant}-{seed}": (variant, seed) for seed in variant_seeds}

    def pieces(name: str) -> dict[str, Any]:
        variant, seed = names[name]
        trained = read(output / "models" / model_name(variant, seed)).training
        keys = [recipe.key for recipe in recipes[variant]]
        return {
            "training": trained,
            "metrics": METRICS,
            "recipes": keys,
            "calibrated": sorted(calibrated.intersection(keys)),
            "frames": [len(splits.test), settings.search_every],
        }

    def compute(name: str) -> dict[str, Any]:
        variant, seed = names[name]
        passes = Passes(load_networks(output / "models" / model_name(variant, seed)))
        validation, test = parts_of(*frames(), settings, seed)
        return score_recipes(passes, recipes[variant], calibrated, validation, test)

    results = resume(output / "results", names, pieces, compute, "nyu: recipes")
    scores: RecipeScores = {}
    for (variant, _), result in zip(names.values(), results, strict=True):
        for recipe in recipes[variant]:
            scores.setdefault(recipe.key, []).append(result[recipe.key])
    return scores


def collect(questions: Iterable[Question]) -> tuple[dict[str, list[Recipe]], set[str]]:
    """Return the recipes of each training, and the keys of those that are calibrated."""
    recipes: dict[str, list[Recipe]] = {}
    calibrated = set()
    for question in questions:
        for recipe in question.answers.values():
            of_variant = recipes.setdefault(recipe.variant, [])
            if recipe not in of_variant:
                of_variant.append(recipe)
            if question.calibrated:
                calibrated.add(recipe.key)
    return recipes, calibrated


def parts_of(
    train: TrainingFrames, test: TrainingFrames, settings: Settings, seed: int
) -> tuple[SmallFrames, SmallFrames]:
    """Return the frames that the trainings of a seed held out, and those of the test split."""
    held_out = split(len(train), settings.training.validation_fraction, seed)[1]
    return select(train, held_out), select(test, range(0, len(test), settings.search_every))


def select(frames: TrainingFrames, indices: Iterable[int]) -> SmallFrames:
    """Return the frames of these indices."""
    indices = list(indices)
    images = [frames.images[index] for index in indices]
    return SmallFrames(images, [frames.depths_m[index] for index in indices])


def score_recipes(
    passes: Passes,
    recipes: Sequence[Recipe],
    calibrated: set[str],
    validation: SmallFrames,
    test: SmallFrames,
) -> dict[str, Any]:
    """Return the scores of the recipes of one training.

    Maps of sigma are fitted on the validation frames and scored on the test frames.
    """
    keys = [recipe.key for recipe in recipes]
    sampled = [key for key in keys if key in calibrated]
    held_out, pixels = score_part(passes, recipes, validation, {}, sampled)
    maps = {key: fit_maps(key, frames, passes.distribution) for key, frames in pixels.items()}
    test_scores, _ = score_part(passes, recipes, test, maps, [])
    scores = {}
    for key in keys:
        maps_of_key = maps.get(key, {})
        scores[key] = {
            "validation": held_out[key, ""],
            "test": test_scores[key, ""],
            "calibrated": {name: test_scores[key, name] for name in maps_of_key},
            "chosen_kind": maps_of_key["chosen"].name if maps_of_key else "",
        }
    return scores


def score_part(
    passes: Passes,
    recipes: Sequence[Recipe],
    frames: SmallFrames,
    fitted: Mapping[str, Mapping[str, SigmaMap]],
    sampled: Sequence[str],
) -> tuple[dict[tuple[str, str], dict[str, Any]], dict[str, list[NDArray[np.float32]]]]:
    """Score all recipes on the frames, raw (map "") and mapped.

    Args:
        passes: of the training.
        recipes: of the training.
        frames: to score.
        fitted: recipe key to map name to map.
        sampled: keys of the recipes whose pixels are returned.

    Returns:
        (recipe key, map name) to summary, and recipe key to (3, n) depth, sigma and truth in
        metres per frame.
    """
    scores = {}
    for recipe in recipes:
        for name in ("", *fitted.get(recipe.key, {})):
            scores[recipe.key, name] = OnlineMetrics()
    pixels: dict[str, list[NDArray[np.float32]]] = {key: [] for key in sampled}
    images = tqdm(frames.images, desc="nyu: recipes", unit="frame")
    for stamp, (image, truth) in enumerate(zip(images, frames.truths, strict=True)):
        passes.look_at(image, stamp)
        truth_m = truth.astype(np.float32)
        for recipe in recipes:
            depth, sigma = passes.maps(recipe)
            scores[recipe.key, ""].update(depth, sigma, truth_m)
            for name, sigma_map in fitted.get(recipe.key, {}).items():
                scores[recipe.key, name].update(depth, sigma_map(sigma), truth_m)
            if recipe.key in pixels:
                pixels[recipe.key].append(some_pixels(depth, sigma, truth_m, stamp))
    return {key: metrics.compute() for key, metrics in scores.items()}, pixels


def some_pixels(
    depth: NDArray[np.float32], sigma: NDArray[np.float32], truth: NDArray[np.float32], seed: int
) -> NDArray[np.float32]:
    """Return depth, sigma and truth of as many random pixels as a calibration uses, (3, n)."""
    valid = valid_pixels(depth, sigma, truth, CALIBRATION.min_depth, CALIBRATION.max_depth)
    pixels = np.stack(valid).astype(np.float32)
    shuffled = np.random.default_rng(seed).permutation(pixels, axis=1)
    return shuffled[:, :PIXELS_PER_FRAME]


def fit_maps(
    name: str, frames: Sequence[NDArray[np.float32]], distribution: str
) -> dict[str, SigmaMap]:
    """Return each type of map fitted to all frames, and the one that `calibrate` would choose."""
    sample = Sample(name, tuple(frames))
    maps = fit_to([sample], NETWORK, distribution)
    blocks = sample.blocks(BLOCKS)
    fitted = {name: maps[map_type] for name, map_type in FITTED.items()}
    fitted["chosen"] = choose(blocks, NETWORK, (distribution,)).sigma_map
    return fitted
