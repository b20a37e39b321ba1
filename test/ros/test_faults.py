# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What goes wrong on a robot, on the real middleware: every frame is still accounted for.

Elsewhere: a bag that loops (test_live_scores), a failing pass (test_depth_node), memory that
runs out (test_within_memory).
"""

from __future__ import annotations

import json
import threading
from functools import partial

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.srv import GetState
from rcl_interfaces.srv import GetParameters
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CameraInfo, Image, PointCloud2
from std_srvs.srv import SetBool

from uncertainty_depth.messages.decoding import stamp_ns
from uncertainty_depth.messages.depth_images import decode_depth
from uncertainty_depth.process_resources import resources_of
from uncertainty_depth.ros.depth_node import DepthNode
from uncertainty_depth.ros.evaluator_node import EvaluatorNode

DEADLINE_S = 120
S = 1_000_000_000
MS = 1_000_000
WIDTH = 32
HEIGHT = 24
IDENTITY = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
LARGE = np.zeros((480, 640, 3), np.uint8)


@pytest.fixture
def start(start_depth):
    return partial(start_depth, max_frame_age=0.5)


def health(node):
    """Return the counts of the node's only camera."""
    (camera,) = node.cameras
    return camera.health


def small():
    return np.zeros((HEIGHT, WIDTH, 3), np.uint8)


def test_a_camera_driver_that_dies_and_returns_is_heard_again(graph, start, make):
    node = start(max_frame_age=0.0)
    depths = graph.inbox(Image, "depth/image_rect")
    for life in range(3):
        driver = graph.publisher(Image, "image")
        driver.publish(make.image(life + 1, small()))
        depths.wait(life + 1)
        graph.node.destroy_publisher(driver)
        graph.until(lambda: graph.node.count_publishers("image") == 0, "driver any more")
    assert health(node).counts() == {"received": 3, "processed": 3}


