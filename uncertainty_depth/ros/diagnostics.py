# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Counters, rates, ages and latencies of a node, published to /diagnostics once a second."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock, ClockType
from rclpy.node import Node

from uncertainty_depth.process_resources import resources_of
from uncertainty_depth.ros.advice import with_advice

MAX_LATENCIES = 1000
LATE_AFTER_S = 2.0
UNFAMILIAR = 0.25  # fraction of the frames above the 99 % quantile of the training's
LOSSES = ("dropped.", "skipped.", "lost_")
FAILURES = {"failed", "out_of_memory"}
CALLBACK_FAILED = "callback_failed"
PERCENTILES = (50, 95, 99)


class Health:
    """Counts what happens to messages. Thread-safe.

    Dropped messages are counted by reason under "dropped.REASON", so that
    received = processed + dropped + waiting. What was published and did not arrive is
    "lost_in_transport.TOPIC".
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._last_s: dict[str, float] = {}
        self._latencies_ms: deque[float] = deque(maxlen=MAX_LATENCIES)
        self._previous_counts: Counter[str] = Counter()
        self._previous_s = clock()

    def count(self, name: str, amount: int = 1) -> None:
        """Add `amount` to the counter `name`; its age starts at 0."""
        with self._lock:
            self._counts[name] += amount
            self._last_s[name] = self._clock()

    def drop(self, reason: str, amount: int = 1) -> None:
        """Count dropped messages under their reason."""
        self.count(f"dropped.{reason}", amount)

    def latency(self, milliseconds: float) -> None:
        """Add the time from a frame's stamp to its result. NaN, without a clock, is ignored."""
        if np.isnan(milliseconds):
            return
        with self._lock:
            self._latencies_ms.append(milliseconds)

    def counts(self) -> dict[str, int]:
        """Return all counters since the start."""
        with self._lock:
            return dict(self._counts)

    def dropped(self) -> dict[str, int]:
        """Return the dropped messages by reason."""
        return {
            name.removeprefix("dropped."): count
            for name, count in self.counts().items()
            if name.startswith("dropped.")
        }

    def age(self, name: str) -> float:
        """Return the seconds since `name` was last counted; infinite if it never was."""
        with self._lock:
            return self._clock() - self._last_s.get(name, float("-inf"))

    def percentiles_ms(self) -> dict[int, float]:
        """Return `PERCENTILES` of the last latencies; empty without any."""
        with self._lock:
            latencies_ms = list(self._latencies_ms)
        if not latencies_ms:
            return {}
        values = np.percentile(latencies_ms, PERCENTILES)
        return dict(zip(PERCENTILES, values.tolist(), strict=True))

    def rates(self) -> dict[str, float]:
        """Return the events per second of each counter since the last call."""
        with self._lock:
            now_s = self._clock()
            elapsed_s = max(now_s - self._previous_s, 1e-9)
            rates = {
                name: (count - self._previous_counts[name]) / elapsed_s
                for name, count in self._counts.items()
            }
            self._previous_counts = self._counts.copy()
            self._previous_s = now_s
        return rates


def problem(
    health: Health,
    rates: Mapping[str, float],
    awaited: Sequence[str],
    problems: Sequence[str] = (),
) -> tuple[bytes, str]:
    """Return the diagnostic level and message of a node: what is wrong and what to do.

    Args:
        health: the node's counters.
        rates: `health.rates()`.
        awaited: counters that should keep growing, causes before effects.
        problems: further sentences.
    """
    losses_hz = {
        name.removeprefix("dropped.").removeprefix("skipped."): rate
        for name, rate in rates.items()
        if rate > 0 and name.startswith(LOSSES)
    }
    sentences = [
        _silence(name, health.age(name)) for name in awaited if health.age(name) > LATE_AFTER_S
    ][:1]
    if losses_hz:
        losses = [with_advice(reason, rate) for reason, rate in sorted(losses_hz.items())]
        sentences.append(f"frames lost: {', '.join(losses)}")
    sentences += problems
    if rates.get("over_budget", 0) > 0:
        sentences.append(with_advice("over_budget", rates["over_budget"]))
    if rates.get("unfamiliar", 0) > UNFAMILIAR * rates.get("processed", 0):
        sentences.append(
            "the images are unlike those of the training: neither depth nor sigma has been tried "
            "on such"
        )
    if rates.get(CALLBACK_FAILED, 0) > 0:
        sentences.append(with_advice(CALLBACK_FAILED, rates[CALLBACK_FAILED]))
        return DiagnosticStatus.ERROR, "; ".join(["callbacks fail", *sentences])
    if not FAILURES.isdisjoint(losses_hz):
        return DiagnosticStatus.ERROR, "; ".join(["frames fail", *sentences])
    if sentences:
        return DiagnosticStatus.WARN, "; ".join(sentences)
    return DiagnosticStatus.OK, "running"


def _silence(name: str, age_s: float) -> str:
    event = name.replace(".", " on ", 1)
    return f"nothing {event} yet" if np.isinf(age_s) else f"nothing {event} for {age_s:.1f} s"


def no_standing() -> None:
    """Return no level and message: the node is at work."""


class DiagnosticsPublisher:
    """Publishes a node's health at 1 Hz of wall time: a stopped /clock cannot hide it."""

    def __init__(
        self,
        node: Node,
        health: Health,
        awaited: Callable[[], Sequence[str]],
        facts: Callable[[], Mapping[str, object]],
        standing: Callable[[], tuple[bytes, str] | None] = no_standing,
        problems: Callable[[], Sequence[str]] = tuple,
        name: str = "",
    ) -> None:
        """Start publishing.

        Args:
            node: the node the diagnostics are of.
            health: its counters.
            awaited: returns the counters that should keep growing, see `problem`.
            facts: returns further values to publish: device, samples, queue and the like.
            standing: returns level and message where the node is not at work.
            problems: returns sentences of what else is wrong, each with what to do.
            name: of the status; empty: the node's.
        """
        self._node = node
        self._name = name or node.get_fully_qualified_name().lstrip("/")
        self._health = health
        self._awaited = awaited
        self._facts = facts
        self._standing = standing
        self._problems = problems
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self._timer = node.create_timer(
            1.0, self.publish, clock=Clock(clock_type=ClockType.STEADY_TIME)
        )

    def publish(self) -> None:
        """Publish the current status."""
        message = DiagnosticArray(status=[self.status()])
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)

    def status(self) -> DiagnosticStatus:
        """Return the node's level, message, counters, rates, ages and latencies."""
        rates = self._health.rates()
        awaited = self._awaited()
        level, sentence = self._standing() or problem(
            self._health, rates, awaited, self._problems()
        )
        counts = self._health.counts()
        values = {name: str(count) for name, count in sorted(counts.items())}
        values |= {f"{name}_rate_hz": f"{rate:.2f}" for name, rate in sorted(rates.items())}
        values |= {f"{name}_age_s": f"{self._health.age(name):.3f}" for name in awaited}
        values |= {
            f"latency_p{percentile}_ms": f"{value:.1f}"
            for percentile, value in self._health.percentiles_ms().items()
        }
        if (resources := resources_of()) is not None:
            values["memory_mib"] = f"{resources.memory_mib:.0f}"
            values["threads"] = str(resources.threads)
        values |= {name: str(value) for name, value in self._facts().items()}
        return DiagnosticStatus(
            level=level,
            name=self._name,
            message=sentence,
            values=[KeyValue(key=key, value=text) for key, text in values.items()],
        )
