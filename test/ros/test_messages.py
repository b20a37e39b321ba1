# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Cameras to camera infos: sent as they came, or cropped as the image was."""

import numpy as np
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import CameraInfo

from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.frames.messages.camera_info import camera_from_info
from uncertainty_depth.ros.messages import camera_info_message


def test_the_camera_info_of_a_rectified_camera_is_sent_as_it_came(make):
    info = make.camera_info(5, 641, 479, focal=519.2891)
    info.p[3] = -30.0
    message = camera_info_message(camera_from_info(info), make.header(9, "left_optical"))
    message = deserialize_message(serialize_message(message), CameraInfo)
    assert message.header == make.header(9, "left_optical")
    for name in ("width", "height", "distortion_model", "d", "binning_x", "roi"):
        assert getattr(message, name) == getattr(info, name)
    for name in "kr":
        np.testing.assert_array_equal(getattr(message, name), getattr(info, name))
    np.testing.assert_allclose(message.p, info.p, rtol=1e-11)


def test_a_camera_info_with_a_region_of_interest_is_sent_as_that_of_the_image(make):
    info = make.camera_info(0, 640, 480)
    info.roi.x_offset = 100
    info.roi.y_offset = 50
    info.roi.width = 320
    info.roi.height = 240
    camera = camera_from_info(info).scaled(160, 120)
    sent = camera_info_message(camera, info.header)
    assert (sent.width, sent.height, sent.roi.width) == (160, 120, 0)
    np.testing.assert_array_equal(camera_from_info(sent).intrinsics, camera.intrinsics)


def test_an_uncalibrated_camera_stays_that_way(make):
    sent = camera_info_message(Camera(320, 240, np.zeros((3, 3))), make.header(1))
    assert (sent.width, sent.height) == (320, 240)
    assert not np.any(sent.k)
    assert not np.any(sent.p)
