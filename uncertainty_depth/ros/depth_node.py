# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The depth node: a camera's images in, depth and its standard deviation out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sensor_msgs.msg import CameraInfo, CompressedImage, Image

from uncertainty_depth.core.config.nodes import DepthNodeConfig
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.device_errors import device_memory_bytes, free_memory
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.core.model_location import check_location, model_path
from uncertainty_depth.core.options import parameters_of
from uncertainty_depth.ros.diagnostics import MIB
from uncertainty_depth.ros.inputs import WatchedInput
from uncertainty_depth.ros.live_camera import ImageMessage
from uncertainty_depth.ros.measurement_inputs import measurement_sources, parse_live
from uncertainty_depth.ros.messages import PredictionInfo, check_age
from uncertainty_depth.ros.predicting_node import Images, PredictingNode
from uncertainty_depth.sigma.measurement_option import check_one_scale
from uncertainty_depth.sigma.online.correction import FOLLOWED

if TYPE_CHECKING:
    from uncertainty_depth.depth.predictor import Predictor
    from uncertainty_depth.depth.sample_budget import SampleBudget

CAMERA_INFO = "camera_info"
FEWEST_SAMPLES = 2  # of a budget; its module needs torch
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


class DepthNode(PredictingNode[DepthNodeConfig]):
    """Publishes depth and sigma for every image of a camera.

    When configured, the node holds the model; when active, it subscribes.
    """

    def __init__(self, **options: Any) -> None:
        """Create the publishers; with `autostart` load the model, then subscribe.

        In this order, the outputs' subscribers are connected before the first image.
        """
        super().__init__(
            "depth_node", "depth", DepthNodeConfig, CAMERA_INFO, is_own_depth=True, **options
        )
        self._images: WatchedInput | None = None
        self._predictor: Predictor | None = None
        self._budget: SampleBudget | None = None
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
        """Subscribe to camera infos, images, and what measures beside them."""
        config = self.config
        self._camera.configure(config.distorted_images)
        predictor, _ = self._loaded()
        sources = measurement_sources(
            self.inputs, config, predictor.measurements, predictor.depth_range, self._camera
        )
        self._sources = tuple(sources)
        self.inputs.subscribe(
            CameraInfo,
            CAMERA_INFO,
            self._camera.add,
            once=True,
            purpose="rectified images, points and the camera infos of the maps",
        )
        message_type = CompressedImage if config.compressed_input else Image
        topic = "image/compressed" if config.compressed_input else "image"
        self._images = self.inputs.subscribe(message_type, topic, self._on_image)

    def _on_image(self, message: ImageMessage) -> None:
        self.health.enter(message)
        self._worker.put(Images(message, (message,)))

    def _predict(self, images: Images, start_s: float) -> None:
        (message,) = images.sides
        config = self.config
        predictor, budget = self._loaded()
        check_age(self, message.header, config.max_frame_age)
        frame = self._camera.frame(message, config.max_pixels)
        header = self._camera.header(message)
        frame = self._measured(frame, header)
        samples = budget.choose(config.frame_budget_ms, predictor.passes)
        frame = replace(frame, prediction=predictor.predict_frame(frame, samples))
        made = PredictionInfo(predictor.sigma_name, samples, predictor.passes)
        milliseconds = self._predictions.publish(
            message, header, frame, made, predictor.half_widths, start_s
        )
        if milliseconds is None:
            return
        budget.add(samples.count, milliseconds)
        if 0 < config.frame_budget_ms < milliseconds and samples.count <= FEWEST_SAMPLES:
            self.health.count("over_budget")

    def _deactivate(self) -> None:
        self._images = None
        super()._deactivate()

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
        if predictor.measurements.lidar:
            description["held_out_fraction"] = config.held_out_fraction
        self._predictions.publish_model(description)

    def _expected_counters(self) -> tuple[str, ...]:
        return ("received",)

    def _diagnostic_values(self) -> dict[str, object]:
        values: dict[str, object] = {"camera_info": self._camera.description()}
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


def check_live(config: DepthNodeConfig) -> None:
    """Raise `ConfigError` for measurements that no robot has, or beside a followed scale."""
    check_one_scale(config.measurements, use_depth_scale=config.use_depth_scale)
    parse_live(config.measurements)
