# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Inputs over real topics: reliability, counted losses, warnings of silence."""

from __future__ import annotations

import threading
import time

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from rcl_interfaces.msg import Log
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile, ReliabilityPolicy, qos_profile_sensor_data
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CameraInfo, CompressedImage, Image

from uncertainty_depth.ros import inputs
from uncertainty_depth.ros.inputs import Inputs
from uncertainty_depth.ros.node import GuardedNode

BEST_EFFORT = ReliabilityPolicy.BEST_EFFORT
RELIABLE = ReliabilityPolicy.RELIABLE


class WatchingNode(GuardedNode):
    """One watched input, Image on "image" or CameraInfo on "camera_info"."""

    message_type = Image
    topic = "image"
    depth = 10
    once = False

    def __init__(self, **options):
        super().__init__("watching", **options)
        self.gate = threading.Event()
        self.gate.set()
        self.watch = Inputs(self, self.health)
        self.input = self.watch.subscribe(
            self.message_type,
            self.topic,
            lambda message: self.gate.wait(120),
            depth=self.depth,
            once=self.once,
        )

    @staticmethod
    def create_executor(context):
        return SingleThreadedExecutor(context=context)


class CameraInfoNode(WatchingNode):
    message_type = CameraInfo
    topic = "camera_info"
    once = True


class ShallowNode(WatchingNode):
    depth = 1


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(inputs, "SILENT_AFTER_S", 0.1)
    monkeypatch.setattr(inputs, "CHECK_EVERY_S", 0.05)
    # the first warning may be of what the graph is not through with: a test waits for its own
    monkeypatch.setattr(inputs, "REPEAT_AFTER_S", 0.1)


@pytest.fixture
def warnings(graph):
    return graph.inbox(Log, "/rosout", QoSProfile(depth=100), matched=False)


def image(make, stamp_ns=1):
    import numpy as np

    return make.image(stamp_ns, np.zeros((4, 6, 3), np.uint8))


def subscribed(graph, topic, reliability):
    def is_so():
        endpoints = graph.node.get_subscriptions_info_by_topic(topic)
        return [endpoint.qos_profile.reliability for endpoint in endpoints] == [reliability]

    graph.until(is_so, f"one {reliability.name} subscription of {topic}")


def test_reliability_follows_the_publishers(graph, make):
    node = graph.start(WatchingNode)
    subscribed(graph, "/image", RELIABLE)
    camera = graph.publisher(Image, "image", qos_profile_sensor_data)
    subscribed(graph, "/image", BEST_EFFORT)
    camera.publish(image(make))
    graph.until(lambda: node.input.received == 1, "the image of a best-effort camera")
    graph.node.destroy_publisher(camera)
    reliable = graph.publisher(Image, "image", 10)
    subscribed(graph, "/image", RELIABLE)
    graph.until(lambda: reliable.get_subscription_count() == 1, "the reliable subscription")
    reliable.publish(image(make))
    graph.until(lambda: node.input.received == 2, "the image of a reliable camera")
    # of a dump of the parameters the next start would take them for the user's will
    assert node.get_parameters_by_prefix("qos_overrides") == {}


def test_an_override_stays_and_a_publisher_that_does_not_match_is_named(
    graph, impatient, warnings
):
    name = "qos_overrides./image.subscription.reliability"
    graph.start(WatchingNode, ["-p", f"{name}:=reliable"])
    graph.publisher(Image, "image", qos_profile_sensor_data, matched=0)
    warning = warnings.wait_for(lambda log: "does not match" in log.msg).msg
    assert warning.startswith("nothing on /image for")
    assert "/helper publishes it as best_effort, which does not match this subscription" in warning
    subscribed(graph, "/image", RELIABLE)


def overrun(graph, make, node):
    """Publish more than the middleware keeps while the node has its first image in hand."""
    images = graph.publisher(Image, "image", 100)
    node.gate.clear()
    images.publish(image(make))
    graph.until(lambda: node.input.received == 1, "the first image")
    for _ in range(50):
        images.publish(image(make))
    node.gate.set()
    return images


@pytest.mark.parametrize("node_class", [WatchingNode, ShallowNode])
def test_what_a_full_queue_of_the_middleware_drops_is_counted(graph, make, node_class):
    node = graph.start(node_class)
    overrun(graph, make, node)
    graph.until(lambda: node.input.received + node.input.lost == 51, "every image in a counter")
    assert node.health.counts() == {"lost_in_transport.image": node.input.lost}
    assert node.input.lost == 50 - node.depth


