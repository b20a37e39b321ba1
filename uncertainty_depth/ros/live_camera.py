# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A node's camera: live, each image gets the camera info that it gets from a bag."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from sensor_msgs.msg import CameraInfo, CompressedImage, Image
from std_msgs.msg import Header

from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.geometry.rectification import KEEP, Rectifier
from uncertainty_depth.core.records import Frame
from uncertainty_depth.frames.cameras import Cameras, rectified_image
from uncertainty_depth.frames.messages.compressed import claimed_size
from uncertainty_depth.frames.messages.decoding import frame_name, stamp_ns
from uncertainty_depth.ros.diagnostics import Health

DISCOVERY_S = 0.5
FIRST_INFO_TIMEOUT_S = 1.0
OWN_MESSAGE_TIMEOUT_S = 0.1
MAX_MISSED = 3
UNCALIBRATED = "camera_info_zero"
ImageMessage: TypeAlias = Image | CompressedImage


class OwnMessages:
    """Lets images wait for another topic's message of their stamp, which may come after them.

    Messages arrive on the executor's thread, images on a worker's. An image waits until a message
    of its stamp, or a later one, has come: of a camera a few milliseconds, and at most
    `OWN_MESSAGE_TIMEOUT_S`, after which the image is counted under `counter` and has the message
    before. After `MAX_MISSED` of these in a row the messages are not sent with the images, and
    none waits until one has an image's stamp.
    """

    def __init__(self, health: Health, counter: str) -> None:
        self.changed = threading.Condition()
        self._health = health
        self._counter = counter
        self._image_ns: int | None = None
        self._newest_ns: int | None = None
        self._missed = 0

    def arrived(self, message: Any, keep: Callable[[Any], object]) -> None:
        """Keep a message, and wake the image that waits."""
        with self.changed:
            keep(message)
            self._newest_ns = stamp_ns(message.header)
            if self._newest_ns == self._image_ns:
                self._missed = 0
            self.changed.notify_all()

    def wait(self, time_ns: int, has_come: Callable[[], bool]) -> None:
        """Wait for the message of an image's stamp."""
        with self.changed:
            self._image_ns = time_ns
            if self._missed < MAX_MISSED and not self.changed.wait_for(
                has_come, OWN_MESSAGE_TIMEOUT_S
            ):
                self._missed += 1
                self._health.count(self._counter)
            elif self._newest_ns == time_ns:
                self._missed = 0


class LiveCamera:
    """A camera: its infos, and its images as they make them.

    A driver that sends an info with every image may send it after the image, and the two come on
    different topics: see `OwnMessages`.
    """

    def __init__(
        self,
        topic: str,
        is_published: Callable[[], bool],
        health: Health,
        log: Callable[[str], object],
    ) -> None:
        """Start without a camera info; `log` takes each sentence for the user once."""
        self.info: CameraInfo | None = None
        self._topic = topic
        self._is_published = is_published
        self._log = log
        self._cameras = Cameras(topic, KEEP, is_published)
        self._own_infos = OwnMessages(health, "without_own_camera_info")
        self._may_wait_for_first = True
        self._logged = 0

    def configure(self, distorted_images: str) -> None:
        """Take the option; the newest camera info stays, as drivers may send it only once."""
        with self._own_infos.changed:
            self._cameras = Cameras(self._topic, distorted_images, self._is_published)
            self._logged = 0
            if self.info is not None:
                self._cameras.add(self.info)

    def add(self, message: CameraInfo) -> None:
        """Use a camera info for the images from its stamp on."""
        self._own_infos.arrived(message, self._keep)

    def _keep(self, message: CameraInfo) -> None:
        self._cameras.add(message)
        self.info = message

    def frame(self, message: ImageMessage, max_pixels: int) -> Frame:
        """Return an image decoded, rectified if it is asked for, and its camera.

        If no camera info is published, the image is returned unchanged, without a camera: it is
        assumed to be rectified. The camera of an uncalibrated camera info has focal length 0.

        Raises `MessageError`: as `decode_image`; or its camera info has not come, is invalid, or
        does not fit the image, which is then not decoded.
        """
        time_ns = stamp_ns(message.header)
        width, height = claimed_size(message, max_pixels)
        rectifier = None
        uncalibrated = None
        try:
            rectifier = self.rectifier(time_ns)
        except MessageError as error:
            if error.reason != UNCALIBRATED:
                raise
            uncalibrated = Camera(width, height, np.zeros((3, 3)))
        if rectifier is not None:
            self._log_notes(height, width, rectifier)
        image, camera = rectified_image(message, rectifier, max_pixels)
        return Frame(time_ns, frame_name(time_ns), camera or uncalibrated, image)

    def rectifier(self, time_ns: int) -> Rectifier | None:
        """Return what rectifies an image at this stamp; raise as `frame`."""
        with self._own_infos.changed:
            if self._may_wait_for_first:  # images may be discovered before their camera infos
                wait_for = self._own_infos.changed.wait_for
                wait_for(lambda: self._cameras, DISCOVERY_S)
                wait_for(lambda: not self._cameras.is_missing, FIRST_INFO_TIMEOUT_S)
                self._may_wait_for_first = False
            self._cameras.expect(time_ns)
            if self._cameras:
                self._own_infos.wait(time_ns, lambda: not self._cameras.is_awaited(time_ns))
            return self._cameras.at(time_ns)

    def rectifier_of(self, time_ns: int) -> Rectifier | None:
        """Return what rectified the image at this stamp, once it has waited; see `rectifier`."""
        with self._own_infos.changed:
            return self._cameras.at(time_ns)

    def header(self, message: ImageMessage) -> Header:
        """Return an image's header; if it names no frame, in that of its camera info."""
        header = message.header
        return Header(stamp=header.stamp, frame_id=self._cameras.frame_of(header))

    def _log_notes(self, height: int, width: int, rectifier: Rectifier) -> None:
        """Log once that images of this size differ from their camera info, and other notes."""
        self._cameras.note_size(self._topic, (height, width), rectifier)
        for note in self._cameras.notes[self._logged :]:
            self._logged += 1
            self._log(note)

    def description(self) -> str:
        """Return the state of the newest camera info, and what is done with images."""
        if self.info is None:
            return f"missing: nothing on {self._topic}"
        try:
            rectifier = self._cameras.at(stamp_ns(self.info.header))
        except MessageError as error:
            if error.reason == UNCALIBRATED:
                return "uncalibrated: its focal length is 0; calibrate the camera"
            return f"unusable: {error}"
        return "received" if rectifier is None else rectifier.describe()
