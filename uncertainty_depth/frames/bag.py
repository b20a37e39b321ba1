# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A bag as a source of frames; topics, camera and extrinsics are found before the first frame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from uncertainty_depth.config import SourceConfig
from uncertainty_depth.config.prediction import PredictionConfig, PredictionTopics
from uncertainty_depth.errors import MessageError, SourceError
from uncertainty_depth.frames.assembly import Assembly, ImageAssembly, IsWanted, every
from uncertainty_depth.frames.cameras import Cameras
from uncertainty_depth.frames.extrinsics import (
    ExtrinsicsFinder,
    FixedExtrinsics,
    TreeExtrinsics,
)
from uncertainty_depth.frames.ground_truth import (
    DepthImageGroundTruth,
    GroundTruth,
    LidarGroundTruth,
)
from uncertainty_depth.frames.recording import OpenRecording, Recording
from uncertainty_depth.frames.topics import NO_PREDICTIONS, TopicChooser, Topics
from uncertainty_depth.frames.transforms import TransformTree
from uncertainty_depth.geometry.rectification import KEEP, RECTIFY, Rectifier
from uncertainty_depth.messages.clouds import is_predicted
from uncertainty_depth.messages.compressed import claimed_size
from uncertainty_depth.messages.depth_images import encoding_of
from uncertainty_depth.records import Frame, Skipped


class Layout(NamedTuple):
    """What is known of a bag before its frames are read.

    Attributes:
        topics: topics that frames are made from.
        image_count: messages on the image topic.
        camera_info: the first message; None without camera info.
        camera_frame: optical frame for images that name none.
        fixed: the LiDARs' poses given by options; None to look them up.
        transforms: the fixed ones.
        transform_topics: topics of moving transforms, if needed.
    """

    topics: Topics
    image_count: int
    camera_info: Any | None
    camera_frame: str
    fixed: FixedExtrinsics | None
    transforms: TransformTree
    transform_topics: list[str]


