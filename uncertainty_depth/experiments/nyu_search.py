# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The recipe search: every recipe scored on the held-out frames of the training split, and beside it on the test split, at the network's size."""

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
from uncertainty_depth.calibration.run import distribution_of
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
from uncertainty_depth.model_folder.folder import read
from uncertainty_depth.network.encoder import image_tensor
from uncertainty_depth.network.hourglass import Hourglass
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
    """Recipe key to the scores of each seed it was trained with: {"validation": summary, "test": summary, "calibrated": {kind: summary}}.

    Summaries are those of `OnlineMetrics`. No choice sees the test split: it is only shown.
    """
    recipes, calibrated = collect(questions)
    size = settings.network.input_size
    frames = lru_cache(maxsize=1)(
        lambda: (read_frames(splits.train, size), read_frames(splits.test, size))
    )
    names = {
        f"search_{variant}-{seed}": (variant, seed)
        for variant, each in trained_seeds(seeds).items()
        if variant in recipes
        for seed in each
    }

    def pieces(name: str) -> dict[str, Any]:
        variant, seed = names[name]
        trained = read(output / "models" / model_name(variant, seed)).training
        wanted = [recipe.key for recipe in recipes[variant]]
        mapped = sorted(calibrated.intersection(wanted))
        return {
            "training": trained,
            "metrics": METRICS,
            "recipes": wanted,
            "calibrated": mapped,
            "frames": [len(splits.test), settings.search_every],
        }

    def compute(name: str) -> dict[str, Any]:
        variant, seed = names[name]
        passes = Passes(load_networks(output / "models" / model_name(variant, seed)))
        return score_recipes(
            passes, recipes[variant], calibrated, *parts_of(*frames(), settings, seed)
        )

    found = dict(
        zip(names, resume(output / "results", names, pieces, compute, "nyu: recipes"), strict=True)
    )
    return {
        recipe.key: [
            scores[recipe.key] for name, scores in found.items() if names[name][0] == variant
        ]
        for variant, each in recipes.items()
        for recipe in each
    }


def collect(questions: Iterable[Question]) -> tuple[dict[str, list[Recipe]], set[str]]:
    """The recipes of each training, every one once, and the keys of those that are calibrated."""
    everything = dict.fromkeys(
        recipe for question in questions for recipe in question.answers.values()
    )
    variants = dict.fromkeys(recipe.variant for recipe in everything)
    calibrated = {
        recipe.key
        for question in questions
        if question.calibrated
        for recipe in question.answers.values()
    }
    return {
        variant: [recipe for recipe in everything if recipe.variant == variant]
        for variant in variants
    }, calibrated


def parts_of(
    train: TrainingFrames, test: TrainingFrames, settings: Settings, seed: int
) -> tuple[SmallFrames, SmallFrames]:
    """The frames that the trainings of a seed held out, and those of the test split that are shown."""
    held_out = split(len(train), settings.training.validation_fraction, seed)[1]
    return taken(train, held_out), taken(test, range(0, len(test), settings.search_every))


def taken(frames: TrainingFrames, indices: Iterable[int]) -> SmallFrames:
    """Some of the frames."""
    return SmallFrames(
        *zip(*((frames.images[index], frames.depths_m[index]) for index in indices), strict=True)
    )


def load_networks(folder: Path) -> dict[str, Hourglass]:
    """All members by name, ready to predict, in the order in which they are served."""
    model = read(folder)
    device = choose_device("auto")
    return {
        name: prepare(network, device, "fp32")
        for name, network in zip(model.members, model.load_all(model.members), strict=True)
    }


class Passes:
    """Passes of a model's networks on one frame at a time, each computed once however many recipes use it."""

    def __init__(self, networks: Mapping[str, Hourglass]) -> None:
        self._networks = networks
        self._device = next(next(iter(networks.values())).parameters()).device
        self._image = torch.zeros(())
        self._stamp = 0
        self._kept: dict[tuple[object, ...], Tensor] = {}

    @property
    def distribution(self) -> str:
        """What sigma is the standard deviation of, by the networks' head."""
        return distribution_of(next(iter(self._networks.values())).config.head)

    def look_at(self, image: NDArray[np.uint8], stamp: int) -> None:
        """The next frame: (h, w, 3) uint8; with the stamp it decides the dropout."""
        self._image = image_tensor(image[None], self._device)
        self._stamp = stamp
        self._kept.clear()

    @torch.inference_mode()
    def maps(self, recipe: Recipe) -> Maps:
        """Depth and sigma (h, w), metres.

        The mean of the depths; total variance = variance of the depths + mean predicted variance (Gustafsson et al. 2020, appendix A).
        """
        members = list(self._networks) if recipe.order == "served" else sorted(self._networks)
        chosen = members[recipe.first : recipe.stop]
        samples = torch.cat(
            [self._samples(member, number, recipe) for number, member in enumerate(chosen)]
        )
        depth = samples[:, 0].mean(0)
        spread = (
            samples[:, 0].std(0, correction=0)
            if recipe.space == "metres"
            else depth * samples[:, 0].log().std(0, correction=0)
        )
        epistemic = (recipe.weight * spread).square()
        parts = {"epistemic": epistemic, "aleatoric": samples[:, 1].mean(0)}
        variance = parts.get(recipe.part, epistemic + parts["aleatoric"])
        return depth.cpu().numpy(), variance.sqrt().cpu().numpy()

    def _samples(self, member: str, number: int, recipe: Recipe) -> Tensor:
        """(M, 2, h, w): depth and predicted variance of a member's passes; `number` sets its dropout apart from the other members'."""
        key = (member, number if recipe.passes else 0, recipe.passes, recipe.rate, recipe.places)
        if key not in self._kept:
            self._kept[key] = self._sampled(member, number, recipe)
        return self._kept[key]

    def _sampled(self, member: str, number: int, recipe: Recipe) -> Tensor:
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
        if key not in self._kept:
            network = self._networks[member]
            self._kept[key] = network.decoder.trunk(network.encode(self._image))
        return self._kept[key]


