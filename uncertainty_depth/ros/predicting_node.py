# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What turns images into predictions on a robot: callback, slot, thread, publisher.

A callback queues the newest image. One thread takes it to its published maps; another publishes
what is derived from them meanwhile.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from sensor_msgs.msg import CameraInfo
from std_msgs.msg import Header

from uncertainty_depth.core.device_errors import DeviceLostError, free_memory
from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.records import Frame
from uncertainty_depth.ros.diagnostics import LOG_EVERY_S
from uncertainty_depth.ros.live_camera import ImageMessage, LiveCamera
from uncertainty_depth.ros.measurement_inputs import Measure
from uncertainty_depth.ros.node import ManagedNode, take_down
from uncertainty_depth.ros.outputs import PredictionPublisher
from uncertainty_depth.ros.worker import Worker

ConfigT = TypeVar("ConfigT", bound=Any)
FINISH_S = 2.0
OUT_OF_MEMORY = "out_of_memory"


class Images(NamedTuple):
    """What one prediction is made of: `first`, by which it is counted, and each by its side."""

    first: ImageMessage
    sides: tuple[Any, ...]


class PredictingNode(ManagedNode[ConfigT], Generic[ConfigT]):
    """A managed node with a camera, what measures beside it, and a thread that predicts."""

    def __init__(
        self,
        name: str,
        task: str,
        config_type: type[ConfigT],
        camera_info: str,
        *,
        is_own_depth: bool,
        **options: Any,
    ) -> None:
        """Create the publishers; `camera_info` is the topic of the images' camera."""
        super().__init__(name, task, config_type, **options)
        topic = self.resolve_topic_name(camera_info)
        is_published = partial(self.is_published, topic, CameraInfo)
        self._camera = LiveCamera(topic, is_published, self.health, self.get_logger().info)
        self._sources: tuple[Measure, ...] = ()
        self._worker: Worker[Images] = Worker(self._take, self._leave)
        self._predictions = PredictionPublisher(self, is_own_depth=is_own_depth)

    @abstractmethod
    def _predict(self, images: Images, start_s: float) -> None:
        """Publish the prediction of images, whose turn came at `start_s`; on the thread."""

    def _take(self, images: Images) -> None:
        """Predict, unless the node was deactivated meanwhile; a failure costs one frame."""
        start_s = time.perf_counter()
        if not self.health.is_inside(images.first):
            return
        try:
            self._predict(images, start_s)
        except DeviceLostError as error:
            self._leave(images, "failed")
            self.end_with(error)
        except Exception as error:
            self.drop(images.first, error)
            if isinstance(error, MessageError) and error.reason == OUT_OF_MEMORY:
                error.__traceback__ = None  # it holds the tensors
                free_memory()

    def _leave(self, images: Images, reason: str) -> None:
        self.health.leave(images.first, f"dropped.{reason}")

    def _measured(self, frame: Frame, header: Header) -> Frame:
        """Return the frame with all that is measured in it; what cannot be is counted."""
        for add_to in self._sources:
            try:
                frame = add_to(frame, header)
            except MessageError as error:
                self.health.count(f"image_alone.{error.reason}")
                self.get_logger().warning(
                    f"depth from the image alone ({error.reason}): {error}",
                    throttle_duration_sec=LOG_EVERY_S,
                )
        return frame

    def _deactivate(self) -> None:
        """Unsubscribe, drop frames that are waiting or in progress, and wait for the thread."""
        self.inputs.close()
        self.health.leave_all("deactivated")
        self._worker.wait(FINISH_S)
        self._predictions.wait(FINISH_S)
        self._sources = ()

    def _problems(self) -> list[str]:
        return [*self.inputs.problems, *self._predictions.problems()]

    def close(self) -> str:
        """Shut down: finish the frame in work, drop the one that waits, return a summary line."""
        self._worker.stop(FINISH_S)
        self._predictions.stop(FINISH_S)
        self.health.leave_all("shutdown")
        take_down(self.destroy_node)
        return self.health.summary()
