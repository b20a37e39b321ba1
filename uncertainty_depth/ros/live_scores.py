# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Score live topics: the functions that make a bag's frames fill the same `Evaluation`."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from uncertainty_depth.core.config.nodes import MAX_LIDARS, EvaluatorNodeConfig
from uncertainty_depth.core.config.scoring import HeldOutConfig
from uncertainty_depth.core.config.source import PredictionConfig
from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.geometry.rectification import RECTIFY
from uncertainty_depth.core.records import Frame, Skipped
from uncertainty_depth.frames.cameras import Cameras
from uncertainty_depth.frames.map_assembly import MapAssembly
from uncertainty_depth.frames.mask import Mask
from uncertainty_depth.frames.measured import (
    DepthImageGroundTruth,
    GroundTruth,
    LidarGroundTruth,
)
from uncertainty_depth.frames.pairing import Outcome
from uncertainty_depth.frames.topics import Topics
from uncertainty_depth.frames.transforms import Extrinsics
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.ros.messages import INFO_TOPIC, PredictionInfo
from uncertainty_depth.sigma.online.correction import DepthScales
from uncertainty_depth.sigma.recorded.confidence import NONE
from uncertainty_depth.sigma.recorded.interpreter import Interpreter
from uncertainty_depth.stream.geometry_check import GeometryCheck
from uncertainty_depth.stream.held_out import without_given

DEPTH = "depth/image_rect"
SIGMA = "uncertainty/image_rect"
CAMERA_INFO = "depth/camera_info"
MODEL = "depth/model"
TRUTH_IMAGE = "ground_truth/image"
TRUTH_CAMERA_INFO = "ground_truth/camera_info"
LIDARS = ("lidar/points", *(f"lidar{number}/points" for number in range(2, MAX_LIDARS + 1)))
"""The first LiDAR's, the second's, and so on."""
MAX_LATE = 5
"""Most frames that may wait for a camera info, a transform or a prediction info."""
MAX_INFOS = 2000
logger = logging.getLogger(__name__)


def ground_truth_topics(config: EvaluatorNodeConfig) -> tuple[str, ...]:
    """Return the ground truth topics: one per LiDAR, or the depth images' topic."""
    return (TRUTH_IMAGE,) if config.use_ground_truth_image else LIDARS[: config.lidars]


def meaning_of(config: EvaluatorNodeConfig) -> PredictionConfig:
    """Return the maps' meaning; alignment is per frame, as later frames are unknown."""
    return PredictionConfig(
        confidence_type=config.confidence_type,
        depth_type=config.depth_type,
        align=config.align,
    )


def has_sigma(config: EvaluatorNodeConfig) -> bool:
    """Return whether the depth has a sigma or a confidence beside it."""
    return config.confidence_type != NONE


@dataclass(frozen=True, eq=False)
class LiveFrame(Frame):
    """A frame from live topics: its header, how it was made or None, and metrics once scored."""

    header: Any = None
    info: PredictionInfo | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)


IsPublished = Callable[[str], bool]
"""Returns whether a node publishes on a topic, by its name before remaps."""


LiveCameras = tuple[Cameras, Cameras]
"""Camera infos for the maps, and for ground truth images."""


