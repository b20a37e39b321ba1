# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Choose the fastest precision in which a GPU gives the maps of float32."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import cv2
import numpy as np
import torch
from numpy.typing import NDArray

from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.depth.estimators import Estimator
from uncertainty_depth.depth.networks.encoder import image_tensor

logger = logging.getLogger(__name__)

FASTEST_FIRST = ("fp16", "tf32")
"""bf16 is as fast as fp16, and eight times as coarse."""
MAX_DEPTH_ERROR = 1e-3
MAX_SIGMA_ERROR = 1e-2
"""Mean differences to float32, as fractions."""
PATCH = 32


def choose_precision(
    load: Callable[[str], Estimator],
    candidates: Sequence[str],
    size: Sequence[int],
    device: torch.device,
) -> tuple[Estimator, str]:
    """Return the estimator in the first precision whose maps stay near float32's, and its name.

    They are compared on two pictures with patches of colour, one with edges and one without; both
    methods of rounding keep about ten bits, so what differs between networks is what overflows.

    Args:
        load: returns the estimator in a precision.
        candidates: the fastest first; fp32 is taken if there are none, or all fail.
        size: width and height of the network's images.
        device: the network's.
    """
    exact = load("fp32")
    if not candidates:
        return exact, "fp32"
    expected = _maps(exact, size, device)
    del exact  # memory for another
    for precision in candidates:
        estimator = load(precision)
        found = _maps(estimator, size, device)
        depth_error, sigma_error = _mean_errors(found, expected)
        if depth_error <= MAX_DEPTH_ERROR and sigma_error <= MAX_SIGMA_ERROR:
            logger.info(
                "precision is %s: depth differs from fp32's by %.2g in the mean, sigma by %.2g",
                precision, depth_error, sigma_error,
            )  # fmt: skip
            return estimator, precision
        logger.info(
            "precision is not %s: depth would differ from fp32's by %.2g in the mean, sigma by "
            "%.2g; expected at most %g and %g",
            precision, depth_error, sigma_error, MAX_DEPTH_ERROR, MAX_SIGMA_ERROR,
        )  # fmt: skip
        del estimator
    return load("fp32"), "fp32"


def _maps(
    estimator: Estimator, size: Sequence[int], device: torch.device
) -> list[NDArray[np.float32]]:
    """Return (2, h, w) depth and sigma of each picture, metres."""
    config = PredictorConfig()
    images = image_tensor(_pictures(size), device).split(1)
    return [estimator.estimate(image, 0, config).maps() for image in images]


def _pictures(size: Sequence[int]) -> NDArray[np.uint8]:
    """Return (2, h, w, 3) pictures: patches of colour, with edges and without."""
    width, height = size
    colors = np.random.default_rng(0).integers(
        0, 256, (-(-height // PATCH), -(-width // PATCH), 3), dtype=np.uint8
    )
    ways = (cv2.INTER_NEAREST, cv2.INTER_LINEAR)
    return np.stack([cv2.resize(colors, (width, height), interpolation=way) for way in ways])


def _mean_errors(
    found: Sequence[NDArray[np.float32]], expected: Sequence[NDArray[np.float32]]
) -> tuple[float, float]:
    """Return depth's and sigma's mean relative difference; a sigma of 0 must stay 0."""
    difference = np.abs(np.stack(found, 1) - np.stack(expected, 1))
    tiny = np.finfo(np.float32).tiny
    with np.errstate(invalid="ignore"):
        errors = (difference / np.maximum(np.stack(expected, 1), tiny)).mean((1, 2, 3))
    depth_error, sigma_error = np.where(np.isfinite(errors), errors, np.inf).tolist()
    return depth_error, sigma_error
