# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Score live topics: the functions that make a bag's frames fill the same `Evaluation`."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from uncertainty_depth.core.config import HeldOutConfig, PredictionConfig
from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.geometry.rectification import RECTIFY, Rectifier
from uncertainty_depth.core.node_config import MAX_LIDARS, EvaluatorNodeConfig
from uncertainty_depth.core.records import Frame, Skipped
from uncertainty_depth.frames.cameras import Cameras
from uncertainty_depth.frames.ground_truth import (
    DepthImageGroundTruth,
    GroundTruth,
    LidarGroundTruth,
)
from uncertainty_depth.frames.map_assembly import MapAssembly
from uncertainty_depth.frames.pairing import Outcome
from uncertainty_depth.frames.topics import Topics
from uncertainty_depth.frames.transforms import Extrinsics
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.ros.sigma_messages import PredictionInfo
from uncertainty_depth.sigma.online.correction_in_force import DepthScales
from uncertainty_depth.sigma.recorded.interpreter import Interpreter
from uncertainty_depth.stream.geometry_check import GeometryCheck
from uncertainty_depth.stream.held_out import held_out

DEPTH = "depth/image_rect"
SIGMA = "uncertainty/image_rect"
CAMERA_INFO = "depth/camera_info"
TRUTH_IMAGE = "ground_truth/image"
TRUTH_CAMERA_INFO = "ground_truth/camera_info"
LIDARS = ("lidar/points", *(f"lidar{number}/points" for number in range(2, MAX_LIDARS + 1)))
"""Of the first LiDAR, the second, and so on."""
MAX_LATE = 5
"""Frames that wait for a camera info, a transform, or the word of how sigma was made."""
MAX_INFOS = 2000
logger = logging.getLogger(__name__)


def ground_truth_topics(config: EvaluatorNodeConfig) -> tuple[str, ...]:
    """Return the ground truth topics: one per LiDAR, or the depth images' topic."""
    return (TRUTH_IMAGE,) if config.use_ground_truth_image else LIDARS[: config.lidars]


def meaning_of(config: EvaluatorNodeConfig) -> PredictionConfig:
    """Return the meaning of the maps; alignment is per frame, as later frames are unknown."""
    return PredictionConfig(
        confidence_type=config.confidence_type,
        depth_type=config.depth_type,
        align=config.align,
    )


@dataclass(frozen=True, eq=False)
class LiveFrame(Frame):
    """A frame from live topics.

    Attributes:
        header: its depth image's header.
        info: how its prediction was made; None if not published.
        metrics: its own by dotted name, once it is scored.
    """

    header: Any = None
    info: PredictionInfo | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)


class LiveFrames(MapAssembly):
    """Makes frames from live topics, by their names before remaps."""

    def __init__(
        self,
        config: EvaluatorNodeConfig,
        extrinsics: Extrinsics | None,
        is_described: Callable[[], bool],
    ) -> None:
        """Start without a message.

        Args:
            config: options.
            extrinsics: the LiDARs' poses; None if ground truth comes as images.
            is_described: returns whether a node publishes how its predictions are made.
        """
        self._is_described = is_described
        self._infos: OrderedDict[int, PredictionInfo] = OrderedDict()
        self._truth_cameras = Cameras(TRUTH_CAMERA_INFO, RECTIFY)
        truths = ground_truth_topics(config)
        ground_truth: GroundTruth
        if extrinsics is None:
            topics = Topics(DEPTH, CAMERA_INFO, (), *truths)
            ground_truth = DepthImageGroundTruth(self._truth_rectifier)
        else:
            topics = Topics(DEPTH, CAMERA_INFO, truths)
            ground_truth = LidarGroundTruth(extrinsics, config)
        super().__init__(
            topics,
            Cameras(CAMERA_INFO),
            ground_truth,
            config.max_time_difference,
            config.queue_size,
            confidence_topic=SIGMA,
            meaning=Interpreter(meaning_of(config)).config,
        )

    def add(self, topic: str, message: Any) -> Iterator[Frame | Skipped]:
        """Take a message, and return an iterator over what it decides, in order."""
        if topic == TRUTH_CAMERA_INFO:
            self._truth_cameras.add(message)
            return self.decided()
        return super().add(topic, message)

    def add_info(self, time_ns: int, info: PredictionInfo) -> Iterator[Frame | Skipped]:
        """Take how the prediction of this stamp was made; return as `add`."""
        self._infos[time_ns] = info
        while len(self._infos) > MAX_INFOS:
            self._infos.popitem(last=False)
        return self.decided()

    def take_cameras_of(self, other: LiveFrames) -> None:
        """Continue with another run's camera infos."""
        self.cameras = other.cameras
        self._truth_cameras = other._truth_cameras

    def _is_awaited(self, outcome: Outcome) -> bool:
        is_info_awaited = outcome.stamp_ns not in self._infos and self._is_described()
        return not self._has_camera or is_info_awaited or super()._is_awaited(outcome)

    @property
    def _patience(self) -> int:
        return MAX_LATE if self._has_camera else self._queue_size

    @property
    def _has_camera(self) -> bool:
        """Whether the camera of a LiDAR's image is known: none scores before that."""
        return bool(self.cameras) or not self._topics.lidars

    def _frame(
        self, time_ns: int, reference: Any, truth: tuple[Any, ...] | None
    ) -> Frame | Skipped:
        info = self._infos.pop(time_ns, None)
        frame = super()._frame(time_ns, reference, truth)
        if isinstance(frame, Skipped):
            return frame
        return LiveFrame(**vars(frame), header=reference[0].header, info=info)

    def _truth_rectifier(self, time_ns: int) -> Rectifier | None:
        """Return the rectifier of raw ground truth images for rectified maps.

        Without both camera infos, their pixels are assumed to match the maps' pixels.
        """
        try:
            maps = self.cameras.at(time_ns)
        except MessageError:
            return None
        if maps is None or not maps.is_rectified:
            return None
        return self._truth_cameras.at(time_ns)

    @property
    def camera_notes(self) -> list[str]:
        """Sentences about the camera infos, for the reader of the scores."""
        return [*self.cameras.notes, *self._truth_cameras.notes]


