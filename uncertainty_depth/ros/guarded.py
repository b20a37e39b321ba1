# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A node that no callback can end."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node
from rclpy.qos import QoSProfile

from uncertainty_depth.errors import UncertaintyDepthError
from uncertainty_depth.ros.diagnostics import CALLBACK_FAILED, Health
from uncertainty_depth.ros.qos import PUBLISHER, overridden

LOG_EVERY_S = 5.0


class GuardedNode(Node):
    """Logs and counts what a subscription, timer or service raises; the executor goes on.

    rclpy's executor ends with the first exception of a callback, and the process with it. A
    service answers that it failed, with the reason if it has a field for it.

    Attributes:
        health: counts what happens in the node, "callback_failed" among it.
    """

    def __init__(self, name: str, **options: Any) -> None:
        self.health = Health()
        super().__init__(name, automatically_declare_parameters_from_overrides=True, **options)
        for service in self.services:  # of the lifecycle: not made by `create_service`
            service.callback = self.guarded(service.callback)

    def guarded(self, callback: Callable[..., Any]) -> Callable[..., Any]:
        """Return a callback that raises no exception; on failure it returns its last argument."""

        @wraps(callback)
        def guarded_callback(*args: Any, **options: Any) -> Any:
            try:
                return callback(*args, **options)
            except Exception as error:
                if self.context.ok():  # else a signal struck meanwhile
                    self._count_failure(error)
                response: Any = args[-1] if args else None
                if hasattr(response, "message"):
                    response.message = reason_of(error)
                return response

        return guarded_callback

    def _count_failure(self, error: Exception) -> None:
        self.health.count(CALLBACK_FAILED)
        self.get_logger().error(
            f"a callback failed: {''.join(traceback.format_exception(error))}",
            throttle_duration_sec=LOG_EVERY_S,
        )

    def create_subscription(
        self, msg_type: Any, topic: str, callback: Callable[..., Any], *args: Any, **kw: Any
    ) -> Any:
        """Create a subscription whose callback is guarded."""
        return super().create_subscription(msg_type, topic, self.guarded(callback), *args, **kw)

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

    def create_timer(self, timer_period_sec: float, callback: Any, *args: Any, **kw: Any) -> Any:
        """Create a timer whose callback is guarded."""
        return super().create_timer(timer_period_sec, self.guarded(callback), *args, **kw)

    def create_service(
        self, srv_type: Any, srv_name: str, callback: Callable[..., Any], *args: Any, **kw: Any
    ) -> Any:
        """Create a service whose callback is guarded."""
        return super().create_service(srv_type, srv_name, self.guarded(callback), *args, **kw)


def reason_of(error: Exception) -> str:
    """Return an exception as a sentence; the package's own errors are sentences already."""
    if isinstance(error, UncertaintyDepthError):
        return str(error)
    return f"{type(error).__name__}: {error}"
