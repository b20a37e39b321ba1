"""A node's health: counters, rates, ages and latencies, published to /diagnostics once a second."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock, ClockType
from rclpy.node import Node

LATENCIES_KEPT = 200
LATE_AFTER_S = 2.0
LOSSES = ("dropped.", "skipped.", "lost_")


class Health:
    """Counts what happens to messages; safe to use from several threads.

    Dropped messages are counted by reason under "dropped.REASON", so that received = processed + dropped + waiting. What the
    middleware says it lost before it got here is "lost_in_transport".
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._counts: Counter[str] = Counter()
        self._last: dict[str, float] = {}
        self._latencies_ms: deque[float] = deque(maxlen=LATENCIES_KEPT)
        self._previous, self._previous_time = Counter[str](), clock()

    def count(self, name: str, amount: int = 1) -> None:
        """Something called `name` happened `amount` times, the last time now."""
        with self._lock:
            self._counts[name] += amount
            self._last[name] = self._clock()

    def drop(self, reason: str, amount: int = 1) -> None:
        """A message is not used, for this reason."""
        self.count(f"dropped.{reason}", amount)

    def latency(self, milliseconds: float) -> None:
        """How long one frame took from its stamp to its result; NaN, where no clock tells, is left out."""
        if np.isnan(milliseconds):
            return
        with self._lock:
            self._latencies_ms.append(milliseconds)

    def counts(self) -> dict[str, int]:
        """All counters since the start."""
        with self._lock:
            return dict(self._counts)

    def dropped(self) -> dict[str, int]:
        """Messages not used, by reason."""
        return {
            name.removeprefix("dropped."): count
            for name, count in self.counts().items()
            if name.startswith("dropped.")
        }

    def age(self, name: str) -> float:
        """Seconds since `name` last happened; infinite if it never did."""
        with self._lock:
            return self._clock() - self._last[name] if name in self._last else float("inf")

    def percentiles_ms(self) -> tuple[float, float]:
        """Median and 95th percentile of the last latencies; NaN when there is none."""
        with self._lock:
            known = list(self._latencies_ms)
        return (
            (float(np.percentile(known, 50)), float(np.percentile(known, 95)))
            if known
            else (float("nan"), float("nan"))
        )

    def rates(self) -> dict[str, float]:
        """Events per second of each counter since the last call."""
        with self._lock:
            now = self._clock()
            elapsed = max(now - self._previous_time, 1e-9)
            rates = {
                name: (count - self._previous[name]) / elapsed
                for name, count in self._counts.items()
            }
            self._previous, self._previous_time = self._counts.copy(), now
        return rates


def problem(
    health: Health, rates: Mapping[str, float], awaited: Sequence[str]
) -> tuple[bytes, str]:
    """Level and sentence of a node whose counters `awaited`, causes before effects, should all keep growing."""
    lost = {
        name.removeprefix("dropped.").removeprefix("skipped."): rate
        for name, rate in rates.items()
        if rate > 0 and name.startswith(LOSSES)
    }
    sentences = [
        _late(name, health.age(name)) for name in awaited if health.age(name) > LATE_AFTER_S
    ][:1]
    if lost:
        sentences.append(
            "frames lost: "
            + ", ".join(f"{reason} {rate:.1f}/s" for reason, rate in sorted(lost.items()))
        )
    if "failed" in lost:
        return DiagnosticStatus.ERROR, "; ".join(["frames fail: see the log", *sentences])
    return (
        (DiagnosticStatus.WARN, "; ".join(sentences))
        if sentences
        else (DiagnosticStatus.OK, "running")
    )


def _late(name: str, age: float) -> str:
    what = name.replace(".", " on ", 1)
    return f"nothing {what} yet" if np.isinf(age) else f"nothing {what} for {age:.1f} s"


class DiagnosticsPublisher:
    """Publishes a node's health at 1 Hz of wall time, so that a stopped /clock cannot hide a silent node."""

    def __init__(
        self,
        node: Node,
        health: Health,
        awaited: Callable[[], Sequence[str]],
        facts: Callable[[], Mapping[str, object]],
    ) -> None:
        """`awaited` names the counters that should grow, see `problem`; `facts` gives what else is worth saying: device, samples, queue ..."""
        self._node, self._health, self._awaited, self._facts = node, health, awaited, facts
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self._timer = node.create_timer(
            1.0, self.publish, clock=Clock(clock_type=ClockType.STEADY_TIME)
        )

    def publish(self) -> None:
        """Publish the state of now."""
        message = DiagnosticArray(status=[self.status()])
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)

    def status(self) -> DiagnosticStatus:
        """The node's level, sentence and figures."""
        rates, awaited = self._health.rates(), self._awaited()
        level, sentence = problem(self._health, rates, awaited)
        median, high = self._health.percentiles_ms()
        figures = {name: str(count) for name, count in sorted(self._health.counts().items())}
        figures |= {f"{name}_rate_hz": f"{rate:.2f}" for name, rate in sorted(rates.items())}
        figures |= {f"{name}_age_s": f"{self._health.age(name):.3f}" for name in awaited}
        figures |= (
            {}
            if np.isnan(median)
            else {"latency_p50_ms": f"{median:.1f}", "latency_p95_ms": f"{high:.1f}"}
        )
        figures |= {name: str(value) for name, value in self._facts().items()}
        name = self._node.get_fully_qualified_name().lstrip("/")
        return DiagnosticStatus(
            level=level,
            name=name,
            message=sentence,
            values=[KeyValue(key=key, value=text) for key, text in figures.items()],
        )
