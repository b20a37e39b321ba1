"""How a pretrained depth model wants its images: what the `preprocessor_config.json` beside its weights says."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from transformers.utils import cached_file

from uncertainty_depth.network.encoder import IMAGENET_MEAN, IMAGENET_STD

logger = logging.getLogger(__name__)

FILE = "preprocessor_config.json"
GREATEST_PIXEL = 255.0
ASPECT = 4 / 3
"""Width to height of most cameras' images, for a model that asks for the images' own."""
CAMERA_SIZE = 640, 480
"""Width and height of NYU Depth v2, on which those models were trained that do not resize images."""


def read_preprocessing(name: str) -> dict[str, Any]:
    """The settings of the folder or hub id `name`, from the local cache where they are in it; empty, and a warning, where there are none."""
    for local in (True, False):
        try:
            with open(
                str(cached_file(name, FILE, local_files_only=local)), encoding="utf-8"
            ) as file:
                return dict(json.load(file))
        except (OSError, ValueError, TypeError):
            continue
    logger.warning(
        "%s has no %s that can be read: its images are normalised with ImageNet's mean and standard deviation",
        name,
        FILE,
    )
    return {}


def normalisation(settings: Mapping[str, Any]) -> tuple[list[float], list[float]]:
    """Mean and standard deviation of each channel of images in [0, 1]; 0 and 1 where the model takes these as they are.

    The settings' own are of images whose greatest value is 255 times `rescale_factor`: usually 1, and 255 where images are not rescaled.
    """
    greatest = (
        GREATEST_PIXEL * settings.get("rescale_factor", 1 / GREATEST_PIXEL)
        if settings.get("do_rescale", True)
        else GREATEST_PIXEL
    )
    if settings and not settings.get("do_normalize", "image_mean" in settings):
        return [0.0] * 3, [1 / greatest] * 3
    mean = settings.get("image_mean", IMAGENET_MEAN)
    std = settings.get("image_std", IMAGENET_STD)
    return _of_each_channel(mean, greatest), _of_each_channel(std, greatest)


def _of_each_channel(values: float | Sequence[float], greatest: float) -> list[float]:
    """Either one value for all channels, or one each."""
    return [
        value / greatest for value in (values if isinstance(values, Sequence) else [values] * 3)
    ]


def input_size(settings: Mapping[str, Any], image_size: int, patch: int) -> tuple[int, int]:
    """Width and height the model was trained at, in whole patches of so many pixels; `image_size`, squared, where the settings name none.

    A model that keeps the images' aspect ratio names the length of the shorter side; one that takes images as large as they are gets `CAMERA_SIZE`.
    """
    size = settings.get("size")
    named = isinstance(size, Mapping) and "height" in size
    if settings.get("size_divisor") and not (named and settings.get("do_resize", True)):
        width, height = CAMERA_SIZE
    else:
        height, width = (size["height"], size["width"]) if named else (image_size, image_size)
    if settings.get("keep_aspect_ratio") and width == height:
        width = height * ASPECT
    return max(round(width / patch), 1) * patch, max(round(height / patch), 1) * patch