def noise(network: Hourglass, recipe: Recipe, streams: Sequence[np.random.Philox]) -> list[Any]:
    """What takes the place of the three dropouts; all draw from the same streams, and one that is off draws nothing."""
    layers = (
        network.decoder.dropouts
        if recipe.rate is None
        else [nn.Dropout(recipe.rate)] * len(network.decoder.dropouts)
    )
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
    """Scores of the recipes of one training, in one go over each part; maps of sigma are fitted on the validation frames in between."""
    wanted = [recipe.key for recipe in recipes if recipe.key in calibrated]
    held_out, pixels = score_part(passes, recipes, validation, {}, wanted)
    fitted = {key: fit_maps(key, frames, passes.distribution) for key, frames in pixels.items()}
    shown, _ = score_part(passes, recipes, test, fitted, [])
    return {
        recipe.key: {
            "validation": held_out[recipe.key, ""],
            "test": shown[recipe.key, ""],
            "calibrated": {kind: shown[recipe.key, kind] for kind in fitted.get(recipe.key, {})},
            "chosen_kind": fitted[recipe.key]["chosen"].kind if recipe.key in fitted else "",
        }
        for recipe in recipes
    }


def score_part(
    passes: Passes,
    recipes: Sequence[Recipe],
    frames: SmallFrames,
    fitted: Mapping[str, Mapping[str, SigmaMap]],
    sampled: Sequence[str],
) -> tuple[dict[tuple[str, str], dict[str, Any]], dict[str, list[NDArray[np.float32]]]]:
    """Score all recipes on the frames, raw (kind "") and mapped, and keep some pixels of those to be calibrated.

    Returns:
        (recipe key, kind) to summary, and recipe key to per frame (3, n) depth, sigma and truth in metres.
    """
    kinds = {recipe: {"": None, **fitted.get(recipe.key, {})} for recipe in recipes}
    scores = {(recipe.key, kind): OnlineMetrics() for recipe in recipes for kind in kinds[recipe]}
    pixels: dict[str, list[NDArray[np.float32]]] = {key: [] for key in sampled}
    for stamp, (image, truth) in enumerate(
        zip(tqdm(frames.images, desc="nyu: recipes", unit="frame"), frames.truths, strict=True)
    ):
        passes.look_at(image, stamp)
        truth_m = truth.astype(np.float32)
        for recipe in recipes:
            depth, sigma = passes.maps(recipe)
            for kind, sigma_map in kinds[recipe].items():
                scores[recipe.key, kind].update(
                    depth, sigma if sigma_map is None else sigma_map(sigma), truth_m
                )
            if recipe.key in pixels:
                pixels[recipe.key].append(some_pixels(depth, sigma, truth_m, stamp))
    return {key: metrics.compute() for key, metrics in scores.items()}, pixels


def some_pixels(
    depth: NDArray[np.float32], sigma: NDArray[np.float32], truth: NDArray[np.float32], seed: int
) -> NDArray[np.float32]:
    """(3, n) of at most as many pixels as a calibration takes of a frame."""
    known = np.stack(
        valid_pixels(depth, sigma, truth, CALIBRATION.min_depth, CALIBRATION.max_depth)
    ).astype(np.float32)
    return np.random.default_rng(seed).permutation(known, axis=1)[
        :, : CALIBRATION.pixels_per_frame
    ]


def fit_maps(
    name: str, frames: Sequence[NDArray[np.float32]], distribution: str
) -> dict[str, SigmaMap]:
    """Each kind of map, fitted to all of the frames, and the one that `calibrate` would choose."""
    sample = Sample(name, tuple(frames))
    maps = fit_to([sample], distribution)
    blocks = sample.blocks(CALIBRATION.blocks)
    return {
        **{name: maps[kind] for name, kind in FITTED.items()},
        "chosen": choose(blocks, distribution).sigma_map,
    }
