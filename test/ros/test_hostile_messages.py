# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Messages that no node publishes cost themselves: the node that gets them goes on."""

from __future__ import annotations

import signal
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

from uncertainty_depth.ros.depth_node import DepthNode
from uncertainty_depth.ros.evaluator_node import EvaluatorNode

IDENTITY = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
WIDTH = 32
HEIGHT = 24
HUGE = "9" * 401
MS = 1_000_000


@pytest.fixture
def depth_node(graph, tiny_model):
    return graph.start(
        DepthNode, model=str(tiny_model), max_frame_age=0.0, samples=2, use_depth_scale=True
    )


def gray():
    return np.zeros((HEIGHT, WIDTH, 3), np.uint8)


def status(name, **values):
    pairs = [KeyValue(key=key, value=value) for key, value in values.items()]
    return DiagnosticArray(status=[DiagnosticStatus(name=name, values=pairs)])


def not_a_number(make, **_):
    message = make.camera_info(1, WIDTH, HEIGHT)
    message.k[0] = np.nan
    return CameraInfo, "camera_info", message, 10


def estimate(**values):
    message = status("online_calibration", sigma="raw", **values)
    return DiagnosticArray, "uncertainty/calibration", message, LATCHED


def overflowing_factor(make):
    factors = f'{{"sigma_m": [{HUGE}], "factor": [{HUGE}]}}'
    return estimate(correction=factors, depth_scale="", scale_sigma="")


def scale_of_nothing(make):
    return estimate(correction="", depth_scale="nan", scale_sigma="0.1")


def overflowing_scale(make):
    return estimate(correction="", depth_scale=HUGE, scale_sigma=HUGE)


def scale_of_another_key(make):
    return estimate(correction="", scale="1.0", scale_sigma="0.1")


@pytest.mark.parametrize(
    "hostile",
    [not_a_number, overflowing_factor, scale_of_nothing, overflowing_scale, scale_of_another_key],
)
def test_the_depth_node_goes_on(graph, depth_node, make, hostile):
    message_type, topic, message, qos = hostile(make)
    images = graph.publisher(Image, "image")
    depths = graph.inbox(Image, "depth/image_rect")
    diagnostics = graph.inbox(DiagnosticArray, "/diagnostics")
    graph.publisher(message_type, topic, qos).publish(message)
    if hostile is not_a_number:  # the images that need it are dropped for its reason
        told = diagnostics.wait_for(lambda array: "K [nan" in str(array.status[0].values))
        assert told.status[0].name == "depth_node"
        good = graph.publisher(CameraInfo, "camera_info")
        good.publish(make.camera_info(1, WIDTH, HEIGHT))
        diagnostics.wait_for(lambda array: "K [nan" not in str(array.status[0].values))
    else:
        counts = depth_node.cameras[0].health.counts
        graph.until(lambda: counts().get(f"refused.{topic}"), "the refusal in the counts")
    images.publish(make.image(1, gray()))
    depths.wait(1)


def test_the_evaluator_goes_on(graph, make):
    node = graph.start(EvaluatorNode, lidar_to_camera=IDENTITY)
    model = graph.publisher(String, "depth/model", LATCHED)
    info = graph.publisher(DiagnosticArray, "depth/prediction_info")
    model.publish(String(data=f'{{"sparse_input": "lidar", "held_out_fraction": 1{"0" * 400}}}'))
    factors = f'{{"sigma_m": [{HUGE}], "factor": [{HUGE}]}}'
    info.publish(
        status(
            "prediction", sigma="raw", samples=HUGE, first_sample="0", passes="8",
            calibration="own", calibration_reason="", correction=factors, unfamiliarity="",
            widened_by="1.0", depth_scale="1.0", depth_scale_reason="", scale_sigma="",
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
    graph.start(FailingNode, lidar_to_camera=IDENTITY)
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


def png_claiming(width, height):
    """A PNG of a few bytes a row, all black."""

    def chunk(name, data):
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    rows = zlib.compress(bytes((width * 3 + 1) * height), 9)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    )


def test_an_image_larger_than_max_pixels_is_dropped_by_its_header(graph, tiny_model, make):
    node = graph.start(
        DepthNode, model=str(tiny_model), max_frame_age=0.0, samples=2, compressed_input=True,
        max_pixels=WIDTH * HEIGHT,
    )  # fmt: skip
    images = graph.publisher(CompressedImage, "image/compressed")
    for width in (WIDTH + 1, 8192):
        images.publish(CompressedImage(format="png", data=png_claiming(width, HEIGHT)))
    counts = node.cameras[0].health.counts
    graph.until(
        lambda: sum(count for name, count in counts().items() if "dropped" in name) == 2, "drops"
    )
    depths = graph.inbox(Image, "depth/image_rect")
    images.publish(
        CompressedImage(header=make.header(1), format="png", data=png_claiming(WIDTH, HEIGHT))
    )
    depths.wait(1)
    assert counts()["dropped.image_too_large"] >= 1


def test_several_cameras_in_one_process_share_a_lidar(graph, tiny_model):
    """The documented example: without the remap each camera has a topic of its own."""
    remaps = [
        rule
        for name in ("front", "rear")
        for rule in ("-r", f"{name}/lidar/points:=/lidar/points")
    ]
    node = graph.start(DepthNode, remaps, model=str(tiny_model), cameras=["front", "rear"])
    assert [camera.name for camera in node.cameras] == ["front", "rear"]


def test_ctrl_c_writes_the_report_while_a_frame_waits(graph, make, start_node, tmp_path):
    """Without a camera info no frame can be decided before the end."""
    output = tmp_path / "report"
    pose = ", ".join(map(str, IDENTITY))
    process = start_node(
        "evaluator_node", "-p", f"lidar_to_camera:=[{pose}]", "-p", f"output:={output}"
    )
    graph.publisher(DiagnosticArray, "depth/prediction_info")  # but never a word of a frame
    publish_frame(graph, make, 100 * MS)
    diagnostics = graph.inbox(DiagnosticArray, "/diagnostics")

    def waits(array):
        values = {item.key: item.value for item in array.status[0].values}
        return values.get("waiting") == "1" and values.get("received.lidar/points") == "1"

    diagnostics.wait_for(waits)
    assert process.end(signal.SIGINT) == 0, process.output
    assert (output / "summary.json").is_file(), process.output
    assert "1 frames scored" in process.output


def test_every_frame_of_the_diagnostics_is_processed_dropped_or_waits(graph, depth_node, make):
    diagnostics = graph.inbox(DiagnosticArray, "/diagnostics", 50)
    images = graph.publisher(Image, "image", 10)
    for stamp in range(1, 41):
        images.publish(make.image(stamp, gray()))
        if stamp % 5 == 0:
            images.publish(make.image(stamp, np.zeros((HEIGHT, WIDTH), np.float32)))  # no camera's

    def numbers(array):
        values = {item.key: item.value for item in array.status[0].values}
        return {name: int(text) for name, text in values.items() if text.isdigit()}

    def is_settled(array):
        values = numbers(array)
        return values.get("received", 0) >= 10 and values["waiting"] == 0

    diagnostics.wait_for(is_settled)
    for array in diagnostics.messages:
        values = numbers(array)
        dropped = sum(count for name, count in values.items() if name.startswith("dropped."))
        settled = values.get("processed", 0) + dropped + values["waiting"]
        assert values.get("received", 0) == settled, values
