# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A bag as a source of frames; topics, camera and extrinsics are found before the first frame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.config.source import PredictionConfig, PredictionTopics, SourceConfig
from uncertainty_depth.core.errors import MessageError, SourceError
from uncertainty_depth.core.geometry.rectification import KEEP, RECTIFY, Rectifier
from uncertainty_depth.core.geometry.transforms import (
    BODY_TO_OPTICAL_OPTION,
    looks_like_body_frame,
    option_from,
)
from uncertainty_depth.core.records import Frame, Skipped
from uncertainty_depth.frames.assembly import Assembly, ImageAssembly
from uncertainty_depth.frames.cameras import Cameras
from uncertainty_depth.frames.measured import (
    DepthImageGroundTruth,
    DepthOfTopic,
    GroundTruth,
    LidarGroundTruth,
    MeasuredTopic,
    PointsOfTopic,
)
from uncertainty_depth.frames.messages.clouds import lidar_points
from uncertainty_depth.frames.messages.compressed import claimed_size
from uncertainty_depth.frames.messages.decoding import stamp_ns
from uncertainty_depth.frames.protocol import IsWanted
from uncertainty_depth.frames.recording import OpenRecording, Recording
from uncertainty_depth.frames.topics import (
    NO_PREDICTIONS,
    TopicChooser,
    camera_info_beside,
    transform_topics,
)
from uncertainty_depth.frames.transforms import (
    FixedExtrinsics,
    Odometry,
    TransformTree,
    TreeExtrinsics,
)

MOVING = 1000
"""How many messages on /tf are searched for a connection."""
FIRST_INFOS = 100
"""First camera infos among which one must be usable."""


