"""Camera info messages of ROS 1 and ROS 2."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from uncertainty_depth.errors import MessageError
from uncertainty_depth.messages.camera_info import camera_from_info

K = [500.0, 0, 320, 0, 510, 240, 0, 0, 1]
P = [400.0, 0, 310, -40, 0, 410, 230, 0, 0, 0, 1, 0]


def info(k=K, p=P, width=640, height=480, **more):
    return SimpleNamespace(k=k, p=p, width=width, height=height, **more)


def test_p_comes_before_k():
    camera = camera_from_info(info())
    assert (camera.width, camera.height) == (640, 480)
    assert_array_equal(camera.intrinsics, [[400, 0, 310], [0, 410, 230], [0, 0, 1]])


def test_k_is_taken_where_p_is_zero_and_ros_1_spells_it_with_capitals():
    ros1 = SimpleNamespace(K=np.array(K), P=np.zeros(12), width=640, height=480)
    for message in (info(p=[0.0] * 12), ros1):
        assert_array_equal(camera_from_info(message).intrinsics, np.reshape(K, (3, 3)))


def test_a_region_of_interest_moves_the_principal_point():
    roi = SimpleNamespace(x_offset=100, y_offset=50, width=200, height=120)
    camera = camera_from_info(info(roi=roi))
    assert (camera.width, camera.height) == (200, 120)
    assert_array_equal(camera.intrinsics, [[400, 0, 210], [0, 410, 180], [0, 0, 1]])
    whole = SimpleNamespace(x_offset=0, y_offset=0, width=0, height=0)
    assert camera_from_info(info(roi=whole)).width == 640


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (info(k=[0.0] * 9, p=[0.0] * 12), "camera_info_zero"),
        (info(p=[np.nan] * 12, k=[np.nan] * 9), "camera_info_zero"),
        (info(width=0), "camera_info_zero_size"),
        (info(height=0), "camera_info_zero_size"),
    ],
)
def test_an_uncalibrated_camera_is_refused(message, reason):
    with pytest.raises(MessageError) as error:
        camera_from_info(message)
    assert error.value.reason == reason
