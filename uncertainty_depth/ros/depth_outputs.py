# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The publishers of the depth node's maps, model and times."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rclpy.node import Node
from rclpy.publisher import Publisher
from sensor_msgs.msg import CameraInfo, Image
from std_msgs.msg import Float64, Header, String

from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.records import DepthPrediction
from uncertainty_depth.ros.messages import camera_info_message, image_message
from uncertainty_depth.ros.qos import LATCHED_QOS, OUTPUT_QOS
from uncertainty_depth.ros.sigma_outputs import SigmaOutputs


class DepthOutputs:
    """Publishes predictions, and `views` derived from them while someone subscribes."""

    def __init__(self, node: Node) -> None:
        def publisher(message_type: type, topic: str) -> Publisher:
            return node.create_publisher(message_type, topic, OUTPUT_QOS)

        self.depth = publisher(Image, "depth/image_rect")
        self.sigma = publisher(Image, "uncertainty/image_rect")
        self._infos = [
            publisher(CameraInfo, f"{name}/camera_info") for name in ("depth", "uncertainty")
        ]
        self.views = SigmaOutputs(node)
        self._latency_ms = publisher(Float64, "~/latency_ms")
        self._processing_time_ms = publisher(Float64, "~/processing_time_ms")
        self._model = node.create_publisher(String, "depth/model", LATCHED_QOS)

    def publish(
        self,
        prediction: DepthPrediction,
        header: Header,
        camera: Camera | None,
    ) -> None:
        """Publish a prediction and its camera under the camera image's header.

        Args:
            prediction: maps of shape (H, W).
            header: of the camera image.
            camera: of the maps; None, no camera info is published.
        """
        if camera is not None:  # first: a subscriber of maps then has their camera info
            info = camera_info_message(camera, header)
            for publisher in self._infos:
                publisher.publish(info)
        self.depth.publish(image_message(prediction.depth_m, header))
        self.sigma.publish(image_message(prediction.sigma_m, header))

    def publish_model(self, description: Mapping[str, Any]) -> None:
        """Publish the description of the model as JSON, to later subscribers too."""
        self._model.publish(String(data=json.dumps(description)))

    def publish_times(self, latency_ms: float, processing_time_ms: float) -> None:
        """Publish the time from the image's stamp to its maps, and the node's own work in it."""
        self._latency_ms.publish(Float64(data=latency_ms))
        self._processing_time_ms.publish(Float64(data=processing_time_ms))
