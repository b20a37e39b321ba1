# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What happens to messages: counted, and told with advice."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.node import Node

LOG_EVERY_S = 5.0
MAX_DURATIONS = 1000
LATE_AFTER_S = 2.0
UNFAMILIAR = 0.25  # fraction of the frames, ten times that of frames like the training's
LOSSES = ("dropped.", "skipped.", "lost_")
FAILURES = {"failed", "out_of_memory"}
PROCESSED = "processed"
CALLBACK_FAILED = "callback_failed"
PERCENTILES = (50, 95, 99)
ADVICE = {
    "queue_full": "more arrives than the computer handles: lower samples, the rate or the size",
    "stale": "the network is too slow, the clocks differ, or a bag is played without use_sim_time",
    "lost_in_transport": "make the driver reliable, or set FASTDDS_BUILTIN_TRANSPORTS everywhere",
    "failed": "see the log",
    "callback_failed": "see the log: messages or services fail, the node goes on",
    "out_of_memory": "lower samples, take a model of a smaller input size, or free the device",
    "no_camera_info": "remap the camera info to one that is published with its images",
    "no_extrinsics": "set lidar_to_camera, or publish the LiDAR's pose on /tf_static",
    "no_ego_motion": "publish tf from fixed_frame to camera and LiDAR at all times, or empty it",
    "no_odometry": "publish tf from odometry_frame to the camera, also at the images' stamps",
    "motion_rejected": "check the odometry, its clock, and the camera's place in tf",
    "no_lidar_point_in_view": "check lidar_to_camera or tf: no LiDAR point lies in the image",
    "no_lidar_within_max_time_difference": "synchronise the clocks, or raise max_time_difference",
    "no_ground_truth_image_within_max_time_difference": (
        "synchronise the clocks, or raise max_time_difference"
    ),
    "no_valid_pixel": "check min_depth and max_depth: no ground truth lies between them",
    "depth_without_uncertainty": "remap uncertainty/image_rect, or make its publisher reliable",
    "uncertainty_without_depth": "remap depth/image_rect, or make its publisher reliable",
    "repeated_stamp": "stamp each message with its own time, and let one node alone publish them",
    "unusable_stamp": "let the driver stamp each message with the time of its measurement",
    "uncertainty_wrong_size": "both maps must be of one model: check the remaps",
    "camera_info_wrong_aspect": "remap camera_info: it is of another camera or size",
    "camera_info_wrong_size": "remap camera_info: it is of another camera or size",
    "image_unknown_encoding": "remap another topic, or let the driver publish rgb8",
    "over_budget": "the fewest samples take longer than frame_budget_ms: raise it",
    "views_failed": "see the log: points or color images fail, the maps are published",
}
"""What to do about each reason that frames or messages are lost for."""
MIB = 2**20


