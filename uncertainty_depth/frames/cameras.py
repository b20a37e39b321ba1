# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Each image's camera, from the camera infos around it, live and in a bag alike."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.geometry.rectification import KEEP, Rectifier
from uncertainty_depth.frames.messages.camera_info import (
    description_key,
    oddities,
    rectifier_from_info,
)
from uncertainty_depth.frames.messages.compressed import claimed_size
from uncertainty_depth.frames.messages.decoding import stamp_ns
from uncertainty_depth.frames.messages.images import decode_image

MAX_CHANGES = 64
"""Calibrations kept: images wait for ground truth for seconds, zoom lenses change slowly."""
MAX_NOTES = 20
MIN_SEEN = 0.5
"""Share of a rectified image; below it, it is said."""
logger = logging.getLogger(__name__)


class _Problem(NamedTuple):
    """Why a camera info cannot be used. An exception would keep what was at work when raised."""

    reason: str
    sentence: str


class _TimedCamera(NamedTuple):
    """A calibration that holds from its first message's stamp on."""

    since_ns: int
    key: tuple[Any, ...] | None
    rectifier: Rectifier | _Problem


class Cameras:
    """A camera's infos: each holds from its stamp until the next one.

    An image before the first uses the first. A driver may send the info of an image after it: see
    `is_awaited`. As long as the messages do not change, the calibration is the same object, so its
    rays and maps are computed once.

    Attributes:
        is_published: returns whether anybody publishes the infos, which then may still come.
        changes: how often a camera info differed from the previous one.
        first_change_ns: stamp of the first that differed; None if all are equal.
    """

    def __init__(
        self,
        topic: str,
        distorted_images: str = KEEP,
        is_published: Callable[[], bool] = lambda: False,
    ) -> None:
        """Start without a camera info; `distorted_images` is what to do with raw images."""
        self.topic = topic
        self.is_published = is_published
        self.changes = 0
        self.first_change_ns: int | None = None
        self._distorted_images = distorted_images
        self._calibrations: deque[_TimedCamera] = deque(maxlen=MAX_CHANGES)
        self._first_ns: int | None = None
        self._newest_ns: int | None = None
        self._image_ns: int | None = None
        self._comes_with_images = False
        self._frame_id = ""
        self._notes: dict[str, None] = {}
        self._looked_at: tuple[Rectifier, int, int] | None = None

    def __bool__(self) -> bool:
        """Return whether a camera info has come, usable or not."""
        return bool(self._calibrations)

    def add(self, message: Any) -> None:
        """Take a camera info; `at` rejects an invalid one."""
        stamp = stamp_ns(message.header)
        self._frame_id = message.header.frame_id or self._frame_id
        if self._first_ns is None:
            self._first_ns = stamp
        self._comes_with_images |= stamp == self._image_ns or stamp != self._first_ns
        went_back = self._newest_ns is not None and stamp < self._newest_ns
        self._newest_ns = stamp
        key: tuple[Any, ...] | None = None
        try:
            key = description_key(message)
            if self._calibrations and key == self._calibrations[-1].key and not went_back:
                return
            earlier = (item.rectifier for item in self._calibrations if item.key == key)
            known = next((one for one in earlier if isinstance(one, Rectifier)), None)  # a loop
            rectifier: Rectifier | _Problem = known or rectifier_from_info(
                message, self._distorted_images
            )
        except MessageError as error:
            rectifier = _Problem(error.reason, str(error))
        if self._calibrations and key != self._calibrations[-1].key:
            self.changes += 1
            self.first_change_ns = self.first_change_ns or stamp
        self._calibrations.append(_TimedCamera(stamp, key, rectifier))
        if not isinstance(rectifier, Rectifier):
            return
        if not rectifier.is_rectified:
            self._note(f"{self.topic} is {rectifier.describe()}")
        for oddity in oddities(message):
            sentence = f"{self.topic} {oddity}"
            if self._note(sentence):
                logger.warning(sentence)

    def at(self, time_ns: int) -> Rectifier | None:
        """Return the rectifier at a stamp, None if nobody publishes.

        Raise `MessageError` if none came.
        """
        if self.is_missing:
            raise MessageError(
                "no_camera_info",
                f"nothing has come on {self.topic}, which is published: whether the image is "
                "rectified is not known",
            )
        if not self._calibrations:
            return None
        newest_first = reversed(tuple(self._calibrations))  # another thread may add one
        in_force = next(
            (item for item in newest_first if item.since_ns <= time_ns), self._calibrations[0]
        )
        if isinstance(in_force.rectifier, _Problem):
            raise MessageError(*in_force.rectifier)
        return in_force.rectifier

    @property
    def is_missing(self) -> bool:
        """Whether no camera info has come, although they are published."""
        return not self._calibrations and self.is_published()

    def expect(self, time_ns: int) -> None:
        """Take the stamp of an image that came; one of a camera info's tells that each has one."""
        self._image_ns = time_ns
        self._comes_with_images |= time_ns == self._newest_ns

    def is_awaited(self, time_ns: int) -> bool:
        """Return whether an image's camera info may still come: the first, or that of its stamp.

        It does not wait for a driver that publishes a single, latched camera info.
        """
        if self._newest_ns is None:
            return self.is_published()
        return self._comes_with_images and self._newest_ns < time_ns

    def frame_of(self, header: Any) -> str:
        """Return an image's optical frame: its own, or if it names none its camera info's."""
        frame_id: str = header.frame_id
        return frame_id or self._frame_id

    def note_size(self, topic: str, shape: tuple[int, ...], rectifier: Rectifier) -> None:
        """Note an image size that is odd for this camera info, or a lens that fills too little."""
        height, width = shape[:2]
        if self._looked_at == (rectifier, height, width):
            return
        self._looked_at = (rectifier, height, width)
        raw = rectifier.raw
        try:
            if (width, height) != (raw.width, raw.height):
                raw.for_image(width, height)
                self._note(
                    f"{topic}: images are {width}x{height}, their camera info is "
                    f"{raw.width}x{raw.height}: its intrinsics are scaled"
                )
            seen = rectifier.camera(width, height).seen if rectifier.rectifies else None
        except MessageError as error:
            self._note(f"{topic}: {error}")
            return
        if seen is not None and seen.mean() < MIN_SEEN:
            self._note(
                f"{topic}: the lens fills {seen.mean():.0%} of the rectified image, whose other "
                "pixels have no depth: is P of another resolution?"
            )

    def _note(self, sentence: str) -> bool:
        """Return whether the sentence is new, and there is room for it."""
        is_new = sentence not in self._notes and len(self._notes) < MAX_NOTES
        if is_new:
            self._notes[sentence] = None
        return is_new

    @property
    def notes(self) -> list[str]:
        """Sentences for the scores' reader, each once."""
        return list(self._notes)


def rectified_image(
    message: Any, rectifier: Rectifier | None, max_pixels: int
) -> tuple[NDArray[np.uint8], Camera | None]:
    """Return an image decoded and rectified, (H, W, 3) uint8 RGB, and its camera.

    Without a rectifier the image stays as it is and has no camera.

    Raises `MessageError`: as `decode_image`; or the camera does not fit the image, which is then
    not decoded.
    """
    if rectifier is None:
        return decode_image(message, max_pixels), None
    rectifier.camera(*claimed_size(message, max_pixels))
    return rectifier.image(decode_image(message, max_pixels))
