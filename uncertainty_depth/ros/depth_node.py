# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The depth node: camera images in, depth and its standard deviation out.

A callback only queues the newest image. One thread takes at most one image per camera at a time,
and decodes, rectifies, predicts and publishes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import wait
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from sensor_msgs.msg import CameraInfo, CompressedImage, Image

from uncertainty_depth.calibration.correction_in_force import FOLLOWED
from uncertainty_depth.config import DepthNodeConfig, PredictorConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.messages.decoding import stamp_ns
from uncertainty_depth.model_location import check_location, model_path
from uncertainty_depth.options import parameters_of
from uncertainty_depth.records import DepthPrediction, Observation, SampleRange
from uncertainty_depth.ros.batches import Batches, check_budget, device_memory_mib, free_memory
from uncertainty_depth.ros.camera_names import check_names
from uncertainty_depth.ros.diagnostics import (
    CALLBACK_FAILED,
    DiagnosticsPublisher,
    Health,
    fail,
    views_of_published_maps,
)
from uncertainty_depth.ros.extrinsics import close as close_extrinsics
from uncertainty_depth.ros.inputs import QUEUE, InputWatch, WatchedInput
from uncertainty_depth.ros.lidar_input import LidarInput
from uncertainty_depth.ros.messages import age_s, check_age
from uncertainty_depth.ros.node import (
    ACTIVE,
    ManagedNode,
    destroyed_on_failure,
    sub_node,
    take_down,
)
from uncertainty_depth.ros.node_camera import NodeCamera
from uncertainty_depth.ros.outputs import DerivedOutputs, MapOutputs
from uncertainty_depth.ros.predictions import Predictions
from uncertainty_depth.ros.worker import Worker

if TYPE_CHECKING:
    from uncertainty_depth.inference.predictor import Predictor

ImageMessage: TypeAlias = Image | CompressedImage
FINISH_S = 2.0
FEWEST_SAMPLES = 2  # of a budget; its module needs torch
DESCRIBED = ("method", "component", "samples", "precision", "calibration")
"""Values of the model's description that the diagnostics show."""
LOADED_WITH = (
    "model",
    *(item.name for item in parameters_of(PredictorConfig) if not item.metadata["live"]),
)
"""Parameters for which the model is loaded anew."""


class Arrival(NamedTuple):
    """An image that waits for its turn."""

    camera: Camera
    message: ImageMessage


def load_predictor(config: DepthNodeConfig) -> Predictor:
    """Load the model. torch is imported lazily so that bad parameters fail fast."""
    check_location(model_path(config.model))
    from uncertainty_depth.inference.predictor import Predictor

    return Predictor(config.model, config)


