# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What goes wrong on a robot, on the real middleware: every frame is still accounted for."""

from __future__ import annotations

import threading
from functools import partial

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from diagnostic_msgs.msg import DiagnosticArray
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Image

from test.ros.conftest import FakePredictor
from uncertainty_depth.messages.decoding import stamp_ns

DEADLINE_S = 120
S = 1_000_000_000
WIDTH = 32
HEIGHT = 24


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
