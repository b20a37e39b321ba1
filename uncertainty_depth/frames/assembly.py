# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Make frames from messages by pairing images with ground truth, live and from a bag alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.measurements import Measurements
from uncertainty_depth.core.records import UNWANTED, Frame, Scan, Skipped, in_view
from uncertainty_depth.frames.cameras import Cameras, rectified_image
from uncertainty_depth.frames.measured import GroundTruth, MeasuredTopic
from uncertainty_depth.frames.messages.decoding import check_stamp, frame_name, stamp_ns
from uncertainty_depth.frames.pairing import NearestClouds, Outcome, surplus
from uncertainty_depth.frames.protocol import IsWanted
from uncertainty_depth.frames.topics import Topics
from uncertainty_depth.frames.transforms import Odometry, Viewpoint

QUEUE_SIZE = 64
"""Images, and messages of ground truth, held while they wait for each other."""


class Assembly(ABC):
    """Takes messages in arrival order, and makes each image a frame, or says why not.

    Images wait for their ground truth, their camera info, and the transforms at its stamp. What is
    paired with ground truth, a reference, is a tuple of messages; the first one's header is its.

    Attributes:
        clocks_apart_s: time from the last image to the nearest ground truth, if that is more than
            `max_time_difference_s`; else None.
        is_wanted: returns whether to decode an image that has ground truth; others become
            `UNWANTED`. None for all.
    """

    def __init__(
        self,
        topics: Topics,
        cameras: Cameras,
        ground_truth: GroundTruth,
        max_time_difference_s: float,
        queue_size: int = QUEUE_SIZE,
        odometry: Odometry | None = None,
        measured: Sequence[MeasuredTopic] = (),
    ) -> None:
        """Start without a message; `odometry` gives poses, at most `queue_size` images wait."""
        self.cameras = cameras
        self.images = 0
        self.clocks_apart_s: float | None = None
        self.reference_topics: tuple[str, ...] = (topics.image,)
        self.is_wanted: IsWanted | None = None
        self._decided = 0
        self._unstamped: Counter[str] = Counter()
        self._first_unstamped = ""
        self._last_ns: dict[str, int] = {}  # by topic
        self._topics = topics
        self._ground_truth = ground_truth
        self._max_time_difference_s = max_time_difference_s
        self._queue_size = queue_size
        self._odometry = odometry
        self._measured = {it.topic: it for it in measured}
        self._pairer = NearestClouds(topics.ground_truths, max_time_difference_s, queue_size)
        self._waiting: deque[Outcome | Skipped] = deque()

    def topics(self) -> list[str]:
        """Return the topics whose messages are accepted."""
        topics = self._topics
        names = [*self.reference_topics, *topics.ground_truths, *self._measured]
        infos = filter(None, (topics.camera_info, topics.truth_camera_info))
        return [*names, *dict.fromkeys(infos)]

    def add(self, topic: str, message: Any) -> Iterator[Frame | Skipped]:
        """Take a message, and return an iterator over what it decides, in order."""
        if topic in (self._topics.camera_info, self._topics.truth_camera_info):
            if topic == self._topics.camera_info:  # one may be of images and ground truth
                self.cameras.add(message)
            if topic == self._topics.truth_camera_info and self._ground_truth.cameras is not None:
                self._ground_truth.cameras.add(message)
            return self.decided()
        try:
            self._check_stamp(topic, message.header)
        except MessageError as error:
            self._add_unstamped(topic, error)
            return self.decided()
        time_ns = stamp_ns(message.header)
        if topic in self._topics.ground_truths:
            if self._ground_truth.cameras is not None:
                self._ground_truth.cameras.expect(time_ns)
            self._waiting += self._pairer.add_cloud(topic, time_ns, message)
        elif topic in self._measured:
            self._measured[topic].add(message)
        else:
            self.cameras.expect(time_ns)
            self._waiting += self._add_reference(topic, message)
        return self.decided()

    def _check_stamp(self, topic: str, header: Any) -> None:
        """Raise `MessageError` unusable_stamp or repeated_stamp if nothing can be paired by it."""
        subject = f"a message on {topic}"
        check_stamp(header, subject)
        time_ns = stamp_ns(header)
        if self._last_ns.get(topic) == time_ns:
            raise MessageError(
                "repeated_stamp",
                f"{subject} has the stamp {frame_name(time_ns)} s of the message before it; "
                "expected the time of its own measurement: messages are paired by it",
            )
        self._last_ns[topic] = time_ns

    def _add_unstamped(self, topic: str, error: MessageError) -> None:
        """Skip an image that nothing can be paired with, and count any other message."""
        if topic == self._topics.image:
            self.images += 1
            self._waiting.append(Skipped(None, error.reason, str(error)))
        else:
            self._unstamped[topic] += 1
            self._first_unstamped = self._first_unstamped or str(error)

    def decided(self) -> Iterator[Frame | Skipped]:
        """Yield each image that waits for nothing more, as a frame or the reason for its loss."""
        while self._waiting:
            first = self._waiting[0]
            is_awaited = (
                isinstance(first, Outcome)
                and (first.cloud is not None or self._odometry is not None)
                and self._is_awaited(first)
            )
            if is_awaited and not surplus(self._waiting, self._patience):
                break
            yield self._frame_or_reason(self._waiting.popleft())

    def finish(self) -> Iterator[Frame | Skipped]:
        """Yield all waiting images: no more messages come."""
        self._waiting += self._pairer.flush()
        while self._waiting:
            yield self._frame_or_reason(self._waiting.popleft())

    def __len__(self) -> int:  # of images that wait
        return len(self._pairer) + len(self._waiting)

    @property
    def counts(self) -> dict[str, int]:
        """Counts of the pairing, see `NearestClouds`, and `unstamped` messages beside images."""
        incomplete = self._pairer.incomplete
        without = {f"scored_without_{topic}": count for topic, count in incomplete.items()}
        return {**self._pairer.counts, "unstamped": self._unstamped.total(), **without}

    def losses(self) -> Iterator[str]:
        """Yield sentences about what was lost or assumed."""
        yield from self._ground_truth.notes()
        if self._odometry is not None:
            yield from self._odometry.notes()
        for measured in self._measured.values():
            yield from measured.notes()
        noun = self._ground_truth.noun
        counts = self._pairer.counts
        if unmatched := counts["clouds_unmatched"]:
            yield f"{unmatched} {noun}s had no matching image"
        if jumps := counts["reference_time_jumps"] + counts["cloud_time_jumps"]:
            yield (
                f"time jumped back {jumps} times (images and {noun}s counted each): "
                "pairing restarted"
            )
        if unstamped := self._unstamped.total():
            yield f"{unstamped} messages cannot be paired; the first: {self._first_unstamped}"
        for topic, images in self._pairer.incomplete.items():
            yield f"{images} images are scored without a {noun} of {topic}: none is near in time"
        if (first_ns := self.cameras.first_change_ns) is not None:
            yield (
                f"{self.cameras.topic} changes {self.cameras.changes} times, first at "
                f"{frame_name(first_ns)} s: each image is taken with the one of its time"
            )

    @abstractmethod
    def _add_reference(self, topic: str, message: Any) -> Iterable[Outcome | Skipped]:
        """Take a message of `reference_topics`; return what it decides."""

    @abstractmethod
    def _frame(
        self, time_ns: int, reference: Any, truth: tuple[Any, ...] | None
    ) -> Frame | Skipped:
        """Return the frame of a reference and its messages of ground truth."""

    def _is_awaited(self, outcome: Outcome) -> bool:
        """Return whether what an image still needs may come; without ground truth only a pose."""
        viewpoint = self._viewpoint(outcome.reference)
        if self._odometry is not None and self._odometry.is_awaited(viewpoint):
            return True
        if any(measured.is_awaited(viewpoint) for measured in self._measured.values()):
            return True
        if outcome.cloud is None:
            return False
        return self.cameras.is_awaited(outcome.stamp_ns) or self._ground_truth.is_awaited(
            outcome.cloud, viewpoint
        )

    @property
    def _patience(self) -> int:
        """How many images may wait while the first of them needs something."""
        return self._queue_size

    def _frame_or_reason(self, outcome: Outcome | Skipped) -> Frame | Skipped:
        index = self._decided
        self._decided += 1
        if isinstance(outcome, Skipped):
            return outcome
        if outcome.cloud is not None and self.is_wanted and not self.is_wanted(index):
            return UNWANTED
        image = f"the image at {frame_name(outcome.stamp_ns)} s"
        is_apart = outcome.cloud is None and outcome.apart_ns is not None
        self.clocks_apart_s = (outcome.apart_ns or 0) * 1e-9 if is_apart else None
        try:
            return self._frame(outcome.stamp_ns, outcome.reference, outcome.cloud)
        except MessageError as error:
            return Skipped(outcome.stamp_ns, error.reason, f"{image}: {error}")
        except Exception as error:  # a bad message must not end the run
            sentence = f"{image} cannot be read: {type(error).__name__}: {error}"
            return Skipped(outcome.stamp_ns, "unreadable", sentence)

    def _read_ground_truth(
        self,
        truth: tuple[Any, ...] | None,
        reference: Any,
        camera: Camera | None,
        shape: tuple[int, ...],
    ) -> tuple[NDArray[np.float32], Scan | None]:
        """Return the ground truth of a reference of this shape, see `LidarGroundTruth.read`."""
        if truth is None:
            apart_s = self.clocks_apart_s
            nearest = "" if apart_s is None else f"; the nearest is {apart_s:+.3f} s away"
            if self._first_unstamped:
                nearest += f"; {self._first_unstamped}"
            raise MessageError(
                self._ground_truth.unmatched_reason,
                f"no {self._ground_truth.noun} within {self._max_time_difference_s} s{nearest}",
            )
        viewpoint = self._viewpoint(reference)
        return self._ground_truth.read(truth, viewpoint, camera, (shape[0], shape[1]))

    def _measurements(
        self, reference: Any, camera: Camera | None, shape: tuple[int, int]
    ) -> Measurements | None:
        """Return what other topics measure in a reference of this shape; None for nothing."""
        measurements = None
        for measured in self._measured.values():
            found = measured.measure(self._viewpoint(reference), camera, shape)
            if found is not None:
                measurements = found.beside(measurements)
        return measurements

    def _viewpoint(self, reference: Any) -> Viewpoint:
        header = reference[0].header
        return Viewpoint(self.cameras.frame_of(header), stamp_ns(header))


