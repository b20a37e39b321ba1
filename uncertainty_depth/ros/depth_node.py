# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The depth node: camera images in, depth and its standard deviation out."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import wait
from functools import partial
from typing import TYPE_CHECKING, Any

from rclpy.context import Context
from rclpy.executors import Executor, SingleThreadedExecutor

from uncertainty_depth.config import DepthNodeConfig
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.messages.images import to_rgb
from uncertainty_depth.model_location import check_location, model_path
from uncertainty_depth.process_resources import MIB
from uncertainty_depth.ros.batches import Batches, check_budget
from uncertainty_depth.ros.camera_frame import CameraFrame, deactivated
from uncertainty_depth.ros.camera_names import check_names
from uncertainty_depth.ros.camera_pipeline import CameraPipeline
from uncertainty_depth.ros.managed_node import ManagedNode
from uncertainty_depth.ros.teardown import destroyed_on_failure, take_down
from uncertainty_depth.ros.within_memory import free_memory
from uncertainty_depth.ros.worker import Worker

if TYPE_CHECKING:
    from uncertainty_depth.inference.predictor import Predictor

FINISH_S = 2.0
FEWEST_SAMPLES = 2  # of a budget; its module needs torch
DESCRIBED = ("method", "component", "samples", "precision", "calibration")
"""Values of the model's description that the diagnostics show."""


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
    reserved = map(torch.cuda.memory_reserved, range(torch.cuda.device_count()))
    return sum(reserved) // MIB


def description_of(predictor: Predictor, config: DepthNodeConfig) -> dict[str, Any]:
    """Return the description of the model and its input for the evaluator."""
    if predictor.sparse_input is None:
        return predictor.describe()
    withheld = {name: getattr(config, name) for name in ("held_out_fraction", "held_out_by")}
    return {**predictor.describe(), **withheld}


class DepthNode(ManagedNode[DepthNodeConfig]):
    """Publishes depth and sigma of every image of one camera, or of several in one batch.

    Callbacks only queue the newest images. One worker thread takes at most one image of each
    camera, whatever waits, predicts them together and publishes, so that the executor stays free.
    Configured, the node holds the model; active, it subscribes.

    Attributes:
        cameras: in the namespaces that the parameter `cameras` names; one, in the node's own,
            where it is empty.
    """

    fixed_while_active = frozenset(
        {
            "compressed_input",
            "fixed_frame",
            "lidar_to_camera",
            "method",
            "queue_size",
            "reliable_input",
        }
    )

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
        self._predictor: Predictor | None = None
        self._worker: Worker[None] | None = None
        self._batches = Batches()
        with destroyed_on_failure(self):
            self.cameras = self._create_cameras()
        self.autostart()

    @staticmethod
    def create_executor(context: Context | None = None) -> Executor:
        """Return an executor for this node."""
        return SingleThreadedExecutor(context=context)

    def _create_cameras(self) -> tuple[CameraPipeline, ...]:
        names = check_names(self.config.cameras) or [""]
        return tuple(CameraPipeline(self, name, self._facts, self._wake) for name in names)

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
        predictor = load_or_free(self.config)
        check_budget(predictor.method, self.config.frame_budget_ms)
        self._predictor = predictor
        to_rgb()  # before the first image: it tries cv_bridge in a child process
        for camera in self.cameras:
            camera.outputs.publish_model(description_of(predictor, self.config))
        self._worker = Worker(lambda _: self._predict_waiting(), lambda *_: None)
        self.get_logger().info(
            f"{predictor.method} on {predictor.device}, model {self.config.model}"
        )

    def _activate(self) -> None:
        """Subscribe to the images of every camera, and to the LiDAR where the model takes it."""
        predictor = self._predictor
        lidar_range = None
        if predictor is not None and predictor.sparse_input is not None:
            lidar_range = predictor.depth_range
        for camera in self.cameras:
            camera.queue.capacity = self.config.queue_size
            camera.inputs.subscribe(self.config, lidar_range)

    def _deactivate(self) -> None:
        """Unsubscribe, wait for the current frames, and drop them with all waiting ones."""
        for camera in self.cameras:
            camera.unsubscribe()
        if self._worker is not None:
            wait([self._worker.call(lambda: None)], FINISH_S)

    def _free(self) -> None:
        """Unload the model, and free its memory."""
        self._stop_worker()
        self._worker = None
        self._predictor = None
        free_memory()

    def _stop_worker(self) -> None:
        """End the worker's thread; unfinished frames are dropped."""
        if self._worker is not None:
            self._worker.stop(FINISH_S)
        for camera in self.cameras:
            camera.give_up()

    def _wake(self) -> bool:
        """Wake the worker for a new image; return whether there is a worker."""
        worker = self._worker
        if worker is None:
            return False
        worker.put(None)
        return True

    def _predict_waiting(self) -> None:
        """Predict one waiting image of each camera in one batch, and publish the maps."""
        start_s = time.perf_counter()
        config = self.config
        frames = [(camera, camera.take(config)) for camera in self.cameras]
        batch = [(camera, frame) for camera, frame in frames if frame is not None]
        try:
            if batch:
                self._predict(batch, start_s)
        finally:
            if any(len(camera.queue) for camera in self.cameras):
                self._wake()

    def _predict(self, batch: list[tuple[CameraPipeline, CameraFrame]], start_s: float) -> None:
        predictor = self._predictor
        if predictor is None:
            for camera, _ in batch:
                camera.fail(deactivated())
            return
        samples = self._batches.choose(predictor, self.config.frame_budget_ms, len(batch))
        results = self._batches.predict(
            predictor, [frame.observation for _, frame in batch], samples
        )
        views: list[Callable[[], None]] = []
        for (camera, frame), result in zip(batch, results, strict=True):
            if isinstance(result, Exception):
                camera.fail(result)
                continue
            published = camera.publish(frame, result, predictor, samples, start_s)
            if published is not None:
                views.append(partial(camera.publish_views, published))
        if views:
            milliseconds = (time.perf_counter() - start_s) * 1e3
            self._batches.finished(samples, len(batch), milliseconds)
            if 0 < self.config.frame_budget_ms < milliseconds and samples.count <= FEWEST_SAMPLES:
                for camera, _ in batch:
                    camera.health.count("over_budget")
        for publish_views in views:
            publish_views()

    def _prepare_change(self, old: DepthNodeConfig, new: DepthNodeConfig) -> Callable[[], None]:
        if old.cameras != new.cameras:
            raise ConfigError(
                f"cameras is fixed for the life of the node; expected {list(old.cameras)}, or the "
                "node to be started again"
            )
        return super()._prepare_change(old, new)

    def _prepare(self, old: DepthNodeConfig, new: DepthNodeConfig) -> Callable[[], None]:
        """Check a new config against the model, which is reloaded only for another method."""
        current = self._predictor
        if current is None:
            raise ConfigError("no model is loaded; configure the node first")
        is_same_method = (new.method or current.model.method) == current.method
        predictor = current if is_same_method else load_or_free(new)
        predictor.check(new)
        check_budget(predictor.method, new.frame_budget_ms)

        def apply() -> None:
            predictor.config = new
            for camera in self.cameras:
                camera.outputs.publish_model(description_of(predictor, new))
            self._predictor = predictor

        return apply

    def _facts(self) -> dict[str, object]:
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
        """Shut down: finish the current frames, drop the queues, return a summary line.

        Of several cameras each has its line.
        """
        self._stop_worker()
        take_down(self.destroy_node)
        return "\n".join(camera.summary() for camera in self.cameras)
