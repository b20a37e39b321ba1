# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Inputs: reliability that follows the publishers, counted losses, warnings of silence."""

import pickle
import threading
from types import SimpleNamespace

import pytest
from rclpy.qos import QoSProfile, ReliabilityPolicy, qos_profile_sensor_data
from sensor_msgs.msg import CameraInfo, Image

from test.ros.conftest import DEADLINE_S, FakeNode, red
from uncertainty_depth.ros import inputs
from uncertainty_depth.ros.diagnostics import Health
from uncertainty_depth.ros.guarded_node import GuardedNode
from uncertainty_depth.ros.inputs import Inputs, LossCounter

BEST_EFFORT = ReliabilityPolicy.BEST_EFFORT
RELIABLE = ReliabilityPolicy.RELIABLE
RELIABILITY = "qos_overrides./image.subscription.reliability"


DEPTH = 2


class WatchingNode(GuardedNode):
    """One watched input, which waits while `gate` is closed."""

    def __init__(self, **options):
        super().__init__("watching", **options)
        self.gate = threading.Event()
        self.gate.set()
        self.watch = Inputs(self)
        self.input = self.watch.subscribe(
            Image, "image", lambda message: self.gate.wait(DEADLINE_S), depth=DEPTH
        )


def test_reliability_follows_the_publishers(graph, make):
    node = graph.start(WatchingNode)

    def subscribed(reliability):
        found = graph.node.get_subscriptions_info_by_topic
        graph.until(
            lambda: [it.qos_profile.reliability for it in found("/image")] == [reliability],
            f"one {reliability.name} subscription",
        )

    subscribed(RELIABLE)
    camera = graph.publisher(Image, "image", qos_profile_sensor_data)
    subscribed(BEST_EFFORT)
    camera.publish(make.image(1, red()))
    graph.until(lambda: node.input.received == 1, "the image of a best-effort camera")
    graph.node.destroy_publisher(camera)
    reliable = graph.publisher(Image, "image", 10)
    subscribed(RELIABLE)
    graph.until(lambda: reliable.get_subscription_count() == 1, "the reliable subscription")
    reliable.publish(make.image(1, red()))
    graph.until(lambda: node.input.received == 2, "the image of a reliable camera")
    # a start from dumped parameters would take them for the user's will
    assert node.get_parameters_by_prefix("qos_overrides") == {}


def test_what_a_full_queue_of_the_middleware_drops_is_counted(graph, make):
    node = graph.start(WatchingNode)
    images = graph.publisher(Image, "image", 100)
    node.gate.clear()
    images.publish(make.image(1, red()))
    graph.until(lambda: node.input.received == 1, "the first image")
    for _ in range(50):
        images.publish(make.image(1, red()))
    node.gate.set()
    graph.until(lambda: node.input.received + node.input.lost == 51, "every image in a counter")
    assert node.health.counts() == {"lost_in_transport.image": node.input.lost}
    assert node.input.lost == 50 - DEPTH


def test_losses_that_events_and_gaps_both_tell_of_are_counted_once():
    losses = LossCounter()
    losses.on_event(SimpleNamespace(total_count_change=2))  # before the first message
    for number in (7, 10):
        losses.on_message({"publication_sequence_number": number, "publisher_gid": "a"})
    losses.on_event(SimpleNamespace(total_count_change=3))
    losses.on_message({"publication_sequence_number": 1, "publisher_gid": "b"})
    losses.on_message({})  # of a middleware without numbers
    assert losses.total == 2 + 3


def test_publishers_that_come_and_go_take_no_memory_and_hide_no_loss():
    losses = LossCounter()
    sizes = []
    for index in range(6000):
        for gid, number in ((f"{index:06}", 1), ("steady", 2 * index + 1)):
            losses.on_message({"publication_sequence_number": number, "publisher_gid": gid})
        sizes.append(len(pickle.dumps(losses)))
    assert losses.total == 5999
    assert sizes[-1] < 1.1 * sizes[2000]


class InGraph(FakeNode):
    """Knows what one driver publishes, and has a clock.

    Attributes:
        published: topics with type and reliability.
        now_s: of its clock; None if it waits for a /clock.
    """

    def __init__(self, published, **parameters):
        super().__init__(**parameters)
        self.published = published
        self.now_s = 1000.0
        self.receive = {}

    def has_parameter(self, name):
        return name in self.parameters

    def get_parameter(self, name):
        return SimpleNamespace(value=self.parameters[name])

    def guarded(self, callback):
        return callback

    def get_node_names_and_namespaces(self):
        return [("driver", "/")]

    def create_timer(self, period_s, check, clock):
        self.check = check

    def create_subscription(self, message_type, topic, receive, qos, event_callbacks):
        self.receive[topic] = receive
        return SimpleNamespace(topic_name=f"/{topic}")

    def destroy_subscription(self, subscription):
        del self.receive[subscription.topic_name[1:]]

    def get_clock(self):
        now = SimpleNamespace(nanoseconds=round((self.now_s or 0) * 1e9))
        return SimpleNamespace(now=lambda: now, ros_time_is_active=self.now_s is None)

    def get_name(self):
        return "watching"

    def get_namespace(self):
        return "/"

    def get_fully_qualified_name(self):
        return "/watching"

    def get_publisher_names_and_types_by_node(self, name, namespace):
        # an evaluator that its user renamed is known by what else it publishes
        return [("/judge/metrics/ause_rmse", ["std_msgs/msg/Float64"])] if name == "judge" else []

    def get_topic_names_and_types(self):
        return [(topic, [kind]) for topic, (kind, _) in self.published.items()]

    def get_publishers_info_by_topic(self, topic):
        kind, reliability = self.published.get(topic, ("", None))
        qos = QoSProfile(depth=1, reliability=reliability) if kind else None
        name = "judge" if topic.startswith("/judge/") else "driver"
        publisher = SimpleNamespace(node_name=name, node_namespace="/", qos_profile=qos)
        publisher.topic_type = kind
        return [publisher] if kind else []


