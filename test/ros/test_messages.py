# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Arrays to messages: bytes, headers, camera info arithmetic, the point cloud's layout."""

from __future__ import annotations

from array import array

import numpy as np
import pytest

pytest.importorskip("sensor_msgs.msg", reason="ROS 2 is not installed")

from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import CameraInfo, Image, PointCloud2

from uncertainty_depth.geometry.camera import Camera
from uncertainty_depth.geometry.point_cloud import organised_points
from uncertainty_depth.messages.camera_info import camera_from_info
from uncertainty_depth.messages.clouds import cloud_points
from uncertainty_depth.messages.decoding import stamp_ns
from uncertainty_depth.messages.depth_images import decode_depth
from uncertainty_depth.messages.images import decode_image
from uncertainty_depth.ros.messages import (
    byte_array,
    camera_info_message,
    image_message,
    points_message,
)


def test_depth_survives_bit_by_bit(make):
    depth = np.random.default_rng(0).uniform(0.1, 80, (7, 5)).astype(np.float32)
    depth[0, :3] = np.nan, np.inf, 0.0
    header = make.header(1_234_567_890_123_456_789, "camera_optical")
    message = deserialize_message(serialize_message(image_message(depth, header)), Image)
    assert (
        message.encoding,
        message.height,
        message.width,
        message.step,
        message.is_bigendian,
    ) == ("32FC1", 7, 5, 20, 0)
    assert message.header == header
    assert stamp_ns(message.header) == 1_234_567_890_123_456_789
    assert decode_depth(message).tobytes() == depth.tobytes()


@pytest.mark.parametrize(
    "make_view", [lambda a: a, lambda a: a[:, ::2], lambda a: a.T, lambda a: a[::-1]]
)
def test_depth_that_is_not_contiguous(make, make_view):
    depth = make_view(np.arange(48, dtype=np.float32).reshape(6, 8))
    np.testing.assert_array_equal(decode_depth(image_message(depth, make.header(0))), depth)


def test_big_endian_array_is_sent_little_endian(make):
    depth = np.linspace(0, 9, 12).reshape(3, 4)
    message = image_message(depth.astype(np.float32), make.header(0))
    assert np.frombuffer(message.data, "<f4").reshape(3, 4) == pytest.approx(depth)


def test_color_image(make):
    rgb = np.random.default_rng(1).integers(0, 256, (4, 6, 3), np.uint8)
    message = image_message(rgb, make.header(3))
    assert (message.encoding, message.step) == ("rgb8", 18)
    np.testing.assert_array_equal(decode_image(message), rgb)


def test_data_is_one_array_of_bytes():
    data = byte_array(np.zeros((480, 640), np.float32))
    assert isinstance(data, array)
    assert data.typecode == "B"
    assert len(data) == 4 * 480 * 640


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


def test_points_project_back_to_their_pixels(make):
    random = np.random.default_rng(2)
    depth = random.uniform(1, 9, (6, 8)).astype(np.float32)
    sigma = random.uniform(0, 1, (6, 8)).astype(np.float32)
    depth[0, 0] = np.nan
    depth[5, 7] = np.inf
    rgb = random.integers(0, 256, (6, 8, 3), np.uint8)
    camera = camera_from_info(make.camera_info(0, 8, 6))
    message = deserialize_message(
        serialize_message(
            points_message(organised_points(depth, sigma, camera, rgb), make.header(4))
        ),
        PointCloud2,
    )
    assert [field.name for field in message.fields] == [
        "x",
        "y",
        "z",
        "rgb",
        "uncertainty",
        "confidence_ratio",
    ]
    assert (message.width, message.height, message.is_dense) == (8, 6, False)
    known = np.isfinite(depth)
    points = cloud_points(message)
    assert len(points) == known.sum() == 46
    pixels = points @ camera.intrinsics.T
    rows, columns = np.nonzero(known)
    np.testing.assert_allclose(pixels[:, 0] / pixels[:, 2], columns, atol=1e-4)
    np.testing.assert_allclose(pixels[:, 1] / pixels[:, 2], rows, atol=1e-4)
    np.testing.assert_array_equal(points[:, 2], depth[known])
    values = np.frombuffer(message.data, np.float32).reshape(6, 8, 6)
    np.testing.assert_array_equal(values[..., 4], sigma)
    np.testing.assert_array_equal(values[..., 5], depth / sigma)
    packed = np.ascontiguousarray(values[..., 3]).view(np.uint32)
    np.testing.assert_array_equal(
        np.stack([packed >> 16, packed >> 8 & 255, packed & 255], -1), rgb
    )