def test_a_clock_that_jumps_back_stands_still_or_runs_fast(graph, start, make):
    node = start(use_sim_time=True)
    depths = graph.inbox(Image, "depth/image_rect", 50)
    diagnostics = graph.inbox(DiagnosticArray, "/diagnostics")
    clock = graph.publisher(Clock, "/clock")
    images = graph.publisher(Image, "image")

    def set_clock(seconds):
        clock.publish(Clock(clock=make.header(seconds * S).stamp))
        graph.until(
            lambda: node.get_clock().now().nanoseconds == seconds * S, f"the clock at {seconds} s"
        )

    stamps_s = []
    for seconds in (100, 110, 120, 10, 11):  # ten times as fast, then back to the bag's start
        set_clock(seconds)
        images.publish(make.image(seconds * S, small()))
        stamps_s.append(seconds)
        depths.wait(len(stamps_s))
    for seconds in (12, 13):  # the clock has stopped: stamps run ahead of it
        images.publish(make.image(seconds * S, small()))
        stamps_s.append(seconds)
        depths.wait(len(stamps_s))
    assert [stamp_ns(message.header) // S for message in depths.messages] == stamps_s
    diagnostics.wait_for(lambda message: "ahead of this node's clock" in message.status[0].message)
    set_clock(100)
    images.publish(make.image(13 * S, small()))  # of before the jump: stale by the clock
    graph.until(lambda: health(node).dropped() == {"stale": 1}, "the stale image counted")


def test_a_200_hz_camera_neither_grows_memory_nor_blocks_the_executor(
    graph, start, make, monkeypatch
):
    """As at 200 Hz: images come far faster than the network works."""
    node = start(max_frame_age=0.0)
    images = graph.publisher(Image, "image", 10)
    message = make.image(1, LARGE)
    waiting = []
    memory_mib = []
    for _ in range(4):
        for _ in range(100):
            images.publish(message)
        waiting.append(node._worker.waiting())
        enabled = graph.call(SetBool, "/depth_node/enable", SetBool.Request(data=True))
        assert enabled.success  # a service is answered in between
        memory_mib.append(resources_of().memory_mib)
    assert max(waiting) <= 1
    assert memory_mib[-1] - memory_mib[0] < 100  # 300 images have 264 MiB
    graph.until(
        lambda: (
            health(node).counts().get("processed", 0) + sum(health(node).dropped().values())
            == health(node).counts()["received"]
        ),
        "every image processed or dropped",
    )


def test_services_are_answered_while_the_network_works_and_one_frame_waits(graph, start, make):
    """Whoever calls never waits for a frame: all are answered before the first one ends."""
    node = start(max_frame_age=0.0)
    predictor = node._predictor
    predictor.gate.clear()
    images = graph.publisher(Image, "image", 10)
    message = make.image(1, small())
    images.publish(message)
    assert predictor.begun.acquire(timeout=DEADLINE_S)
    counts = health(node).counts
    for sent in range(2, 202):
        images.publish(message)
        if sent % 5 == 0:  # fewer than the middleware keeps: none is lost on the way
            graph.until(lambda sent=sent: counts()["received"] == sent, f"image {sent}")
        if sent % 50 == 0:
            assert graph.call(SetBool, "/depth_node/enable", SetBool.Request(data=True)).success
            request = GetParameters.Request(names=["samples"])
            (value,) = graph.call(GetParameters, "/depth_node/get_parameters", request).values
            assert value.integer_value == node.config.samples
            assert graph.set_parameters("/depth_node", samples=sent // 50).successful
            state = graph.call(GetState, "/depth_node/get_state").current_state
            assert state.label == "active"
    graph.until(lambda: counts()["received"] == 201, "the last image")
    assert node._worker.waiting() == 1
    assert counts() == {"received": 201, "dropped.queue_full": 199}
    assert not predictor.begun.acquire(blocking=False), "one frame in work"
    predictor.gate.set()
    graph.until(lambda: counts().get("processed") == 2, "the one in work, and the one that waits")


def test_a_frame_that_outlasts_the_shutdown_is_counted_once(graph, start, make):
    earlier = set(threading.enumerate())  # workers of other tests may still end
    node = start(max_frame_age=0.0)
    predictor = node._predictor
    predictor.gate.clear()
    images = graph.publisher(Image, "image", 10)
    images.publish(make.image(1, small()))
    assert predictor.begun.acquire(timeout=DEADLINE_S)
    images.publish(make.image(2, small()))
    graph.until(lambda: health(node).counts()["received"] == 2, "both images")
    counts = {"received": 2, "dropped.shutdown": 2}
    graph.stop(node)
    assert health(node).counts() == counts
    predictor.gate.set()
    own = set(threading.enumerate()) - earlier
    (worker,) = [thread for thread in own if thread.name == "worker"]
    worker.join(DEADLINE_S)
    assert health(node).counts() == counts


@pytest.mark.parametrize("weights", ["one member", "all members"])
def test_a_network_that_computes_nan_publishes_no_finite_value(graph, tiny_model, make, weights):
    import torch

    node = graph.start(
        DepthNode, model=str(tiny_model), method="multi_epochs", max_frame_age=0.0, samples=2
    )
    networks = node._predictor._estimator.networks
    with torch.no_grad():
        for network in networks[: 1 if weights == "one member" else None]:
            for parameter in network.parameters():
                parameter.fill_(torch.nan)
    maps = [graph.inbox(Image, f"{name}/image_rect") for name in ("depth", "uncertainty")]
    graph.publisher(Image, "image").publish(make.image(1, small()))
    for inbox in maps:
        assert np.isnan(decode_depth(inbox.wait()[0])).all()


class Robot:
    """Publishes predictions and clouds at any stamps to a real evaluator."""

    def __init__(self, graph, make, output, **parameters):
        self.output = output
        self.node = graph.start(
            EvaluatorNode, lidar_to_camera=IDENTITY, queue_size=200, output=str(output),
            **parameters,
        )  # fmt: skip
        self.make = make
        self.graph = graph
        self.info = graph.publisher(CameraInfo, "depth/camera_info")
        self.maps = [
            graph.publisher(Image, f"{name}/image_rect", 200) for name in ("depth", "uncertainty")
        ]
        self.clouds = graph.publisher(PointCloud2, "lidar/points", 200)
        self.info.publish(make.camera_info(1, WIDTH, HEIGHT))
        self.sent = 0
        self.scans = 0

    def predict(self, stamp):
        random = np.random.default_rng(stamp)
        for publisher, (low, high) in zip(self.maps, ((3, 5), (0.1, 1)), strict=True):
            values = random.uniform(low, high, (HEIGHT, WIDTH)).astype(np.float32)
            publisher.publish(self.make.image(stamp, values))
        self.sent += 1

    def settle(self):
        """Wait until all has arrived: on a robot it does not come in one burst."""
        sent = {"depth/image_rect": self.sent, "uncertainty/image_rect": self.sent}
        sent["lidar/points"] = self.scans
        counts = self.node.health.counts
        self.graph.until(
            lambda: all(counts().get(f"received.{name}", 0) == sent[name] for name in sent),
            f"{sent} in {counts()}",
        )

    def scan(self, stamp):
        self.scans += 1
        self.clouds.publish(self.make.cloud(self.make.points_on_plane(60), stamp))

    def frames(self):
        """Decide what waits; return what became of the frames."""
        counts = self.node.health.counts
        self.graph.until(
            lambda: (
                counts().get("received.depth/image_rect") == self.sent
                and counts().get("received.uncertainty/image_rect") == self.sent
            ),
            "every map",
        )
        self.graph.stop(self.node)
        return json.loads((self.output / "summary.json").read_text())["frames"]


@pytest.mark.parametrize(("lidar_hz", "scored"), [(1, 3), (100, 21)])
def test_a_slow_and_a_fast_lidar(graph, make, tmp_path, lidar_hz, scored):
    robot = Robot(graph, make, tmp_path, max_time_difference=0.02)
    events = [(index * 100 * MS, robot.predict) for index in range(1, 22)]
    period = S // lidar_hz
    events += [(stamp, robot.scan) for stamp in range(period, 23 * 100 * MS, period)]
    if lidar_hz == 1:
        events.append((100 * MS, robot.scan))
    for stamp, publish in sorted(events, key=lambda event: event[0]):
        publish(stamp)
        if publish == robot.predict:
            robot.settle()
    expected = {} if scored == 21 else {"no_lidar_within_max_time_difference": 21 - scored}
    assert robot.frames() == {"read": 21, "evaluated": scored, "skipped": expected}


@pytest.mark.parametrize(("step_ms", "fewest"), [(30, 8), (200, 1)])
def test_stamps_out_of_order_lose_no_frame(graph, make, tmp_path, step_ms, fewest):
    """Within max_time_difference all are scored; beyond it time jumps back, as at a bag's end."""
    robot = Robot(graph, make, tmp_path)
    for index in (2, 1, 4, 3, 6, 5, 8, 7):
        robot.scan(index * step_ms * MS)
        robot.predict(index * step_ms * MS)
        robot.settle()
    frames = robot.frames()
    assert frames["read"] == 8
    assert frames["evaluated"] >= fewest
    assert frames["evaluated"] + sum(frames["skipped"].values()) == 8


def test_clocks_that_are_apart_are_named_with_what_to_do(graph, make, tmp_path):
    robot = Robot(graph, make, tmp_path)
    diagnostics = graph.inbox(DiagnosticArray, "/diagnostics", 50)
    for index in range(1, 9):
        robot.scan(index * 100 * MS + 10 * S)
        robot.predict(index * 100 * MS)
    told = diagnostics.wait_for(
        lambda message: "the clocks are apart" in message.status[0].message
    ).status[0]
    assert told.level == told.WARN
    assert "+10." in told.message or "+9." in told.message
    assert "chrony" in told.message
    assert robot.frames()["skipped"] == {"no_lidar_within_max_time_difference": 8}
