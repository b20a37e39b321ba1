# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What is made from sigma, from arrays alone: neither a network nor a graph takes part."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from rclpy.qos import QoSProfile, ReliabilityPolicy

from test.ros.conftest import FakeNode, header, type_of
from uncertainty_depth.core.config.nodes import OutputConfig
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.core.records import DepthPrediction
from uncertainty_depth.frames.messages.clouds import cloud_points
from uncertainty_depth.frames.messages.decoding import stamp_ns
from uncertainty_depth.frames.messages.images import decode_depth, decode_image
from uncertainty_depth.ros import messages, outputs
from uncertainty_depth.ros.outputs import DerivedOutputs

WIDTH = 16
HEIGHT = 12
CAMERA = Camera(WIDTH, HEIGHT, np.array([[40.0, 0, 7.5], [0, 40.0, 5.5], [0, 0, 1]]))
TOPICS = {
    *("points", "points/confident", "points/clearing", "points/uncertainty_color"),
    *("depth/image_color", "uncertainty/image_color", "color_scales/image"),
    *(f"{name}/image_rect/compressedDepth" for name in ("depth", "uncertainty")),
    *(
        f"depth/{name}/{end}"
        for name in ("confident", "lower", "upper")
        for end in ("image_rect", "camera_info")
    ),
}


