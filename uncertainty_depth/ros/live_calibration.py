# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The evaluator's end of the online calibration: scored frames in, estimates out."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, deque
from threading import Lock
from typing import NamedTuple

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from numpy.typing import NDArray
from rclpy.node import Node
from std_msgs.msg import Header

from uncertainty_depth.calibration.correction import IDENTITY, Correction
from uncertainty_depth.calibration.online import RECENT_FRAMES, OnlineEstimate
from uncertainty_depth.config import EvaluatorNodeConfig
from uncertainty_depth.errors import MessageError
from uncertainty_depth.messages.online_calibration import (
    ESTIMATE,
    PREDICTION,
    PredictionInfo,
    estimate_values,
    read_info,
    status_values,
)
from uncertainty_depth.messages.stamps import stamp_ns
from uncertainty_depth.metrics import valid_pixels
from uncertainty_depth.options import to_mapping
from uncertainty_depth.ros.live_evaluation import Scored
from uncertainty_depth.ros.predictions import (
    CALIBRATION_TOPIC,
    INFO_TOPIC,
    status_message,
)
from uncertainty_depth.ros.qos import LATCHED_QOS, OUTPUT_QOS

MAX_INFOS = 2000
MAX_WAITING = 5
"""Scored frames that wait for the word of how they were made."""
FOREIGN = "unknown"
"""Name of a sigma that nobody describes: it is taken to be as its model gave it."""
OPTIONS = ("coverage", "calibration_window", "calibration_min_frames")


class _Pixels(NamedTuple):
    """The pixels of a scored frame: its header, (N,) errors and (N,) sigmas, metres."""

    header: Header
    error: NDArray[np.floating]
    sigma: NDArray[np.floating]


class LiveCalibration:
    """Estimates how large sigma must be, and publishes it latched after every scored frame.

    Sigma arrives as it was published. The correction in force, which the depth node tells for
    each stamp, is taken back before the estimate: it is of the model's own sigma. A frame without
    that word is left out where there is a depth node that gives it.
    """

    def __init__(self, node: Node, config: EvaluatorNodeConfig) -> None:
        self._node = node
        self._config = config
        self._estimate = OnlineEstimate(config)
        self._sigma = ""
        self._infos: OrderedDict[int, PredictionInfo] = OrderedDict()
        self._lock = Lock()
        self._counts: Counter[str] = Counter()
        self._waiting: deque[_Pixels] = deque()
        self._covered: deque[float] = deque(maxlen=RECENT_FRAMES)
        self._publisher = node.create_publisher(DiagnosticArray, CALIBRATION_TOPIC, LATCHED_QOS)
        self._subscription = node.create_subscription(
            DiagnosticArray, INFO_TOPIC, self._on_info, OUTPUT_QOS
        )

    def close(self) -> None:
        """Take publisher and subscription down."""
        self._node.destroy_subscription(self._subscription)
        self._node.destroy_publisher(self._publisher)

    def reconfigure(self, config: EvaluatorNodeConfig) -> None:
        """Take new options; the estimate starts anew where they change it."""
        old = to_mapping(self._config)
        new = to_mapping(config)
        self._config = config
        if any(old[name] != new[name] for name in OPTIONS):
            self._estimate = OnlineEstimate(config)

    def _on_info(self, message: DiagnosticArray) -> None:
        try:
            info = read_info(status_values(message.status, PREDICTION))
        except MessageError:
            with self._lock:
                self._counts["unreadable"] += 1
            return
        with self._lock:
            self._infos[stamp_ns(message.header)] = info
            while len(self._infos) > MAX_INFOS:
                self._infos.popitem(last=False)

    def add(self, scored: Scored) -> None:
        """Take in a scored frame, and publish the estimate; on the evaluation's thread."""
        prediction = scored.prediction
        maps = (prediction.depth_m, prediction.sigma_m, scored.ground_truth_m)
        depth, sigma, truth = valid_pixels(*maps, self._config.min_depth, self._config.max_depth)
        error = np.abs(depth - truth)
        self._covered.append(float((error <= self._estimate.half_width * sigma).mean()))
        self._waiting.append(_Pixels(scored.header, error, sigma))
        is_described = self._node.count_publishers(self._subscription.topic_name) > 0
        while self._waiting:
            with self._lock:
                info = self._infos.pop(stamp_ns(self._waiting[0].header), None)
            if info is not None or not is_described:
                self._estimate_from(self._waiting.popleft(), info)
            elif len(self._waiting) > MAX_WAITING:
                self._waiting.popleft()
                self._counts["without_prediction_info"] += 1
            else:
                return

    def _estimate_from(self, pixels: _Pixels, info: PredictionInfo | None) -> None:
        sigma_name = FOREIGN if info is None else info.sigma
        if sigma_name != self._sigma:
            self._estimate.reset()
            self._sigma = sigma_name
        applied = IDENTITY if info is None else info.in_force.correction
        stamp = stamp_ns(pixels.header)
        self._estimate.add(stamp, pixels.error, applied.inverse(pixels.sigma))
        if self._estimate.correction is not None:
            self._publish(pixels.header, self._estimate.correction)

    def _publish(self, header: Header, correction: Correction) -> None:
        estimate = self._estimate
        sentence = (
            f"sigma times {correction.min_factor:.2f} to {correction.max_factor:.2f} covers "
            f"{estimate.config.coverage:.0%} of the errors of the last {estimate.frames} frames"
        )
        values = estimate_values(estimate, correction, self._sigma)
        self._publisher.publish(status_message(header, ESTIMATE, sentence, values))

    def facts(self) -> dict[str, object]:
        """Return what the diagnostics tell."""
        estimate = self._estimate
        covered = list(self._covered)
        published = float(np.mean(covered)) if covered else math.nan
        facts: dict[str, object] = {
            "calibration.frames": estimate.frames,
            "calibration.published_coverage": f"{published:.3f}",
            "calibration.recent_coverage": f"{estimate.recent_coverage:.3f}",
        }
        if estimate.correction is not None:
            facts["calibration.min_factor"] = f"{estimate.correction.min_factor:.3f}"
            facts["calibration.max_factor"] = f"{estimate.correction.max_factor:.3f}"
        return facts | {f"calibration.{name}": count for name, count in self._counts.items()}
