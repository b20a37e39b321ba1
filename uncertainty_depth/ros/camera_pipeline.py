# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""One camera of the depth node: its images in, its maps, counts and diagnostics out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from rclpy.node import Node
from sensor_msgs.msg import CompressedImage, Image

from uncertainty_depth.config import DepthNodeConfig
from uncertainty_depth.messages.images import decode_image
from uncertainty_depth.messages.online_calibration import PredictionInfo
from uncertainty_depth.messages.stamps import stamp_ns
from uncertainty_depth.records import DepthPrediction, Observation, SampleRange
from uncertainty_depth.ros.camera_frame import CameraFrame, Published, check_age, deactivated
from uncertainty_depth.ros.camera_inputs import CameraInputs
from uncertainty_depth.ros.depth_outputs import DepthOutputs
from uncertainty_depth.ros.diagnostics import CALLBACK_FAILED, DiagnosticsPublisher, Health
from uncertainty_depth.ros.failed_frames import drop_failed, views_of_published_maps
from uncertainty_depth.ros.frame_queue import FrameQueue, InHand
from uncertainty_depth.ros.input_watch import InputWatch
from uncertainty_depth.ros.managed_node import ACTIVE, ManagedNode
from uncertainty_depth.ros.messages import age_s
from uncertainty_depth.ros.node_camera import NodeCamera
from uncertainty_depth.ros.predictions import Predictions
from uncertainty_depth.ros.sub_node import sub_node

if TYPE_CHECKING:
    from uncertainty_depth.inference.predictor import Predictor