class BagSource:
    """The camera images of a bag as frames, each read exactly once, in order. A `Source`.

    An image's camera comes from the camera info of its time. Images that are not rectified
    according to it are rectified, unless the option distorted_images says otherwise. The image's
    frame_id is the optical frame; if it is empty, the camera info's is used.

    Attributes:
        lidar_to_camera: (4, 4) float64, for the bag's first image and cloud; None if it moves, for
            several LiDARs, or if the bag has no image or cloud.
        depth_range: min and max depth of what predicts the frames, metres, for the unit of what
            other topics measure; None if nothing predicts.
    """

    def __init__(
        self,
        path: Path,
        config: SourceConfig,
        predictions: PredictionTopics = NO_PREDICTIONS,
        meaning: PredictionConfig = PredictionConfig(),  # noqa: B008  frozen
    ) -> None:
        """Find topics, camera and extrinsics, or raise `SourceError`.

        `predictions` replace the image.
        """
        self.name = str(path)
        self._config = config
        self._predictions = predictions
        self._meaning = meaning
        self.recording = Recording(path)
        self.notes = self.recording.notes
        self.rectifier: Rectifier | None = None
        self.lidar_to_camera: NDArray[np.float64] | None = None
        self.depth_range: tuple[float, ...] | None = None
        self._camera_info: Any | None = None  # the first message
        self._truth_camera_info: Any | None = None
        self._camera_frame = ""  # the first image's, or that of its camera info
        self._fixed: FixedExtrinsics | None = None  # the LiDARs' poses, if options give them
        self._transforms = TransformTree()  # the fixed ones
        self._moving_topics: list[str] = []  # of moving transforms
        self._transform_topics: list[str] = []  # those of them that are needed
        try:
            with self.recording.open() as bag:
                self._set_up(bag)
        except SourceError as error:
            raise SourceError("; ".join([str(error), *self.notes])) from error

    def __len__(self) -> int:
        """Return how many camera images there are; in a truncated bag, those that can be read."""
        return self._image_count

    def __iter__(self) -> Iterator[Frame | Skipped]:
        """Yield every camera image once, as a frame or the reason why it cannot be scored."""
        return self.read()

    def read(self, is_wanted: IsWanted | None = None) -> Iterator[Frame | Skipped]:
        """Yield as iteration does, with undecoded `UNWANTED` for images that are not wanted."""
        topics = self.topics
        transforms = self._transforms.copy()
        frames = self._assembly(transforms)
        frames.is_wanted = is_wanted
        damaged: Counter[str] = Counter()
        unusable: list[str] = []
        images = 0
        with self.recording.open() as bag:
            read = [*frames.topics(), *self._transform_topics]
            lost = {topic: count for topic, count in bag.lost().items() if topic in read}
            for topic, message in bag.messages(read):
                images += topic == topics.image
                if message is None and topic in frames.reference_topics:
                    sentence = f"an image message on {topic} cannot be deserialised"
                    yield Skipped(None, "image_message_damaged", sentence)
                elif message is None:
                    damaged[topic] += 1
                elif topic in self._transform_topics:
                    unusable += transforms.add_message(message, is_moving=True)
                    yield from frames.decided()
                else:
                    yield from frames.add(topic, message)
            yield from frames.finish()
            if bag.is_damaged:
                sentence = f"an image message on {topics.image} lies in a damaged part of the bag"
                for _ in range(len(self) - images):
                    yield Skipped(None, "image_message_lost", sentence)
        moved = [note for note in transforms.notes() if note not in self._transforms.notes()]
        losses = [*frames.losses(), *moved]
        for topic, count in damaged.items():
            losses.append(f"{_messages(count, topic)} cannot be deserialised")
        for topic, (transport, recorder) in lost.items():
            losses.append(
                f"the recorder lost {_messages(transport + recorder, topic)} ({transport} in "
                f"transport, {recorder} by itself)"
            )
        if unusable:
            losses.append(
                f"{len(unusable)} transforms on /tf are left out; the first: {unusable[0]}"
            )
        for sentence in losses:
            self.recording.note(f"{self.name}: {sentence}")

    def _assembly(self, transforms: TransformTree) -> Assembly:
        """Return the assembly that makes frames from one pass's messages."""
        config = self._config
        topics = self.topics
        cameras = self._cameras()
        if self._camera_info is not None:
            cameras.add(self._camera_info)
        ground_truth: GroundTruth
        if topics.depth_image:
            of_depth = None
            if self._predictions.depth_topic:
                topic = topics.truth_camera_info or camera_info_beside(topics.depth_image)
                of_depth = Cameras(topic, RECTIFY)
                if self._truth_camera_info is not None:
                    of_depth.add(self._truth_camera_info)
            ground_truth = DepthImageGroundTruth(cameras, of_depth)
        else:
            extrinsics = self._fixed or TreeExtrinsics(transforms, config.fixed_frame)
            ground_truth = LidarGroundTruth(extrinsics)
        parts = (topics, cameras, ground_truth, config.max_time_difference)
        measured = self._measured(transforms, cameras)
        if not self._predictions.depth_topic:
            frame = config.odometry_frame
            return ImageAssembly(
                *parts,
                odometry=Odometry(transforms, frame) if frame else None,
                measured=measured,
                max_pixels=config.max_pixels,
            )
        from uncertainty_depth.frames.map_assembly import MapAssembly  # of recorded depth alone

        return MapAssembly(
            *parts,
            measured=measured,
            confidence_topic=self._predictions.confidence_topic,
            meaning=self._meaning,
            report_topic=config.image_topic,
        )

    def _measured(self, transforms: TransformTree, cameras: Cameras) -> list[MeasuredTopic]:
        """Return what other topics measure in the images."""
        config = self._config
        readers: dict[str, PointsOfTopic | DepthOfTopic] = {}
        if topic := config.measured_depth_topic:
            readers[topic] = DepthOfTopic(cameras.at, self.recording.note)
        if topic := config.measured_points_topic:
            extrinsics = TreeExtrinsics(transforms, config.fixed_frame)
            readers[topic] = PointsOfTopic(extrinsics, config.fixed_frame)
        return [MeasuredTopic(topic, it, self.depth_range) for topic, it in readers.items()]

    def _cameras(self) -> Cameras:
        distorted = self._config.distorted_images
        if self._predictions.depth_topic and distorted == RECTIFY:
            distorted = KEEP  # a distorted camera's maps are scored unchanged
        return Cameras(self.topics.camera_info, distorted)

    def _set_up(self, bag: OpenRecording) -> None:
        """Find topics, camera and extrinsics: all that is known before a frame is read."""
        chooser = TopicChooser(self.name, bag.topics, self._config, bag.first, self._predictions)
        topics = self.topics = chooser.choose()
        self._image_count = bag.topics[topics.image].count
        image = self._read_camera(bag)
        config = self._config
        of_lidar = bool(topics.lidars) and not config.lidar_to_camera
        if of_lidar or config.odometry_frame or config.measured_points_topic:
            self._read_fixed_transforms(bag)
        truths = [truth for truth in map(bag.first, topics.ground_truths) if truth is not None]
        if topics.depth_image:
            self._note_registration(truths)
            if topics.truth_camera_info:
                self._truth_camera_info = bag.first(topics.truth_camera_info)
        elif config.lidar_to_camera:
            self._fixed = FixedExtrinsics(config, len(topics.lidars))
            if len(self._fixed.poses) == 1:
                self.lidar_to_camera = self._fixed.poses[0]
        elif image is not None:
            poses = [self._find_extrinsics(bag, cloud) for cloud in truths]
            if len(poses) == 1:
                self.lidar_to_camera = poses[0]
        if config.measured_points_topic:
            points = bag.first(config.measured_points_topic)
            if points is not None and image is not None:
                self._place_points(bag, points.header.frame_id)
        if config.odometry_frame and not self._predictions.depth_topic:
            self._find_odometry(bag)

    def _read_camera(self, bag: OpenRecording) -> Any | None:
        """Read the first camera info, and return the first image; note if they do not agree."""
        topics = self.topics
        image = bag.first(topics.image)
        image_frame = "" if image is None else image.header.frame_id
        if not topics.camera_info:
            self.recording.note(f"{self.name} has no camera info: its images are not rectified")
            self._camera_frame = image_frame
            return image
        cameras = self._cameras()
        problem: MessageError | None = None
        for _, info in islice(bag.messages([topics.camera_info]), FIRST_INFOS):
            if info is None:
                continue
            self._camera_info = self._camera_info or info
            cameras.add(info)
            try:
                self.rectifier = cameras.at(stamp_ns(info.header))
            except MessageError as error:  # a driver's first one may be empty
                problem = problem or error
                continue
            self._camera_frame = image_frame or info.header.frame_id
            break
        if self._camera_info is None:
            raise SourceError(f"{self.name} has no readable message on {topics.camera_info}")
        if self.rectifier is None and problem is not None:
            raise SourceError(f"{topics.camera_info} in {self.name}: {problem}") from problem
        if image is not None and self.rectifier is not None:
            with suppress(MessageError):  # the frame is skipped with this reason in its turn
                width, height = claimed_size(image, self._config.max_pixels)
                cameras.note_size(topics.image, (height, width), self.rectifier)
        for note in cameras.notes:
            self.recording.note(note)
        return image

    def _note_registration(self, maps: Sequence[Any]) -> None:
        """Add a note if a depth image is assumed to be registered to the camera."""
        if self._config.fixed_frame:
            self.recording.note(
                f"fixed_frame {self._config.fixed_frame!r} is not used: the ground truth is "
                "the depth image, which is assumed to be registered"
            )
        image_frame = self._camera_frame
        for message in maps:
            depth_frame = message.header.frame_id
            if image_frame and depth_frame and image_frame.lstrip("/") != depth_frame.lstrip("/"):
                self.recording.note(
                    f"{self.topics.depth_image} is in frame {depth_frame!r}, {self.topics.image} "
                    f"in {image_frame!r}: the depth is assumed to be registered to the image, "
                    "pixel by pixel; otherwise the scores are wrong"
                )

    def _read_fixed_transforms(self, bag: OpenRecording) -> None:
        sensors = (self.topics.image, *self.topics.lidars)
        self._moving_topics = transform_topics(bag.topics, sensors, "tf")
        topics = transform_topics(bag.topics, sensors)
        count = sum(bag.topics[topic].count for topic in topics)
        # Stop reading at the last one: they come first in most bags.
        for topic, message in islice(bag.messages(topics), count):
            if message is None:
                self.recording.note(f"a message on {topic} cannot be deserialised")
                continue
            for sentence in self._transforms.add_message(message):
                self.recording.note(f"{topic}: {sentence}")
        for sentence in self._transforms.notes():
            self.recording.note(sentence)

    def _find_extrinsics(self, bag: OpenRecording, cloud: Any) -> NDArray[np.float64] | None:
        """Return a LiDAR's (4, 4) pose; None, and moving transforms will be read, if it moves."""
        camera_frame = self._camera_frame
        lidar_frame = cloud.header.frame_id
        fixed = self._transforms
        pose = None
        if fixed.is_connected(camera_frame, lidar_frame):
            pose = fixed.lookup(camera_frame, lidar_frame)
        if self._config.fixed_frame:
            self._check_fixed_frame(bag, lidar_frame)
            return pose
        if pose is not None:
            return pose
        moving = self._moving_until(bag, lidar_frame)
        if moving is None:
            try:
                fixed.lookup(camera_frame, lidar_frame)
            except SourceError as error:  # and say what to type
                problem = f"{self.recording.path}: {error}"
                raise SourceError(f"{problem}{_frame_hint(cloud)}") from error
        else:
            option = option_from(moving.lookup(camera_frame, lidar_frame))
            self.recording.note(
                f"{' and '.join(self._moving_topics)} "
                f"connect{'s' if len(self._moving_topics) == 1 else ''} "
                "LiDAR and camera: the transform is interpolated at each cloud's stamp; a fixed "
                f"one, the first, is --lidar-to-camera {option}"
            )
        return None

    def _place_points(self, bag: OpenRecording, frame: str) -> None:
        """Read moving transforms too if they place what measures; raise `SourceError` if none."""
        camera = self._camera_frame
        if self._config.fixed_frame:
            self._check_fixed_frame(bag, frame)
        elif self._transforms.is_connected(frame, camera):
            return
        elif self._moving_until(bag, frame) is None:
            raise SourceError(
                f"{self.recording.path}: {self._config.measured_points_topic} has points in frame "
                f"{frame!r}, which {self._tf_lacks} with the camera frame {camera!r}; expected "
                "the tf of what makes the points, recorded with them, or a frame_id that tf knows"
            )

    @property
    def _tf_lacks(self) -> str:
        topics = " and ".join(self._moving_topics)
        return f"{topics} does not connect" if topics else "no /tf connects"

    def _find_odometry(self, bag: OpenRecording) -> None:
        """Read moving transforms too; raise `SourceError` if they do not place the camera."""
        frame = self._config.odometry_frame
        camera = self._camera_frame
        if self._transforms.is_connected(frame, camera):
            self.recording.note(
                f"odometry_frame {frame!r} is fixed to the camera frame {camera!r} by /tf_static: "
                "there is no motion to measure by; expected a frame that the camera moves in"
            )
            return
        if self._moving_until(bag, frame) is None:
            raise SourceError(
                f"{self.recording.path}: odometry_frame is {frame!r}, which {self._tf_lacks} "
                f"with the camera frame {camera!r}; expected a frame that odometry says the "
                "camera's pose in, as odom or map"
            )

    def _check_fixed_frame(self, bag: OpenRecording, frame: str) -> None:
        """Note how motion is compensated; raise `SourceError` if the frame is not connected."""
        fixed_frame = self._config.fixed_frame
        camera_frame = self._camera_frame
        self._transform_topics = self._moving_topics
        if self._transforms.is_connected(fixed_frame, camera_frame):
            self.recording.note(
                f"fixed_frame {fixed_frame!r} is fixed to the camera frame {camera_frame!r} by "
                "/tf_static: no motion is compensated; expected a frame that the camera moves "
                "in, as odom or map"
            )
            return
        if self._moving_until(bag, fixed_frame, frame) is None:
            raise SourceError(
                f"{self.recording.path}: fixed_frame is {fixed_frame!r}; expected a frame that "
                f"/tf connects with the camera frame {camera_frame!r} and the clouds' frame "
                f"{frame!r}"
            )
        self.recording.note(
            f"{' and '.join(self._moving_topics)}: {frame!r} at each cloud's stamp is taken "
            f"through {fixed_frame!r} to the camera at the image's stamp"
        )

    def _moving_until(self, bag: OpenRecording, *frames: str) -> TransformTree | None:
        """Return the transforms once /tf connects the frames with the camera; None if it does not.

        They are read with the frames from then on.
        """
        self._transform_topics = self._moving_topics
        tree = self._transforms.copy()
        for _, message in islice(bag.messages(self._moving_topics), MOVING):
            if message is None:
                continue
            tree.add_message(message, is_moving=True)
            if all(tree.is_connected(self._camera_frame, frame) for frame in frames):
                return tree
        return None


def _messages(count: int, topic: str) -> str:
    return f"{count} {'message' if count == 1 else 'messages'} on {topic}"


def _frame_hint(cloud: Any) -> str:
    """Return what to type if no transform connects camera and LiDAR."""
    with suppress(MessageError):  # the cloud's frame is skipped with this reason
        points = lidar_points(cloud)
        if len(points) and looks_like_body_frame(points):
            return (
                "; the cloud looks as if it were in a body frame (x forward, z up); the transform "
                "leads to the camera's optical frame (z forward, x right, y down): for a LiDAR "
                f"at the camera's place it is --lidar-to-camera {BODY_TO_OPTICAL_OPTION}"
            )
    return ""
