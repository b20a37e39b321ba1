# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""One pass over a bag: images or recorded predictions are paired with ground truth, to frames."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.config import SourceConfig
from uncertainty_depth.config.prediction import PredictionConfig
from uncertainty_depth.errors import MessageError
from uncertainty_depth.frames.ground_truth import GroundTruth, Viewpoint
from uncertainty_depth.frames.pairing import ExactPairs, NearestClouds, Outcome, Unmatched
from uncertainty_depth.frames.recording import OpenRecording, Recording
from uncertainty_depth.frames.topics import Topics
from uncertainty_depth.frames.transforms import TransformTree
from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.geometry.rectification import KEEP, Rectifier
from uncertainty_depth.messages.camera_info import description_key
from uncertainty_depth.messages.depth_images import UNMATCHED_REASONS, decode_maps, has_aspect
from uncertainty_depth.messages.images import decode_image
from uncertainty_depth.messages.stamps import SECOND_NS, frame_name, stamp_ns
from uncertainty_depth.records import Frame, RecordedMaps, Scan, Skipped, in_view

QUEUE_SIZE = 64  # images and messages of ground truth held while they wait for each other


IsWanted = Callable[[int], bool]
"""Tells whether the image of this number is wanted, once it is known to have ground truth."""


def every(index: int) -> bool:
    """Want every image."""
    return True


class Layout(NamedTuple):
    """What is known of a bag before its frames are read.

    Attributes:
        topics: that frames are made of.
        image_count: messages on the image topic.
        rectifier: of the camera; None without camera info.
        camera_frame: optical frame of images that name none.
        ground_truth: how its messages become ground truth.
        transforms: the fixed ones.
        transform_topics: of moving transforms, where they are needed.
    """

    topics: Topics
    image_count: int
    rectifier: Rectifier | None
    camera_frame: str
    ground_truth: GroundTruth
    transforms: TransformTree
    transform_topics: list[str]