class DepthNode(ManagedNode[DepthNodeConfig]):
    """Publishes depth and sigma for every image of one camera, or of several in one batch.

    When configured, the node holds the model; when active, it subscribes.

    Attributes:
        cameras: one per namespace in the parameter `cameras`; if it is empty, one in the node's
            own namespace.
    """

    def __init__(self, **options: Any) -> None:
        """Create the publishers; with `autostart` load the model, then subscribe.

        In this order, the outputs' subscribers are connected before the first image.

        Args:
            options: keyword arguments of `rclpy.node.Node`.

        Raises:
            ConfigError: a parameter is missing or illegal.
            ModelError: the model cannot be used.
        """
        super().__init__("depth_node", DepthNodeConfig, **options)
        self._predictor: Predictor | None = None
        self._batches: Batches | None = None
        self._worker: Worker[Arrival] | None = None
        with destroyed_on_failure(self):
            names = check_names(self.config.cameras) or [""]
            self.cameras = tuple(Camera(self, name, index) for index, name in enumerate(names))
        self.autostart()

    def _configure(self) -> None:
        """Load the model and run it once.

        Raises:
            ConfigError: the parameter `model` is empty, or another does not go with the model.
            ModelError: the model cannot be used.
        """
        config = self.config
        if not config.model:
            raise ConfigError(
                "the parameter model is empty; expected a model folder, "
                "e.g. --ros-args -p model:=/path/to/model"
            )
        try:
            predictor = load_predictor(config)
        except Exception as error:
            error.__traceback__ = None  # it holds the half-loaded network
            free_memory()
            raise
        check_budget(predictor.method, config.frame_budget_ms)
        self._predictor = predictor
        self._batches = Batches(predictor)
        self._worker = Worker(self._predict, leave_early, sources=len(self.cameras))
        self._publish_model(config)
        self.get_logger().info(f"{predictor.method} on {predictor.device}, model {config.model}")

    def _reconfigure(self, old: DepthNodeConfig | None, new: DepthNodeConfig) -> None:
        if old is None or any(getattr(old, name) != getattr(new, name) for name in LOADED_WITH):
            super()._reconfigure(old, new)
        else:
            self._on_live_change(old, new)

    def _on_live_change(self, old: DepthNodeConfig, new: DepthNodeConfig) -> None:
        if self._predictor is None:
            raise ConfigError("no model is loaded; configure the node first")
        self._predictor.check(new)
        check_budget(self._predictor.method, new.frame_budget_ms)
        self._predictor.config = new
        self._publish_model(new)

    def _on_change(self, old: DepthNodeConfig, new: DepthNodeConfig) -> None:
        if old.cameras != new.cameras:
            raise ConfigError(
                f"cameras is fixed for the life of the node; expected {list(old.cameras)}, or the "
                "node to be started again"
            )
        super()._on_change(old, new)

    def _activate(self) -> None:
        """Subscribe to the images of every camera, and to the LiDAR if the model takes it."""
        predictor = self._predictor
        worker = self._worker
        if predictor is None or worker is None:
            raise ConfigError("no model is loaded; configure the node first")
        worker.capacity = self.config.queue_size
        lidar_range = None if predictor.sparse_input is None else predictor.depth_range
        for camera in self.cameras:
            camera.subscribe(worker, lidar_range)

    def _deactivate(self) -> None:
        """Unsubscribe, drop frames that are waiting or in progress, and wait for the thread."""
        for camera in self.cameras:
            camera.unsubscribe()
            camera.health.leave_all("deactivated")
        if self._worker is not None:
            wait([self._worker.call(lambda: None)], FINISH_S)

    def _free(self) -> None:
        """Unload the model and free its memory."""
        self._stop_worker()
        self._worker = None
        self._batches = None
        self._predictor = None
        free_memory()

    def _stop_worker(self) -> None:
        """End the worker's thread; a frame that it does not finish is dropped."""
        if self._worker is not None:
            self._worker.stop(FINISH_S)
        for camera in self.cameras:
            camera.health.leave_all("shutdown")

    def _predict(self, *arrivals: Arrival) -> None:
        """Predict one waiting image of each camera in one batch, and publish the maps."""
        start_s = time.perf_counter()
        predictor = self._predictor
        batches = self._batches
        if predictor is None or batches is None:
            return
        config = self.config
        batch = [
            (camera, message, observation)
            for camera, message in arrivals
            if (observation := camera.prepare(message)) is not None
        ]
        if not batch:
            return
        samples = batches.choose(config.frame_budget_ms, len(batch))
        results = batches.predict([observation for _, _, observation in batch], samples)
        views = []
        for (camera, message, observation), result in zip(batch, results, strict=True):
            if isinstance(result, Exception):
                camera.fail(message, result)
            elif camera.health.is_inside(message):
                made_by = (predictor, samples)
                views.append(camera.publish(message, observation, result, made_by, start_s))
        milliseconds = (time.perf_counter() - start_s) * 1e3
        if any(views):
            batches.finished(samples, len(batch), milliseconds)
        if 0 < config.frame_budget_ms < milliseconds and samples.count <= FEWEST_SAMPLES:
            for camera, *_ in batch:
                camera.health.count("over_budget")
        for publish_views in filter(None, views):  # only after all cameras' maps
            publish_views()

    def _publish_model(self, config: DepthNodeConfig) -> None:
        """Publish a description of the model and its input, for the evaluator."""
        predictor = self._predictor
        if predictor is None:
            return
        description = predictor.describe()
        if config.use_depth_scale:
            description["depth_scale"] = FOLLOWED
        if predictor.sparse_input is not None:
            description["held_out_fraction"] = config.held_out_fraction
        for camera in self.cameras:
            camera.maps.publish_model(description)

    def facts(self) -> dict[str, object]:
        """Return facts about model and device for the diagnostics."""
        predictor = self._predictor
        if predictor is None:
            return {}
        description = predictor.describe()
        return {
            "device": predictor.device,
            "frame_budget_ms": f"{self.config.frame_budget_ms:g}",
            "device_memory_mib": device_memory_mib(),
            **{name: description[name] for name in DESCRIBED if name in description},
        }

    def close(self) -> str:
        """Shut down: finish the current frames, drop the queues, return one line per camera."""
        self._stop_worker()
        take_down(self.destroy_node)
        return "\n".join(
            f"{camera.name}: {camera.health.summary()}" if camera.name else camera.health.summary()
            for camera in self.cameras
        )