def test_a_warning_of_losses_says_what_to_do(graph, make, impatient, warnings):
    node = graph.start(ShallowNode)
    overrun(graph, make, node)
    warning = warnings.wait_for(lambda log: "lost in transport" in log.msg).msg
    assert warning.startswith("49 messages of /image were lost in transport, 2 arrived (reliable")
    assert "lower the rate" in warning


def test_a_warning_of_a_wrong_remap_suggests_the_right_one(graph, impatient, warnings):
    graph.node.create_publisher(Image, "camera/image_raw", 10)
    graph.start(WatchingNode, ["-r", "image:=/kamera/image_raw"])
    warning = warnings.wait_for(lambda log: "-r image:=/camera/image_raw" in log.msg).msg
    assert warning.startswith("nothing on /kamera/image_raw for")
    assert "nobody publishes it" in warning
    assert "FASTDDS_BUILTIN_TRANSPORTS" in warning


def test_a_warning_says_that_no_such_topic_is_published(graph, impatient, warnings):
    graph.start(WatchingNode)
    phrase = "no topic of type sensor_msgs/msg/Image is published"
    warnings.wait_for(lambda log: phrase in log.msg)


def test_a_topic_of_another_type_is_named(graph, impatient, warnings):
    graph.start(WatchingNode)
    elsewhere = type(graph)()  # a process cannot have one topic with two types
    try:
        elsewhere.node.create_publisher(CompressedImage, "image", 10)
        warning = warnings.wait_for(lambda log: "with type" in log.msg).msg
    finally:
        elsewhere.close()
    assert "with type sensor_msgs/msg/CompressedImage; expected sensor_msgs/msg/Image" in warning


def test_a_silent_publisher_is_named(graph, impatient, warnings):
    graph.start(WatchingNode)
    graph.publisher(Image, "image", 10)
    warning = warnings.wait_for(lambda log: "no message arrives" in log.msg).msg
    assert "/helper publishes it as reliable" in warning


def test_one_message_is_enough_where_one_is_needed(graph, make, impatient, warnings):
    node = graph.start(CameraInfoNode)
    graph.publisher(CameraInfo, "camera_info").publish(make.camera_info(1, 4, 4))
    graph.until(lambda: node.input.received == 1, "camera info")
    node.input.last_message_s -= 100
    assert not inputs.is_silent(node.input)
    node.input.received = 0
    assert inputs.is_silent(node.input)


def test_stamps_ahead_of_the_clock_are_warned_of(graph, make, impatient, warnings):
    graph.start(WatchingNode)
    graph.publisher(Image, "image").publish(image(make, time.time_ns() + 100_000_000_000))
    warning = warnings.wait_for(lambda log: "ahead of this node's clock" in log.msg).msg
    assert "synchronise the clocks" in warning


def test_one_stamp_ahead_as_a_bag_begins_again_is_no_problem(graph, monkeypatch):
    monkeypatch.setattr(inputs, "CHECK_EVERY_S", 3600.0)
    node = graph.start(WatchingNode)
    node.input.last_age_s = -100.0
    node.watch.check()
    assert not any("ahead" in problem for problem in node.watch.problems)
    node.watch.check()
    assert any("ahead" in problem for problem in node.watch.problems)
    node.input.last_age_s = 0.0
    node.watch.check()
    node.input.last_age_s = -100.0
    node.watch.check()
    assert not any("ahead" in problem for problem in node.watch.problems)


def test_a_missing_clock_is_warned_of_and_gives_no_ages(graph, make, impatient, warnings):
    node = graph.start(WatchingNode, use_sim_time=True)
    warning = warnings.wait_for(lambda log: "nothing came on /clock" in log.msg).msg
    assert "ros2 param set /watching use_sim_time false" in warning
    graph.publisher(Image, "image").publish(image(make, 5_000_000_000))
    graph.until(lambda: node.input.received == 1, "an image")
    assert node.input.last_age_s != node.input.last_age_s  # NaN
    clock = graph.publisher(Clock, "/clock")
    message = Clock()
    message.clock.sec = 6
    clock.publish(message)
    graph.until(lambda: not inputs.without_clock(node), "the clock")


def test_a_warning_is_not_repeated_at_once(graph, impatient, warnings, monkeypatch):
    monkeypatch.setattr(inputs, "REPEAT_AFTER_S", 3600.0)
    node = graph.start(WatchingNode)
    warnings.wait_for(lambda log: "nobody publishes it" in log.msg)
    for _ in range(3):
        node.watch.check()
    node.get_logger().warning("end of the checks")
    warnings.wait_for(lambda log: log.msg == "end of the checks")
    assert len([log for log in warnings.messages if "nobody publishes it" in log.msg]) == 1