class BagFrames(ABC):
    """The state of one pass: images and clouds that wait for each other, and for transforms."""

    def __init__(self, recording: Recording, layout: Layout, config: SourceConfig) -> None:
        self._recording = recording
        self._layout = layout
        self._max_time_difference = config.max_time_difference
        self._max_pixels = config.max_pixels
        self._pairer = NearestClouds(
            layout.topics.ground_truths, config.max_time_difference, QUEUE_SIZE
        )
        self._waiting: deque[Outcome | Skipped] = deque()
        self._transforms = layout.transforms.copy()
        self._images = 0
        self._decided = 0
        self._is_wanted: IsWanted = every
        self._damaged: Counter[str] = Counter()
        self._unusable_transforms: list[str] = []
        self._calibration: tuple[Any, ...] | None = None
        self._calibration_changes_ns: list[int] = []

    def read(
        self, bag: OpenRecording, is_wanted: IsWanted = every
    ) -> Iterator[Frame | Skipped | None]:
        """Yield every camera image once, as a frame or as the reason why it cannot be scored.

        An image that is not wanted is not decoded: it is None.
        """
        self._is_wanted = is_wanted
        topics = self._layout.topics
        for topic, message in bag.messages(self._topics()):
            self._images += topic == topics.image
            if message is not None:
                self._waiting.extend(self._outcomes(topic, message))
                yield from self._complete_frames()
                continue
            self._damaged[topic] += 1
            if topic in self._reference_topics():
                sentence = f"an image message on {topic} cannot be deserialised"
                yield Skipped(None, "image_message_damaged", sentence)
        self._waiting.extend(self._last_outcomes())
        while self._waiting:
            yield self._frame_or_reason(self._waiting.popleft())
        if bag.is_damaged:
            sentence = f"an image message on {topics.image} lies in a damaged part of the bag"
            for _ in range(self._layout.image_count - self._images):
                yield Skipped(None, "image_message_lost", sentence)
        for sentence in self._losses():
            self._recording.note(f"{self._recording.path}: {sentence}")

    def _topics(self) -> list[str]:
        """Return the topics that are read."""
        topics = self._layout.topics
        names = [
            *self._reference_topics(),
            *topics.ground_truths,
            *self._layout.transform_topics,
        ]
        return [*names, topics.camera_info] if topics.camera_info else names

    @abstractmethod
    def _reference_topics(self) -> tuple[str, ...]:
        """Return the topics of what is paired with ground truth."""

    @abstractmethod
    def _add_reference(self, topic: str, message: Any) -> Iterable[Outcome | Skipped]:
        """Take in a message of `_reference_topics`; return what it decides."""

    @abstractmethod
    def _header(self, reference: Any) -> Any:
        """Return the header of what is paired with ground truth."""

    @abstractmethod
    def _frame(
        self, time_ns: int, reference: Any, truth: tuple[Any, ...] | None
    ) -> Frame | Skipped:
        """Return the frame of a reference and its messages of ground truth."""

    def _last_outcomes(self) -> Iterable[Outcome | Skipped]:
        """Return what is decided at the end of the bag."""
        return self._pairer.flush()

    def _outcomes(self, topic: str, message: Any) -> Iterable[Outcome | Skipped]:
        """Take in a message; return the images whose ground truth it decides."""
        topics = self._layout.topics
        if topic in self._reference_topics():
            return self._add_reference(topic, message)
        if topic in topics.ground_truths:
            return self._pairer.add_cloud(topic, stamp_ns(message.header), message)
        if topic == topics.camera_info:
            self._compare_calibration(message)
        else:
            self._unusable_transforms += self._transforms.add_message(message, is_moving=True)
        return ()

    def _compare_calibration(self, message: Any) -> None:
        key = description_key(message)
        if self._calibration not in (None, key):
            self._calibration_changes_ns.append(stamp_ns(message.header))
        self._calibration = key

    def _complete_frames(self) -> Iterator[Frame | Skipped | None]:
        while self._waiting and not self._is_awaited(self._waiting[0]):
            yield self._frame_or_reason(self._waiting.popleft())

    def _is_awaited(self, outcome: Outcome | Skipped) -> bool:
        """Return whether transforms that the outcome needs may still come."""
        if isinstance(outcome, Skipped) or not self._layout.transform_topics:
            return False
        if outcome.cloud is None:
            return False
        if len(self._waiting) > QUEUE_SIZE:
            return False
        viewpoint = self._viewpoint(outcome.reference)
        return self._layout.ground_truth.is_awaited(outcome.cloud, viewpoint, self._transforms)

    def _frame_or_reason(self, outcome: Outcome | Skipped) -> Frame | Skipped | None:
        index = self._decided
        self._decided += 1
        if isinstance(outcome, Skipped):
            return outcome
        if outcome.cloud is not None and not self._is_wanted(index):
            return None
        image = f"the image at {frame_name(outcome.stamp_ns)} s"
        try:
            return self._frame(outcome.stamp_ns, outcome.reference, outcome.cloud)
        except MessageError as error:
            return Skipped(outcome.stamp_ns, error.reason, f"{image}: {error}")
        except Exception as error:  # one message must not end the run, whatever is wrong with it
            sentence = f"{image} cannot be read: {type(error).__name__}: {error}"
            return Skipped(outcome.stamp_ns, "unreadable", sentence)

    def _ground_truth(
        self,
        truth: tuple[Any, ...] | None,
        reference: Any,
        camera: Camera | None,
        shape: tuple[int, ...],
    ) -> tuple[NDArray[np.float32], Scan | None]:
        """Return the ground truth of a reference of this shape, see `GroundTruth.read`."""
        ground_truth = self._layout.ground_truth
        if truth is None:
            raise MessageError(
                ground_truth.unmatched_reason,
                f"no {ground_truth.noun} within {self._max_time_difference} s",
            )
        size = (shape[0], shape[1])
        viewpoint = self._viewpoint(reference)
        return ground_truth.read(truth, viewpoint, camera, size, self._transforms)

    def _viewpoint(self, reference: Any) -> Viewpoint:
        header = self._header(reference)
        return Viewpoint(header.frame_id or self._layout.camera_frame, stamp_ns(header))

    def _losses(self) -> Iterator[str]:
        topics = self._layout.topics
        noun = self._layout.ground_truth.noun
        counts = self._pairer.counts
        if unmatched := counts["clouds_unmatched"]:
            yield f"{unmatched} {noun}s had no matching image"
        if jumps := counts["reference_time_jumps"] + counts["cloud_time_jumps"]:
            yield (
                f"time jumped back {jumps} times (images and {noun}s counted each): "
                "pairing restarted"
            )
        for topic, images in self._pairer.incomplete.items():
            yield f"{images} images are scored without a {noun} of {topic}: none is near in time"
        if damaged := sum(self._damaged[topic] for topic in topics.ground_truths):
            yield f"{damaged} {noun} messages cannot be deserialised"
        for topic in (topics.camera_info, *self._layout.transform_topics):
            if damaged := self._damaged[topic]:
                yield f"{damaged} messages on {topic} cannot be deserialised"
        if unusable := self._unusable_transforms:
            yield f"{len(unusable)} transforms on /tf are left out; the first: {unusable[0]}"
        if changes_ns := self._calibration_changes_ns:
            yield (
                f"{topics.camera_info} changes {len(changes_ns)} times, first at "
                f"{frame_name(changes_ns[0])} s: all images are taken with its first message; "
                "record each calibration in a bag of its own"
            )


