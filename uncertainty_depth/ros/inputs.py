# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Inputs: reliability follows the publishers, losses are counted, silence is warned of."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.event_handler import QoSMessageLostInfo, SubscriptionEventCallbacks
from rclpy.node import NodeNameNonExistentError
from rclpy.qos import QoSCompatibility, QoSProfile, ReliabilityPolicy, qos_check_compatible
from rclpy.topic_endpoint_info import TopicEndpointInfo
from rclpy.utilities import get_rmw_implementation_identifier

from uncertainty_depth.ros.extrinsics import Transforms
from uncertainty_depth.ros.guarded_node import GuardedNode
from uncertainty_depth.ros.messages import age_s, type_name
from uncertainty_depth.ros.qos import SUBSCRIPTION, overridden, override_name

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
    changed. Losses are counted in the node's `health` as "lost_in_transport.TOPIC".
    """

    def __init__(
        self,
        node: GuardedNode,
        message_type: type,
        topic: str,
        receive: Callable[[Any], None],
        depth: int = QUEUE,
        *,
        once: bool = False,
        optional: bool = False,
        counted: bool = False,
        purpose: str = "",
    ) -> None:
        """Subscribe `receive`, called on the executor's thread, to the relative name `topic`.

        It keeps `depth` messages while the executor is busy. Later silence is fine if one message
        is enough (`once`), all silence if `optional`; `purpose` is named in warnings. If
        `counted`, a message received is counted in `health` as "received.TOPIC".
        """
        self.name = node.resolve_topic_name(topic)
        self.last_age_s = 0.0
        self._node = node
        self._receive = receive
        self._message_type = message_type
        self._topic = topic
        self._once = once
        self._optional = optional
        self._counted = counted
        self._purpose = purpose
        reliable = QoSProfile(depth=depth, reliability=ReliabilityPolicy.RELIABLE)
        self.qos = overridden(node, topic, SUBSCRIPTION, reliable)
        is_reliable = self.qos.reliability == ReliabilityPolicy.RELIABLE
        reliability = override_name(node, topic, SUBSCRIPTION, "reliability")
        self._adapts = is_reliable and not node.has_parameter(reliability)
        self.received = 0
        self.lost = 0
        self._warned_lost = 0
        self._was_ahead = False
        self._last_message_s = time.monotonic()
        self._subscribe()

    def _publishers(self) -> list[TopicEndpointInfo]:
        return self._node.get_publishers_info_by_topic(self.name)

    def adapt(self) -> None:
        """Subscribe anew if the publishers offer another reliability."""
        if not self._adapts:
            return
        offers = {publisher.qos_profile.reliability for publisher in self._publishers()}
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
        self._lost_before = self.lost
        events = SubscriptionEventCallbacks(
            message_lost=self._node.guarded(self._on_lost),
            incompatible_qos=self._node.guarded(lambda _: self.adapt()),
        )
        self.subscription = self._node.create_subscription(
            self._message_type, self._topic, self._on_message, self.qos, event_callbacks=events
        )

    def _on_message(self, message: Any, info: Mapping[str, Any]) -> None:
        self._losses.on_message(info)
        self._count_losses()
        self.received += 1
        self._last_message_s = time.monotonic()
        self.last_age_s = age_s(self._node, message.header)
        self._receive(message)
        if self._counted:
            self._node.health.count(f"received.{self._topic}")

    def _on_lost(self, event: QoSMessageLostInfo) -> None:
        self._losses.on_event(event)
        self._count_losses()

    def _count_losses(self) -> None:
        lost = self._lost_before + self._losses.total
        if lost > self.lost:
            self._node.health.count(f"lost_in_transport.{self._topic}", lost - self.lost)
            self.lost = lost

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield each problem's kind and a warning that says what to do; called once a second.

        Stamps ahead of the clock are one the second time in a row: once is a restarted bag.
        """
        if silence := self._silence():
            yield "silence", silence
        if len(publishers := self._publishers()) > 1:  # maps of two nodes have equal stamps
            names = [
                f"{publisher.node_namespace}/{publisher.node_name}" for publisher in publishers
            ]
            senders = ", ".join(sorted(name.replace("//", "/") for name in names))
            yield (
                "publishers",
                f"{len(publishers)} publish {self.name} ({senders}): their messages are taken for "
                "those of one sensor or network; give each a topic of its own",
            )
        if self.lost > self._warned_lost:
            self._warned_lost = self.lost
            yield "losses", self._losses_sentence()
        was_ahead, self._was_ahead = self._was_ahead, self.last_age_s < -CLOCK_TOLERANCE_S
        if was_ahead and self._was_ahead:
            yield (
                "age",
                f"messages on {self.name} are stamped {-self.last_age_s:.3f} s ahead of this "
                "node's clock: synchronise the clocks of the computers (chrony, PTP); "
                "with a bag, set use_sim_time",
            )

    def _silence(self) -> str:
        """Return the warning that nothing arrives: why, by the graph, and what to type."""
        limit_s = SILENT_AFTER_S if self.received else UNHEARD_AFTER_S
        is_awaited = not (self._optional or (self._once and self.received))
        if not is_awaited or time.monotonic() - self._last_message_s <= limit_s:
            return ""
        reasons = [self._obstacle(publisher) for publisher in self._publishers()]
        reason = "; ".join(reasons) or f"nobody publishes it; {self._other_topics()}"
        purpose = f" (needed for {self._purpose})" if self._purpose else ""
        silent = f"nothing on {self.name}{purpose} for {limit_s:.0f} s"
        return f"{silent}: {reason}; {transports()}"

    def _obstacle(self, publisher: TopicEndpointInfo) -> str:
        """Return why nothing arrives from a publisher in the graph."""
        namespace = publisher.node_namespace.rstrip("/")
        qos = publisher.qos_profile
        offer = f"{namespace}/{publisher.node_name} publishes it as {qos.reliability.name.lower()}"
        expected = type_name(self._message_type)
        if publisher.topic_type != expected:
            return f"{offer}, but with type {publisher.topic_type}; expected {expected}"
        compatibility, mismatch = qos_check_compatible(qos, self.qos)
        if compatibility == QoSCompatibility.ERROR:
            reason = mismatch.strip()
            return (
                f"{offer}, which does not match this subscription ({reason}): change qos_overrides"
            )
        return f"{offer}, but no message arrives: is it sending (ros2 topic hz {self.name})?"

    def _other_topics(self) -> str:
        """Return remaps that lead to a published topic of this type."""
        node = self._node
        own = node.get_publisher_names_and_types_by_node(node.get_name(), node.get_namespace())
        own_names = {name for name, _ in own}
        expected = type_name(self._message_type)
        topics = node.get_topic_names_and_types()
        others = [name for name, types in topics if expected in types and name not in own_names]
        published = [name for name in others if self._is_offered(name)]
        similar = get_close_matches(self.name, published, SUGGESTIONS, cutoff=0.0)
        remaps = [f"-r {self._topic}:={name}" for name in similar]
        if not remaps:
            return f"no topic of type {expected} is published: is the driver running?"
        return f"remap the node to one that is published: {' or '.join(remaps)}"

    def _is_offered(self, topic: str) -> bool:
        """Return whether there is a publisher of a topic that this input may be meant for.

        Topics published by this package's nodes are only meant for inputs of exactly that name:
        their pictures are not camera images, and their clouds are not LiDAR clouds.
        """
        publishers = self._node.get_publishers_info_by_topic(topic)
        is_map = self._topic.startswith(("depth/", "uncertainty/"))
        fits = is_map and topic.endswith(f"/{self._topic}")
        return bool(publishers) and (fits or not any(map(self._is_own, publishers)))

    def _is_own(self, publisher: TopicEndpointInfo) -> bool:
        """Return whether a node of this package publishes: by what else it publishes."""
        if not publisher.node_namespace.startswith("/"):
            return False  # of a node that the graph does not know yet, or of no ROS node at all
        try:
            topics = self._node.get_publisher_names_and_types_by_node(
                publisher.node_name, publisher.node_namespace
            )
        except NodeNameNonExistentError:  # it has gone meanwhile
            return False
        return any(name.endswith(OWN_TOPICS) for name, _ in topics)

    def _losses_sentence(self) -> str:
        """Return the warning that messages are lost in transport, and what to type."""
        reliability = self.qos.reliability
        sentence = (
            f"{self.lost} messages of {self.name} were lost in transport, "
            f"{self.received} arrived ({reliability.name.lower()} subscription)"
        )
        if reliability == ReliabilityPolicy.RELIABLE:
            return (
                f"{sentence}: more is sent than this computer takes; lower the rate or the image "
                "size"
            )
        offers = {publisher.qos_profile.reliability for publisher in self._publishers()}
        if ReliabilityPolicy.BEST_EFFORT in offers:
            return (
                f"{sentence}: set the driver's reliability to reliable, or export "
                f"{TRANSPORTS}=LARGE_DATA for every process; {transports()}"
            )
        return f"{sentence}: take its reliability out of qos_overrides; {transports()}"


