# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Keep rectified camera images until the depth that another node makes of them comes."""

from __future__ import annotations

from dataclasses import replace

from sensor_msgs.msg import Image
from std_msgs.msg import Header

from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.records import Frame
from uncertainty_depth.frames.measured import NewestMessages
from uncertainty_depth.frames.messages.decoding import check_stamp, stamp_ns
from uncertainty_depth.frames.messages.images import decode_image
from uncertainty_depth.frames.messages.transports import claimed_size
from uncertainty_depth.ros.diagnostics import Health, image_alone
from uncertainty_depth.ros.inputs import Inputs
from uncertainty_depth.ros.node import GuardedNode

TOPIC = "image"


class ImageInput:
    """Gives each depth the image of its stamp, for motion; a `MeasurementSource`."""

    def __init__(self, node: GuardedNode, health: Health, inputs: Inputs) -> None:
        """Subscribe; what has no image is counted in `health`."""
        self._node = node
        self._health = health
        self._images = NewestMessages()
        purpose = "measurements by motion"
        self._watched = inputs.subscribe(Image, TOPIC, self._on_image, purpose=purpose)

    def _on_image(self, message: Image) -> None:
        self._images.add(message)
        self._health.count(f"received.{TOPIC}")

    def add_to(self, frame: Frame, header: Header) -> Frame:
        """Return the frame with its image, see `MeasurementSource`."""
        try:
            check_stamp(header, "a depth image")
            message = self._images.nearest(stamp_ns(header))
            if message is None or stamp_ns(message.header) != stamp_ns(header):
                raise MessageError(
                    "no_image",
                    f"no image on {self._watched.name} has the stamp of the depth; expected the "
                    "rectified images that the depth is made of",
                )
            if (size := claimed_size(message)) != frame.shape[::-1]:
                raise MessageError(
                    "image_wrong_size",
                    f"the image on {self._watched.name} has {size} pixels and its depth "
                    f"{frame.shape[::-1]}; expected the rectified image, resized as the depth is",
                )
            return replace(frame, image=decode_image(message))
        except MessageError as error:
            image_alone(self._node, self._health, error)
            return frame

    def close(self) -> None:
        """Do nothing: `Inputs.close` ends the subscription."""
