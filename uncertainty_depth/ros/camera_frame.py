# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A camera image in the depth node, before and after its prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rclpy.node import Node
from std_msgs.msg import Header

from uncertainty_depth.errors import MessageError
from uncertainty_depth.records import DepthPrediction, Observation
from uncertainty_depth.ros.messages import age_s

if TYPE_CHECKING:
    from uncertainty_depth.calibration.half_widths import HalfWidths

CLOCK_MISSING_AGE_S = 3600.0


@dataclass(frozen=True, eq=False)
class CameraFrame:
    """An image to be predicted next.

    Attributes:
        header: of the camera image.
        observation: what the model is given of it.
    """

    header: Header
    observation: Observation


@dataclass(frozen=True, eq=False)
class Published:
    """A frame whose maps are published.

    Attributes:
        frame: the image.
        prediction: the maps.
        half_widths: of the intervals of its sigma.
    """

    frame: CameraFrame
    prediction: DepthPrediction
    half_widths: HalfWidths


def deactivated() -> MessageError:
    """Return the error of frames that arrive while the node is deactivated."""
    return MessageError("deactivated", "the node was deactivated before its turn came")


def check_age(node: Node, header: Header, max_age_s: float) -> None:
    """Raise `MessageError` where an image is older than `max_frame_age`; 0 takes any age."""
    age = age_s(node, header)
    if 0 < max_age_s < age:
        is_other_clock = age > CLOCK_MISSING_AGE_S
        hint = "; playing a bag needs use_sim_time and /clock" if is_other_clock else ""
        raise MessageError(
            "stale",
            f"an image was {age:.3f} s old, more than max_frame_age {max_age_s} s{hint}",
        )