class Camera:
    """One of the node's cameras: images in; maps, counts and diagnostics out.

    Callbacks only queue; `prepare` and `publish` are called on the worker's thread.

    Attributes:
        name: the namespace of its topics; empty: the node's own.
        health: counts the outcomes of its images.
        info: its camera info.
        maps: publishers of depth and sigma.
    """

    def __init__(self, node: DepthNode, name: str, index: int) -> None:
        self.name = name
        self.health = Health() if name else node.health
        self._index = index
        self._node = node
        self._scope = sub_node(node, name)
        self.info = NodeCamera(self._scope)
        self.maps = MapOutputs(self._scope)
        self._derived = DerivedOutputs(self._scope)
        self._predictions = Predictions(self._scope, self.health)
        self._inputs: list[WatchedInput] = []
        self._lidar: LidarInput | None = None
        self._watch = InputWatch(self._scope, lambda: tuple(self._inputs))
        parts = (node.get_namespace().strip("/"), name, node.get_name())
        self._diagnostics = DiagnosticsPublisher(
            self._scope,
            self.health,
            lambda: ("received",) if node.state == ACTIVE else (),
            self._facts,
            node.standing,
            lambda: [*self._watch.problems, *self._predictions.problems()],
            "/".join(filter(None, parts)),
        )

    def subscribe(self, worker: Worker[Arrival], lidar_range: tuple[float, ...] | None) -> None:
        """Subscribe to images and their camera info, and to the LiDAR if the model takes it.

        Args:
            worker: queues the images.
            lidar_range: min and max depth of a model that takes the LiDAR, metres; None for none.
        """
        node = self._scope
        health = self.health
        config = self._node.config
        if lidar_range is not None:
            self._lidar = LidarInput(node, health, config, lidar_range)
            self._inputs.append(self._lidar.watched)
        purpose = "rectified images, points and the camera infos of the maps"
        self._inputs.append(
            WatchedInput(
                node, health, CameraInfo, "camera_info", self.info.add, once=True, purpose=purpose
            )
        )

        def receive(message: ImageMessage) -> None:
            health.enter(message)
            worker.put(Arrival(self, message), self._index)

        message_type = CompressedImage if config.compressed_input else Image
        topic = "image/compressed" if config.compressed_input else "image"
        depth = max(QUEUE, config.queue_size)
        self._inputs.append(WatchedInput(node, health, message_type, topic, receive, depth))

    def unsubscribe(self) -> None:
        """End all subscriptions."""
        inputs = self._inputs
        lidar = self._lidar
        self._inputs = []
        self._lidar = None
        for watched in inputs:
            watched.close()
        if lidar is not None:
            close_extrinsics(lidar.extrinsics)

    def fail(self, message: ImageMessage, error: Exception) -> None:
        """Count and log an image that failed."""
        fail(self._scope, self.health, message, error)

    def prepare(self, message: ImageMessage) -> Observation | None:
        """Return an image decoded and rectified; None if it cannot be used, which is counted."""
        if not self.health.is_inside(message):  # the node was deactivated meanwhile
            return None
        config = self._node.config
        lidar = self._lidar
        header = message.header
        try:
            check_age(self._node, header, config.max_frame_age)
            image, camera = self.info.view(message, config.max_pixels, config.distorted_images)
            sparse_m = None if lidar is None else lidar.sparse_depth(header, camera, config)
        except Exception as error:
            self.fail(message, error)
            return None
        return Observation(image, stamp_ns(header), camera, sparse_m)

    def publish(
        self,
        message: ImageMessage,
        observation: Observation,
        prediction: DepthPrediction,
        made_by: tuple[Predictor, SampleRange],
        start_s: float,
    ) -> Callable[[], None] | None:
        """Publish an image's maps; return a function to publish their views, or None on failure.

        Args:
            message: the image.
            observation: the model's input.
            prediction: the model's own maps.
            made_by: the model, and the samples that were used.
            start_s: start of the image's processing, by `time.perf_counter`.
        """
        health = self.health
        config = self._node.config
        header = message.header
        camera = observation.camera
        try:
            predictor, samples = made_by
            corrected, info = self._predictions.correct(
                prediction,
                observation.stamp_ns,
                predictor.sigma_name,
                config,
                samples,
                predictor.passes,
                config.widen_unfamiliar,
            )
            self._predictions.publish(info, header)
            self.maps.publish(corrected, header, camera)
        except Exception as error:
            self.fail(message, error)
            return None
        health.leave(message)
        health.duration("latency", age_s(self._node, header) * 1e3)
        health.duration("processing", (time.perf_counter() - start_s) * 1e3)
        if info.unfamiliarity is not None and info.unfamiliarity > 1:
            health.count("unfamiliar")
        half_width = (info.half_widths or predictor.half_widths).at(config.coverage)

        def publish_views() -> None:
            with views_of_published_maps(self._scope, health):
                self._derived.publish(
                    corrected, header, camera, config, half_width, observation.image
                )

        return publish_views

    def _facts(self) -> dict[str, object]:
        facts: dict[str, object] = {
            "state": self._node.state,
            "camera_info": self.info.description(),
            **self.maps.facts(),
        }
        if self._inputs:
            images = self._inputs[-1]
            facts["image_publishers"] = self._scope.count_publishers(images.name)
            facts["image_stamp_age_s"] = f"{images.last_age_s:.3f}"
        failed = self._node.health.counts().get(CALLBACK_FAILED)
        if failed is not None:
            facts[CALLBACK_FAILED] = failed
        return facts | self._node.facts() | self._predictions.facts()


def leave_early(arrival: Arrival, reason: str) -> None:
    """Count an image that the worker drops."""
    arrival.camera.health.leave(arrival.message, f"dropped.{reason}")
