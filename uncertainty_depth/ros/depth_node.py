# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The depth node: a camera's images in, depth and its standard deviation out.

A callback only queues the newest image. One thread takes it through `DepthNode._predict`, to its
maps; another publishes what is derived from them meanwhile.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from sensor_msgs.msg import CameraInfo, CompressedImage, Image

from uncertainty_depth.core.config.nodes import DepthNodeConfig
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.device_errors import DeviceLostError, device_memory_bytes, free_memory
from uncertainty_depth.core.errors import ConfigError, MessageError
from uncertainty_depth.core.model_location import check_location, model_path
from uncertainty_depth.core.options import parameters_of
from uncertainty_depth.ros.diagnostics import MIB, DiagnosticsPublisher, fail
from uncertainty_depth.ros.inputs import Inputs, WatchedInput
from uncertainty_depth.ros.live_camera import ImageMessage, LiveCamera
from uncertainty_depth.ros.measurement_inputs import (
    MeasurementSource,
    measurement_sources,
    parse_live,
)
from uncertainty_depth.ros.messages import check_age
from uncertainty_depth.ros.node import ACTIVE, ManagedNode, take_down
from uncertainty_depth.ros.prediction_publisher import PredictionPublisher, PredictionSource
from uncertainty_depth.ros.worker import Worker
from uncertainty_depth.sigma.online.correction_filter import FOLLOWED
from uncertainty_depth.sigma.sparse_depth import check_one_scale

if TYPE_CHECKING:
    from uncertainty_depth.depth.predictor import Predictor
    from uncertainty_depth.depth.sample_budget import SampleBudget

