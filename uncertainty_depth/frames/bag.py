# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A bag as a source of frames: its topics, camera and extrinsics are found before the first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from uncertainty_depth.config import SourceConfig
from uncertainty_depth.config.prediction import PredictionConfig, PredictionTopics
from uncertainty_depth.errors import MessageError, SourceError
from uncertainty_depth.frames.bag_frames import (
    BagFrames,
    ImageFrames,
    IsWanted,
    Layout,
    RecordedFrames,
    every,
)
from uncertainty_depth.frames.extrinsics import ExtrinsicsFinder
from uncertainty_depth.frames.ground_truth import (
    DepthImageGroundTruth,
    GroundTruth,
    LidarGroundTruth,
)
from uncertainty_depth.frames.recording import OpenRecording, Recording
from uncertainty_depth.frames.topics import NO_PREDICTIONS, TopicChooser, Topics
from uncertainty_depth.frames.transforms import TransformTree
from uncertainty_depth.geometry.rectification import KEEP, RECTIFY, Rectifier
from uncertainty_depth.messages.camera_info import calibration_from_info
from uncertainty_depth.messages.clouds import is_predicted
from uncertainty_depth.messages.depth_images import decode_values, encoding_of
from uncertainty_depth.messages.images import decode_image
from uncertainty_depth.records import Frame, Skipped


