# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A simulated drive: depth with Laplace errors whose sigma is known."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from test.conftest import scored
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.records import DepthPrediction
from uncertainty_depth.report import report
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.saved_state import read_report

SHAPE = (24, 32)
CAMERA = Camera(32, 24, np.array([[22.0, 0, 15.5], [0, 22.0, 11.5], [0, 0, 1]]))
MODEL = {
    "method": "mc_dropout",
    "head": "laplace",
    "depth_range": [0.4, 16.0],
    "training": {
        "source": "synthetic:worlds=4",
        "camera": {"focal_length_per_width": [0.68, 0.7], "aspect": [1.3333, 1.3334]},
        "median_depth_m": [[3.0] * 20] * 16,
    },
}
CONTEXT = report.Context("drive", {"method": "mc_dropout", "head": "laplace"})


@dataclass(frozen=True)
class Moment:
    """One frame: ground truth, prediction, and a random generator for attacks."""

    truth: np.ndarray
    depth: np.ndarray
    sigma: np.ndarray
    random: np.random.Generator


def moments(frames, seed=0):
    """Yield frames with Laplace errors as large as sigma says; the scene changes slowly."""
    random = np.random.default_rng(seed)
    scene = 0.0
    for _ in range(frames):
        scene = 0.5 * scene + random.normal(0, 0.15)
        truth = np.exp(random.normal(1.2 + scene, 0.5, SHAPE)).clip(0.5, 15)
        sigma = 0.08 * truth * np.exp(random.normal(0, 0.8, SHAPE))
        depth = truth + random.laplace(0, sigma / np.sqrt(2))
        yield Moment(truth, np.maximum(depth, 0.05), sigma, random)


def evaluation_of(attack=lambda moment: (moment.depth, moment.sigma), frames=64, seed=0):
    """Evaluate frames whose depth and sigma `attack` makes."""
    image = np.full((*SHAPE, 3), 99, np.uint8)
    maps = ((moment.truth, *attack(moment)) for moment in moments(frames, seed))
    return evaluation_on(maps, camera=CAMERA, image=image)


def evaluation_on(maps, **parts):
    """Evaluate frames made from ground truth, depth and sigma, and other parts."""
    evaluation = Evaluation()
    for index, values in enumerate(maps):
        evaluation.add(scored(index, *(np.asarray(it, np.float32) for it in values), **parts))
    return evaluation


evaluated = cache(evaluation_of)
"""The evaluation made once for all who ask for the same: not to be added to."""


def saved(evaluation, folder, context=CONTEXT):
    """Write an evaluation's report without plots, and read it back."""
    report.write(evaluation, folder, context, images=False)
    return read_report(folder)


class NoisyPredictor:
    """Predicts from the image alone, and records the stamps."""

    def __init__(self):
        self.stamps = []

    def predict(self, image, stamp_ns, camera=None):
        self.stamps.append(stamp_ns)
        depth = 1 + image[..., 0].astype(np.float32) / 32
        return DepthPrediction(depth, 0.1 + image[..., 1].astype(np.float32) / 256)
