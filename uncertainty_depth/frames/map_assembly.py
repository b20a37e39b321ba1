# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Make frames of depth maps and their sigma, recorded or live, with ground truth as of images."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.config.source import PredictionConfig
from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.records import Frame, RecordedMaps, Skipped, in_view
from uncertainty_depth.frames.assembly import Assembly
from uncertainty_depth.frames.measured import NewestMessages
from uncertainty_depth.frames.messages.decoding import SECOND_NS, frame_name, stamp_ns
from uncertainty_depth.frames.messages.images import (
    UNMATCHED_REASONS,
    decode_image,
    decode_maps,
    has_aspect,
)
from uncertainty_depth.frames.pairing import ExactPairs, Outcome, Unmatched
from uncertainty_depth.frames.published import RecordedInfos


class ReportImage(NamedTuple):
    """A camera image, (h, w, 3) uint8 RGB; registered, it has the maps' size and directions."""

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


class ReportImages(NewestMessages):
    """Camera images on `topic`, empty for none.

    Each prediction is shown with the nearest in time.
    """

    def __init__(self, topic: str, max_time_difference_s: float, queue_size: int) -> None:
        super().__init__(queue_size)
        self.topic = topic
        self._max_time_difference_s = max_time_difference_s
        self._missing = 0
        self._other_frames: tuple[str, str] | None = None
        self._first_problem = ""

    def is_awaited(self, time_ns: int) -> bool:
        """Return whether an image nearer to this time may still come."""
        return bool(self.topic) and not self.has_reached(time_ns)

    def beside(self, header: Any, shape: tuple[int, ...]) -> ReportImage | None:
        """Return the image nearest to a prediction of this header and shape; None without one."""
        if not self.topic:
            return None
        time_ns = stamp_ns(header)
        nearest = self.nearest(time_ns)
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


class MapAssembly(Assembly):
    """Makes frames of depth maps, each with the confidence of its stamp if there is a topic."""

    def __init__(
        self,
        *arguments: Any,
        confidence_topic: str,
        meaning: PredictionConfig,
        report_topic: str = "",
        **options: Any,
    ) -> None:
        """Start without a message; `meaning` is the maps', the rest `Assembly`'s."""
        super().__init__(*arguments, **options)
        if confidence_topic:
            self.reference_topics += (confidence_topic,)
        self._confidence_topic = confidence_topic
        self._meaning = meaning
        self._infos_of_maps = RecordedInfos(self._topics.prediction_info)
        self._pairs = ExactPairs(self._queue_size)
        self._report_images = ReportImages(
            report_topic, self._max_time_difference_s, self._queue_size
        )

    def topics(self) -> list[str]:
        """Return the topics whose messages are taken."""
        others = (self._report_images.topic, self._infos_of_maps.topic)
        return list(dict.fromkeys([*super().topics(), *filter(None, others)]))

    def add(self, topic: str, message: Any) -> Iterator[Frame | Skipped]:
        """Take a message, and return an iterator over what is decided now, in order."""
        if topic == self._report_images.topic:
            self._report_images.add(message)
            return self.decided()
        if topic == self._infos_of_maps.topic:
            self._infos_of_maps.add(message)
            return self.decided()
        return super().add(topic, message)

    def finish(self) -> Iterator[Frame | Skipped]:
        """Yield all waiting images: no more messages come."""
        self._waiting += [self._skipped(item) for item in self._pairs.flush()]
        yield from super().finish()

    def __len__(self) -> int:
        return super().__len__() + len(self._pairs)

    def losses(self) -> Iterator[str]:
        """Yield sentences about what was lost or assumed."""
        yield from super().losses()
        yield from self._report_images.losses()

    def _add_reference(self, topic: str, message: Any) -> Iterable[Outcome | Skipped]:
        time_ns = stamp_ns(message.header)
        if not self._confidence_topic:
            self.images += 1
            return self._pairer.add_reference(time_ns, (message, None))
        side = int(topic == self._confidence_topic)
        pair, unmatched = self._pairs.add(side, time_ns, message)
        outcomes: list[Outcome | Skipped] = [self._skipped(item) for item in unmatched]
        if pair is None:  # the first map of its stamp
            self.images += 1
        else:
            outcomes += self._pairer.add_reference(time_ns, pair)
        return outcomes

    def _is_awaited(self, outcome: Outcome) -> bool:
        others = (self._report_images, self._infos_of_maps)
        is_other_awaited = any(other.is_awaited(outcome.stamp_ns) for other in others)
        return is_other_awaited or super()._is_awaited(outcome)

    def _skipped(self, item: Unmatched) -> Skipped:
        """Return the reason of an image whose partner never came."""
        topics = (self._topics.image, self._confidence_topic)
        advice = "" if item.side else "; a depth without a confidence has confidence_type none"
        sentence = (
            f"the image on {topics[item.side]} at {frame_name(item.stamp_ns)} s has no partner of "
            f"the same stamp on {topics[1 - item.side]}; expected depth and confidence of one "
            f"camera, whose driver gives both the stamp of the exposure{advice}"
        )
        return Skipped(item.stamp_ns, UNMATCHED_REASONS[item.side], sentence)

    def _frame(
        self, time_ns: int, reference: Any, truth: tuple[Any, ...] | None
    ) -> Frame | Skipped:
        depth, confidence = decode_maps(reference[0], reference[1], self._meaning)
        camera = self._camera(time_ns, depth.shape)
        ground_truth_m, scan = self._read_ground_truth(truth, reference, camera, depth.shape)
        report_image = self._report_images.beside(reference[0].header, depth.shape)
        name = frame_name(time_ns)
        frame = Frame(
            time_ns,
            name,
            camera,
            ground_truth_m=ground_truth_m,
            scan=scan,
            measurements=self._measurements(reference, camera, (depth.shape[0], depth.shape[1])),
            recorded=RecordedMaps(depth, confidence, *self._infos_of_maps.of(time_ns)),
        )
        if report_image is not None:
            frame = replace(frame, **report_image._asdict())
        if scan is None:
            return frame
        sentence = "no LiDAR point projects into the depth image"
        return in_view(frame, f"the image at {name} s: {sentence}")

    def _camera(self, time_ns: int, shape: tuple[int, ...]) -> Camera | None:
        """Return the camera for maps in this shape; None if unknown and no LiDAR needs it."""
        try:
            rectifier = self.cameras.at(time_ns)
            if rectifier is None:
                return None
            self.cameras.note_size(self._topics.image, shape, rectifier)
            return rectifier.camera(shape[1], shape[0])
        except MessageError:
            if self._topics.lidars:
                raise
            return None
