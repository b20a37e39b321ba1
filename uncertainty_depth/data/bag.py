"""Frames from a bag: camera images, each with the ground truth of the cloud or depth image nearest in time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.config import SourceConfig
from uncertainty_depth.data.ground_truth import (
    DepthImageGroundTruth,
    GroundTruth,
    LidarGroundTruth,
)
from uncertainty_depth.data.pairing import Outcome, Pairer
from uncertainty_depth.data.recording import OpenRecording, Recording
from uncertainty_depth.data.topics import TopicChooser, transform_topics
from uncertainty_depth.data.transforms import TransformTree
from uncertainty_depth.errors import MessageError, SourceError
from uncertainty_depth.geometry.candidate_poses import (
    BODY_TO_OPTICAL_OPTION,
    looks_like_body_frame,
)
from uncertainty_depth.geometry.rectification import Rectifier
from uncertainty_depth.geometry.transforms import option_from
from uncertainty_depth.messages.camera_info import calibration_from_info
from uncertainty_depth.messages.clouds import cloud_points
from uncertainty_depth.messages.depth_images import encoding_of
from uncertainty_depth.messages.images import decode_image
from uncertainty_depth.messages.stamps import frame_name, stamp_ns
from uncertainty_depth.records import Frame, Skipped, in_view

MOVING = 1000  # first messages of /tf that are searched for a pose to name
QUEUE_SIZE = 64  # images and messages of ground truth held while they wait for each other


class BagSource:
    """The camera images of a bag as frames, each read exactly once, in order. A `Source`.

    The camera is that of the first camera info; images that it does not call rectified are, unless
    the option distorted_images says otherwise. The image's frame_id (the camera info's where it is
    empty) is taken as the optical frame.

    Attributes:
        rectifier: the camera, and what is done with its images; None where there is no camera info.
        topics: the names of the image, camera info and ground truth topics.
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
        try:
            with self._recording.open() as bag:
                self._set_up(bag)
        except SourceError as error:
            raise SourceError("; ".join([str(error), *self.notes])) from error

    def _set_up(self, bag: OpenRecording) -> None:
        chooser = TopicChooser(self.name, bag.topics, self._config, partial(_first_encoding, bag))
        self.topics = chooser.choose()
        if unused := chooser.unused_depth_images(self.topics):
            self._recording.note(
                f"the ground truth is the LiDAR, {self.topics.lidar}; --ground-truth-topic takes "
                f"a registered depth image instead: {' or '.join(unused)}"
            )
        self._count = bag.topics[self.topics.image].count
        self.rectifier, self._camera_frame = self._read_camera(bag)
        self._note_camera(bag)
        self._ground_truth, self.lidar_to_camera = self._make_ground_truth(bag)

    def _make_ground_truth(
        self, bag: OpenRecording
    ) -> tuple[GroundTruth, NDArray[np.float64] | None]:
        """The ground truth, and the pose of the LiDAR where it is one."""
        image = bag.first(self.topics.image)
        message = bag.first(self.topics.ground_truth)
        frame_ids = image and self._frame_id(image), message and message.header.frame_id
        if self.topics.depth_image:
            self._note_registration(*frame_ids)
            return DepthImageGroundTruth(self.rectifier), None
        lidar = LidarGroundTruth(self._config, self._read_transforms(bag))
        if None in frame_ids:
            return lidar, None
        try:  # once, not once per frame
            return lidar, lidar.lidar_to_camera(*frame_ids)
        except MessageError as error:
            hints = self._extrinsics_hints(bag, *frame_ids, cloud_points(message))
            sentences = "; ".join([f"{self.name}: {error}", *hints])
            raise SourceError(sentences) from error

    def _extrinsics_hints(
        self,
        bag: OpenRecording,
        camera_frame: str,
        lidar_frame: str,
        points: NDArray[np.float32],
    ) -> Iterator[str]:
        """What to type where /tf_static does not connect camera and LiDAR."""
        tree = self._read_transforms(bag)
        for _, message in islice(bag.messages(transform_topics(bag.topics, "tf")), MOVING):
            if message is not None:
                tree.add_message(message)
        try:
            pose = tree.lookup(camera_frame, lidar_frame)
            yield (
                "with /tf, whose transforms may move and are not used, the first pose is "
                f"--lidar-to-camera {option_from(pose)}"
            )
        except SourceError:
            pass  # /tf does not connect them either
        if len(points) and looks_like_body_frame(points):
            yield (
                "the cloud looks as if it were in a body frame (x forward, z up); the transform "
                "leads to the camera's optical frame (z forward, x right, y down): for a LiDAR "
                f"at the camera's place it is --lidar-to-camera {BODY_TO_OPTICAL_OPTION}"
            )

    def _note_registration(self, image_frame: str | None, depth_frame: str | None) -> None:
        if image_frame and depth_frame and image_frame.lstrip("/") != depth_frame.lstrip("/"):
            self._recording.note(
                f"{self.topics.depth_image} is in frame {depth_frame!r}, {self.topics.image} in "
                f"{image_frame!r}: the depth is taken as registered to the image, pixel by pixel; "
                "if it is not, no score holds"
            )

    def __len__(self) -> int:
        """Camera images in the bag; where it is truncated, those that can be read."""
        return self._count

    def __iter__(self) -> Iterator[Frame | Skipped]:
        """Every camera image once, as a frame or as the reason why it cannot be scored."""
        pairer = Pairer(self._config.max_time_difference, QUEUE_SIZE)
        damaged = 0
        images = 0
        with self._recording.open() as bag:
            for topic, message in bag.messages([self.topics.image, self.topics.ground_truth]):
                images += topic == self.topics.image
                if message is not None:
                    add = pairer.add_reference if topic == self.topics.image else pairer.add_cloud
                    yield from self._frames(add(stamp_ns(message.header), message))
                elif topic == self.topics.image:
                    yield Skipped(
                        None,
                        "image_message_damaged",
                        f"an image message on {topic} cannot be deserialised",
                    )
                else:
                    damaged += 1
        yield from self._frames(pairer.flush())
        if bag.is_damaged:
            yield from self._lost_images(self._count - images)
        self._note_counts(pairer.counts, damaged)

    def _lost_images(self, count: int) -> Iterator[Skipped]:
        for _ in range(count):
            yield Skipped(
                None,
                "image_message_lost",
                f"an image message on {self.topics.image} lies in a damaged part of the bag",
            )

    def _frames(self, outcomes: Iterable[Outcome]) -> Iterator[Frame | Skipped]:
        for outcome in outcomes:
            yield self._frame_or_reason(outcome)

    def _frame_or_reason(self, outcome: Outcome) -> Frame | Skipped:
        time = f"the image at {frame_name(outcome.stamp_ns)} s"
        try:
            return self._frame(*outcome)
        except MessageError as error:
            return Skipped(outcome.stamp_ns, error.reason, f"{time}: {error}")
        except Exception as error:  # one message must not end the run, whatever is wrong with it
            sentence = f"{time} cannot be read: {type(error).__name__}: {error}"
            return Skipped(outcome.stamp_ns, "unreadable", sentence)

    def _frame(self, stamp_ns: int, image: Any, truth: Any | None) -> Frame | Skipped:
        pixels = decode_image(image)
        camera = None
        if self.rectifier is not None:
            pixels, camera = self.rectifier.image(pixels)
        if truth is None:
            within = f"{self._config.max_time_difference} s"
            raise MessageError(
                self._ground_truth.unmatched_reason,
                f"no {self._ground_truth.noun} within {within}",
            )
        ground_truth_m, scan = self._ground_truth.read(
            truth, self._frame_id(image), camera, pixels.shape[:2]
        )
        time = frame_name(stamp_ns)
        frame = Frame(stamp_ns, pixels, camera, ground_truth_m, time, scan)
        if scan is None:
            return frame
        return in_view(frame, f"the image at {time} s: no LiDAR point falls into the image")

    def _frame_id(self, image: Any) -> str:
        return image.header.frame_id or self._camera_frame

    def _read_camera(self, bag: OpenRecording) -> tuple[Rectifier | None, str]:
        if not self.topics.camera_info:
            self._recording.note(
                f"{self.name} has no camera info: its images are taken as they are"
            )
            return None, ""
        message = bag.first(self.topics.camera_info)
        if message is None:
            raise SourceError(f"{self.name} has no readable message on {self.topics.camera_info}")
        try:
            calibration = calibration_from_info(message)
        except MessageError as error:
            raise SourceError(f"{self.topics.camera_info} in {self.name}: {error}") from error
        return Rectifier(calibration, self._config.distorted_images), message.header.frame_id

    def _note_camera(self, bag: OpenRecording) -> None:
        if self.rectifier is None:
            return
        if not self.rectifier.calibration.is_rectified:
            self._recording.note(f"{self.topics.camera_info} is {self.rectifier.describe()}")
        image = bag.first(self.topics.image)
        try:
            height, width = decode_image(image).shape[:2] if image is not None else (0, 0)
        except Exception:  # whatever is wrong with it is counted when its turn comes
            return
        if note := self.rectifier.describe_size(width, height):
            self._recording.note(f"{self.topics.image}: {note}")

    def _read_transforms(self, bag: OpenRecording) -> TransformTree:
        tree = TransformTree()
        topics = transform_topics(bag.topics)
        count = sum(bag.topics[topic].count for topic in topics)
        # Reading stops at the last one: they come first in most bags.
        for topic, message in islice(bag.messages(topics), count):
            if message is None:
                self._recording.note(f"a message on {topic} cannot be deserialised")
                continue
            for sentence in tree.add_message(message):
                self._recording.note(f"{topic}: {sentence}")
        return tree

    def _note_counts(self, counts: dict[str, int], damaged: int) -> None:
        noun = self._ground_truth.noun
        jumps = counts["reference_time_jumps"] + counts["cloud_time_jumps"]
        sentences = {
            f"{counts['clouds_unmatched']} {noun}s belong to no image": counts["clouds_unmatched"],
            f"time jumped back {jumps} times (images and {noun}s counted each): pairing started anew": jumps,
            f"{damaged} {noun} messages cannot be deserialised": damaged,
        }
        for sentence, count in sentences.items():
            if count:
                self._recording.note(f"{self.name}: {sentence}")


def _first_encoding(bag: OpenRecording, topic: str) -> str:
    """The encoding of the first image on `topic`; empty where none can be read."""
    message = bag.first(topic)
    return "" if message is None else encoding_of(message)
