# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The pair of messages of a prediction as arrays, from rclpy and rosbags alike."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.errors import MessageError
from uncertainty_depth.messages.depth_images import decode_depth, decode_values
from uncertainty_depth.predictions.config import PredictionConfig

Floats = NDArray[np.float32]
UNMATCHED_REASONS = ("depth_without_uncertainty", "uncertainty_without_depth")
"""What a depth image without its confidence is counted under, and the reverse."""


def decode_maps(
    depth: Any, confidence: Any | None, config: PredictionConfig
) -> tuple[Floats, Floats]:
    """Return depth and confidence, (H, W) each, decoded by their types.

    Depth and sigma of 16UC1 are millimetres (REP 118); other values are taken as they are.

    Args:
        depth: a `sensor_msgs` Image or CompressedImage.
        confidence: another one; None for depth alone, whose confidence is then 1 everywhere.
        config: what they hold.

    Raises:
        MessageError: one cannot be decoded; "uncertainty_wrong_size", their sizes differ.
    """
    decode = decode_values if config.depth_type == "inverse_depth" else decode_depth
    depth_map = decode(depth)
    if confidence is None:
        return depth_map, np.ones_like(depth_map)
    decode = decode_depth if config.confidence_type in ("", "sigma") else decode_values
    confidence_map = decode(confidence)
    check_sizes(depth_map, confidence_map)
    return depth_map, confidence_map


def check_sizes(depth: Floats, confidence: Floats) -> None:
    """Raise `MessageError` "uncertainty_wrong_size" unless both maps have the same size."""
    if confidence.shape != depth.shape:
        raise MessageError(
            "uncertainty_wrong_size",
            f"the uncertainty image has {confidence.shape[::-1]} pixels; expected as many as the "
            f"depth image, {depth.shape[::-1]}: the confidence of this depth, or its driver's "
            "option to publish both at one resolution",
        )