class CameraPipeline:
    """Queues the newest images of a camera, prepares them, and publishes their predictions.

    Callbacks only queue; the rest is called on the thread of the node's worker.

    Attributes:
        name: of the camera, the namespace of its topics; empty: the node's own.
        health: counts what becomes of its images.
        queue: images that wait.
        camera: its camera info.
        inputs: its subscriptions.
        outputs: its publishers.
        predictions: how its sigma is corrected.
    """

    def __init__(
        self,
        node: ManagedNode[DepthNodeConfig],
        name: str,
        facts: Callable[[], Mapping[str, object]],
        wake: Callable[[], bool],
    ) -> None:
        """Create the publishers.

        Args:
            node: whose clock, log and parameters are used.
            name: of the camera.
            facts: returns the node's values for the diagnostics.
            wake: tells the worker that an image waits; returns whether there is a worker.
        """
        self.name = name
        self.health = Health() if name else node.health
        self._node = node
        self._facts_of_node = facts
        self._wake = wake
        self._scope = sub_node(node, name)
        self.camera = NodeCamera(self._scope)
        self.outputs = DepthOutputs(self._scope)
        self.predictions = Predictions(self._scope)
        self.queue: FrameQueue[Image | CompressedImage] = FrameQueue(
            self.health.drop, node.config.queue_size
        )
        self._in_hand = InHand()
        self.inputs = CameraInputs(
            self._scope, self.health, node.config, self._on_image, self.camera.add
        )
        self._watch = InputWatch(self._scope, self.inputs.watched)
        self._diagnostics = DiagnosticsPublisher(
            self._scope,
            self.health,
            self._awaited,
            self.facts,
            node.standing,
            lambda: [*self._watch.problems, *self.predictions.problems()],
            status_name(node, name),
        )

    def unsubscribe(self) -> None:
        """End all subscriptions, and drop the waiting images."""
        self.inputs.unsubscribe()
        self.queue.clear("deactivated")

    def _on_image(self, message: Image | CompressedImage) -> None:
        self.health.count("received")
        self.queue.put(message)
        if not self._wake():
            self.queue.clear("deactivated")

    def take(self, config: DepthNodeConfig) -> CameraFrame | None:
        """Return the oldest waiting image, decoded and rectified; None if there is none.

        An image that cannot be used is counted under its reason.
        """
        message = self.queue.take()
        if message is None:
            return None
        self._in_hand.hold()
        try:
            if not self.inputs.is_subscribed:
                raise deactivated()
            check_age(self._node, message.header, config.max_frame_age)
            image, camera = self.camera.view(
                decode_image(message, config.max_pixels), config.distorted_images
            )
            sparse_m = self.inputs.sparse_depth(message.header, camera, config)
        except Exception as error:
            self.fail(error)
            return None
        observation = Observation(image, stamp_ns(message.header), camera, sparse_m)
        return CameraFrame(message.header, observation)

    def publish(
        self,
        frame: CameraFrame,
        prediction: DepthPrediction,
        predictor: Predictor,
        samples: SampleRange,
        start_s: float,
    ) -> Published | None:
        """Publish the maps of a frame, sigma corrected; None where that fails, which is counted.

        Args:
            frame: the image.
            prediction: its maps, sigma as the model gives it.
            predictor: the model.
            samples: those that were used.
            start_s: when the turn of the frame came, by `time.perf_counter`.
        """
        try:
            if not self.inputs.is_subscribed:
                raise deactivated()
            config = self._node.config
            corrected, info = self.predictions.correct(
                prediction, frame.observation.stamp_ns, predictor, samples, config
            )
            self.predictions.publish(info, frame.header)
            self.outputs.publish(corrected, frame.header, frame.observation.camera)
        except Exception as error:
            self.fail(error)
            return None
        self._count(frame, info, start_s)
        return Published(frame, corrected, info.half_widths or predictor.half_widths)

    def _count(self, frame: CameraFrame, info: PredictionInfo, start_s: float) -> None:
        if not self._in_hand.settle():
            return
        latency_ms = age_s(self._node, frame.header) * 1e3
        processing_ms = (time.perf_counter() - start_s) * 1e3
        self.health.count("processed")
        self.health.latency(latency_ms)
        if info.unfamiliarity is not None and info.unfamiliarity > 1:
            self.health.count("unfamiliar")
        with views_of_published_maps(self._scope, self.health):
            self.outputs.publish_times(latency_ms, processing_ms)

    def publish_views(self, published: Published) -> None:
        """Publish points and color images; a failure here drops no frame."""
        config = self._node.config
        observation = published.frame.observation
        with views_of_published_maps(self._scope, self.health):
            self.outputs.views.publish(
                published.prediction,
                published.frame.header,
                observation.camera,
                config,
                published.half_widths.at(config.coverage),
                observation.image,
            )

    def fail(self, error: Exception) -> None:
        """Count the frame in hand under the reason of its failure, and log the error."""
        if self._in_hand.settle():
            drop_failed(self._scope, self.health, error)

    def give_up(self) -> None:
        """Count the frame in hand, if any, as dropped by the shutdown, and all that wait."""
        if self._in_hand.settle():
            self.health.drop("shutdown")
        self.queue.clear("shutdown")

    def _awaited(self) -> tuple[str, ...]:
        return ("received",) if self._node.state == ACTIVE else ()

    def facts(self) -> dict[str, object]:
        """Return facts about this camera and the node for the diagnostics."""
        facts: dict[str, object] = {
            "state": self._node.state,
            "camera_info": self.camera.description(),
            "depth_subscribers": self.outputs.depth.get_subscription_count(),
            "uncertainty_subscribers": self.outputs.sigma.get_subscription_count(),
            "waiting": len(self.queue) + bool(self._in_hand),
        }
        facts |= self.inputs.facts()
        facts |= dict(self._facts_of_node()) | self.predictions.facts()
        failed = self._node.health.counts().get(CALLBACK_FAILED)
        return facts if failed is None else facts | {CALLBACK_FAILED: failed}

    def summary(self) -> str:
        """Return the counts of all images, after the name of the camera."""
        counts = ", ".join(f"{count} {name}" for name, count in self.health.counts().items())
        return f"{self.name}: {counts}" if self.name else counts


def status_name(node: Node, camera: str) -> str:
    """Return the name of the status of a camera: that of a node in the camera's namespace."""
    parts = (node.get_namespace().strip("/"), camera, node.get_name())
    return "/".join(filter(None, parts))
