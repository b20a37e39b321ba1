# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The depth node: camera images in, depth and its standard deviation out."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import wait
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rclpy.context import Context
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.qos import QoSProfile
from sensor_msgs.msg import CameraInfo, CompressedImage, Image
from std_msgs.msg import Header

from uncertainty_depth.config import DepthNodeConfig
from uncertainty_depth.errors import ConfigError, MessageError
from uncertainty_depth.messages.images import decode_image, to_rgb
from uncertainty_depth.model_location import check_location
from uncertainty_depth.process_resources import MIB
from uncertainty_depth.ros.depth_outputs import DepthOutputs
from uncertainty_depth.ros.diagnostics import DiagnosticsPublisher, Health
from uncertainty_depth.ros.extrinsics import create_extrinsics
from uncertainty_depth.ros.input_watch import InputWatch
from uncertainty_depth.ros.lidar_input import TOPIC as LIDAR_TOPIC
from uncertainty_depth.ros.lidar_input import LidarInput
from uncertainty_depth.ros.managed_node import ACTIVE, ManagedNode
from uncertainty_depth.ros.messages import age_s
from uncertainty_depth.ros.node_camera import NodeCamera
from uncertainty_depth.ros.predictions import Predictions
from uncertainty_depth.ros.qos import SubscriptionQos, sensor_qos
from uncertainty_depth.ros.teardown import take_down
from uncertainty_depth.ros.watched_input import WatchedInput
from uncertainty_depth.ros.within_memory import free_memory, within_memory
from uncertainty_depth.ros.worker import Worker
from uncertainty_depth.shipped_model import model_path

if TYPE_CHECKING:
    from uncertainty_depth.calibration.half_widths import HalfWidths
    from uncertainty_depth.geometry.camera import Camera
    from uncertainty_depth.inference.predictor import Predictor
    from uncertainty_depth.records import DepthPrediction

LOG_EVERY_S = 5.0
FINISH_S = 2.0
CLOCK_MISSING_AGE_S = 3600.0
MIN_DDS_DEPTH = 10
"""Messages the middleware keeps at least: the worker, which counts what it drops, gets bursts."""
IMAGE_TOPICS = {False: (Image, "image"), True: (CompressedImage, "image/compressed")}
"""Type and name of the image topic by the parameter `compressed_input`."""
DESCRIBED = ("method", "component", "samples", "precision", "calibration")
"""What the diagnostics tell of the model's description."""
INPUT_PARAMETERS = ("queue_size", "reliable_input", "compressed_input")


def image_qos(config: DepthNodeConfig) -> QoSProfile:
    """Return the quality of service of the camera image subscription."""
    return sensor_qos(max(MIN_DDS_DEPTH, config.queue_size), config.reliable_input)


def load_predictor(config: DepthNodeConfig) -> Predictor:
    """Load the model. torch is imported lazily so that bad parameters fail fast."""
    check_location(model_path(config.model))
    from uncertainty_depth.inference.predictor import Predictor

    return Predictor(config.model, config)


def load_or_free(config: DepthNodeConfig) -> Predictor:
    """Load a model; free its memory where loading fails."""
    try:
        return load_predictor(config)
    except Exception as error:
        error.__traceback__ = None  # it holds the half-loaded network
        free_memory()
        raise