class BagSource:
    """The camera images of a bag as frames, each read exactly once, in order. A `Source`.

    The camera is that of the first camera info; images that it does not call rectified are, unless
    the option distorted_images says otherwise. The image's frame_id (the camera info's where it is
    empty) is taken as the optical frame.

    Attributes:
        recording: the bag.
        layout: what is known of it before its frames are read.
        topics: the names of the image, camera info and ground truth topics.
        rectifier: the camera, and what is done with its images; None without camera info.
        lidar_to_camera: (4, 4) float64, of the bag's first image and cloud; None where it moves,
            of several LiDARs, or where the bag has none of either.
    """

    def __init__(
        self,
        path: Path,
        config: SourceConfig,
        predictions: PredictionTopics = NO_PREDICTIONS,
        meaning: PredictionConfig = PredictionConfig(),  # noqa: B008  frozen
    ) -> None:
        """Find the topics, the camera and the extrinsics.

        Args:
            path: of the bag.
            config: which topics, and how they are read.
            predictions: recorded depth that takes the place of the camera image.
            meaning: what recorded depth and confidence hold.

        Raises:
            SourceError: the bag does not exist, cannot be read, or lacks one of these.
        """
        self.name = str(path)
        self._config = config
        self._predictions = predictions
        self._meaning = meaning
        self.recording = Recording(path)
        self.notes = self.recording.notes
        try:
            with self.recording.open() as bag:
                self.layout = self._set_up(bag)
        except SourceError as error:
            raise SourceError("; ".join([str(error), *self.notes])) from error
        self.topics = self.layout.topics
        self.rectifier = self.layout.rectifier

    def __len__(self) -> int:
        """Return the number of camera images; of a truncated bag, those that can be read."""
        return self.layout.image_count

    def __iter__(self) -> Iterator[Frame | Skipped]:
        """Yield every camera image once, as a frame or as the reason why it cannot be scored."""
        for record in self.read():
            if record is not None:
                yield record

    def read(self, is_wanted: IsWanted = every) -> Iterator[Frame | Skipped | None]:
        """Yield the record of every camera image; None, undecoded, for a frame not wanted."""
        with self.recording.open() as bag:
            yield from self._frames().read(bag, is_wanted)

    def _frames(self) -> BagFrames:
        if not self._predictions.depth_topic:
            return ImageFrames(self.recording, self.layout, self._config)
        confidence = self._predictions.confidence_topic
        return RecordedFrames(self.recording, self.layout, self._config, confidence, self._meaning)

    def _set_up(self, bag: OpenRecording) -> Layout:
        topics = self._choose_topics(bag)
        rectifier, camera_frame = self._read_camera(bag, topics)
        image = bag.first(topics.image)
        self._note_camera(topics, rectifier, image)
        if image is not None:
            camera_frame = image.header.frame_id or camera_frame
        truths = [truth for truth in map(bag.first, topics.ground_truths) if truth is not None]
        ground_truth: GroundTruth
        self.lidar_to_camera = None
        transforms = TransformTree()
        moving_topics: list[str] = []
        if topics.depth_image:
            ground_truth = DepthImageGroundTruth(rectifier)
            self._note_registration(topics, camera_frame, truths)
        else:
            ground_truth = LidarGroundTruth(self._config, len(topics.lidars))
            if poses := ground_truth.fixed_poses:
                self.lidar_to_camera = poses[0] if len(poses) == 1 else None
            else:
                finder = ExtrinsicsFinder(self.recording, bag, self._config.fixed_frame)
                transforms = finder.fixed
                if image is not None:
                    moving_topics = self._find_extrinsics(finder, camera_frame, truths)
        count = bag.topics[topics.image].count
        return Layout(
            topics, count, rectifier, camera_frame, ground_truth, transforms, moving_topics
        )

    def _choose_topics(self, bag: OpenRecording) -> Topics:
        chooser = TopicChooser(
            self.name,
            bag.topics,
            self._config,
            partial(_first_encoding, bag),
            self._predictions,
            partial(_is_first_predicted, bag),
        )
        topics = chooser.choose()
        if unused := chooser.unused_depth_images(topics):
            self.recording.note(
                f"the ground truth is the LiDAR, {', '.join(topics.lidars)}; "
                "--ground-truth-topic takes a registered depth image instead: "
                f"{' or '.join(unused)}"
            )
        return topics

    def _find_extrinsics(
        self, finder: ExtrinsicsFinder, camera_frame: str, clouds: Sequence[Any]
    ) -> list[str]:
        """Find the pose of each LiDAR by its first cloud; return the moving transforms' topics."""
        lidars = [finder.find(camera_frame, cloud) for cloud in clouds]
        if len(lidars) == 1:
            self.lidar_to_camera = lidars[0].lidar_to_camera
        return sorted(set(chain.from_iterable(lidar.transform_topics for lidar in lidars)))

    def _note_registration(self, topics: Topics, image_frame: str, maps: Sequence[Any]) -> None:
        """Add a note where a depth image is assumed to be registered to the camera."""
        if self._config.fixed_frame:
            self.recording.note(
                f"fixed_frame {self._config.fixed_frame!r} is not used: the ground truth is "
                "the depth image, which is assumed to be registered"
            )
        for message in maps:
            depth_frame = message.header.frame_id
            if image_frame and depth_frame and image_frame.lstrip("/") != depth_frame.lstrip("/"):
                self.recording.note(
                    f"{topics.depth_image} is in frame {depth_frame!r}, {topics.image} in "
                    f"{image_frame!r}: the depth is assumed to be registered to the image, "
                    "pixel by pixel; otherwise the scores are wrong"
                )

    def _read_camera(self, bag: OpenRecording, topics: Topics) -> tuple[Rectifier | None, str]:
        if not topics.camera_info:
            self.recording.note(f"{self.name} has no camera info: its images are not rectified")
            return None, ""
        message = bag.first(topics.camera_info)
        if message is None:
            raise SourceError(f"{self.name} has no readable message on {topics.camera_info}")
        try:
            calibration = calibration_from_info(message)
        except MessageError as error:
            raise SourceError(f"{topics.camera_info} in {self.name}: {error}") from error
        distorted = self._config.distorted_images
        if self._predictions.depth_topic and distorted == RECTIFY:
            distorted = KEEP  # maps of a distorted camera are scored as they are
        return Rectifier(calibration, distorted), message.header.frame_id

    def _note_camera(self, topics: Topics, rectifier: Rectifier | None, image: Any | None) -> None:
        if rectifier is None:
            return
        if not rectifier.calibration.is_rectified:
            self.recording.note(f"{topics.camera_info} is {rectifier.describe()}")
        if image is None:
            return
        is_map = bool(self._predictions.depth_topic)
        max_pixels = self._config.max_pixels
        try:
            pixels = decode_values(image) if is_map else decode_image(image, max_pixels)
            height, width = pixels.shape[:2]
        except MessageError:  # the frame is skipped with this reason when its turn comes
            return
        if note := rectifier.describe_size(width, height):
            self.recording.note(f"{topics.image}: {note}")


def _first_encoding(bag: OpenRecording, topic: str) -> str:
    """Return the encoding of the first image on `topic`; empty where none can be read."""
    message = bag.first(topic)
    return "" if message is None else encoding_of(message)


def _is_first_predicted(bag: OpenRecording, topic: str) -> bool:
    """Return whether the first cloud on `topic` was made of predicted depth."""
    message = bag.first(topic)
    return message is not None and is_predicted(message)
