# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Inputs: reliability follows the publishers, losses are counted, silence is warned of."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from rclpy.clock import Clock, ClockType
from rclpy.event_handler import QoSMessageLostInfo, SubscriptionEventCallbacks
from rclpy.node import Node, NodeNameNonExistentError
from rclpy.qos import QoSCompatibility, QoSProfile, ReliabilityPolicy, qos_check_compatible
from rclpy.topic_endpoint_info import TopicEndpointInfo
from rclpy.utilities import get_rmw_implementation_identifier

from uncertainty_depth.ros.diagnostics import Health
from uncertainty_depth.ros.messages import age_s, type_name
from uncertainty_depth.ros.qos import SUBSCRIPTION, overridden, override_name

if TYPE_CHECKING:
    from uncertainty_depth.ros.node import GuardedNode

QUEUE = 10
MAX_PUBLISHERS = 1000
"""Whose last numbers are kept: a driver that starts again is another publisher."""
UNNUMBERED = (None, 0, 2**64 - 1)
"""Values of a middleware without sequence numbers."""
CHECK_EVERY_S = 1.0
SILENT_AFTER_S = 3.0
UNHEARD_AFTER_S = 10.0
"""The same before the first message: the drivers of a robot that is switched on still start."""
REPEAT_AFTER_S = 30.0
CLOCK_TOLERANCE_S = 0.1
SUGGESTIONS = 3
OWN_TOPICS = ("/depth/model", "/metrics/ause_rmse")
"""Topics that tell a node of this package: each publishes one of them."""
TRANSPORTS = "FASTDDS_BUILTIN_TRANSPORTS"


class LossCounter:
    """Counts a topic's published messages that did not arrive.

    Gaps in a publisher's sequence numbers cover every loss between the first and the last received
    message, including drops from a full middleware queue without an event. Middleware events also
    cover losses before the first and after the last message. The sum would count most losses
    twice, so the larger of the two is used.
    """

    def __init__(self) -> None:
        self._last_numbers: OrderedDict[str, int] = OrderedDict()
        self._before_first = 0
        self._reported = 0
        self._missing = 0

    @property
    def total(self) -> int:
        """The number of messages lost so far."""
        return self._before_first + max(self._reported, self._missing)

    def on_event(self, event: QoSMessageLostInfo) -> None:
        """Count the middleware's message-lost event."""
        if self._last_numbers:
            self._reported += event.total_count_change
        else:
            self._before_first += event.total_count_change

    def on_message(self, info: Mapping[str, Any]) -> None:
        """Count the gap before a received message's sequence number."""
        number = info.get("publication_sequence_number")
        if number in UNNUMBERED:
            return
        publisher = str(info.get("publisher_gid"))
        previous = self._last_numbers.pop(publisher, number - 1)
        self._last_numbers[publisher] = number
        if len(self._last_numbers) > MAX_PUBLISHERS:
            self._last_numbers.popitem(last=False)
        self._missing += max(0, number - previous - 1)


