# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Write predictions to a bag, under the depth node's topics."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from uncertainty_depth.core.config.nodes import ColorConfig
from uncertainty_depth.core.geometry.point_cloud import organised_points
from uncertainty_depth.core.records import Frame
from uncertainty_depth.frames.messages.bag_writer import BagWriter
from uncertainty_depth.report.images import DEPTH_COLORS, SIGMA_COLORS, colorize

FRAME_ID = "camera"
MAX_POINTS = 100_000
"""Clouds' stride: the maps hold every pixel, and points at all were half of the bag."""


@contextmanager
def prediction_sink(path: Path) -> Iterator[Callable[[Frame], None]]:
    """Yield a sink for `evaluate` that writes each frame under the depth node's topic names.

    Recorded predictions are written in metres, aligned, and with the sigma map applied.
    """
    defaults = ColorConfig()
    with BagWriter(path) as bag:

        def write(frame: Frame) -> None:
            prediction = frame.need_prediction()
            stamp_ns = max(frame.stamp_ns, 1)  # of numbered files the first is 0: none in a bag
            depth = prediction.depth_m
            sigma = prediction.sigma_m
            colored_sigma = colorize(sigma, defaults.color_max_sigma, SIGMA_COLORS)
            images: dict[str, NDArray[Any]] = {}
            if frame.image is not None:
                images["/image"] = frame.image
            images |= {
                "/depth/image_rect": depth,
                "/uncertainty/image_rect": sigma,
                "/ground_truth/image": frame.need_ground_truth(),
                "/depth/image_color": colorize(depth, defaults.color_max_depth, DEPTH_COLORS),
                "/uncertainty/image_color": colored_sigma,
            }
            for topic, values in images.items():
                bag.image(topic, stamp_ns, FRAME_ID, values)
            if frame.camera is not None:
                for topic in ("/camera_info", "/depth/camera_info", "/uncertainty/camera_info"):
                    bag.camera_info(topic, stamp_ns, FRAME_ID, frame.camera)
                step = math.ceil(math.sqrt(depth.size / MAX_POINTS))
                points = organised_points(depth, sigma, frame.camera, colored_sigma, step)
                bag.cloud("/points/uncertainty_color", stamp_ns, FRAME_ID, points)

        yield write