@pytest.fixture
def maps():
    """The left half at 4 m and certain, the right one at 8 m and not; two pixels unknown."""
    depth = np.full((HEIGHT, WIDTH), 4, np.float32)
    depth[:, WIDTH // 2 :] = 8
    sigma = np.where(depth == 4, np.float32(0.25), np.float32(2))
    depth[0, :2] = sigma[0, :2] = np.nan
    return DepthPrediction(depth, sigma)


@pytest.fixture
def publish(maps):
    """Publish the maps to those who subscribe; return what was sent, by topic."""

    def call(heard, config=None, camera=CAMERA, prediction=maps):
        node = FakeNode()
        node.heard = set(heard)
        outputs = DerivedOutputs(node)
        assert node.sent.keys() == TOPICS
        outputs.publish(prediction, header(7, "optical"), camera, config or OutputConfig(), 2.0)
        return {topic: messages for topic, messages in node.sent.items() if messages}

    return call


def test_what_has_no_subscriber_is_not_made(publish, monkeypatch):
    made = []

    def image_message(*arguments):
        made.append(arguments)
        return messages.image_message(*arguments)

    monkeypatch.setattr(outputs, "image_message", image_message)
    monkeypatch.setattr(outputs, "points_message", None)  # a call would fail
    assert publish([]) == {}
    assert made == []
    assert publish(["depth/lower/image_rect"]).keys() == {"depth/lower/image_rect"}
    assert len(made) == 1


def test_every_output_holds_what_its_topic_says(publish, maps):
    config = OutputConfig(
        max_sigma=1.0, max_relative_sigma=0.1, clearing_sigmas=3.0, point_stride=2
    )
    sent = {topic: message for topic, (message,) in publish(TOPICS, config).items()}
    for topic, message in sent.items():
        assert type(message) is type_of(topic)[0]
        assert (stamp_ns(message.header), message.header.frame_id) == (7, "optical")
    depth, sigma = maps.depth_m, maps.sigma_m
    is_left = depth == 4

    def shown(name):
        return decode_depth(sent[name])

    expected = np.where(is_left, depth, np.float32(np.nan))
    assert_array_equal(shown("depth/confident/image_rect"), expected)
    assert_array_equal(shown("depth/lower/image_rect"), depth - 2 * sigma)
    assert_array_equal(shown("depth/upper/image_rect"), depth + 2 * sigma)
    assert tuple(sent["depth/confident/camera_info"].k) == tuple(CAMERA.intrinsics.reshape(-1))
    every = is_left[::2, ::2]
    points = sent["points"]
    assert (points.height, points.width) == every.shape
    assert [field.name for field in points.fields] == [*"xyz", "uncertainty", "confidence_ratio"]
    confident = sent["points/confident"]
    assert (confident.height, confident.width, confident.is_dense) == (1, every.sum(), True)
    assert_array_equal(np.unique(cloud_points(confident)[:, 2]), [4])
    clearing = cloud_points(sent["points/clearing"])
    assert len(clearing) == np.isfinite(depth[::2, ::2]).sum()
    assert_array_equal(np.unique(clearing[:, 2]), np.float32([2, 3.25]))
    for name, values, quantization in (("depth", depth, 100.0), ("uncertainty", sigma, 10.0)):
        found = shown(f"{name}/image_rect/compressedDepth")
        assert_array_equal(np.isnan(found), np.isnan(values))
        step = np.nanmax(values) ** 2 / (quantization * (quantization + 1))
        assert_allclose(found, values, atol=step)
        assert decode_image(sent[f"{name}/image_color"]).shape == (HEIGHT, WIDTH, 3)


def test_points_have_the_colors_of_the_image_of_sigma_and_the_legend_has_them_too(publish, maps):
    topics = ("points/uncertainty_color", "uncertainty/image_color", "color_scales/image")
    sent = publish(topics, OutputConfig(color_max_depth=30.0, point_stride=2))
    cloud, image, legend = (sent[topic][0] for topic in topics)
    points = np.frombuffer(cloud.data, [(field.name, np.uint32) for field in cloud.fields])
    packed = points["rgb"].reshape(cloud.height, cloud.width)
    of_points = np.stack([packed >> 16, packed >> 8, packed], axis=-1).astype(np.uint8)
    of_image = decode_image(image)[::2, ::2]
    assert_array_equal(of_points, of_image)
    sigma_m = maps.sigma_m[::2, ::2]
    certain, uncertain = of_image[sigma_m == 0.25][0], of_image[sigma_m == 2][0]
    on_scale = {tuple(color) for color in decode_image(legend)[94]}  # through sigma's bar
    assert tuple(certain) in on_scale
    assert tuple(uncertain) in on_scale
    assert uncertain.sum() > certain.sum()


@pytest.mark.parametrize("camera", [None, Camera(WIDTH, HEIGHT, np.zeros((3, 3)))])
def test_maps_need_no_camera_and_clouds_do(publish, camera):
    sent = publish(["points/clearing", "depth/upper/image_rect"], camera=camera)
    assert sent.keys() == {"depth/upper/image_rect"}


def test_a_frame_without_a_trusted_pixel_clears_the_gated_cloud(publish, maps):
    """An empty cloud is sent: the last one's points are not this frame's."""
    unknown = np.full_like(maps.depth_m, np.nan)
    sent = publish(["points/confident"], prediction=DepthPrediction(unknown, unknown))
    (cloud,) = sent["points/confident"]
    assert (cloud.height, cloud.width, len(cloud.data)) == (1, 0, 0)


@pytest.mark.parametrize(
    ("asked", "stride", "transports", "warns"),
    [
        ("BEST_EFFORT", 1, "", True),
        ("RELIABLE", 1, "", False),
        ("BEST_EFFORT", 2, "", False),
        ("BEST_EFFORT", 1, "LARGE_DATA", False),
    ],
)
def test_a_cloud_too_large_for_a_best_effort_subscriber_is_told(
    asked, stride, transports, warns, monkeypatch
):
    """As Nav2's costmap is one. Of 30 clouds each, all of .45 MB arrived, and 2 of .6 MB."""
    monkeypatch.setenv("FASTDDS_BUILTIN_TRANSPORTS", transports)
    node = FakeNode()
    node.heard = {"points"}
    node.asked["/points"] = QoSProfile(depth=5, reliability=ReliabilityPolicy[asked])
    depth = np.full((240, 320), 4, np.float32)
    camera = Camera(320, 240, np.array([[220.0, 0, 159.5], [0, 220.0, 119.5], [0, 0, 1]]))
    config = OutputConfig(point_stride=stride)
    DerivedOutputs(node).publish(
        DepthPrediction(depth, depth / 10), header(7, "optical"), camera, config, 2.0
    )
    assert len(node.sent["points"]) == 1
    expected = "/points: a cloud has 1.5 MB; .* set point_stride to 2 or more"
    assert bool(re.search(expected, "".join(node.logs))) == warns
    assert bool(node.logs) == warns
