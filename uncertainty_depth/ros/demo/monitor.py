"""Listens to the nodes from outside: the scores they publish and the counters of their diagnostics."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import Float64


class Monitor:
    """Keeps the latest score of each topic and the latest counters of each node; a context manager with a thread of its own."""

    def __init__(self, score_topics: Sequence[str], changed: Callable[[Monitor], None]) -> None:
        """`changed` is called with this monitor, on the monitor's thread, after each score."""
        self.scores: dict[str, float] = {}
        self._figures: dict[str, dict[str, str]] = {}
        self._news = threading.Condition(threading.RLock())
        self._changed = changed
        self._context = Context()
        rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self._node = rclpy.create_node("monitor", context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
        for topic in score_topics:
            self._node.create_subscription(Float64, topic, partial(self._on_score, topic), 10)
        self._thread = threading.Thread(target=self._spin, name="monitor", daemon=True)

    def __enter__(self) -> Monitor:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._executor.shutdown()
        rclpy.shutdown(context=self._context)
        self._thread.join()

    def figures(self, node: str) -> dict[str, str]:
        """What the node called `node` last said in its diagnostics; empty before it said anything."""
        with self._news:
            return dict(self._figures.get(node, {}))

    def counts(self, node: str) -> dict[str, int]:
        """The whole numbers among `figures`."""
        return {name: int(text) for name, text in self.figures(node).items() if text.isdigit()}

    def wait_for(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait until `condition()` holds, looked at whenever diagnostics come; False when it does not in time."""
        with self._news:
            return self._news.wait_for(condition, seconds)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        with self._news:
            for status in message.status:
                self._figures[status.name] = {item.key: item.value for item in status.values}
            self._news.notify_all()

    def _on_score(self, topic: str, message: Float64) -> None:
        self.scores[topic] = message.data
        self._changed(self)

    def _spin(self) -> None:
        with suppress(ExternalShutdownException):
            self._executor.spin()