CAMERA_INFO = "camera_info"
FINISH_S = 2.0
FEWEST_SAMPLES = 2  # of a budget; its module needs torch
OUT_OF_MEMORY = "out_of_memory"
DESCRIBED = ("device", "method", "samples", "precision", "calibration")
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
    """Publishes depth and sigma for every image of a camera.

    When configured, the node holds the model; when active, it subscribes.
    """

    def __init__(self, **options: Any) -> None:
        """Create the publishers; with `autostart` load the model, then subscribe.

        In this order, the outputs' subscribers are connected before the first image.
        """
        super().__init__("depth_node", DepthNodeConfig, **options)
        topic = self.resolve_topic_name(CAMERA_INFO)
        is_published = partial(self.is_published, topic, CameraInfo)
        self._camera = LiveCamera(topic, is_published, self.health, self.get_logger().info)
        self._predictions = PredictionPublisher(self, self.health)
        self._inputs = Inputs(self, self.health)
        self._images: WatchedInput | None = None
        self._sources: tuple[MeasurementSource, ...] = ()
        self._predictor: Predictor | None = None
        self._budget: SampleBudget | None = None
        self._worker: Worker[ImageMessage] = Worker(
            self._predict,
            lambda message, reason: self.health.leave(message, f"dropped.{reason}"),
        )
        self._diagnostics = DiagnosticsPublisher(self, self, "depth")
        self.autostart()

    def _configure(self) -> None:
        """Load the model and run it once."""
        config = self.config
        if not config.model:
            raise ConfigError(
                "the parameter model is empty; expected a model folder, "
                "e.g. --ros-args -p model:=/path/to/model"
            )
        check_live(config)
        try:
            predictor = load_predictor(config)
        except Exception as error:
            error.__traceback__ = None  # it holds the half-loaded network
            free_memory()
            raise
        from uncertainty_depth.depth.sample_budget import SampleBudget

        self._predictor = predictor
        self._budget = SampleBudget()
        self._publish_model(config)
        self.get_logger().info(f"{predictor.method} on {predictor.device}, model {config.model}")
        if config.device == "auto" and config.engine == "torch" and str(predictor.device) == "cpu":
            self.get_logger().warning(
                "device is auto, and torch finds no CUDA device: the network runs on the CPU; set "
                "device to cpu if that is meant, else install torch for CUDA and its driver"
            )

    def _activate(self) -> None:
        """Subscribe to camera infos, images, and what the model takes beside them."""
        config = self.config
        self._camera.configure(config.distorted_images)
        predictor, _ = self._loaded()
        measuring = predictor.measurements._replace(sparse=predictor.sparse_input)
        sources = measurement_sources(
            self, self.health, self._inputs, config, measuring, predictor.depth_range, self._camera
        )
        self._sources = tuple(sources)
        self._inputs.subscribe(
            CameraInfo,
            CAMERA_INFO,
            self._camera.add,
            once=True,
            purpose="rectified images, points and the camera infos of the maps",
        )
        message_type = CompressedImage if config.compressed_input else Image
        topic = "image/compressed" if config.compressed_input else "image"
        self._images = self._inputs.subscribe(message_type, topic, self._on_image)

    def _on_image(self, message: ImageMessage) -> None:
        self.health.enter(message)
        self._worker.put(message)

    def _predict(self, message: ImageMessage) -> None:
        """Take one image to its published maps; on the worker's thread."""
        start_s = time.perf_counter()
        if not self.health.is_inside(message):  # the node was deactivated meanwhile
            return
        config = self.config
        try:
            predictor, budget = self._loaded()
            check_age(self, message.header, config.max_frame_age)
            frame = self._camera.frame(message, config.max_pixels)
            header = self._camera.header(message)
            for source in self._sources:
                frame = source.add_to(frame, header)
            samples = budget.choose(config.frame_budget_ms, predictor.passes)
            origin = PredictionSource(
                predictor.sigma_name,
                predictor.half_widths,
                samples,
                predictor.passes,
                frame.measurements,
            )
            prediction = predictor.predict_frame(frame, samples)
            if not self.health.is_inside(message):
                return
            milliseconds = self._predictions.publish(
                message, header, prediction, frame.camera, origin, config, start_s,
                frame.image,
            )  # fmt: skip
        except DeviceLostError as error:
            self.health.leave(message, "dropped.failed")
            self.end_with(error)
            return
        except Exception as error:  # one frame is lost: the next may pass
            fail(self, self.health, message, error)
            if isinstance(error, MessageError) and error.reason == OUT_OF_MEMORY:
                error.__traceback__ = None  # it holds the tensors
                free_memory()
            return
        budget.add(samples.count, milliseconds)
        if 0 < config.frame_budget_ms < milliseconds and samples.count <= FEWEST_SAMPLES:
            self.health.count("over_budget")

    def _deactivate(self) -> None:
        """Unsubscribe, drop frames that are waiting or in progress, and wait for the thread."""
        self._inputs.close()
        self._images = None
        self.health.leave_all("deactivated")
        self._worker.wait(FINISH_S)
        self._predictions.wait(FINISH_S)
        for source in self._sources:
            source.close()
        self._sources = ()

    def _free(self) -> None:
        """Unload the model and free its memory."""
        self._predictor = None
        self._budget = None
        free_memory()

    def _reconfigure(self, old: DepthNodeConfig | None, new: DepthNodeConfig) -> None:
        # a model takes long to load: only for the parameters that it is loaded with
        if old is None or any(getattr(old, name) != getattr(new, name) for name in LOADED_WITH):
            super()._reconfigure(old, new)
        else:
            self._on_live_change(old, new)

    def _on_live_change(self, old: DepthNodeConfig, new: DepthNodeConfig) -> None:
        check_live(new)
        predictor, _ = self._loaded()
        predictor.config = new
        self._publish_model(new)

    def _loaded(self) -> tuple[Predictor, SampleBudget]:
        """Return the model; raise `ConfigError` if the node is not configured."""
        if self._predictor is None or self._budget is None:
            raise ConfigError("no model is loaded; configure the node first")
        return self._predictor, self._budget

    def _publish_model(self, config: DepthNodeConfig) -> None:
        """Publish a description of the model and its input, for the evaluator."""
        predictor, _ = self._loaded()
        description = predictor.describe()
        if config.use_depth_scale:
            description["depth_scale"] = FOLLOWED
        if predictor.sparse_input is not None:
            description["held_out_fraction"] = config.held_out_fraction
        self._predictions.publish_model(description)

    def expected_counters(self) -> tuple[str, ...]:
        """Return the counters that should keep growing."""
        return ("received",) if self.state == ACTIVE else ()

    def problems(self) -> list[str]:
        """Return sentences on what is wrong with inputs and correction."""
        return [*self._inputs.problems, *self._predictions.problems()]

    def diagnostic_values(self) -> dict[str, object]:
        """Return facts about camera, model and device for the diagnostics."""
        values: dict[str, object] = {
            "state": self.state,
            "camera_info": self._camera.description(),
        }
        if (images := self._images) is not None:
            values["image_publishers"] = self.count_publishers(images.name)
            values["image_stamp_age_s"] = f"{images.last_age_s:.3f}"
        if (predictor := self._predictor) is not None:
            description = predictor.describe()
            values |= {
                "frame_budget_ms": f"{self.config.frame_budget_ms:g}",
                "device_memory_mib": device_memory_bytes() // MIB,
                **{name: description[name] for name in DESCRIBED if name in description},
            }
        return values | self._predictions.diagnostic_values()

    def close(self) -> str:
        """Shut down: finish the frame in work, drop the one that waits, return a summary line."""
        self._worker.stop(FINISH_S)
        self._predictions.stop(FINISH_S)
        self.health.leave_all("shutdown")
        take_down(self.destroy_node)
        return self.health.summary()


def check_live(config: DepthNodeConfig) -> None:
    """Raise `ConfigError` for measurements that no robot has, or beside a followed scale."""
    check_one_scale(config.measurements, use_depth_scale=config.use_depth_scale)
    parse_live(config.measurements)