class WatchedInput:
    """A subscription that is reliable if every publisher of the topic is, else best effort.

    A reliable subscription gets nothing from a best-effort publisher, and a best-effort one loses
    nearly all large messages on Fast DDS by default. A reliability under `qos_overrides` is not
    changed. Losses are counted in `health` as "lost_in_transport.TOPIC".
    """

    def __init__(
        self,
        node: GuardedNode,
        health: Health,
        message_type: type,
        topic: str,
        receive: Callable[[Any], None],
        depth: int = QUEUE,
        *,
        once: bool = False,
        optional: bool = False,
        purpose: str = "",
    ) -> None:
        """Subscribe `receive`, called on the executor's thread, to the relative name `topic`.

        It keeps `depth` messages while the executor is busy. Later silence is fine if one message
        is enough (`once`), all silence if `optional`; `purpose` is named in warnings.
        """
        self._node = node
        self._health = health
        self._receive = receive
        self.message_type = message_type
        self.topic = topic
        self.once = once
        self.optional = optional
        self.purpose = purpose
        reliable = QoSProfile(depth=depth, reliability=ReliabilityPolicy.RELIABLE)
        self.qos = overridden(node, topic, SUBSCRIPTION, reliable)
        is_reliable = self.qos.reliability == ReliabilityPolicy.RELIABLE
        reliability = override_name(node, topic, SUBSCRIPTION, "reliability")
        self._adapts = is_reliable and not node.has_parameter(reliability)
        self.received = 0
        self.lost = 0
        self.last_age_s = 0.0
        self.last_message_s = time.monotonic()
        self._subscribe()

    @property
    def name(self) -> str:
        """The topic's full name, namespace and remaps applied."""
        return self.subscription.topic_name

    def publishers(self) -> list[TopicEndpointInfo]:
        """Return the publishers of the topic with their quality of service."""
        return self._node.get_publishers_info_by_topic(self.name)

    def adapt(self) -> None:
        """Subscribe anew if the publishers offer another reliability."""
        if not self._adapts:
            return
        offers = {publisher.qos_profile.reliability for publisher in self.publishers()}
        has_best_effort = ReliabilityPolicy.BEST_EFFORT in offers
        reliability = (
            ReliabilityPolicy.BEST_EFFORT if has_best_effort else ReliabilityPolicy.RELIABLE
        )
        if reliability != self.qos.reliability:
            self.qos.reliability = reliability
            self.close()
            self._subscribe()

    def close(self) -> None:
        """End the subscription."""
        self._node.destroy_subscription(self.subscription)

    def _subscribe(self) -> None:
        self._losses = LossCounter()
        self._counted_losses = 0
        events = SubscriptionEventCallbacks(
            message_lost=self._node.guarded(self._on_lost),
            incompatible_qos=self._node.guarded(lambda _: self.adapt()),
        )
        self.subscription = self._node.create_subscription(
            self.message_type, self.topic, self._on_message, self.qos, event_callbacks=events
        )

    def _on_message(self, message: Any, info: Mapping[str, Any]) -> None:
        self._losses.on_message(info)
        self._count_losses()
        self.received += 1
        self.last_message_s = time.monotonic()
        self.last_age_s = age_s(self._node, message.header)
        self._receive(message)

    def _on_lost(self, event: QoSMessageLostInfo) -> None:
        self._losses.on_event(event)
        self._count_losses()

    def _count_losses(self) -> None:
        number = self._losses.total - self._counted_losses
        if number:
            self.lost += number
            self._counted_losses += number
            self._health.count(f"lost_in_transport.{self.topic}", number)


class Inputs:
    """A node's inputs, checked once a second; warns of each that is silent, lossy or ahead.

    Stamps ahead of the clock are a problem at the second check in a row that finds them. Warnings
    are repeated after half a minute at the earliest.
    """

    def __init__(self, node: GuardedNode, health: Health) -> None:
        """Start checking; `health` counts losses."""
        self.problems: tuple[str, ...] = ()
        self._node = node
        self._health = health
        self._inputs: list[WatchedInput] = []
        self._start_s = time.monotonic()
        self._warned_s: dict[tuple[str, str], float] = {}
        self._lost: dict[str, int] = {}
        self._ahead: frozenset[str] = frozenset()
        wall_time = Clock(clock_type=ClockType.STEADY_TIME)
        node.create_timer(CHECK_EVERY_S, self.check, clock=wall_time)

    def subscribe(
        self, message_type: type, topic: str, receive: Callable[[Any], None], **options: Any
    ) -> WatchedInput:
        """Subscribe to a topic until `close`; see `WatchedInput`."""
        watched = WatchedInput(self._node, self._health, message_type, topic, receive, **options)
        self._inputs.append(watched)
        return watched

    def close(self) -> None:
        """End all subscriptions."""
        while self._inputs:
            self._inputs.pop().close()

    def check(self) -> None:
        """Adapt each input to its publishers, and warn of its problems."""
        sentences: dict[tuple[str, str], str] = {}
        if without_clock(self._node) and time.monotonic() - self._start_s > UNHEARD_AFTER_S:
            sentences["/clock", "clock"] = no_clock(self._node)
        if namesakes(self._node):
            sentences[self._node.get_fully_qualified_name(), "name"] = name_taken(self._node)
        for watched in self._inputs:
            watched.adapt()
            if is_silent(watched):
                sentences[watched.name, "silence"] = silence(self._node, watched)
            if len(publishers := watched.publishers()) > 1:
                sentences[watched.name, "publishers"] = mixed(watched, publishers)
            if watched.lost > self._lost.get(watched.name, 0):
                sentences[watched.name, "losses"] = losses(watched)
            if watched.name in self._ahead and is_ahead(watched):
                sentences[watched.name, "age"] = future(watched)
            self._lost[watched.name] = watched.lost
        self._ahead = frozenset(watched.name for watched in self._inputs if is_ahead(watched))
        for key, sentence in sentences.items():
            self._warn(key, sentence)
        self.problems = tuple(sentences.values())

    def _warn(self, key: tuple[str, str], sentence: str) -> None:
        now_s = time.monotonic()
        if now_s - self._warned_s.get(key, -REPEAT_AFTER_S) >= REPEAT_AFTER_S:
            self._warned_s[key] = now_s
            self._node.get_logger().warning(sentence)


