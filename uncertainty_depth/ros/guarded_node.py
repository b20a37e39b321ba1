# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A node that no callback ends, with counters of what happens to its messages.

rclpy's executor, and with it the process, ends at a callback's first exception; the middleware may
hang at the end. Here, neither loses a frame or a report.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import rclpy
from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node
from rclpy.qos import QoSProfile

from uncertainty_depth.core.errors import MessageError, UncertaintyDepthError
from uncertainty_depth.ros.diagnostics import CALLBACK_FAILED, LOG_EVERY_S, Health
from uncertainty_depth.ros.messages import type_name
from uncertainty_depth.ros.qos import PUBLISHER, overridden


class GuardedNode(Node):
    """Logs and counts what a subscription, timer or service raises; the executor continues.

    A service answers that it failed, with the reason if it has a field for it.
    """

    fatal_error: UncertaintyDepthError | None = None

    def __init__(self, name: str, **options: Any) -> None:
        self.health = Health()
        super().__init__(name, automatically_declare_parameters_from_overrides=True, **options)
        for service in self.services:  # of the lifecycle: not made by `create_service`
            service.callback = self.guarded(service.callback)

    def is_published(self, name: str, message_type: type) -> bool:
        """Return whether a topic, by its full name, has a publisher of a type; False at the end.

        One of another type sends nothing to this node: it is not waited for.
        """
        if not self.context.ok():
            return False
        publishers = self.get_publishers_info_by_topic(name)
        return any(publisher.topic_type == type_name(message_type) for publisher in publishers)

    def drop(self, frame: object, error: Exception) -> None:
        """Drop a frame under its failure's reason, and log the error."""
        reason = "shutdown"
        sentence = ""
        if isinstance(error, MessageError):
            reason = error.reason
            sentence = str(error)
        elif self.context.ok():  # e.g. out of memory: the next frame may pass
            reason = "failed"
            sentence = "".join(traceback.format_exception(error))
        if self.health.leave(frame, f"dropped.{reason}") and sentence:
            self.get_logger().warning(
                f"dropped ({reason}): {sentence}", throttle_duration_sec=LOG_EVERY_S
            )

    def end_with(self, error: UncertaintyDepthError) -> None:
        """End the process with an error, so that launch can start it anew; from any thread."""
        self.fatal_error = error
        self.get_logger().fatal(str(error))
        rclpy.try_shutdown(context=self.context)

    def guarded(self, callback: Callable[..., Any]) -> Callable[..., Any]:
        """Return a callback that raises no exception; on failure it returns its last argument."""

        @wraps(callback)
        def guarded_callback(*args: Any, **options: Any) -> Any:
            try:
                return callback(*args, **options)
            except Exception as error:
                if self.context.ok():  # else a signal struck meanwhile
                    self.health.count(CALLBACK_FAILED)
                    self.get_logger().error(
                        f"a callback failed: {''.join(traceback.format_exception(error))}",
                        throttle_duration_sec=LOG_EVERY_S,
                    )
                response: Any = args[-1] if args else None
                if hasattr(response, "message"):
                    response.message = reason_of(error)
                return response

        return guarded_callback

    def create_subscription(
        self, msg_type: Any, topic: str, callback: Callable[..., Any], *args: Any, **kw: Any
    ) -> Any:
        """Create a subscription whose callback is guarded."""
        return super().create_subscription(msg_type, topic, self.guarded(callback), *args, **kw)

    def create_timer(self, timer_period_sec: float, callback: Any, *args: Any, **kw: Any) -> Any:
        """Create a timer whose callback is guarded."""
        return super().create_timer(timer_period_sec, self.guarded(callback), *args, **kw)

    def create_service(
        self, srv_type: Any, srv_name: str, callback: Callable[..., Any], *args: Any, **kw: Any
    ) -> Any:
        """Create a service whose callback is guarded."""
        return super().create_service(srv_type, srv_name, self.guarded(callback), *args, **kw)

    def create_publisher(
        self, msg_type: Any, topic: str, qos_profile: QoSProfile | int, *args: Any, **kw: Any
    ) -> Any:
        """Create a publisher whose quality of service `qos_overrides` may change."""
        if isinstance(qos_profile, int):
            qos_profile = QoSProfile(depth=qos_profile)
        qos_profile = overridden(self, topic, PUBLISHER, qos_profile)
        return super().create_publisher(msg_type, topic, qos_profile, *args, **kw)

    def declare_parameters(
        self, namespace: str, parameters: Sequence[Any], ignore_override: bool = False
    ) -> Any:
        """Declare parameters; of overrides, `[]` too, which rclpy takes for no value at all."""
        if ignore_override:
            descriptor = ParameterDescriptor(dynamic_typing=True)
            parameters = [(name, value, descriptor) for name, value, _ in parameters]
        return super().declare_parameters(namespace, parameters, ignore_override)


def reason_of(error: Exception) -> str:
    """Return an exception as a sentence; the package's own errors are sentences already."""
    if isinstance(error, UncertaintyDepthError):
        return str(error)
    return f"{type(error).__name__}: {error}"