class Health:
    """Counts what happens to messages. Thread-safe.

    A frame enters once and leaves once. received = processed + dropped + waiting at every moment,
    since all change under one lock. Drops are counted as "dropped.REASON", and published messages
    that did not arrive as "lost_in_transport.TOPIC".
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._inside: dict[int, object] = {}
        self._counts: Counter[str] = Counter()
        self._last_s: dict[str, float] = {}
        self._durations_ms: defaultdict[str, deque[float]] = defaultdict(
            partial(deque, maxlen=MAX_DURATIONS)
        )
        self._previous_counts: Counter[str] = Counter()
        self._previous_s = clock()

    def enter(self, frame: object) -> None:
        """Count a frame as received; it waits until it leaves."""
        with self._lock:
            self._inside[id(frame)] = frame
            self._add("received", 1)

    def leave(self, frame: object, outcome: str = PROCESSED) -> bool:
        """Count a frame's outcome, "processed" or "dropped.REASON"; return whether it was new."""
        with self._lock:
            is_inside = self._inside.pop(id(frame), None) is not None
            if is_inside:
                self._add(outcome, 1)
            return is_inside

    def leave_all(self, reason: str) -> None:
        """Drop all frames that are waiting or in progress."""
        with self._lock:
            if self._inside:
                self._add(f"dropped.{reason}", len(self._inside))
            self._inside.clear()

    def is_inside(self, frame: object) -> bool:
        """Return whether a frame has not left."""
        with self._lock:
            return id(frame) in self._inside

    def count(self, name: str, amount: int = 1) -> None:
        """Add `amount` to the counter `name`; its age starts at 0."""
        with self._lock:
            self._add(name, amount)

    def _add(self, name: str, amount: int) -> None:
        self._counts[name] += amount
        self._last_s[name] = self._clock()

    def duration(self, name: str, milliseconds: float) -> None:
        """Add a duration. NaN, an age without a clock, is ignored."""
        if not np.isnan(milliseconds):
            with self._lock:
                self._durations_ms[name].append(milliseconds)

    def counts(self) -> dict[str, int]:
        """Return all counters since the start."""
        with self._lock:
            return dict(self._counts)

    def account(self) -> dict[str, int]:
        """Return all counters and the number of waiting frames, at one moment."""
        with self._lock:
            return {**self._counts, "waiting": len(self._inside)}

    def age(self, name: str) -> float:
        """Return the seconds since `name` was last counted; infinite if it never was."""
        with self._lock:
            return self._clock() - self._last_s.get(name, float("-inf"))

    def percentiles_ms(self) -> dict[str, float]:
        """Return percentiles of recent durations, e.g. "latency_p95_ms"."""
        with self._lock:
            durations_ms = {name: list(values) for name, values in self._durations_ms.items()}
        found = {}
        for name, values in durations_ms.items():
            for percentile in PERCENTILES:
                found[f"{name}_p{percentile}_ms"] = float(np.percentile(values, percentile))
        return found

    def rates(self) -> dict[str, float]:
        """Return each counter's events per second since the last call."""
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

    def summary(self) -> str:
        """Return all counters as a line."""
        return ", ".join(f"{count} {name}" for name, count in self.counts().items())


def with_advice(reason: str, rate_hz: float) -> str:
    """Return a reason with its rate and what to do; without advice if there is none."""
    advice = ADVICE.get(reason) or ADVICE.get(reason.partition(".")[0])
    return f"{reason} {rate_hz:.1f}/s" + (f" ({advice})" if advice else "")


def problem(
    health: Health,
    rates: Mapping[str, float],
    expected: Sequence[str],
    problems: Sequence[str] = (),
) -> tuple[bytes, str]:
    """Return a node's diagnostic level and message: what is wrong and what to do.

    `expected` are counters that should keep growing, causes before effects.
    """
    losses_hz = {
        name.removeprefix("dropped.").removeprefix("skipped."): rate
        for name, rate in rates.items()
        if rate > 0 and name.startswith(LOSSES)
    }
    sentences = [
        _silence(name, health.age(name)) for name in expected if health.age(name) > LATE_AFTER_S
    ][:1]
    if losses_hz:
        losses = [with_advice(reason, rate) for reason, rate in sorted(losses_hz.items())]
        sentences.append(f"frames lost: {', '.join(losses)}")
    sentences += problems
    if rates.get("over_budget", 0) > 0:
        sentences.append(with_advice("over_budget", rates["over_budget"]))
    if rates.get("unfamiliar", 0) > UNFAMILIAR * rates.get(PROCESSED, 0):
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


def status_name(node: Node, task: str) -> str:
    """Return a status's name by ROS's convention: the node's, a colon, and what it does."""
    return f"{node.get_fully_qualified_name().lstrip('/')}: {task}"


class Resources(NamedTuple):
    """What a process holds now: resident MiB without shared files, threads, open files."""

    memory_mib: float
    threads: int
    descriptors: int


def resources_of(pid: int | None = None) -> Resources | None:
    """Return a process's resources, by default this one's; None at its end, or without /proc."""
    folder = Path("/proc") / str(os.getpid() if pid is None else pid)
    try:
        pages = [int(text) for text in (folder / "statm").read_text().split()]
        threads = len(os.listdir(folder / "task"))
        descriptors = len(os.listdir(folder / "fd"))
    except (OSError, ValueError):
        return None
    private_pages = pages[1] - pages[2]  # resident without shared ones
    memory_mib = private_pages * os.sysconf("SC_PAGE_SIZE") / MIB
    return Resources(memory_mib, threads, descriptors)
