# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What measures depth beside the depth node's network: each adds to a frame before it predicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from std_msgs.msg import Header

from uncertainty_depth.core.config.nodes import DepthNodeConfig
from uncertainty_depth.core.records import Frame
from uncertainty_depth.ros.diagnostics import Health
from uncertainty_depth.ros.inputs import Inputs
from uncertainty_depth.ros.lidar_input import LidarInput
from uncertainty_depth.ros.live_camera import LiveCamera
from uncertainty_depth.ros.motion_input import MotionInput
from uncertainty_depth.ros.topic_input import TopicInput

if TYPE_CHECKING:
    from uncertainty_depth.depth.predictor import Predictor
    from uncertainty_depth.ros.node import GuardedNode


class MeasurementSource(Protocol):
    """Measures pixels of the images; its messages arrive on the executor's thread."""

    def add_to(self, frame: Frame, header: Header) -> Frame:
        """Return the frame with what is measured in it; called on the worker's thread.

        What cannot be measured is counted and logged, and the frame stays as it is.

        Args:
            frame: with its image, and its camera if that is known.
            header: of the image.
        """

    def close(self) -> None:
        """End what `Inputs.close` does not."""


def measurement_sources(
    node: GuardedNode,
    health: Health,
    inputs: Inputs,
    config: DepthNodeConfig,
    predictor: Predictor,
    camera: LiveCamera,
) -> Iterator[MeasurementSource]:
    """Subscribe to what the model takes, and yield the sources in the order they are asked.

    Raises:
        ConfigError: an option does not go with a source.
    """
    if predictor.sparse_input is not None:
        yield LidarInput(node, health, inputs, config, predictor.depth_range)
    for kind in predictor.measurements.topics:
        yield TopicInput(node, health, inputs, config, kind, predictor.depth_range, camera)
    if predictor.measurements.motion:
        yield MotionInput(node, health, config)