class ImageAssembly(Assembly):
    """Makes frames from camera images."""

    def __init__(self, *arguments: Any, max_pixels: int, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._max_pixels = max_pixels

    def _add_reference(self, topic: str, message: Any) -> Iterable[Outcome | Skipped]:
        self.images += 1
        return self._pairer.add_reference(stamp_ns(message.header), (message,))

    def _frame(
        self, time_ns: int, reference: Any, truth: tuple[Any, ...] | None
    ) -> Frame | Skipped:
        (message,) = reference
        pixels, camera = rectified_image(message, self.cameras.at(time_ns), self._max_pixels)
        name = frame_name(time_ns)
        pose = None
        if self._odometry is not None:
            pose = self._odometry.pose(self._viewpoint(reference))
        frame = Frame(time_ns, name, camera, pixels, pose=pose)
        try:
            ground_truth_m, scan = self._read_ground_truth(truth, reference, camera, pixels.shape)
        except MessageError as error:
            if self._odometry is None:
                raise
            # It is not scored, but the camera's motion is tracked through it.
            return Skipped(time_ns, error.reason, f"the image at {name} s: {error}", frame)
        frame = replace(
            frame,
            ground_truth_m=ground_truth_m,
            scan=scan,
            measurements=self._measurements(reference, camera, (pixels.shape[0], pixels.shape[1])),
        )
        if scan is None:
            return frame
        return in_view(frame, f"the image at {name} s: no LiDAR point falls into the image")
