# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What measures depth beside a prediction: each adds to a frame before it is corrected."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from std_msgs.msg import Header

from uncertainty_depth.core.config.nodes import MeasuringNodeConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.records import Frame
from uncertainty_depth.ros.diagnostics import Health
from uncertainty_depth.ros.inputs import Inputs
from uncertainty_depth.ros.lidar_input import LidarInput
from uncertainty_depth.ros.live_camera import LiveCamera
from uncertainty_depth.ros.motion_input import MotionInput
from uncertainty_depth.ros.topic_input import TopicInput
from uncertainty_depth.sigma.sparse_depth import MeasurementSources, parse_measurements

if TYPE_CHECKING:
    from uncertainty_depth.ros.node import GuardedNode


class MeasurementSource(Protocol):
    """Measures pixels of the images; its messages arrive on the executor's thread."""

    def add_to(self, frame: Frame, header: Header) -> Frame:
        """Return the frame with what is measured in it; called on the worker's thread.

        What cannot be measured is counted and logged, and the frame stays as it is.
        """

    def close(self) -> None:
        """End what `Inputs.close` does not."""


def measurement_sources(
    node: GuardedNode,
    health: Health,
    inputs: Inputs,
    config: MeasuringNodeConfig,
    measuring: MeasurementSources,
    depth_range: tuple[float, ...],
    camera: LiveCamera,
) -> Iterator[MeasurementSource]:
    """Subscribe to what measures, and yield the sources in the order they are asked."""
    if measuring.sparse is not None:
        yield LidarInput(node, health, inputs, config, depth_range)
    for kind in measuring.topics:
        yield TopicInput(node, health, inputs, config, kind, depth_range, camera)
    if measuring.motion:
        yield MotionInput(node, health, config)


def parse_live(measurements: str) -> MeasurementSources:
    """Return what corrects the depth on a robot.

    Raises:
        ConfigError: as `parse_measurements`, or it is what no robot has.
    """
    measuring = parse_measurements(measurements)
    if measuring.sparse is not None and measuring.sparse.pixels:
        raise ConfigError(
            f"measurements is {measurements!r}; expected lidar, motion, points or depth: random "
            "pixels of the ground truth are for `uncertainty-depth evaluate`"
        )
    return measuring
