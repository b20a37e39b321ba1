# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Camera images that are shown beside recorded predictions; no score depends on them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.errors import MessageError
from uncertainty_depth.messages.depth_images import has_aspect
from uncertainty_depth.messages.images import decode_image
from uncertainty_depth.messages.stamps import SECOND_NS, stamp_ns


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