class ImageFrames(BagFrames):
    """One pass over the camera images of a bag."""

    def _reference_topics(self) -> tuple[str, ...]:
        return (self._layout.topics.image,)

    def _add_reference(self, topic: str, message: Any) -> Iterable[Outcome | Skipped]:
        return self._pairer.add_reference(stamp_ns(message.header), message)

    def _header(self, reference: Any) -> Any:
        return reference.header

    def _frame(
        self, time_ns: int, reference: Any, truth: tuple[Any, ...] | None
    ) -> Frame | Skipped:
        pixels = decode_image(reference, self._max_pixels)
        camera = None
        if self._layout.rectifier is not None:
            pixels, camera = self._layout.rectifier.image(pixels)
        ground_truth_m, scan = self._ground_truth(truth, reference, camera, pixels.shape)
        name = frame_name(time_ns)
        frame = Frame(time_ns, name, camera, pixels, ground_truth_m=ground_truth_m, scan=scan)
        if scan is None:
            return frame
        return in_view(frame, f"the image at {name} s: no LiDAR point falls into the image")


class ReportImage(NamedTuple):
    """A camera image for the report.

    Attributes:
        image: (h, w, 3) uint8 RGB, of the size of the maps where it is registered.
        is_registered: a pixel of it and of the maps look in the same direction.
    """

    image: NDArray[np.uint8]
    is_registered: bool


def fitted(image: NDArray[np.uint8], shape: tuple[int, ...], same_camera: bool) -> ReportImage:
    """Return the image at the size (H, W) of maps that are of its camera and have its aspect."""
    if not (same_camera and has_aspect(image.shape, shape)):
        return ReportImage(image, False)
    if image.shape[:2] != shape[:2]:
        size = (shape[1], shape[0])
        image = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)
    return ReportImage(image, True)


class ReportImages:
    """Images of a topic, of which each prediction is shown with the one nearest in time.

    Attributes:
        topic: of the images; empty shows none.
    """

    def __init__(self, topic: str, max_time_difference_s: float, queue_size: int) -> None:
        self.topic = topic
        self._max_time_difference_s = max_time_difference_s
        self._messages: deque[Any] = deque(maxlen=queue_size)
        self._newest_ns: int | None = None
        self._missing = 0
        self._other_frames: tuple[str, str] | None = None
        self._first_problem = ""

    def add(self, message: Any) -> None:
        """Take the next image."""
        self._newest_ns = stamp_ns(message.header)
        self._messages.append(message)

    def is_awaited(self, time_ns: int) -> bool:
        """Return whether an image nearer to this time may still come."""
        return bool(self.topic) and (self._newest_ns is None or self._newest_ns < time_ns)

    def beside(self, header: Any, shape: tuple[int, ...]) -> ReportImage | None:
        """Return the image nearest to a prediction of this header and shape; None without one."""
        if not self.topic:
            return None
        time_ns = stamp_ns(header)
        nearest = min(
            self._messages,
            key=lambda message: abs(stamp_ns(message.header) - time_ns),
            default=None,
        )
        tolerance_ns = round(self._max_time_difference_s * SECOND_NS)
        if nearest is None or abs(stamp_ns(nearest.header) - time_ns) > tolerance_ns:
            self._missing += 1
            return None
        try:
            image = decode_image(nearest)
        except MessageError as error:
            self._missing += 1
            self._first_problem = self._first_problem or f"; {error}"
            return None
        frames = (nearest.header.frame_id.lstrip("/"), header.frame_id.lstrip("/"))
        is_same = frames[0] == frames[1] or not all(frames)
        if not is_same:
            self._other_frames = frames
        return fitted(image, shape, is_same)

    def losses(self) -> Iterator[str]:
        """Yield sentences on what is not shown."""
        if self._missing:
            yield (
                f"{self._missing} predictions are shown without a camera image: {self.topic} has "
                f"none that can be read within {self._max_time_difference_s} s"
                f"{self._first_problem}"
            )
        if self._other_frames is not None:
            yield (
                f"{self.topic} is in frame {self._other_frames[0]!r}, the depth in "
                f"{self._other_frames[1]!r}: the image is shown beside the maps, and no LiDAR is "
                "drawn on it"
            )


