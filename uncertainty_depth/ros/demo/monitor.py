# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Subscribes to the scores that the nodes publish and to the counters of their diagnostics."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions

from uncertainty_depth.ros.evaluator_outputs import ALL_FRAMES


class Monitor:
    """Keeps the latest metrics of all frames and the latest diagnostics of each node.

    A context manager that spins on a thread of its own.
    """

    def __init__(self, metrics_topic: str, changed: Callable[[Monitor], None]) -> None:
        """Subscribe. `changed` is called with this monitor, on its thread, after new scores."""
        self.scores: dict[str, float] = {}
        self._values: dict[str, dict[str, str]] = {}
        self._news = threading.Condition(threading.RLock())
        self._changed = changed
        self._context = Context()
        rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self._node = rclpy.create_node("monitor", context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
        self._node.create_subscription(DiagnosticArray, metrics_topic, self._on_metrics, 10)
        self._thread = threading.Thread(target=self._spin, name="monitor", daemon=True)

    def __enter__(self) -> Monitor:
        self._thread.start()
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._executor.shutdown()
        rclpy.shutdown(context=self._context)
        self._thread.join()

    def values(self, node: str) -> dict[str, str]:
        """Return the latest diagnostics of the node `node`; empty before the first."""
        with self._news:
            return dict(self._values.get(node, {}))

    def counts(self, node: str) -> dict[str, int]:
        """Return the whole numbers among the latest diagnostics of the node `node`."""
        return {name: int(text) for name, text in self.values(node).items() if text.isdigit()}

    def wait_for(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Return whether `condition()` holds within `seconds`; checked at each diagnostics."""
        with self._news:
            return self._news.wait_for(condition, seconds)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        with self._news:
            for status in message.status:
                self._values[status.name] = {item.key: item.value for item in status.values}
            self._news.notify_all()

    def _on_metrics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.message == ALL_FRAMES:
                self.scores = {item.key: float(item.value) for item in status.values}
                self._changed(self)

    def _spin(self) -> None:
        with suppress(ExternalShutdownException):
            self._executor.spin()
