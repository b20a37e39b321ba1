# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The publishers of the sigma node."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rclpy.node import Node
from sensor_msgs.msg import CameraInfo, Image
from std_msgs.msg import Float64, Header, String

from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.records import DepthPrediction
from uncertainty_depth.ros.messages import camera_info_message, image_message
from uncertainty_depth.ros.qos import LATCHED_QOS, OUTPUT_QOS
from uncertainty_depth.ros.sigma_outputs import SigmaOutputs


class SigmaNodeOutputs:
    """Publishes sigma, and `views` derived from it and the depth while someone subscribes.

    The depth itself is not published again: its sender did.
    """

    def __init__(self, node: Node) -> None:
        topic = "uncertainty/image_rect"
        self._sigma = node.create_publisher(Image, topic, OUTPUT_QOS)
        self._info = node.create_publisher(CameraInfo, "uncertainty/camera_info", OUTPUT_QOS)
        self.views = SigmaOutputs(node)
        self._latency_ms = node.create_publisher(Float64, "~/latency_ms", OUTPUT_QOS)
        self._processing_ms = node.create_publisher(Float64, "~/processing_time_ms", OUTPUT_QOS)
        self._model = node.create_publisher(String, "depth/model", LATCHED_QOS)

    def publish(self, prediction: DepthPrediction, header: Header, camera: Camera | None) -> None:
        """Publish sigma and its camera under the depth image's header."""
        if camera is not None:
            self._info.publish(camera_info_message(camera, header))
        self._sigma.publish(image_message(prediction.sigma_m, header))

    def publish_model(self, description: Mapping[str, Any]) -> None:
        """Publish the description of sigma as JSON, to later subscribers too."""
        self._model.publish(String(data=json.dumps(description)))

    def publish_times(self, latency_ms: float, processing_time_ms: float) -> None:
        """Publish the time from the depth's stamp to its sigma, and the node's own work in it."""
        self._latency_ms.publish(Float64(data=latency_ms))
        self._processing_ms.publish(Float64(data=processing_time_ms))
