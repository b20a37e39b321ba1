# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Measure depth by the camera's own motion, which tf tells, for a node."""

from __future__ import annotations

from dataclasses import replace

from std_msgs.msg import Header

from uncertainty_depth.core.config.source import ODOMETRY_FRAME, OdometryConfig
from uncertainty_depth.core.errors import MessageError
from uncertainty_depth.core.records import Frame
from uncertainty_depth.frames.messages.decoding import stamp_ns
from uncertainty_depth.frames.transforms import Viewpoint
from uncertainty_depth.ros.diagnostics import LOG_EVERY_S, Health, image_alone
from uncertainty_depth.ros.extrinsics import live_odometry
from uncertainty_depth.ros.node import GuardedNode
from uncertainty_depth.stream.motion import Motion

TF_TIMEOUT_S = 0.2


class MotionInput:
    """Tracks corners through the images, with tf's poses; a `MeasurementSource`.

    Raises:
        ConfigError: tf2 is not installed.
    """

    def __init__(self, node: GuardedNode, health: Health, config: OdometryConfig) -> None:
        """Subscribe to tf."""
        self._node = node
        self._health = health
        frame = config.odometry_frame or ODOMETRY_FRAME
        self._odometry = live_odometry(node, frame, TF_TIMEOUT_S)
        self._motion = Motion()

    def add_to(self, frame: Frame, header: Header) -> Frame:
        """Return the frame with what motion measures, see `MeasurementSource`.

        Where it measures nothing, count it under "image_alone.REASON". A camera that stands still
        is no fault: nothing is logged. Whatever brings a depth its image has counted one without.
        """
        if frame.image is None:
            return frame
        rejected = self._motion.tracker.rejected
        try:
            pose = self._odometry.pose(Viewpoint(header.frame_id, stamp_ns(header)))
            frame = replace(frame, pose=pose)
            measured = self._motion.measure(frame)
            if measured is None:
                raise MessageError(
                    "no_camera_info",
                    "motion measures in rectified images of a calibrated camera alone",
                )
            if self._motion.tracker.rejected > rejected:
                quality = self._motion.tracker.quality
                raise MessageError(
                    "motion_rejected",
                    f"{100 * quality.failed:.0f}% of {quality.tracked} corners contradict the "
                    f"odometry, by {quality.epipolar_px:.1f} pixels in the median; expected tf at "
                    "the images' stamps, the camera's true place on the robot, and a world that "
                    "stands still",
                )
        except MessageError as error:
            if frame.pose is None:
                self._motion.measure(frame)  # its corners are lost: tracking starts anew
            image_alone(self._node, self._health, error)
            return frame
        for warning in self._motion.warnings():
            self._node.get_logger().warning(warning, throttle_duration_sec=LOG_EVERY_S)
        if not len(measured):
            self._health.count("image_alone.no_parallax")
            return frame
        return replace(frame, measurements=measured.beside(frame.measurements))

    def close(self) -> None:
        """End the subscriptions to tf."""
        self._odometry.close()
