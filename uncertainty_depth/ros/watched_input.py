# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A subscription whose reliability follows its publishers, and that counts its losses."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from rclpy.event_handler import QoSMessageLostInfo, SubscriptionEventCallbacks
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.topic_endpoint_info import TopicEndpointInfo

from uncertainty_depth.ros.diagnostics import Health
from uncertainty_depth.ros.guarded import GuardedNode
from uncertainty_depth.ros.messages import age_s
from uncertainty_depth.ros.qos import SUBSCRIPTION, overridden, override_name

UNNUMBERED = (None, 0, 2**64 - 1)
"""Values of a middleware without sequence numbers."""


class LossCounter:
    """Counts the messages of a topic that were published and did not arrive.

    Gaps in a publisher's sequence numbers cover every loss between the first and the last message
    received, those too that a full queue of the middleware dropped without an event. Events of the
    middleware also cover losses before the first and after the last one. Their sum would count
    most losses twice, so the larger of the two counts.
    """

    def __init__(self) -> None:
        self._last_numbers: dict[str, int] = {}
        self._before_first = 0
        self._reported = 0
        self._missing = 0

    @property
    def total(self) -> int:
        """The number of messages lost so far."""
        return self._before_first + max(self._reported, self._missing)

    def on_event(self, event: QoSMessageLostInfo) -> None:
        """Count a message-lost event of the middleware."""
        if self._last_numbers:
            self._reported += event.total_count_change
        else:
            self._before_first += event.total_count_change

    def on_message(self, info: Mapping[str, Any]) -> None:
        """Count the gap before the sequence number of a received message."""
        number = info.get("publication_sequence_number")
        if number in UNNUMBERED:
            return
        publisher = str(info.get("publisher_gid"))
        previous = self._last_numbers.get(publisher, number - 1)
        self._last_numbers[publisher] = number
        self._missing += max(0, number - previous - 1)


class WatchedInput:
    """A subscription that is reliable where every publisher of the topic is, else best effort.

    A reliable subscription gets nothing from a best-effort publisher, and a best-effort one loses
    nearly all large messages on Fast DDS by default. A profile that asks for best effort, or a
    reliability under `qos_overrides`, stays as it is. Losses are counted in `health` as
    "lost_in_transport.TOPIC".
    """

    def __init__(
        self,
        node: GuardedNode,
        health: Health,
        message_type: type,
        topic: str,
        receive: Callable[[Any], None],
        qos: QoSProfile,
        *,
        once: bool = False,
        purpose: str = "",
    ) -> None:
        """Subscribe `receive` to the relative name `topic`.

        Args:
            node: owner of the subscription; its clock tells the messages' ages.
            health: where losses are counted.
            message_type: a message class with a header.
            topic: name before remaps.
            receive: called with each message, on the executor's thread.
            qos: profile to start with; see the class.
            once: one message is enough, silence after it is fine.
            purpose: what the node needs the topic for, named in warnings.
        """
        self._node = node
        self._health = health
        self._receive = receive
        self.message_type = message_type
        self.topic = topic
        self.once = once
        self.purpose = purpose
        self.qos = overridden(node, topic, SUBSCRIPTION, qos)
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
        """Subscribe anew where the publishers offer another reliability."""
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
            incompatible_qos=self._node.guarded(self._on_incompatible),
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

    def _on_incompatible(self, _: object) -> None:
        self.adapt()

    def _on_lost(self, event: QoSMessageLostInfo) -> None:
        self._losses.on_event(event)
        self._count_losses()

    def _count_losses(self) -> None:
        number = self._losses.total - self._counted_losses
        if number:
            self.lost += number
            self._counted_losses += number
            self._health.count(f"lost_in_transport.{self.topic}", number)