def device_memory_mib() -> int:
    """Return the GPU memory that this process has taken, MiB; 0 without one."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return 0
    return torch.cuda.memory_reserved() // MIB


class DepthNode(ManagedNode[DepthNodeConfig]):
    """Publishes depth and sigma of every camera image.

    Callbacks only queue the newest images. One worker thread decodes, infers and publishes, so
    that the executor stays free. Configured, the node holds the model; active, it subscribes.
    """

    def __init__(self, **options: Any) -> None:
        """Create the publishers; with `autostart` load the model, then subscribe.

        In that order subscribers of the outputs are connected before the first image.

        Args:
            options: keyword arguments of `rclpy.node.Node`.

        Raises:
            ConfigError: a parameter is missing or illegal.
            ModelError: the model cannot be used.
        """
        super().__init__("depth_node", DepthNodeConfig, **options)
        self.health = Health()
        self._camera = NodeCamera(self)
        self._outputs = DepthOutputs(self)
        self._predictions = Predictions(self)
        self._qos = SubscriptionQos(self)
        self._qos.declare([topic for _, topic in IMAGE_TOPICS.values()], image_qos(self.config))
        self._qos.declare([LIDAR_TOPIC], sensor_qos(1, self.config.reliable_input))
        self._predictor: Predictor | None = None
        self._unfamiliarity: float | None = None  # of the latest frame
        self._worker: Worker[Image | CompressedImage] | None = None
        self._images: WatchedInput | None = None
        self._camera_info: WatchedInput | None = None
        self._lidar: LidarInput | None = None
        self._watch = InputWatch(self, self._inputs)
        self._diagnostics = DiagnosticsPublisher(
            self,
            self.health,
            self._awaited,
            self._facts,
            self.standing,
            lambda: self._watch.problems,
        )
        self.autostart()

    @staticmethod
    def create_executor(context: Context | None = None) -> Executor:
        """Return an executor for this node."""
        return SingleThreadedExecutor(context=context)

    def _configure(self) -> None:
        """Load the model and run it once.

        Raises:
            ConfigError: the parameter `model` is empty, or another does not go with the model.
            ModelError: the model cannot be used.
        """
        if not self.config.model:
            raise ConfigError(
                "the parameter model is empty; expected a model folder, "
                "e.g. --ros-args -p model:=/path/to/model"
            )
        self._predictor = predictor = load_or_free(self.config)
        to_rgb()  # before the first image: it tries cv_bridge in a child process
        self._outputs.publish_model(self._description(predictor, self.config))
        self._worker = Worker(
            self._process, lambda _, reason: self.health.drop(reason), self.config.queue_size
        )
        self.get_logger().info(
            f"{predictor.method} on {predictor.device}, model {self.config.model}"
        )

    def _activate(self) -> None:
        """Subscribe to images and their camera info, and to the LiDAR where the model takes it."""
        if self._predictor is not None and self._predictor.sparse_input is not None:
            self._lidar = LidarInput(self, self.health, self._qos, self.config)
        self._camera_info = WatchedInput(
            self,
            self.health,
            self._qos,
            CameraInfo,
            "camera_info",
            self._camera.add,
            sensor_qos(1, reliable=False),
            once=True,
            purpose="rectified images, points and the camera infos of the maps",
        )
        self._images = self._subscribe(self.config)

    def _deactivate(self) -> None:
        """Unsubscribe, and wait for the frame in hand, which is dropped as all that wait are."""
        inputs = self._inputs()
        lidar = self._lidar
        self._images = None
        self._camera_info = None
        self._lidar = None
        for watched in inputs:
            watched.close()
        if lidar is not None:
            lidar.extrinsics.close()
        if self._worker is not None:
            wait([self._worker.call(lambda: None)], FINISH_S)

    def _free(self) -> None:
        """Forget the model, and give its memory back."""
        if self._worker is not None and not self._worker.stop(FINISH_S):
            self.health.drop("shutdown")
        self._worker = None
        self._predictor = None
        free_memory()

    def _inputs(self) -> tuple[WatchedInput, ...]:
        lidar = None if self._lidar is None else self._lidar.watched
        return tuple(item for item in (self._images, self._camera_info, lidar) if item is not None)

    def _subscribe(self, config: DepthNodeConfig) -> WatchedInput:
        message_type, topic = IMAGE_TOPICS[config.compressed_input]
        return WatchedInput(
            self, self.health, self._qos, message_type, topic, self._on_image, image_qos(config)
        )

    def _on_image(self, message: Image | CompressedImage) -> None:
        self.health.count("received")
        if self._worker is None:
            self.health.drop("deactivated")
        else:
            self._worker.put(message)

    def _process(self, message: Image | CompressedImage) -> None:
        try:
            self._predict(message)
        except MessageError as error:
            self._drop(error.reason, str(error))
        except Exception:  # e.g. out of memory: the next image may pass
            if self.context.ok():
                self._drop("failed", traceback.format_exc())
            else:
                self.health.drop("shutdown")

    def _predict(self, message: Image | CompressedImage) -> None:
        start_s = time.perf_counter()
        config = self.config
        predictor = self._active_predictor()
        self._check_age(message.header, config.max_frame_age)
        image, camera = self._camera.view(decode_image(message), config.distorted_images)
        lidar = self._lidar
        sparse_m = None if lidar is None else lidar.sparse_depth(message.header, camera, config)
        prediction, info = within_memory(
            predictor,
            lambda: self._predictions.predict(
                predictor, image, message.header, camera, config, sparse_m
            ),
        )
        self._active_predictor()
        self._predictions.publish(info, message.header)
        self._outputs.publish(prediction, message.header, camera)
        latency_ms = age_s(self, message.header) * 1e3
        processing_ms = (time.perf_counter() - start_s) * 1e3
        self._predictions.finished(info, processing_ms)
        self._outputs.publish_times(latency_ms, processing_ms)
        self.health.count("processed")
        self._unfamiliarity = prediction.unfamiliarity
        if prediction.unfamiliarity is not None and prediction.unfamiliarity > 1:
            self.health.count("unfamiliar")
        self.health.latency(latency_ms)
        half_widths = info.half_widths or predictor.half_widths
        self._publish_views(half_widths, prediction, image, message.header, camera)

    @staticmethod
    def _description(predictor: Predictor, config: DepthNodeConfig) -> dict[str, Any]:
        """Return what the evaluator must know of the model and of its input."""
        if predictor.sparse_input is None:
            return predictor.describe()
        withheld = {name: getattr(config, name) for name in ("held_out_fraction", "held_out_by")}
        return {**predictor.describe(), **withheld}

    def _active_predictor(self) -> Predictor:
        """Return the model; raise `MessageError` where the node was deactivated meanwhile."""
        if self._predictor is None or self._images is None:
            raise MessageError("deactivated", "the node was deactivated before its turn came")
        return self._predictor

    def _check_age(self, header: Header, max_age_s: float) -> None:
        age = age_s(self, header)
        if 0 < max_age_s < age:
            is_other_clock = age > CLOCK_MISSING_AGE_S
            hint = "; playing a bag needs use_sim_time and /clock" if is_other_clock else ""
            raise MessageError(
                "stale",
                f"an image was {age:.3f} s old, more than max_frame_age {max_age_s} s{hint}",
            )

    def _publish_views(
        self,
        half_widths: HalfWidths,
        prediction: DepthPrediction,
        image: NDArray[np.uint8],
        header: Header,
        camera: Camera | None,
    ) -> None:
        """Publish points and color images. The maps are out: a failure drops no frame."""
        try:
            half_width = half_widths.at(self.config.coverage)
            self._outputs.views.publish(prediction, header, camera, self.config, half_width, image)
        except Exception as error:
            self.health.count("views_failed")
            if self.context.ok():
                self.get_logger().warning(
                    f"points or color images failed: {error}", throttle_duration_sec=LOG_EVERY_S
                )

    def _drop(self, reason: str, sentence: str) -> None:
        self.health.drop(reason)
        self.get_logger().warning(
            f"dropped ({reason}): {sentence}", throttle_duration_sec=LOG_EVERY_S
        )

    def _prepare(self, old: DepthNodeConfig, new: DepthNodeConfig) -> Callable[[], None]:
        """Check a new config with the model, which is loaded again only for another method."""
        current = self._predictor
        worker = self._worker
        if current is None or worker is None:
            raise ConfigError("the node has no model")
        is_same_method = (new.method or current.model.method) == current.method
        predictor = current if is_same_method else load_or_free(new)
        predictor.check(new)
        has_new_input = any(getattr(old, name) != getattr(new, name) for name in INPUT_PARAMETERS)
        lidar = self._lidar
        extrinsics = None
        places = [(config.lidar_to_camera, config.fixed_frame) for config in (old, new)]
        if lidar is not None and places[0] != places[1]:
            extrinsics = create_extrinsics(self, new, False)

        def apply() -> None:
            before = predictor.config
            predictor.config = new
            previous = self._images
            try:
                if has_new_input and previous is not None:
                    self._images = self._subscribe(new)
                self._outputs.publish_model(self._description(predictor, new))
            except Exception:
                predictor.config = before
                self._replace_images(previous)
                raise
            if previous is not None and previous is not self._images:
                previous.close()
            if lidar is not None and extrinsics is not None:
                former = lidar.extrinsics
                lidar.extrinsics = extrinsics
                former.close()
            self._predictor = predictor
            worker.capacity = new.queue_size

        return apply

    def _replace_images(self, images: WatchedInput | None) -> None:
        """Go back to an earlier subscription."""
        if self._images is not None and self._images is not images:
            self._images.close()
        self._images = images

    def _awaited(self) -> tuple[str, ...]:
        return ("received",) if self.state == ACTIVE else ()

    def _facts(self) -> dict[str, object]:
        facts: dict[str, object] = {
            "state": self.state,
            "camera_info": self._camera.description(),
            "depth_subscribers": self._outputs.depth.get_subscription_count(),
            "uncertainty_subscribers": self._outputs.sigma.get_subscription_count(),
        }
        if self._worker is not None:
            facts["waiting"] = self._worker.waiting()
        if self._images is not None:
            facts["image_publishers"] = self.count_publishers(self._images.name)
            facts["image_stamp_age_s"] = f"{self._images.last_age_s:.3f}"
        if self._predictor is not None:
            facts["device"] = self._predictor.device
            facts["device_memory_mib"] = device_memory_mib()
            description = self._predictor.describe()
            facts |= {name: description[name] for name in DESCRIBED if name in description}
        if self._unfamiliarity is not None:
            facts["unfamiliarity"] = f"{self._unfamiliarity:.2f}"
        return facts | self._predictions.facts()

    def close(self) -> str:
        """Shut down: finish the current frame, drop the queue, return the counts of all frames."""
        if self._worker is not None and not self._worker.stop(FINISH_S):
            self.health.drop("shutdown")
        take_down(self.destroy_node)
        return ", ".join(f"{count} {name}" for name, count in self.health.counts().items())
