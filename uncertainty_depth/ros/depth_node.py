# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The depth node: camera images in, depth and its standard deviation out.

A callback only queues the newest image. One thread takes at most one image per camera at a time,
and decodes, rectifies, predicts and publishes.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from uncertainty_depth.core.config import PredictorConfig
from uncertainty_depth.core.device_errors import (
    DeviceLostError,
    device_memory_bytes,
    free_memory,
)
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.model_location import check_location, model_path
from uncertainty_depth.core.node_config import DepthNodeConfig
from uncertainty_depth.core.options import parameters_of
from uncertainty_depth.ros.batches import Batches
from uncertainty_depth.ros.camera_names import check_names
from uncertainty_depth.ros.depth_camera import Arrival, DepthCamera
from uncertainty_depth.ros.node import (
    ManagedNode,
    destroyed_on_failure,
    take_down,
)
from uncertainty_depth.ros.predictions import Origin
from uncertainty_depth.ros.process_resources import MIB
from uncertainty_depth.ros.worker import Worker
from uncertainty_depth.sigma.online.correction_in_force import FOLLOWED
from uncertainty_depth.sigma.sparse_depth import parse_measurements

if TYPE_CHECKING:
    from uncertainty_depth.depth.predictor import Predictor

FINISH_S = 2.0
FEWEST_SAMPLES = 2  # of a budget; its module needs torch
DESCRIBED = ("method", "samples", "precision", "calibration")
"""Values of the model's description that the diagnostics show."""
LOADED_WITH = (
    "model",
    *(item.name for item in parameters_of(PredictorConfig) if not item.metadata["live"]),
)
"""Parameters for which the model is loaded anew."""


def load_predictor(config: DepthNodeConfig) -> Predictor:
    """Load the model. torch is imported lazily so that bad parameters fail fast."""
    check_location(model_path(config.model))
    from uncertainty_depth.depth.predictor import Predictor

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
        self._batches: Batches | None = None
        self._worker: Worker[Arrival] = Worker(
            self._predict,
            lambda arrival, reason: arrival.camera.health.leave(
                arrival.message, f"dropped.{reason}"
            ),
        )
        with destroyed_on_failure(self):
            names = enumerate(check_names(self.config.cameras) or [""])
            self.cameras = tuple(
                DepthCamera(self, name, index, self.facts) for index, name in names
            )
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
        if parse_measurements(config.measurements).motion:
            raise ConfigError(
                f"measurements is {config.measurements!r}, but the node reads no odometry yet; "
                "expected lidar, or `uncertainty-depth evaluate` for motion"
            )
        try:
            predictor = load_predictor(config)
        except Exception as error:
            error.__traceback__ = None  # it holds the half-loaded network
            free_memory()
            raise
        self._batches = Batches(predictor)
        self._publish_model(config)
        self.get_logger().info(f"{predictor.method} on {predictor.device}, model {config.model}")

    def _reconfigure(self, old: DepthNodeConfig | None, new: DepthNodeConfig) -> None:
        if old is None or any(getattr(old, name) != getattr(new, name) for name in LOADED_WITH):
            super()._reconfigure(old, new)
        else:
            self._on_live_change(old, new)

    def _on_live_change(self, old: DepthNodeConfig, new: DepthNodeConfig) -> None:
        predictor = self._loaded().predictor
        predictor.config = new
        self._publish_model(new)

    def _loaded(self) -> Batches:
        """Return the model; raise `ConfigError` if the node is not configured."""
        if self._batches is None:
            raise ConfigError("no model is loaded; configure the node first")
        return self._batches

    def _on_change(self, old: DepthNodeConfig, new: DepthNodeConfig) -> None:
        if old.cameras != new.cameras:
            raise ConfigError(
                f"cameras is fixed for the life of the node; expected {list(old.cameras)}, or the "
                "node to be started again"
            )
        super()._on_change(old, new)

    def _activate(self) -> None:
        """Subscribe to the images of every camera, and to the LiDAR if the model takes it."""
        predictor = self._loaded().predictor
        lidar_range = None if predictor.sparse_input is None else predictor.depth_range
        for camera in self.cameras:
            camera.subscribe(self._worker, lidar_range)

    def _deactivate(self) -> None:
        """Unsubscribe, drop frames that are waiting or in progress, and wait for the thread."""
        for camera in self.cameras:
            camera.unsubscribe()
            camera.health.leave_all("deactivated")
        self._worker.wait(FINISH_S)

    def _free(self) -> None:
        """Unload the model and free its memory."""
        self._batches = None
        free_memory()

    def _predict(self, *arrivals: Arrival) -> None:
        """Predict one waiting image of each camera in one batch, and publish the maps."""
        start_s = time.perf_counter()
        config = self.config
        batch = [
            (camera, message, frame)
            for camera, message in arrivals
            if (frame := camera.prepare(message)) is not None
        ]
        if not batch:
            return
        batches = self._loaded()
        predictor = batches.predictor
        samples = batches.choose(config.frame_budget_ms, len(batch))
        origin = Origin(predictor.sigma_name, predictor.half_widths, samples, predictor.passes)
        try:
            results = batches.predict([frame for _, _, frame in batch], samples)
        except DeviceLostError as error:
            for camera, message, _ in batch:
                camera.health.leave(message, "dropped.failed")
            self.end_with(error)
            return
        views = []
        for (camera, message, frame), result in zip(batch, results, strict=True):
            if isinstance(result, Exception):
                camera.fail(message, result)
            elif camera.health.is_inside(message):
                try:
                    views.append(
                        camera.predictions.publish(
                            message, message.header, result, frame.camera, origin, config,
                            start_s, frame.image,
                        )
                    )  # fmt: skip
                except Exception as error:
                    camera.fail(message, error)
        milliseconds = (time.perf_counter() - start_s) * 1e3
        if views:
            batches.finished(samples, len(batch), milliseconds)
        if 0 < config.frame_budget_ms < milliseconds and samples.count <= FEWEST_SAMPLES:
            for camera, *_ in batch:
                camera.health.count("over_budget")
        for publish_views in views:  # only after all cameras' maps
            publish_views()

    def _publish_model(self, config: DepthNodeConfig) -> None:
        """Publish a description of the model and its input, for the evaluator."""
        predictor = self._loaded().predictor
        description = predictor.describe()
        if config.use_depth_scale:
            description["depth_scale"] = FOLLOWED
        if predictor.sparse_input is not None:
            description["held_out_fraction"] = config.held_out_fraction
        for camera in self.cameras:
            camera.predictions.publish_model(description)

    def facts(self) -> dict[str, object]:
        """Return facts about model and device for the diagnostics."""
        if self._batches is None:
            return {}
        predictor = self._batches.predictor
        description = predictor.describe()
        return {
            "device": predictor.device,
            "frame_budget_ms": f"{self.config.frame_budget_ms:g}",
            "device_memory_mib": device_memory_bytes() // MIB,
            **{name: description[name] for name in DESCRIBED if name in description},
        }

    def close(self) -> str:
        """Shut down: finish the frames in work, drop all others, return one line per camera."""
        self._worker.stop(FINISH_S)
        for camera in self.cameras:
            camera.health.leave_all("shutdown")
        take_down(self.destroy_node)
        return "\n".join(
            f"{camera.name}: {camera.health.summary()}" if camera.name else camera.health.summary()
            for camera in self.cameras
        )
