# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The recipe search: all recipes scored on held-out frames, and on the test split.

Scores are at the network's size. Recipes are chosen on the held-out frames of the training split.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from tqdm import tqdm

from uncertainty_depth.calibration.choose import choose, fit_to
from uncertainty_depth.calibration.sample import Sample
from uncertainty_depth.calibration.sigma_map import SigmaMap
from uncertainty_depth.config import CalibrationConfig
from uncertainty_depth.experiments.nyu_data import Splits
from uncertainty_depth.experiments.nyu_methods import Settings, model_name, trained_seeds
from uncertainty_depth.experiments.nyu_recipes import Question, Recipe
from uncertainty_depth.experiments.nyu_scores import METRICS
from uncertainty_depth.experiments.runner import resume
from uncertainty_depth.inference.deployment import choose_device, prepare
from uncertainty_depth.metrics import OnlineMetrics, valid_pixels
from uncertainty_depth.metrics.distributions import distribution_of
from uncertainty_depth.model_folder.folder import read
from uncertainty_depth.network.encoder import image_tensor
from uncertainty_depth.training.frames import TrainingFrames, read_frames, split
from uncertainty_depth.uncertainty.mc_dropout import random_stream, seeded

CALIBRATION = CalibrationConfig()
FITTED = {"scale": "scale", "affine": "affine 100%", "isotonic": "isotonic 100%"}
Maps = tuple[NDArray[np.float32], NDArray[np.float32]]
Found = dict[str, list[dict[str, Any]]]


class SmallFrames(NamedTuple):
    """Frames at the network's size: (h, w, 3) uint8 images, and (h, w) metres with NaN."""

    images: Sequence[NDArray[np.uint8]]
    truths: Sequence[NDArray[np.float16]]


def search(
    output: Path, splits: Splits, questions: Sequence[Question], settings: Settings, seeds: int
) -> Found:
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
    scores: Found = {}
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


def load_networks(folder: Path) -> dict[str, Any]:
    """Load all members by name, ready to predict, in the order in which they are served."""
    model = read(folder)
    device = choose_device("auto")
    networks = model.load_all(model.members)
    return {
        name: prepare(network, device, "fp32")
        for name, network in zip(model.members, networks, strict=True)
    }


class Passes:
    """Forward passes of a model's networks on one frame, each computed once for all recipes."""

    def __init__(self, networks: Mapping[str, Any]) -> None:
        self._networks = networks
        self._device = next(next(iter(networks.values())).parameters()).device
        self._image = torch.zeros(())
        self._stamp = 0
        self._cache: dict[tuple[object, ...], Any] = {}

    @property
    def distribution(self) -> str:
        """Return the error distribution of the networks' head."""
        return distribution_of(next(iter(self._networks.values())).config.head)

    def look_at(self, image: NDArray[np.uint8], stamp: int) -> None:
        """Take the next frame, (h, w, 3) uint8; its stamp seeds the dropout."""
        self._image = image_tensor(image[None], self._device)
        self._stamp = stamp
        self._cache.clear()

    @torch.inference_mode()
    def maps(self, recipe: Recipe) -> Maps:
        """Return depth and sigma (h, w), metres.

        Depth is the mean over the passes; total variance = variance of the depths + mean
        predicted variance (Gustafsson et al. 2020, appendix A).
        """
        members = list(self._networks) if recipe.order == "served" else sorted(self._networks)
        used = members[recipe.first : recipe.stop]
        samples = torch.cat(
            [self._samples(member, number, recipe) for number, member in enumerate(used)]
        )
        depths = samples[:, 0]
        depth = depths.mean(0)
        if recipe.space == "metres":
            spread = depths.std(0, correction=0)
        else:
            spread = depth * depths.log().std(0, correction=0)
        epistemic = (recipe.weight * spread).square()
        parts = {"epistemic": epistemic, "aleatoric": samples[:, 1].mean(0)}
        variance = parts.get(recipe.part, epistemic + parts["aleatoric"])
        return depth.cpu().numpy(), variance.sqrt().cpu().numpy()

    def _samples(self, member: str, number: int, recipe: Recipe) -> Tensor:
        """Return depth and predicted variance of a member's passes, (M, 2, h, w).

        `number` seeds its dropout, so that members differ.
        """
        key = (member, number if recipe.passes else 0, recipe.passes, recipe.rate, recipe.places)
        if key not in self._cache:
            self._cache[key] = self._forward(member, number, recipe)
        return self._cache[key]

    def _forward(self, member: str, number: int, recipe: Recipe) -> Tensor:
        network = self._networks[member]
        size = self._image.shape[-2:]
        streams = [
            random_stream(0, self._stamp, number * recipe.passes + each)
            for each in range(recipe.passes)
        ]
        dropouts = noise(network, recipe, streams)
        raw = network.decoder.branches(self._trunk(member), dropouts)
        output = network.to_metres(raw, size)
        variance = network.variance(output)
        both = [output.depth_m, torch.zeros_like(output.depth_m) if variance is None else variance]
        return torch.cat(both, dim=1)

    def _trunk(self, member: str) -> Any:
        key = ("trunk", member)
        if key not in self._cache:
            network = self._networks[member]
            self._cache[key] = network.decoder.trunk(network.encode(self._image))
        return self._cache[key]


def noise(network: Any, recipe: Recipe, streams: Sequence[np.random.Philox]) -> list[Any]:
    """Return the replacements of the three dropouts; all draw from the same streams."""
    layers = network.decoder.dropouts
    if recipe.rate is not None:
        layers = [nn.Dropout(recipe.rate)] * len(layers)
    return [
        partial(seeded(layer), streams=streams)
        if streams and place in recipe.places
        else nn.Identity()
        for place, layer in enumerate(layers)
    ]


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
            "chosen_kind": maps_of_key["chosen"].kind if maps_of_key else "",
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
    known = valid_pixels(depth, sigma, truth, CALIBRATION.min_depth, CALIBRATION.max_depth)
    pixels = np.stack(known).astype(np.float32)
    shuffled = np.random.default_rng(seed).permutation(pixels, axis=1)
    return shuffled[:, : CALIBRATION.pixels_per_frame]


def fit_maps(
    name: str, frames: Sequence[NDArray[np.float32]], distribution: str
) -> dict[str, SigmaMap]:
    """Return each type of map fitted to all frames, and the one that `calibrate` would choose."""
    sample = Sample(name, tuple(frames))
    maps = fit_to([sample], distribution)
    blocks = sample.blocks(CALIBRATION.blocks)
    fitted = {name: maps[map_type] for name, map_type in FITTED.items()}
    fitted["chosen"] = choose(blocks, distribution).sigma_map
    return fitted