class RecordedFrames(BagFrames):
    """One pass over the predictions of a bag."""

    def __init__(
        self,
        recording: Recording,
        layout: Layout,
        config: SourceConfig,
        confidence_topic: str,
        meaning: PredictionConfig,
    ) -> None:
        super().__init__(recording, layout, config)
        self._confidence_topic = confidence_topic
        self._meaning = meaning
        self._pairs = ExactPairs(QUEUE_SIZE)
        self._report_images = ReportImages(
            config.image_topic, config.max_time_difference, QUEUE_SIZE
        )

    def _topics(self) -> list[str]:
        names = super()._topics()
        report_topic = self._report_images.topic
        return names if not report_topic or report_topic in names else [*names, report_topic]

    def _reference_topics(self) -> tuple[str, ...]:
        names = (self._layout.topics.image, self._confidence_topic)
        return tuple(filter(None, names))

    def _add_reference(self, topic: str, message: Any) -> Iterable[Outcome | Skipped]:
        time_ns = stamp_ns(message.header)
        if not self._confidence_topic:
            return self._pairer.add_reference(time_ns, (message, None))
        side = int(topic == self._confidence_topic)
        pair, unmatched = self._pairs.add(side, time_ns, message)
        outcomes: list[Outcome | Skipped] = [self._skipped(item) for item in unmatched]
        if pair is not None:
            outcomes += self._pairer.add_reference(time_ns, pair)
        return outcomes

    def _outcomes(self, topic: str, message: Any) -> Iterable[Outcome | Skipped]:
        if topic == self._report_images.topic:
            self._report_images.add(message)
            return ()
        return super()._outcomes(topic, message)

    def _is_awaited(self, outcome: Outcome | Skipped) -> bool:
        if isinstance(outcome, Skipped) or len(self._waiting) > QUEUE_SIZE:
            return False
        return super()._is_awaited(outcome) or self._report_images.is_awaited(outcome.stamp_ns)

    def _last_outcomes(self) -> Iterable[Outcome | Skipped]:
        unmatched = [self._skipped(item) for item in self._pairs.flush()]
        return [*unmatched, *super()._last_outcomes()]

    def _skipped(self, item: Unmatched) -> Skipped:
        """Return the reason of an image whose partner never came."""
        topics = (self._layout.topics.image, self._confidence_topic)
        sentence = (
            f"the image on {topics[item.side]} at {frame_name(item.stamp_ns)} s has no partner of "
            f"the same stamp on {topics[1 - item.side]}; expected depth and confidence of one "
            "camera, whose driver gives both the stamp of the exposure"
        )
        return Skipped(item.stamp_ns, UNMATCHED_REASONS[item.side], sentence)

    def _header(self, reference: Any) -> Any:
        return reference[0].header

    def _frame(
        self, time_ns: int, reference: Any, truth: tuple[Any, ...] | None
    ) -> Frame | Skipped:
        depth, confidence = decode_maps(reference[0], reference[1], self._meaning)
        height, width = depth.shape
        camera = self._camera(width, height)
        ground_truth_m, scan = self._ground_truth(truth, reference, camera, depth.shape)
        report_image = self._report_images.beside(reference[0].header, depth.shape)
        name = frame_name(time_ns)
        frame = Frame(
            time_ns,
            name,
            camera,
            ground_truth_m=ground_truth_m,
            scan=scan,
            recorded=RecordedMaps(depth, confidence),
        )
        if report_image is not None:
            frame = replace(frame, **report_image._asdict())
        sentence = "no LiDAR point projects into the depth image"
        return in_view(frame, f"the image at {name} s: {sentence}")

    def _losses(self) -> Iterator[str]:
        yield from super()._losses()
        yield from self._report_images.losses()

    def _camera(self, width: int, height: int) -> Camera | None:
        """Return the camera of maps of this size, distorted if they are of raw images."""
        rectifier = self._layout.rectifier
        if rectifier is None:
            return None
        calibration = rectifier.calibration
        keeps = rectifier.distorted_images == KEEP and not calibration.is_rectified
        return (calibration.raw if keeps else calibration.rectified).for_image(width, height)
