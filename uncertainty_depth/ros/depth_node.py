"""The depth node: camera images in, depth and uncertainty out."""

from __future__ import annotations

import gc
import sys
import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from rclpy.context import Context
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import CameraInfo, CompressedImage, Image
from std_msgs.msg import Header

from uncertainty_depth.config import DepthNodeConfig
from uncertainty_depth.errors import ConfigError, MessageError
from uncertainty_depth.messages.images import decode_image, to_rgb
from uncertainty_depth.model_location import check_location
from uncertainty_depth.ros.depth_outputs import DepthOutputs
from uncertainty_depth.ros.diagnostics import DiagnosticsPublisher, Health
from uncertainty_depth.ros.input_watch import InputWatch
from uncertainty_depth.ros.messages import age_s, stamp_ns
from uncertainty_depth.ros.node_camera import NodeCamera
from uncertainty_depth.ros.parameters import NodeParameters
from uncertainty_depth.ros.qos import SubscriptionQos, sensor_qos
from uncertainty_depth.ros.teardown import take_down
from uncertainty_depth.ros.watched_input import WatchedInput
from uncertainty_depth.ros.worker import Worker
from uncertainty_depth.shipped_model import model_path

if TYPE_CHECKING:
    from uncertainty_depth.geometry.camera import Camera
    from uncertainty_depth.inference.predictor import Predictor
    from uncertainty_depth.records import DepthPrediction

LOG_EVERY_S = 5.0
FINISH_S = 2.0
DDS_DEPTH = 10
"""What the middleware keeps at least: bursts come whole, and the worker counts those it cannot keep."""
INPUTS = {False: (Image, "image"), True: (CompressedImage, "image/compressed")}


def image_qos(config: DepthNodeConfig) -> QoSProfile:
    """What the camera images are subscribed with."""
    return sensor_qos(max(DDS_DEPTH, config.queue_size), config.reliable_input)


def load_predictor(config: DepthNodeConfig) -> Predictor:
    """The model, ready. torch is imported only here: a wrong parameter is said at once, and a missing torch in one sentence."""
    check_location(model_path(config.model))
    from uncertainty_depth.inference.predictor import Predictor

    return Predictor(config.model, config)


def reload_predictor(config: DepthNodeConfig) -> Predictor:
    """A second model beside the one in use; where it does not fit, its memory is given back."""
    try:
        return load_predictor(config)
    except Exception as error:
        error.__traceback__ = None  # it holds the half-loaded network
        gc.collect()
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_available():
            torch.cuda.empty_cache()
        raise


