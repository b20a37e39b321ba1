# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Write predictions as a bag for RViz: the images, the maps and the ground truth."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from uncertainty_depth.config import DepthNodeConfig
from uncertainty_depth.evaluation.evaluate import Sink
from uncertainty_depth.evaluation.images import DEPTH_COLORS, SIGMA_COLORS, colorize
from uncertainty_depth.geometry.point_cloud import organised_points
from uncertainty_depth.records import DepthPrediction, Frame
from uncertainty_depth.writers.bag_writer import BagWriter

FRAME_ID = "camera"
MAX_POINTS = 100_000
"""Of a cloud: the maps hold every pixel, and points of all of them were half of the bag."""


@contextmanager
def prediction_sink(path: Path) -> Iterator[Sink]:
    """Yield a sink for `evaluate` that writes each frame under the depth node's topic names."""
    shown = DepthNodeConfig()
    with BagWriter(path) as bag:

        def write(frame: Frame, prediction: DepthPrediction) -> None:
            depth = prediction.depth_m
            sigma = prediction.sigma_m
            images: dict[str, NDArray[Any]] = {
                "/image": frame.image,
                "/depth/image_rect": depth,
                "/uncertainty/image_rect": sigma,
                "/ground_truth/image": frame.ground_truth_m,
                "/depth/image_color": colorize(depth, shown.color_max_depth, DEPTH_COLORS),
                "/uncertainty/image_color": colorize(sigma, shown.color_max_sigma, SIGMA_COLORS),
            }
            for topic, values in images.items():
                bag.image(topic, frame.stamp_ns, FRAME_ID, values)
            if frame.camera is not None:
                for topic in ("/camera_info", "/depth/camera_info", "/uncertainty/camera_info"):
                    bag.camera_info(topic, frame.stamp_ns, FRAME_ID, frame.camera)
                step = math.ceil(math.sqrt(depth.size / MAX_POINTS))
                points = organised_points(depth, sigma, frame.camera, frame.image, step)
                bag.cloud("/points", frame.stamp_ns, FRAME_ID, points)

        yield write