class LiveFrames(MapAssembly):
    """Makes frames from live topics, by their names before remaps."""

    def __init__(
        self,
        config: EvaluatorNodeConfig,
        extrinsics: Extrinsics | None,
        is_published: IsPublished,
        cameras: LiveCameras,
    ) -> None:
        """Start without a message; extrinsics are None if ground truth comes as images."""
        self.knows_model = False
        self._is_published = is_published
        self._infos: OrderedDict[int, PredictionInfo] = OrderedDict()
        ground_truth: GroundTruth
        if extrinsics is None:
            topics = Topics(DEPTH, CAMERA_INFO, (), TRUTH_IMAGE, TRUTH_CAMERA_INFO)
            ground_truth = DepthImageGroundTruth(*cameras)
        else:
            topics = Topics(DEPTH, CAMERA_INFO, ground_truth_topics(config))
            ground_truth = LidarGroundTruth(extrinsics)
        super().__init__(
            topics,
            cameras[0],
            ground_truth,
            config.max_time_difference,
            config.queue_size,
            confidence_topic=SIGMA if has_sigma(config) else "",
            meaning=meaning_of(config),
        )

    def add_info(self, time_ns: int, info: PredictionInfo) -> Iterator[Frame | Skipped]:
        """Take how the prediction of this stamp was made; return as `add`."""
        self._infos[time_ns] = info
        while len(self._infos) > MAX_INFOS:
            self._infos.popitem(last=False)
        return self.decided()

    def _is_awaited(self, outcome: Outcome) -> bool:
        is_described = outcome.stamp_ns in self._infos or not self._is_published(INFO_TOPIC)
        is_described &= self.knows_model or not self._is_published(MODEL)
        return self._lacks_camera or not is_described or super()._is_awaited(outcome)

    @property
    def _patience(self) -> int:
        return self._queue_size if self._lacks_camera else MAX_LATE

    @property
    def _lacks_camera(self) -> bool:
        """Whether no frame can be scored before a camera info comes: a LiDAR's needs one."""
        if self._topics.lidars:
            return not self.cameras
        of_truth = self._ground_truth.cameras
        return self.cameras.is_missing or (of_truth is not None and of_truth.is_missing)

    def _frame(
        self, time_ns: int, reference: Any, truth: tuple[Any, ...] | None
    ) -> Frame | Skipped:
        info = self._infos.pop(time_ns, None)
        frame = super()._frame(time_ns, reference, truth)
        if isinstance(frame, Skipped):
            return frame
        return LiveFrame(**vars(frame), header=reference[0].header, info=info)


class LiveScores:
    """One run: every received prediction ends with metrics, or as `Skipped` with its reason."""

    def __init__(
        self,
        config: EvaluatorNodeConfig,
        extrinsics: Extrinsics | None,
        is_published: IsPublished = lambda topic: False,
        cameras: LiveCameras | None = None,
    ) -> None:
        """Start a run; see `LiveFrames`."""
        cameras = cameras or (
            Cameras(CAMERA_INFO, is_published=partial(is_published, CAMERA_INFO)),
            Cameras(TRUTH_CAMERA_INFO, RECTIFY, partial(is_published, TRUTH_CAMERA_INFO)),
        )
        self._arguments = (config, extrinsics, is_published, cameras)
        self.interpreter = Interpreter(meaning_of(config), config)
        self.evaluation = Evaluation(config, self.interpreter.sigma_kind)
        self.frames = LiveFrames(*self._arguments)
        self.check = GeometryCheck()
        self.mask = Mask(config)
        self.held_out: HeldOutConfig | None = None
        self.scales = DepthScales()

    def restarted(self) -> LiveScores:
        """Return a new run with the same options and camera infos: latched ones come only once."""
        run = LiveScores(*self._arguments)
        run.held_out = self.held_out
        run.frames.knows_model = self.frames.knows_model
        return run

    def add(self, topic: str, message: Any) -> Iterator[LiveFrame | Skipped]:
        """Take a message, and return an iterator over the frames that it completes, scored."""
        return map(self._score, self.frames.add(topic, message))

    def add_info(self, time_ns: int, info: PredictionInfo) -> Iterator[LiveFrame | Skipped]:
        """Take how the prediction of this stamp was made; return as `add`."""
        return map(self._score, self.frames.add_info(time_ns, info))

    def decided(self) -> Iterator[LiveFrame | Skipped]:
        """Return an iterator over the frames that wait for nothing more, scored."""
        return map(self._score, self.frames.decided())

    def finish(self) -> Iterator[LiveFrame | Skipped]:
        """Return an iterator over all waiting frames, scored: no more messages come."""
        return map(self._score, self.frames.finish())

    def notes(self) -> list[str]:
        """Return sentences for the report's reader."""
        return [
            *self.frames.cameras.notes,
            *self.interpreter.notes(),
            *self.interpreter.doubts(self.evaluation.metrics.total()),
            *self.scales.notes(),
            *self.mask.notes(),
            *self.check.warnings(),
            *self.frames.losses(),
        ]

    def _score(self, record: Frame | Skipped) -> LiveFrame | Skipped:
        self.check.see(record)
        if isinstance(record, Skipped):
            return self.evaluation.skip(record)
        assert isinstance(record, LiveFrame)  # `LiveFrames` makes no other frames
        try:
            measured = () if record.info is None else record.info.measured
            scored = self.mask(without_given(record, self.held_out, measured))
            if isinstance(scored, Skipped):
                return self.evaluation.skip(scored)
            frame = scored
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