class DepthNode(Node):
    """Callbacks only keep the newest frames; one worker thread decodes, infers and publishes, so the executor stays free."""

    def __init__(self, **options: object) -> None:
        """Start publishing, load the model, and only then subscribe: the outputs are connected before the first frame.

        Raises:
            ConfigError: for a parameter that is missing or illegal.
            ModelError: when the model cannot be used.
        """
        super().__init__("depth_node", **options)
        self._options = NodeParameters(self, DepthNodeConfig, self._prepare)
        if not self.config.model:
            raise ConfigError(
                "the parameter model is empty; expected a model folder, e.g. --ros-args -p model:=/path/to/model"
            )
        self.health = Health()
        self._camera = NodeCamera(self)
        self._outputs, self._qos = DepthOutputs(self), SubscriptionQos(self)
        self._predictor = load_predictor(self.config)
        to_rgb()  # before the first image: a cv_bridge is tried in a process of its own
        self._worker = Worker(
            self._process, lambda _, reason: self.health.drop(reason), self.config.queue_size
        )
        self._diagnostics = DiagnosticsPublisher(
            self, self.health, lambda: ("received",), self._facts
        )
        self._camera_info = WatchedInput(
            self,
            self.health,
            self._qos,
            CameraInfo,
            "camera_info",
            self._camera.add,
            sensor_qos(1, False),
            once=True,
            purpose="rectified images, points and the camera infos of the maps",
        )
        self._qos.declare([topic for _, topic in INPUTS.values()], image_qos(self.config))
        self._subscribe(self.config)
        self._watch = InputWatch(self, lambda: (self._images, self._camera_info))
        self._outputs.publish_model(self._predictor.describe())
        self.get_logger().info(
            f"{self._predictor.method} on {self._predictor.device}, model {self.config.model}"
        )

    @property
    def config(self) -> DepthNodeConfig:
        """The parameters of now."""
        return self._options.config

    @staticmethod
    def create_executor(context: Context | None = None) -> Executor:
        """The executor such a node is made for."""
        return SingleThreadedExecutor(context=context)

    def _subscribe(self, config: DepthNodeConfig) -> None:
        message_type, topic = INPUTS[config.compressed_input]
        self._images = WatchedInput(
            self, self.health, self._qos, message_type, topic, self._on_image, image_qos(config)
        )

    def _on_image(self, message: Image | CompressedImage) -> None:
        self.health.count("received")
        self._worker.put(message)

    def _process(self, message: Image | CompressedImage) -> None:
        try:
            self._predict(message)
        except MessageError as error:
            self._drop(error.reason, str(error))
        except Exception:  # out of memory, say: the next frame may pass
            if self.context.ok():
                self._drop("failed", traceback.format_exc())
            else:
                self.health.drop("shutdown")

    def _predict(self, message: Image | CompressedImage) -> None:
        start, config = time.perf_counter(), self.config
        age = age_s(self, message.header)
        if 0 < config.max_frame_age < age:
            hint = "; playing a bag needs use_sim_time and /clock" if age > 3600 else ""
            raise MessageError(
                "stale",
                f"an image was {age:.3f} s old, more than max_frame_age {config.max_frame_age} s{hint}",
            )
        image, camera = self._camera.view(decode_image(message), config.distorted_images)
        prediction = self._predictor.predict(image, stamp_ns(message.header))
        self._outputs.publish(prediction, message.header, camera)
        latency_ms = age_s(self, message.header) * 1e3
        self._outputs.publish_times(latency_ms, (time.perf_counter() - start) * 1e3)
        self.health.count("processed")
        self.health.latency(latency_ms)
        self._publish_views(prediction, image, message.header, camera)

    def _publish_views(
        self,
        prediction: DepthPrediction,
        image: NDArray[np.uint8],
        header: Header,
        camera: Camera | None,
    ) -> None:
        """Points and colour images: the maps are out, so that no failure here drops their frame."""
        try:
            self._outputs.publish_views(prediction, image, header, camera, self.config)
        except Exception as error:
            self.health.count("views_failed")
            if self.context.ok():
                self.get_logger().warning(
                    f"points or colour images failed: {error}", throttle_duration_sec=LOG_EVERY_S
                )

    def _drop(self, reason: str, sentence: str) -> None:
        self.health.drop(reason)
        self.get_logger().warning(
            f"dropped ({reason}): {sentence}", throttle_duration_sec=LOG_EVERY_S
        )

    def _prepare(self, old: DepthNodeConfig, new: DepthNodeConfig) -> Callable[[], None]:
        """Check the new config with the model, which is loaded anew only for another method."""
        predictor = self._predictor if new.method == old.method else reload_predictor(new)
        predictor.check(new)
        names = ("queue_size", "reliable_input", "compressed_input")
        input_changed = any(getattr(old, name) != getattr(new, name) for name in names)

        def apply() -> None:
            if input_changed:
                previous = self._images
                self._subscribe(new)
                previous.close()
            predictor.config = new
            self._predictor = predictor
            self._worker.capacity = new.queue_size
            self._outputs.publish_model(predictor.describe())

        return apply

    def _facts(self) -> dict[str, object]:
        return {
            "waiting": self._worker.waiting(),
            "method": self._predictor.method,
            "device": self._predictor.device,
            "samples": self.config.samples,
            "camera_info": self._camera.info is not None,
            "image_publishers": self.count_publishers(self._images.name),
            "depth_subscribers": self._outputs.depth.get_subscription_count(),
            "uncertainty_subscribers": self._outputs.sigma.get_subscription_count(),
        }

    def close(self) -> str:
        """Finish the frame in hand, if that is soon, and go; returns the counts of all frames."""
        if not self._worker.stop(FINISH_S):
            self.health.drop("shutdown")
        take_down(self.destroy_node)
        return ", ".join(f"{count} {name}" for name, count in self.health.counts().items())