class Inputs:
    """A node's inputs, checked once a second; warns of each that is silent, lossy or ahead.

    Warnings are repeated after half a minute at the earliest.
    """

    def __init__(self, node: GuardedNode) -> None:
        """Start checking."""
        self.node = node
        self.problems: tuple[str, ...] = ()
        self._inputs: list[WatchedInput] = []
        self._transforms: Transforms | None = None
        self._start_s = time.monotonic()
        self._warned_s: dict[tuple[str, str], float] = {}
        wall_time = Clock(clock_type=ClockType.STEADY_TIME)
        node.create_timer(CHECK_EVERY_S, self.check, clock=wall_time)

    def subscribe(
        self, message_type: type, topic: str, receive: Callable[[Any], None], **options: Any
    ) -> WatchedInput:
        """Subscribe to a topic until `close`; see `WatchedInput`."""
        watched = WatchedInput(self.node, message_type, topic, receive, **options)
        self._inputs.append(watched)
        return watched

    def transforms(self, without: str) -> Transforms:
        """Return what tf says, subscribed to until `close`; see `Transforms`."""
        self._transforms = self._transforms or Transforms(self.node, without)
        return self._transforms

    def close(self) -> None:
        """End all subscriptions."""
        while self._inputs:
            self._inputs.pop().close()
        if self._transforms is not None:
            self._transforms.close()
            self._transforms = None

    def check(self) -> None:
        """Adapt each input to its publishers, and warn of its problems."""
        sentences = dict(self._node_problems())
        for watched in self._inputs:
            watched.adapt()
            for kind, sentence in watched.problems():
                sentences[watched.name, kind] = sentence
        now_s = time.monotonic()
        for key, sentence in sentences.items():
            if now_s - self._warned_s.get(key, -REPEAT_AFTER_S) >= REPEAT_AFTER_S:
                self._warned_s[key] = now_s
                self.node.get_logger().warning(sentence)
        self.problems = tuple(sentences.values())

    def _node_problems(self) -> Iterator[tuple[tuple[str, str], str]]:
        """Yield the warnings that no /clock comes, and that others have this node's name."""
        node = self.node
        name = node.get_fully_qualified_name()
        clock: Any = node.get_clock()  # a ROSClock, which the type hints do not say
        has_no_clock = clock.ros_time_is_active and clock.now().nanoseconds == 0
        if has_no_clock and time.monotonic() - self._start_s > UNHEARD_AFTER_S:
            yield (
                ("/clock", "clock"),
                "use_sim_time is true, but nothing came on /clock (publishers: "
                f"{node.count_publishers('/clock')}): ages and latencies are unknown; play the "
                f"bag with --clock, or type: ros2 param set {name} use_sim_time false",
            )
        namesakes = node.get_node_names_and_namespaces().count(
            (node.get_name(), node.get_namespace())
        )
        if namesakes > 1:
            yield (
                (name, "name"),
                f"{namesakes} nodes are called {name}: what is asked of one, its services and "
                "parameters, may reach another; start each with a name of its own, "
                "-r __node:=NAME, or in a namespace, -r __ns:=/NAME",
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