def without_clock(node: Node) -> bool:
    """Return whether the node takes its time from a /clock that it has not received."""
    clock: Any = node.get_clock()  # a ROSClock, which the type hints do not say
    return clock.ros_time_is_active and clock.now().nanoseconds == 0


def no_clock(node: Node) -> str:
    """Return the warning that `use_sim_time` waits for a /clock without publisher."""
    publishers = node.count_publishers("/clock")
    return (
        f"use_sim_time is true, but nothing came on /clock (publishers: {publishers}): "
        "ages and latencies are unknown; play the bag with --clock, or type: "
        f"ros2 param set {node.get_fully_qualified_name()} use_sim_time false"
    )


def namesakes(node: Node) -> int:
    """Return how many other nodes in the graph have this one's full name."""
    own = (node.get_name(), node.get_namespace())
    return max(0, node.get_node_names_and_namespaces().count(own) - 1)  # 0: not yet in it


def name_taken(node: Node) -> str:
    """Return the warning that others have this node's name, and what to type."""
    return (
        f"{namesakes(node) + 1} nodes are called {node.get_fully_qualified_name()}: what is asked "
        "of one, its services and parameters, may reach another; start each with a name of its "
        "own, -r __node:=NAME, or in a namespace, -r __ns:=/NAME"
    )


def longest_silence_s(watched: WatchedInput) -> float:
    """Return the time without a message after which an input is silent."""
    return SILENT_AFTER_S if watched.received else UNHEARD_AFTER_S


def is_silent(watched: WatchedInput) -> bool:
    """Return whether nothing arrived for too long on an input that should not pause."""
    is_awaited = not (watched.optional or (watched.once and watched.received))
    silence_s = time.monotonic() - watched.last_message_s
    return is_awaited and silence_s > longest_silence_s(watched)


def silence(node: Node, watched: WatchedInput) -> str:
    """Return the warning that nothing arrives: why, by the graph, and what to type."""
    publishers = watched.publishers()
    reasons = [obstacle(watched, publisher) for publisher in publishers]
    reason = "; ".join(reasons) or f"nobody publishes it; {other_topics(node, watched)}"
    purpose = f" (needed for {watched.purpose})" if watched.purpose else ""
    silent = f"nothing on {watched.name}{purpose} for {longest_silence_s(watched):.0f} s"
    return f"{silent}: {reason}; {transports()}"


def mixed(watched: WatchedInput, publishers: Sequence[TopicEndpointInfo]) -> str:
    """Return the warning that several publish a topic: maps of two nodes have equal stamps."""
    names = [f"{publisher.node_namespace}/{publisher.node_name}" for publisher in publishers]
    senders = ", ".join(sorted(name.replace("//", "/") for name in names))
    return (
        f"{len(publishers)} publish {watched.name} ({senders}): their messages are taken for "
        "those of one sensor or network; give each a topic of its own"
    )


def obstacle(watched: WatchedInput, publisher: TopicEndpointInfo) -> str:
    """Return why nothing arrives from a publisher in the graph."""
    namespace = publisher.node_namespace.rstrip("/")
    qos = publisher.qos_profile
    offer = f"{namespace}/{publisher.node_name} publishes it as {qos.reliability.name.lower()}"
    expected = type_name(watched.message_type)
    if publisher.topic_type != expected:
        return f"{offer}, but with type {publisher.topic_type}; expected {expected}"
    compatibility, mismatch = qos_check_compatible(qos, watched.qos)
    if compatibility == QoSCompatibility.ERROR:
        reason = mismatch.strip()
        return f"{offer}, which does not match this subscription ({reason}): change qos_overrides"
    return f"{offer}, but no message arrives: is it sending (ros2 topic hz {watched.name})?"


