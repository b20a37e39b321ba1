# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Image preprocessing for pretrained depth models, read from `preprocessor_config.json`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from uncertainty_depth import strict_json
from uncertainty_depth.network.encoder import IMAGENET_MEAN, IMAGENET_STD

logger = logging.getLogger(__name__)

FILE = "preprocessor_config.json"
MAX_BYTES = 2**20
MAX_PIXEL = 255.0
ASPECT = 4 / 3
"""Width to height of most cameras' images, for a model that keeps the images' own."""
CAMERA_SIZE = (640, 480)
"""Width and height of NYU Depth v2, on which the models were trained that do not resize images."""


def read_preprocessing(name: str) -> dict[str, Any]:
    """Return the settings of the folder or hub id `name`, from the local cache if possible.

    Without settings the result is empty, with a warning.
    """
    from transformers.utils import cached_file

    for local_files_only in (True, False):
        try:
            path = str(cached_file(name, FILE, local_files_only=local_files_only))
            return dict(strict_json.read_file(Path(path), MAX_BYTES))
        except (OSError, ValueError, TypeError, strict_json.JsonError):
            continue
    logger.warning(
        "%s has no readable %s: its images are normalised with ImageNet's mean and standard "
        "deviation",
        name,
        FILE,
    )
    return {}


def normalisation(settings: Mapping[str, Any]) -> tuple[list[float], list[float]]:
    """Return each channel's mean and standard deviation, for images in [0, 1].

    They are 0 and 1 for a model without normalisation. The settings' own values are for images
    with a max of 255 times `rescale_factor`, usually 1, or of 255 if images are not rescaled.
    """
    max_value = MAX_PIXEL
    if settings.get("do_rescale", True):
        max_value *= settings.get("rescale_factor", 1 / MAX_PIXEL)
    if settings and not settings.get("do_normalize", "image_mean" in settings):
        return [0.0] * 3, [1 / max_value] * 3
    mean = settings.get("image_mean", IMAGENET_MEAN)
    std = settings.get("image_std", IMAGENET_STD)
    return _per_channel(mean, max_value), _per_channel(std, max_value)


def _per_channel(values: float | Sequence[float], max_value: float) -> list[float]:
    """Return one value per channel, for images in [0, 1]; a single value applies to all."""
    channels = values if isinstance(values, Sequence) else [values] * 3
    return [value / max_value for value in channels]


def input_size(settings: Mapping[str, Any], image_size: int, patch: int) -> tuple[int, int]:
    """Return the width and height of the model's training images, in whole patches.

    A model that keeps the aspect ratio names the shorter side's length. A model that does not
    resize images gets `CAMERA_SIZE`.

    Args:
        settings: result of `read_preprocessing`.
        image_size: side of a square image, pixels, used if the settings name no size.
        patch: pixels that width and height must be a multiple of.
    """
    size: Any = settings.get("size")
    has_size = isinstance(size, Mapping) and "height" in size
    is_resized = has_size and settings.get("do_resize", True)
    width: float = size["width"] if has_size else image_size
    height: float = size["height"] if has_size else image_size
    if settings.get("size_divisor") and not is_resized:
        width, height = CAMERA_SIZE
    if settings.get("keep_aspect_ratio") and width == height:
        width = height * ASPECT
    return max(round(width / patch), 1) * patch, max(round(height / patch), 1) * patch