@pytest.fixture
def watch(monkeypatch):
    """Make a node that subscribes to "image", and warns at once."""
    monkeypatch.setattr(inputs, "UNHEARD_AFTER_S", 0.0)

    def start(published=None, **parameters):
        node = InGraph(published or {}, **parameters)
        node.health = Health()
        node.watch = Inputs(node)
        node.input = node.watch.subscribe(Image, "image", lambda message: None)
        return node

    return start


IMAGE = "sensor_msgs/msg/Image"
OTHER = "sensor_msgs/msg/CompressedImage"
SILENCE = [
    ("/camera/image_raw", IMAGE, "nobody publishes it; remap the node to one that is published: "
     "-r image:=/camera/image_raw; transports: default (FASTDDS_BUILTIN_TRANSPORTS is not set)"),
    ("/points", "sensor_msgs/msg/PointCloud2", f"no topic of type {IMAGE} is published"),
    ("/image", OTHER,
     f"/driver publishes it as reliable, but with type {OTHER}; expected {IMAGE}"),
    ("/image", IMAGE, "/driver publishes it as reliable, but no message arrives"),
]  # fmt: skip


@pytest.mark.parametrize(("topic", "kind", "reason"), SILENCE)
def test_a_silent_input_is_warned_of_with_its_reason(watch, monkeypatch, topic, kind, reason):
    monkeypatch.delenv("FASTDDS_BUILTIN_TRANSPORTS", raising=False)
    node = watch({topic: (kind, RELIABLE)})
    node.check()
    (warning,) = node.logs
    assert warning.startswith("nothing on /image for")
    assert reason in warning
    assert node.watch.problems == (warning,)
    node.check()
    assert node.logs == [warning], "not repeated at once"


def test_what_the_nodes_of_this_package_publish_is_not_offered_as_a_camera(watch):
    node = watch({"/judge/error/image": (IMAGE, RELIABLE), "/camera/picture": (IMAGE, RELIABLE)})
    node.check()
    assert "-r image:=/camera/picture" in node.logs[0]
    assert "error/image" not in node.logs[0]


def test_an_override_stays_and_a_publisher_that_does_not_match_is_named(watch):
    best_effort = {"/image": (IMAGE, BEST_EFFORT)}
    for parameters, reliability in (({}, BEST_EFFORT), ({RELIABILITY: "reliable"}, RELIABLE)):
        node = watch(best_effort, **parameters)
        node.check()
        assert node.input.qos.reliability == reliability
    assert "best_effort, which does not match this subscription" in node.logs[0]


def test_a_warning_of_losses_says_what_to_do(watch, make):
    node = watch({"/image": (IMAGE, RELIABLE)})
    for number in (1, 51):
        info = {"publication_sequence_number": number, "publisher_gid": "a"}
        node.receive["image"](make.image(round(999.9e9), red()), info)
    node.check()
    warning = next(line for line in node.logs if "lost in transport" in line)
    assert warning.startswith("49 messages of /image were lost in transport, 2 arrived (reliable")
    assert "lower the rate" in warning
    assert node.health.counts() == {"lost_in_transport.image": 49}


def test_one_message_is_enough_if_one_is_needed(watch, make, monkeypatch):
    node = watch()
    node.watch.subscribe(CameraInfo, "camera_info", lambda message: None, once=True)

    def is_silent():
        node.check()
        return any("nothing on /camera_info" in problem for problem in node.watch.problems)

    assert is_silent()
    monkeypatch.setattr(inputs, "SILENT_AFTER_S", 0.0)
    node.receive["camera_info"](make.camera_info(1), {})
    assert not is_silent()


def test_stamps_ahead_of_the_clock_are_warned_of_unless_one_is_as_a_bag_begins_again(watch, make):
    node = watch()

    def is_problem(stamp_s):
        node.receive["image"](make.image(round(stamp_s * 1e9), red()), {})
        node.check()
        return any("ahead of this node's clock" in problem for problem in node.watch.problems)

    assert [is_problem(stamp) for stamp in (1100, 1100, 1000, 1100)] == [False, True, False, False]
    (warning,) = [line for line in node.logs if "ahead" in line]
    assert "100.000 s ahead" in warning
    assert "synchronise the clocks" in warning


def test_a_missing_clock_is_warned_of_and_gives_no_ages(watch, make):
    node = watch()
    node.now_s = None
    node.receive["image"](make.image(5_000_000_000, red()), {})
    node.check()
    assert "ros2 param set /watching use_sim_time false" in node.logs[0]
    assert node.input.last_age_s != node.input.last_age_s  # NaN
    node.now_s = 6.0
    node.check()
    assert not any("/clock" in problem for problem in node.watch.problems)