def other_topics(node: Node, watched: WatchedInput) -> str:
    """Return remaps that lead to a published topic of this type."""
    own = node.get_publisher_names_and_types_by_node(node.get_name(), node.get_namespace())
    own_names = {name for name, _ in own}
    expected = type_name(watched.message_type)
    topics = node.get_topic_names_and_types()
    others = [name for name, types in topics if expected in types and name not in own_names]
    published = [name for name in others if is_offered(node, watched, name)]
    similar = get_close_matches(watched.name, published, SUGGESTIONS, cutoff=0.0)
    remaps = [f"-r {watched.topic}:={name}" for name in similar]
    if not remaps:
        return f"no topic of type {expected} is published: is the driver running?"
    return f"remap the node to one that is published: {' or '.join(remaps)}"


def is_offered(node: Node, watched: WatchedInput, topic: str) -> bool:
    """Return whether there is a publisher of a topic that this input may be meant for.

    Topics published by this package's nodes are only meant for inputs of exactly that name: their
    pictures are not camera images, and their clouds are not LiDAR clouds.
    """
    publishers = node.get_publishers_info_by_topic(topic)
    is_own = any(publishes_predictions(node, publisher) for publisher in publishers)
    is_map = watched.topic.startswith(("depth/", "uncertainty/"))
    return bool(publishers) and (not is_own or (is_map and topic.endswith(f"/{watched.topic}")))


def publishes_predictions(node: Node, publisher: TopicEndpointInfo) -> bool:
    """Return whether a node of this package is the publisher: by what else it publishes."""
    if not publisher.node_namespace.startswith("/"):
        return False  # of a node that the graph does not know yet, or of no ROS node at all
    try:
        topics = node.get_publisher_names_and_types_by_node(
            publisher.node_name, publisher.node_namespace
        )
    except NodeNameNonExistentError:  # it has gone meanwhile
        return False
    return any(name.endswith(OWN_TOPICS) for name, _ in topics)


def losses(watched: WatchedInput) -> str:
    """Return the warning that messages are lost in transport, and what to type."""
    reliability = watched.qos.reliability
    sentence = (
        f"{watched.lost} messages of {watched.name} were lost in transport, "
        f"{watched.received} arrived ({reliability.name.lower()} subscription)"
    )
    if reliability == ReliabilityPolicy.RELIABLE:
        return (
            f"{sentence}: more is sent than this computer takes; lower the rate or the image size"
        )
    offers = {publisher.qos_profile.reliability for publisher in watched.publishers()}
    if ReliabilityPolicy.BEST_EFFORT in offers:
        return (
            f"{sentence}: set the driver's reliability to reliable, or export "
            f"{TRANSPORTS}=LARGE_DATA for every process; {transports()}"
        )
    return f"{sentence}: take its reliability out of qos_overrides; {transports()}"


def is_ahead(watched: WatchedInput) -> bool:
    """Return whether the newest stamp is ahead of this node's clock: once is a restarted bag."""
    return watched.last_age_s < -CLOCK_TOLERANCE_S


def future(watched: WatchedInput) -> str:
    """Return the warning that stamps are ahead of the node's clock, and what to do."""
    return (
        f"messages on {watched.name} are stamped {-watched.last_age_s:.3f} s ahead of this node's "
        "clock: synchronise the clocks of the computers (chrony, PTP); "
        "with a bag, set use_sim_time"
    )


def transports() -> str:
    """Return the transports of this process: processes with others may not connect."""
    middleware = get_rmw_implementation_identifier()
    if "fastrtps" not in middleware:
        return f"middleware: {middleware}"
    value = os.environ.get(TRANSPORTS)
    if value is None:
        return f"transports: default ({TRANSPORTS} is not set)"
    return f"transports: {TRANSPORTS}={value}, which must be the same in every process"
