"""Says what is wrong with a node's inputs while it is wrong, and what to type."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import QoSCompatibility, ReliabilityPolicy, qos_check_compatible
from rclpy.topic_endpoint_info import TopicEndpointInfo
from rclpy.utilities import get_rmw_implementation_identifier

from uncertainty_depth.ros.watched_input import WatchedInput

CHECK_EVERY_S = 1.0
SILENT_AFTER_S = 3.0
REPEAT_AFTER_S = 30.0
CLOCK_TOLERANCE_S = 0.1
SUGGESTIONS = 3
TRANSPORTS = "FASTDDS_BUILTIN_TRANSPORTS"


class InputWatch:
    """Looks at a node's inputs once a second and warns of each that is silent, lossy or ahead.

    A warning is repeated after half a minute at the earliest.
    """

    def __init__(self, node: Node, inputs: Callable[[], Iterable[WatchedInput]]) -> None:
        """`inputs` gives those of now: what a node subscribes to may change."""
        self._node, self._inputs = node, inputs
        self._start_s = time.monotonic()
        self._warned_s: dict[tuple[str, str], float] = {}
        self._lost: dict[str, int] = {}
        wall_time = Clock(clock_type=ClockType.STEADY_TIME)
        node.create_timer(CHECK_EVERY_S, self.check, clock=wall_time)

    def check(self) -> None:
        """Adapt each input to its publishers, and warn of what is wrong now."""
        if without_clock(self._node) and time.monotonic() - self._start_s > SILENT_AFTER_S:
            self._warn("/clock", "clock", no_clock(self._node))
        for each in self._inputs():
            each.adapt()
            if is_silent(each):
                self._warn(each.name, "silence", silence(self._node, each))
            if each.lost > self._lost.get(each.name, 0):
                self._warn(each.name, "losses", losses(each))
            if each.last_age_s < -CLOCK_TOLERANCE_S:
                self._warn(each.name, "age", future(each))
            self._lost[each.name] = each.lost

    def _warn(self, topic: str, subject: str, sentence: str) -> None:
        now_s = time.monotonic()
        if now_s - self._warned_s.get((topic, subject), -REPEAT_AFTER_S) >= REPEAT_AFTER_S:
            self._warned_s[topic, subject] = now_s
            self._node.get_logger().warning(sentence)


def without_clock(node: Node) -> bool:
    """Whether the node's time is that of /clock and nothing has come on it yet."""
    clock = node.get_clock()
    return clock.ros_time_is_active and clock.now().nanoseconds == 0


def no_clock(node: Node) -> str:
    """What to type where `use_sim_time` waits for a /clock that never comes."""
    publishers = node.count_publishers("/clock")
    return (
        f"use_sim_time is true, but nothing came on /clock, which has {publishers} publishers: "
        "ages and latencies are unknown; play the bag with --clock, or type: "
        f"ros2 param set {node.get_fully_qualified_name()} use_sim_time false"
    )


def is_silent(each: WatchedInput) -> bool:
    """Whether an input that should keep coming has not for `SILENT_AFTER_S`."""
    waits = not (each.once and each.received)
    return waits and time.monotonic() - each.last_message_s > SILENT_AFTER_S


def silence(node: Node, each: WatchedInput) -> str:
    """Why nothing comes, as far as the graph tells, and what to type."""
    publishers = each.publishers()
    reasons = [obstacle(each, publisher) for publisher in publishers]
    reason = "; ".join(reasons) or f"nobody publishes it; {other_topics(node, each)}"
    purpose = f" (needed for {each.purpose})" if each.purpose else ""
    silent = f"nothing on {each.name}{purpose} for {SILENT_AFTER_S:.0f} s"
    return f"{silent}: {reason}; {transports()}"


def obstacle(each: WatchedInput, publisher: TopicEndpointInfo) -> str:
    """Why nothing comes from a publisher that is there."""
    namespace = publisher.node_namespace.rstrip("/")
    qos = publisher.qos_profile
    offer = f"{namespace}/{publisher.node_name} publishes it as {qos.reliability.name.lower()}"
    expected = type_name(each.message_type)
    if publisher.topic_type != expected:
        return f"{offer}, but with type {publisher.topic_type}; expected {expected}"
    compatibility, mismatch = qos_check_compatible(qos, each.qos)
    if compatibility == QoSCompatibility.ERROR:
        reason = mismatch.strip()
        return f"{offer}, which does not match this subscription ({reason}): change qos_overrides"
    return f"{offer}, but no message arrives: is it sending (ros2 topic hz {each.name})?"


def other_topics(node: Node, each: WatchedInput) -> str:
    """The remaps that would lead to a topic of this type that somebody else publishes."""
    own = node.get_publisher_names_and_types_by_node(node.get_name(), node.get_namespace())
    ours = {name for name, _ in own}
    expected = type_name(each.message_type)
    known = node.get_topic_names_and_types()
    topics = [name for name, types in known if expected in types and name not in ours]
    published = [name for name in topics if node.count_publishers(name)]
    similar = get_close_matches(each.name, published, SUGGESTIONS, cutoff=0.0)
    remaps = [f"-r {each.topic}:={name}" for name in similar]
    if not remaps:
        return f"no topic of type {expected} is published: is the driver running?"
    return f"remap the node to one that is published: {' or '.join(remaps)}"


def losses(each: WatchedInput) -> str:
    """How much is lost between publisher and node, and what to type."""
    reliability = each.qos.reliability
    sentence = (
        f"{each.lost} messages of {each.name} were lost in transport, {each.received} arrived "
        f"({reliability.name.lower()} subscription)"
    )
    if reliability == ReliabilityPolicy.RELIABLE:
        return (
            f"{sentence}: more is sent than this computer takes; lower the rate or the image size"
        )
    offers = {publisher.qos_profile.reliability for publisher in each.publishers()}
    if ReliabilityPolicy.BEST_EFFORT in offers:
        return (
            f"{sentence}: set the driver's reliability to reliable, or export "
            f"{TRANSPORTS}=LARGE_DATA for the driver and this node; {transports()}"
        )
    return f"{sentence}: set the parameter reliable_input to true; {transports()}"


def future(each: WatchedInput) -> str:
    """What to do about stamps that lie ahead of the node's clock."""
    return (
        f"messages on {each.name} are stamped {-each.last_age_s:.3f} s ahead of this node's clock: "
        "synchronise the clocks of the computers (chrony, PTP); with a bag, set use_sim_time"
    )


def transports() -> str:
    """Which transports this process uses: processes with different ones may not meet."""
    middleware = get_rmw_implementation_identifier()
    if "fastrtps" not in middleware:
        return f"middleware: {middleware}"
    chosen = os.environ.get(TRANSPORTS)
    if chosen is None:
        return f"transports: default ({TRANSPORTS} is not set)"
    return f"transports: {TRANSPORTS}={chosen}, which must be the same in every process"


def type_name(message_type: type[Any]) -> str:
    """A message class as the graph calls it: sensor_msgs/msg/Image."""
    package, interface, _ = message_type.__module__.split(".", 2)
    return f"{package}/{interface}/{message_type.__name__}"
