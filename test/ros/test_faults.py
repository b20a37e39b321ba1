# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What goes wrong on a robot, on the real middleware: every frame is still accounted for."""

from __future__ import annotations

import threading
from functools import partial

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.srv import GetState
from rcl_interfaces.srv import GetParameters
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Image
from std_srvs.srv import SetBool

from test.ros.conftest import FakePredictor
from uncertainty_depth.messages.decoding import stamp_ns

DEADLINE_S = 120
S = 1_000_000_000
MS = 1_000_000
WIDTH = 32
HEIGHT = 24
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


def test_services_are_answered_while_the_network_works_and_one_frame_waits(graph, start, make):
    """Whoever calls never waits for a frame: all are answered before the first one ends."""
    node = start(max_frame_age=0.0)
    predictor = FakePredictor.newest
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
    assert counts() == {"received": 201, "dropped.queue_full": 199}
    assert not predictor.begun.acquire(blocking=False), "one frame in work"
    predictor.gate.set()
    graph.until(lambda: counts().get("processed") == 2, "the one in work, and the one that waits")


def test_a_frame_that_outlasts_the_shutdown_is_counted_once(graph, start, make):
    earlier = set(threading.enumerate())  # workers of other tests may still end
    node = start(max_frame_age=0.0)
    predictor = FakePredictor.newest
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