class BagSource:
    """The camera images of a bag as frames, each read exactly once, in order. A `Source`.

    An image's camera comes from the camera info of its time. Images that are not rectified
    according to it are rectified, unless the option distorted_images says otherwise. The image's
    frame_id is the optical frame; if it is empty, the camera info's is used.

    Attributes:
        recording: the bag.
        layout: what is known before its frames are read.
        topics: the names of the image, camera info and ground truth topics.
        rectifier: the first camera, and how its images are rectified; None without camera info.
        lidar_to_camera: (4, 4) float64, for the bag's first image and cloud; None if it moves, for
            several LiDARs, or if the bag has no image or cloud.
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
            path: the bag's path.
            config: the topics and how they are read.
            predictions: recorded depth that replaces the camera image.
            meaning: meaning of recorded depth and confidence.

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

    def __len__(self) -> int:
        """Return the number of camera images; of a truncated bag, those that can be read."""
        return self.layout.image_count

    def __iter__(self) -> Iterator[Frame | Skipped]:
        """Yield every camera image once, as a frame or the reason why it cannot be scored."""
        return self.read()

    def read(self, is_wanted: IsWanted = every) -> Iterator[Frame | Skipped]:
        """Yield as iteration does, with undecoded `UNWANTED` for images that are not wanted."""
        layout = self.layout
        transforms = layout.transforms.copy()
        frames = self._assembly(transforms)
        frames.is_wanted = is_wanted
        damaged: Counter[str] = Counter()
        unusable: list[str] = []
        images = 0
        with self.recording.open() as bag:
            for topic, message in bag.messages([*frames.topics(), *layout.transform_topics]):
                images += topic == layout.topics.image
                if message is None:
                    damaged[topic] += 1
                    if topic in frames.reference_topics():
                        sentence = f"an image message on {topic} cannot be deserialised"
                        yield Skipped(None, "image_message_damaged", sentence)
                elif topic in layout.transform_topics:
                    unusable += transforms.add_message(message, is_moving=True)
                    yield from frames.decided()
                else:
                    yield from frames.add(topic, message)
            yield from frames.finish()
            if bag.is_damaged:
                image = layout.topics.image
                sentence = f"an image message on {image} lies in a damaged part of the bag"
                for _ in range(layout.image_count - images):
                    yield Skipped(None, "image_message_lost", sentence)
        for sentence in [*frames.losses(), *self._damage(damaged, unusable)]:
            self.recording.note(f"{self.name}: {sentence}")

    def _assembly(self, transforms: TransformTree) -> Assembly:
        """Return the assembly that makes frames from one pass's messages."""
        config = self._config
        topics = self.topics
        cameras = self._cameras(topics)
        if self.layout.camera_info is not None:
            cameras.add(self.layout.camera_info)
        ground_truth: GroundTruth
        if topics.depth_image:
            ground_truth = DepthImageGroundTruth(cameras.at)
        else:
            extrinsics = self.layout.fixed or TreeExtrinsics(transforms, config.fixed_frame)
            ground_truth = LidarGroundTruth(extrinsics, config)
        parts = (topics, cameras, ground_truth, config.max_time_difference)
        camera_frame = self.layout.camera_frame
        if not self._predictions.depth_topic:
            return ImageAssembly(*parts, camera_frame=camera_frame, max_pixels=config.max_pixels)
        from uncertainty_depth.frames.map_assembly import MapAssembly  # of recorded depth alone

        return MapAssembly(
            *parts,
            camera_frame=camera_frame,
            confidence_topic=self._predictions.confidence_topic,
            meaning=self._meaning,
            report_topic=config.image_topic,
        )

    def _cameras(self, topics: Topics) -> Cameras:
        distorted = self._config.distorted_images
        if self._predictions.depth_topic and distorted == RECTIFY:
            distorted = KEEP  # a distorted camera's maps are scored unchanged
        return Cameras(topics.camera_info, distorted)

    def _damage(self, damaged: Counter[str], unusable: Sequence[str]) -> Iterator[str]:
        """Yield sentences about messages that cannot be read."""
        topics = self.topics
        noun = "depth image" if topics.depth_image else "cloud"
        if count := sum(damaged[topic] for topic in topics.ground_truths):
            yield f"{count} {noun} messages cannot be deserialised"
        for topic in (topics.camera_info, *self.layout.transform_topics):
            if count := damaged[topic]:
                yield f"{count} messages on {topic} cannot be deserialised"
        if unusable:
            yield f"{len(unusable)} transforms on /tf are left out; the first: {unusable[0]}"

    def _set_up(self, bag: OpenRecording) -> Layout:
        topics = self._choose_topics(bag)
        info = self._read_camera(bag, topics)
        camera_frame = "" if info is None else info.header.frame_id
        image = bag.first(topics.image)
        self._note_camera(topics, image)
        if image is not None:
            camera_frame = image.header.frame_id or camera_frame
        truths = [truth for truth in map(bag.first, topics.ground_truths) if truth is not None]
        self.lidar_to_camera = None
        fixed = None
        transforms = TransformTree()
        moving_topics: list[str] = []
        if topics.depth_image:
            self._note_registration(topics, camera_frame, truths)
        elif self._config.lidar_to_camera:
            fixed = FixedExtrinsics(self._config, len(topics.lidars))
            self.lidar_to_camera = fixed.poses[0] if len(fixed.poses) == 1 else None
        else:
            finder = ExtrinsicsFinder(self.recording, bag, self._config.fixed_frame)
            transforms = finder.fixed
            if image is not None:
                moving_topics = self._find_extrinsics(finder, camera_frame, truths)
        count = bag.topics[topics.image].count
        return Layout(topics, count, info, camera_frame, fixed, transforms, moving_topics)

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
        """Add a note if a depth image is assumed to be registered to the camera."""
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

    def _read_camera(self, bag: OpenRecording, topics: Topics) -> Any | None:
        """Return the first camera info, from which `self.rectifier` is made."""
        self.rectifier: Rectifier | None = None
        if not topics.camera_info:
            self.recording.note(f"{self.name} has no camera info: its images are not rectified")
            return None
        message = bag.first(topics.camera_info)
        if message is None:
            raise SourceError(f"{self.name} has no readable message on {topics.camera_info}")
        cameras = self._cameras(topics)
        cameras.add(message)
        try:
            self.rectifier = cameras.at(0)
        except MessageError as error:
            raise SourceError(f"{topics.camera_info} in {self.name}: {error}") from error
        return message

    def _note_camera(self, topics: Topics, image: Any | None) -> None:
        rectifier = self.rectifier
        if rectifier is None:
            return
        if not rectifier.calibration.is_rectified:
            self.recording.note(f"{topics.camera_info} is {rectifier.describe()}")
        if image is None:
            return
        try:
            size = claimed_size(image, self._config.max_pixels)
        except MessageError:  # the frame is skipped with this reason when its turn comes
            return
        if note := rectifier.describe_size(*size):
            self.recording.note(f"{topics.image}: {note}")


def _first_encoding(bag: OpenRecording, topic: str) -> str:
    """Return the encoding of the first image on `topic`; empty if none can be read."""
    message = bag.first(topic)
    return "" if message is None else encoding_of(message)


def _is_first_predicted(bag: OpenRecording, topic: str) -> bool:
    """Return whether the first cloud on `topic` was made from predicted depth."""
    message = bag.first(topic)
    return message is not None and is_predicted(message)
