# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Hugging Face depth model families: their encoders, depth ranges, preprocessing and options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncertainty_depth.core import strict
from uncertainty_depth.depth.networks.encoder import IMAGENET_MEAN, IMAGENET_STD

if TYPE_CHECKING:
    from transformers import PretrainedConfig


def working_size(config: PretrainedConfig) -> int:
    """Return height and width of every image that DepthPro sees, pixels."""
    return round(config.patch_size / min(config.scaled_images_ratios))


MIN_DEPTH_M = 1e-3
DPT_MAX_DEPTH_M = 80.0
DEPTH_PRO_MAX_DEPTH_M = 1e4
FAMILIES = ("depth_anything", "depth_pro", "dpt", "glpn", "zoedepth")
STRIDE = {"depth_pro": 1, "glpn": 32, "swinv2": 32}
"""Input pixels per pixel of the deepest map, for encoders without a patch size; 1 for any size."""


def is_depth_model(config: PretrainedConfig) -> bool:
    """Return whether this config's depth model can be wrapped.

    A DPT-hybrid cannot, because it takes images of only one size.
    """
    return config.model_type in FAMILIES and not getattr(config, "is_hybrid", False)


def patch_size(config: PretrainedConfig) -> int:
    """Return the pixels that an image's height and width must be a multiple of."""
    encoder = _encoder_config(config)
    return STRIDE.get(encoder.model_type) or int(encoder.patch_size)


def image_size(config: PretrainedConfig) -> int:
    """Return the encoder's training image size; the larger side if they differ."""
    if config.model_type == "depth_pro":
        return working_size(config)
    sides = getattr(_encoder_config(config), "image_size", 384)
    return int(max(sides) if isinstance(sides, Sequence) else sides)


def metric_range(config: PretrainedConfig) -> tuple[float, float] | None:
    """Return the output's min and max depth, metres; None if the output is not in metres.

    DPT (Ranftl et al. 2021) and relative Depth Anything (Yang et al. 2024) give inverse depth up
    to an unknown scale and shift. DPT with DINOv2's head (Oquab et al. 2024), recognised by its
    projection, gives metres, up to 10 indoors and 80 outdoors; its config does not say so.
    DepthPro (Bochkovskii et al. 2024) gives inverse depth up to a factor from the field of view,
    which it may come with a model for.
    """
    is_metric_depth_anything = (
        config.model_type == "depth_anything" and config.depth_estimation_type == "metric"
    )
    if config.model_type == "glpn" or is_metric_depth_anything:
        return MIN_DEPTH_M, float(config.max_depth)
    if config.model_type == "zoedepth":
        return MIN_DEPTH_M, float(max(bins["max_depth"] for bins in config.bin_configurations))
    if config.model_type == "dpt" and config.add_projection:
        is_dinov2 = _encoder_config(config).model_type == "dinov2"
        return (MIN_DEPTH_M, DPT_MAX_DEPTH_M) if is_dinov2 else None
    if config.model_type == "depth_pro" and config.use_fov_model:
        return MIN_DEPTH_M, DEPTH_PRO_MAX_DEPTH_M
    return None


def _encoder_config(config: PretrainedConfig) -> PretrainedConfig:
    return getattr(config, "backbone_config", None) or config


SETTINGS = "preprocessor_config.json"
MAX_SETTINGS_BYTES = 2**20
MAX_PIXEL = 255.0
ASPECT = 4 / 3
"""Width to height of most cameras' images, for a model that keeps the images' own."""
CAMERA_SIZE = (640, 480)
"""Width and height of NYU Depth v2, on which the models were trained that do not resize images."""


def read_preprocessing(name: str) -> dict[str, Any]:
    """Return the settings of the folder or hub id `name`, from the local cache if possible.

    Without settings the result is empty.
    """
    from transformers.utils import cached_file

    for local_files_only in (True, False):
        try:
            path = str(cached_file(name, SETTINGS, local_files_only=local_files_only))
            return dict(strict.read_json_file(Path(path), MAX_SETTINGS_BYTES))
        except (OSError, ValueError, TypeError, strict.FormatError):
            continue
    return {}


def normalisation(settings: Mapping[str, Any]) -> tuple[list[float], list[float]]:
    """Return each channel's mean and standard deviation, for images in [0, 1]; 0 and 1 without.

    The settings' own are for images up to 255 times `rescale_factor`, or 255 without it.
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


LEARNING_RATE = 1e-4
"""A tenth of the hourglass's: the head has been trained already."""


def options_of_architecture(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the training options that suit this config's depth model, as plain values."""
    options: dict[str, Any] = {"freeze_encoder": True, "learning_rate": LEARNING_RATE}
    if config.get("use_fov_model", False):
        # A zoomed image counts as nearer, but a narrower field of view does not change the depth.
        options["augment"] = False
    return options
