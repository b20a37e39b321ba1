# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""ROS reads the bags that are written, and its message classes are decoded as rosbags' are."""

from array import array

import pytest
from numpy.testing import assert_array_equal
from rosbags.rosbag2 import Reader

from test.frames.conftest import CAMERA, image_at, points_at
from uncertainty_depth.frames.messages.camera_info import camera_from_info
from uncertainty_depth.frames.messages.clouds import cloud_points
from uncertainty_depth.frames.messages.images import decode_image

serialization = pytest.importorskip(
    "rclpy.serialization", reason="needs ROS 2: pip install uncertainty_depth[ros]"
)
sensor_msgs = pytest.importorskip(
    "sensor_msgs.msg", reason="needs ROS 2: pip install uncertainty_depth[ros]"
)


def test_bags_hold_messages_that_ros_deserialises(write_bag):
    with Reader(write_bag(frames=1)) as reader:
        for connection, _, data in reader.messages():
            kind = connection.msgtype.rpartition("/")[2]
            if kind == "TFMessage":  # its Python class comes with a ROS distribution only
                continue
            message = serialization.deserialize_message(bytes(data), getattr(sensor_msgs, kind))
            if kind == "Image":
                assert isinstance(message.data, array)
                assert_array_equal(decode_image(message), image_at(0))
            elif kind == "PointCloud2":
                assert [field.name for field in message.fields] == ["x", "y", "z", "intensity"]
                assert_array_equal(cloud_points(message), points_at(0)[:, :3])
            else:
                assert kind == "CameraInfo"
                assert_array_equal(camera_from_info(message).intrinsics, CAMERA.intrinsics)