class LiveScores:
    """One run: every received prediction ends with metrics, or as `Skipped` with its reason.

    Attributes:
        frames: the waiting frames and their pairing.
        evaluation: the scores so far.
        interpreter: interprets the maps.
        check: the geometry check.
        held_out: depth that was not given to a model with sparse input; None for image-only
            models.
        scales: what the depth of the frames was multiplied by.
    """

    def __init__(
        self,
        config: EvaluatorNodeConfig,
        extrinsics: Extrinsics | None,
        is_described: Callable[[], bool] = lambda: False,
    ) -> None:
        """Start a run; see `LiveFrames`.

        Raises:
            ConfigError: the options do not fit each other.
        """
        self._arguments = (config, extrinsics, is_described)
        self.interpreter = Interpreter(meaning_of(config), config)
        self.evaluation = Evaluation(config, without_size=self.interpreter.without_size)
        self.frames = LiveFrames(config, extrinsics, is_described)
        self.check = GeometryCheck()
        self.held_out: HeldOutConfig | None = None
        self.scales = DepthScales()

    def restarted(self) -> LiveScores:
        """Return a new run with the same options and camera infos: latched ones come only once."""
        run = LiveScores(*self._arguments)
        run.frames.take_cameras_of(self.frames)
        run.held_out = self.held_out
        return run

    def add(self, topic: str, message: Any) -> Iterator[LiveFrame | Skipped]:
        """Take a message, and return an iterator over the frames that it completes, scored."""
        return map(self._score, self.frames.add(topic, message))

    def add_info(self, time_ns: int, info: PredictionInfo) -> Iterator[LiveFrame | Skipped]:
        """Take how the prediction of this stamp was made; return as `add`."""
        return map(self._score, self.frames.add_info(time_ns, info))

    def finish(self) -> Iterator[LiveFrame | Skipped]:
        """Return an iterator over all waiting frames, scored: no more messages come."""
        return map(self._score, self.frames.finish())

    def notes(self) -> list[str]:
        """Return sentences for the reader of the report."""
        return [
            *self.frames.camera_notes,
            *self.interpreter.notes(self.evaluation.metrics.total()),
            *self.scales.notes(),
            *self.check.warnings(),
            *self.frames.losses(),
        ]

    def _score(self, record: Frame | Skipped) -> LiveFrame | Skipped:
        self.check.see(record)
        if isinstance(record, Skipped):
            return self.evaluation.skip(record)
        assert isinstance(record, LiveFrame)  # `LiveFrames` makes no other frames
        try:
            frame = replace(record, ground_truth_m=self._scorable(record))
            prediction = self.interpreter.predict(frame)
            if frame.info is not None:
                prediction = replace(prediction, unfamiliarity=frame.info.unfamiliarity)
            frame = replace(frame, prediction=prediction)
            row = self.evaluation.add(frame)
        except MessageError as error:
            sentence = f"frame {record.name}: {error}"
            return self.evaluation.skip(Skipped(record.stamp_ns, error.reason, sentence))
        except Exception as error:  # a hostile message costs one frame, not the run
            logger.exception("a frame failed")
            sentence = f"frame {record.name}: {type(error).__name__}: {error}"
            return self.evaluation.skip(Skipped(record.stamp_ns, "failed", sentence))
        if frame.info is not None:
            self.scales.add(frame.info.in_force)
        return row if isinstance(row, Skipped) else replace(frame, metrics=row)

    def _scorable(self, frame: LiveFrame) -> np.ndarray:
        """Return the ground truth without the pixels that were the model's sparse input."""
        depth_m = frame.need_ground_truth()
        rule = self.held_out
        if rule is None:
            return depth_m
        if rule.held_out_fraction == 0:
            raise MessageError(
                "would_score_its_input",
                "the model was given all of the LiDAR, and would be scored on its input; start "
                "depth_node with held_out_fraction above 0",
            )
        mask = held_out(depth_m, frame.stamp_ns, rule)
        if not mask.any():
            raise MessageError(
                "no_depth_held_out",
                "no pixel of the ground truth was held out from the model's input",
            )
        return np.where(mask, depth_m, np.float32(np.nan))
