# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Names of the topics that the evaluator node takes ground truth from."""

from __future__ import annotations

from uncertainty_depth.config import EvaluatorNodeConfig
from uncertainty_depth.config.nodes import MAX_LIDARS

IMAGE_TOPIC = "ground_truth/image"
LIDAR_TOPICS = (
    "lidar/points",
    *(f"lidar{number}/points" for number in range(2, MAX_LIDARS + 1)),
)
"""Of the first LiDAR, the second, and so on."""


def ground_truth_topics(config: EvaluatorNodeConfig) -> tuple[str, ...]:
    """Return the topics of ground truth: one of each LiDAR, or that of depth images."""
    return (IMAGE_TOPIC,) if config.use_ground_truth_image else LIDAR_TOPICS[: config.lidars]
