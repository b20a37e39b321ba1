# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A camera with a lens distortion, before a world of known depth: every way to read it."""

import cv2
import numpy as np
import pytest
from numpy.testing import assert_allclose

from synthetic import sensors
from synthetic.config import SynthesisConfig
from synthetic.source import World
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.geometry.camera import (
    Camera,
    Distortion,
    ground_truth_from_cloud,
)
from uncertainty_depth.frames.messages.bag_writer import BagWriter
from uncertainty_depth.stream.opening import open_source

WIDTH = 320
HEIGHT = 240
COEFFICIENTS = np.array([-0.28, 0.07, 0.0, 0.0, 0.0])
"""An ordinary wide lens: k1, k2, p1, p2, k3."""


@pytest.fixture(scope="module")
def world():
    return World(SynthesisConfig(width=WIDTH, height=HEIGHT, noise=0.0), 0)


@pytest.fixture(scope="module")
def view(world):
    return world.view(0)


@pytest.fixture(scope="module")
def raw():
    ideal = sensors.make_camera(WIDTH, HEIGHT)
    return Camera(
        WIDTH, HEIGHT, ideal.intrinsics, distortion=Distortion("plumb_bob", COEFFICIENTS)
    )


@pytest.fixture(scope="module")
def raw_image(world, view, raw):
    """The ideal image as the lens shows it: each raw pixel from where OpenCV undistorts it to."""
    v, u = np.mgrid[:HEIGHT, :WIDTH].astype(np.float32)
    pixels = np.stack([u.ravel(), v.ravel()], axis=1)[:, None]
    ideal = cv2.undistortPoints(pixels, raw.intrinsics, COEFFICIENTS, P=raw.intrinsics)
    where = ideal.reshape(HEIGHT, WIDTH, 2)
    return cv2.remap(world.photograph(0, view), where, None, cv2.INTER_LINEAR)


@pytest.fixture(scope="module")
def bag(tmp_path_factory, world, raw, raw_image):
    path = tmp_path_factory.mktemp("distorted") / "bag"
    stamp_ns = world.stamp_ns(0)
    with BagWriter(path) as writer:
        writer.static_transforms([("camera", "lidar", sensors.LIDAR_TO_CAMERA)])
        writer.camera_info("/camera/direct/camera_info", stamp_ns, "camera", raw)
        writer.image("/camera/direct/image_raw", stamp_ns, "camera", raw_image)
        writer.cloud("/lidar/points", stamp_ns, "lidar", world.cloud(0))
    return path


def test_a_raw_image_is_rectified_into_that_of_the_ideal_camera(bag, world, view):
    source = open_source(str(bag), SourceConfig())
    (frame,) = source
    ideal = world.photograph(0, view).astype(int)
    middle = np.s_[50:-50, 50:-50]
    assert np.abs(frame.image[middle] - ideal[middle]).mean() < 2
    assert frame.camera.distortion is None
    assert_allclose(frame.camera.intrinsics, sensors.make_camera(WIDTH, HEIGHT).intrinsics)
    assert source.notes == [
        "/camera/direct/camera_info is distorted (plumb_bob): images are rectified; if they are "
        "already, as image_proc's image_rect, set distorted_images to already_rectified"
    ]


def test_the_ground_truth_is_projected_as_the_image_is_read(bag, raw, raw_image, world):
    ideal = sensors.make_camera(WIDTH, HEIGHT)
    for option, camera in (("rectify", ideal), ("keep", raw), ("already_rectified", ideal)):
        config = SourceConfig(distorted_images=option)
        (frame,) = open_source(str(bag), config)
        assert (frame.camera.distortion is None) == (option != "keep")
        assert np.array_equal(frame.image, raw_image) == (option != "rectify")
        points = world.cloud(0)[:, :3]
        expected = ground_truth_from_cloud(points, sensors.LIDAR_TO_CAMERA, camera)
        np.testing.assert_array_equal(frame.ground_truth_m, expected)
