# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Messages that no node publishes cost themselves: the node that gets them goes on."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import CameraInfo, CompressedImage, Image, PointCloud2
from std_msgs.msg import String
from std_srvs.srv import Trigger

from test.ros.conftest import POSE
from uncertainty_depth.messages.depth_images import decode_depth
from uncertainty_depth.ros.evaluator_node import EvaluatorNode

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
WIDTH = 32
HEIGHT = 24
HUGE = "9" * 401
MS = 1_000_000


def gray():
    return np.zeros((HEIGHT, WIDTH, 3), np.uint8)


def status(name, **values):
    pairs = [KeyValue(key=key, value=value) for key, value in values.items()]
    return DiagnosticArray(status=[DiagnosticStatus(name=name, values=pairs)])


def test_the_depth_node_goes_on(graph, start_depth, make):
    node = start_depth(use_depth_scale=True)
    images = graph.publisher(Image, "image")
    depths = graph.inbox(Image, "depth/image_rect")
    diagnostics = graph.inbox(DiagnosticArray, "/diagnostics")
    infos = graph.publisher(CameraInfo, "camera_info")
    without_number = make.camera_info(1, WIDTH, HEIGHT)
    without_number.k[0] = np.nan
    infos.publish(without_number)
    diagnostics.wait_for(lambda array: "K [nan" in str(array.status[0].values))
    infos.publish(make.camera_info(2, WIDTH, HEIGHT))
    diagnostics.wait_for(lambda array: "K [nan" not in str(array.status[0].values))
    estimates = graph.publisher(DiagnosticArray, "uncertainty/calibration", LATCHED)
    refused = "refused.uncertainty/calibration"
    for count, values in enumerate(
        (
            {"correction": HUGE, "depth_scale": "", "scale_sigma": ""},
            {"correction": "", "depth_scale": "nan", "scale_sigma": "0.1"},
            {"correction": "", "depth_scale": HUGE, "scale_sigma": HUGE},
            {"correction": "", "scale": "1.0", "scale_sigma": "0.1"},
        ),
        start=1,
    ):
        estimates.publish(status("online_calibration", sigma="raw", **values))
        graph.until(lambda count=count: node.health.counts().get(refused) == count, refused)
        images.publish(make.image(count + 2, gray()))
        depths.wait(count)


def test_the_evaluator_goes_on(graph, make):
    node = graph.start(EvaluatorNode, lidar_to_camera=POSE)
    model = graph.publisher(String, "depth/model", LATCHED)
    info = graph.publisher(DiagnosticArray, "depth/prediction_info")
    model.publish(String(data=f'{{"sparse_input": "lidar", "held_out_fraction": 1{"0" * 400}}}'))
    info.publish(
        status(
            "prediction", sigma="raw", samples=HUGE, first_sample="0", passes="8",
            calibration="own", calibration_reason="", correction=HUGE, unfamiliarity="",
            depth_scale="1.0", depth_scale_reason="", scale_sigma="",
        )
    )  # fmt: skip
    refused = "refused.depth/prediction_info"
    graph.until(lambda: node.health.counts().get(refused), "the refusal in the counts")
    graph.node.destroy_publisher(info)  # else the frame waits for its word
    graph.until(lambda: node.count_publishers("depth/prediction_info") == 0, "publisher any more")
    publish_frame(graph, make, 100 * MS)
    graph.until(lambda: node.health.counts().get("evaluated") == 1, "scored frame")


def publish_frame(graph, make, stamp, info=True):
    if info:
        graph.publisher(CameraInfo, "depth/camera_info").publish(
            make.camera_info(stamp, WIDTH, HEIGHT)
        )
    random = np.random.default_rng(stamp)
    for topic, (low, high) in (("depth", (3, 5)), ("uncertainty", (0.1, 1))):
        values = random.uniform(low, high, (HEIGHT, WIDTH)).astype(np.float32)
        graph.publisher(Image, f"{topic}/image_rect").publish(make.image(stamp, values))
    graph.publisher(PointCloud2, "lidar/points").publish(make.cloud(make.points_on_plane(), stamp))


class FailingNode(EvaluatorNode):
    """With a subscription, a timer and a service that fail."""

    def __init__(self, **options):
        super().__init__(**options)
        self.create_subscription(String, "fails", self._fail, 10)
        self.create_service(Trigger, "~/fails", self._fail)
        self.timer = self.create_timer(0.01, self._fail_once)

    def _fail(self, *_):
        raise OverflowError("int too large to convert to float")

    def _fail_once(self):
        self.timer.cancel()
        self._fail()


def test_whatever_a_callback_raises_the_node_goes_on_and_counts_it(graph):
    graph.start(FailingNode, lidar_to_camera=POSE)
    diagnostics = graph.inbox(DiagnosticArray, "/diagnostics")
    graph.publisher(String, "fails").publish(String())
    answer = graph.call(Trigger, "/evaluator_node/fails")
    assert (answer.success, answer.message) == (
        False,
        "OverflowError: int too large to convert to float",
    )

    def is_counted(array):
        values = {item.key: item.value for item in array.status[0].values}
        return values.get("callback_failed") == "3"

    diagnostics.wait_for(is_counted)


def png(width, height, value=0):
    """A PNG of one colour: of a few bytes, however large the image."""

    def chunk(name, data):
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    rows = zlib.compress((b"\0" + bytes((value, 0, 0)) * width) * height, 9)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    )


def test_a_compressed_image_larger_than_max_pixels_is_dropped_by_its_header(
    graph, start_depth, make
):
    node = start_depth(compressed_input=True, max_pixels=WIDTH * HEIGHT)
    depths = graph.inbox(Image, "depth/image_rect")
    images = graph.publisher(CompressedImage, "image/compressed")
    for count, width in enumerate((WIDTH + 1, 8192), start=1):
        images.publish(CompressedImage(format="png", data=png(width, HEIGHT)))
        dropped = {"image_too_large": count}
        graph.until(lambda dropped=dropped: node.health.dropped() == dropped, "the drop")
    data = png(WIDTH, HEIGHT, value=7)
    layout = "rgb8; png compressed bgr8"
    images.publish(CompressedImage(header=make.header(1), format=layout, data=data))
    assert (decode_depth(depths.wait()[0]) == 7).all()
