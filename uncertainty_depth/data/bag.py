"""Frames from a bag: camera images, each with the ground truth that the LiDAR cloud nearest in time gives it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.config import SourceConfig
from uncertainty_depth.data.pairing import Outcome, Pairer
from uncertainty_depth.data.recording import OpenRecording, Recording
from uncertainty_depth.data.topics import choose_topics, transform_topics
from uncertainty_depth.data.transforms import TransformTree
from uncertainty_depth.errors import ConfigError, MessageError, SourceError
from uncertainty_depth.geometry.camera import (
    Camera,
    ground_truth_from_cloud,
    transform_from_option,
)
from uncertainty_depth.messages.camera_info import camera_from_info, is_distorted
from uncertainty_depth.messages.clouds import cloud_points
from uncertainty_depth.messages.images import decode_image
from uncertainty_depth.records import Frame, Skipped

QUEUE_SIZE = 64  # images and clouds held while they wait for each other


class BagSource:
    """The camera images of a bag as frames, each read exactly once, in order. A `Source`.

    The camera is that of the first camera info. The image's frame_id (the camera info's where it is empty) is taken as the optical frame.

    Attributes:
        topics: the names of the image, camera info and LiDAR topics.
        lidar_to_camera: (4, 4) float64, of the bag's first image and cloud; None where it has none of either.
    """

    def __init__(self, path: Path, config: SourceConfig) -> None:
        """Find the topics, the camera and the extrinsics.

        Raises:
            SourceError: where the bag does not exist, cannot be read, or lacks one of these.
        """
        self.name = str(path)
        self._config = config
        self._recording = Recording(path)
        self.notes = self._recording.notes
        self._extrinsics: dict[tuple[str, str], NDArray[np.float64]] = {}
        try:
            with self._recording.open() as bag:
                self._set_up(bag)
        except SourceError as error:
            raise SourceError("; ".join([str(error), *self.notes])) from error

    def _set_up(self, bag: OpenRecording) -> None:
        self.topics = choose_topics(self.name, bag.topics, self._config)
        self._count = bag.topics[self.topics.image].count
        self._camera, self._camera_frame = self._read_camera(bag)
        self._transforms = self._read_transforms(bag)
        self.lidar_to_camera = self._first_extrinsics(bag)

    def __len__(self) -> int:
        """Camera images in the bag; where it is truncated, those that can be read."""
        return self._count

    def __iter__(self) -> Iterator[Frame | Skipped]:
        """Every camera image once, as a frame or as the reason why it cannot be scored."""
        pairer = Pairer(self._config.max_time_difference, QUEUE_SIZE)
        damaged_clouds = 0
        with self._recording.open() as bag:
            for topic, message in bag.messages([self.topics.image, self.topics.lidar]):
                if message is not None:
                    add = pairer.add_reference if topic == self.topics.image else pairer.add_cloud
                    yield from self._frames(add(_stamp_ns(message), message))
                elif topic == self.topics.image:
                    yield Skipped(
                        None,
                        "image_message_damaged",
                        f"an image message on {topic} cannot be deserialised",
                    )
                else:
                    damaged_clouds += 1
        yield from self._frames(pairer.flush())
        self._note_counts(pairer.counts, damaged_clouds)

    def _frames(self, outcomes: Iterable[Outcome]) -> Iterator[Frame | Skipped]:
        for outcome in outcomes:
            try:
                yield self._frame(*outcome)
            except MessageError as error:
                yield Skipped(outcome.stamp_ns, error.reason, str(error))

    def _frame(self, stamp_ns: int, image: Any, cloud: Any | None) -> Frame:
        pixels = decode_image(image)
        if cloud is None:
            within = f"{self._config.max_time_difference} s"
            raise MessageError(
                "no_lidar_within_max_time_difference",
                f"no cloud within {within} of the image at {_seconds(stamp_ns)} s",
            )
        points = cloud_points(cloud)
        if not len(points):
            raise MessageError(
                "cloud_without_points",
                f"the cloud for the image at {_seconds(stamp_ns)} s has no finite point",
            )
        camera = self._camera.scaled(pixels.shape[1], pixels.shape[0])
        ground_truth_m = ground_truth_from_cloud(
            points, self._lidar_to_camera(image, cloud), camera, self._config
        )
        if np.isnan(ground_truth_m).all():
            raise MessageError(
                "no_lidar_point_in_view",
                f"no LiDAR point falls into the image at {_seconds(stamp_ns)} s",
            )
        return Frame(stamp_ns, pixels, camera, ground_truth_m, _seconds(stamp_ns))

    def _lidar_to_camera(self, image: Any, cloud: Any) -> NDArray[np.float64]:
        frames = (image.header.frame_id or self._camera_frame, cloud.header.frame_id)
        if frames not in self._extrinsics:
            try:
                given = self._config.lidar_to_camera
                self._extrinsics[frames] = (
                    transform_from_option(given) if given else self._transforms.lookup(*frames)
                )
            except SourceError as error:
                raise MessageError("no_extrinsics", str(error)) from error
        return self._extrinsics[frames]

    def _read_camera(self, bag: OpenRecording) -> tuple[Camera, str]:
        message = bag.first(self.topics.camera_info)
        if message is None:
            raise SourceError(f"{self.name} has no readable message on {self.topics.camera_info}")
        if is_distorted(message) and "rect" not in self.topics.image:
            self._recording.note(
                f"{self.topics.image} is not rectified: LiDAR points are projected as if its lens had no distortion"
            )
        try:
            return camera_from_info(message), message.header.frame_id
        except MessageError as error:
            raise SourceError(f"{self.topics.camera_info} in {self.name}: {error}") from error

    def _read_transforms(self, bag: OpenRecording) -> TransformTree:
        tree, topics = TransformTree(), transform_topics(bag.topics)
        count = sum(bag.topics[topic].count for topic in topics)
        for topic, message in islice(
            bag.messages(topics), count
        ):  # stops reading at the last one: they come first in most bags
            try:
                if message is not None:
                    tree.add_message(message)
            except ConfigError as error:
                raise SourceError(f"{topic} in {self.name}: {error}") from error
        return tree

    def _first_extrinsics(self, bag: OpenRecording) -> NDArray[np.float64] | None:
        """Says at once, not once per frame, that camera and LiDAR are not connected."""
        image, cloud = (bag.first(topic) for topic in (self.topics.image, self.topics.lidar))
        if image is None or cloud is None:
            return None
        try:
            return self._lidar_to_camera(image, cloud)
        except MessageError as error:
            raise SourceError(f"{self.name}: {error}") from error

    def _note_counts(self, counts: dict[str, int], damaged_clouds: int) -> None:
        jumps = counts["reference_time_jumps"] + counts["cloud_time_jumps"]
        sentences = {
            f"{counts['clouds_unmatched']} clouds belong to no image": counts["clouds_unmatched"],
            f"time jumped back {jumps} times (images and clouds counted each): pairing started anew": jumps,
            f"{damaged_clouds} cloud messages cannot be deserialised": damaged_clouds,
        }
        for sentence, count in sentences.items():
            if count:
                self._recording.note(f"{self.name}: {sentence}")


def _stamp_ns(message: Any) -> int:
    return message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec


def _seconds(stamp_ns: int) -> str:
    return f"{stamp_ns // 1_000_000_000}.{stamp_ns % 1_000_000_000:09d}"
