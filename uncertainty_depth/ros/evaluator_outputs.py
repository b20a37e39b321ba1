# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What the evaluator node gives: scores, verdicts, images, estimates, and the last report."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from matplotlib.backends.backend_agg import FigureCanvasAgg
from rclpy.node import Node
from sensor_msgs.msg import Image
from std_msgs.msg import Float64, Header

from uncertainty_depth.core.config.nodes import EvaluatorNodeConfig
from uncertainty_depth.frames.messages.decoding import stamp_ns
from uncertainty_depth.metrics import valid_pixels
from uncertainty_depth.metrics.metric import SigmaKind
from uncertainty_depth.report import report
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.images import DEPTH_COLORS, SIGMA_COLORS, colorize, thicken
from uncertainty_depth.report.model_facts import distribution_of_model
from uncertainty_depth.report.plots import small_sparsification_figure
from uncertainty_depth.report.report import Context, metrics_with_intervals
from uncertainty_depth.report.requirements import FAIL, outcome
from uncertainty_depth.report.verdict import diagnostic_values, judge
from uncertainty_depth.ros.diagnostics import status_name
from uncertainty_depth.ros.live_scores import LiveFrame
from uncertainty_depth.ros.messages import (
    CALIBRATION_TOPIC,
    ESTIMATE,
    estimate_values,
    image_message,
    status_message,
)
from uncertainty_depth.ros.qos import LATCHED_QOS, OUTPUT_QOS
from uncertainty_depth.sigma.online.correction import OFF, CorrectionEstimator, ReceivedEstimate
from uncertainty_depth.sigma.online.estimates import DepthScale

FRAME = "frame"
ALL_FRAMES = "all frames"
PLOTTED = {
    "depth.abs_rel": "abs_rel",
    "uncertainty.ause.rmse": "ause_rmse",
    "uncertainty.coverage_95": "coverage_95",
    "uncertainty.coverage_95_laplace": "coverage_95_laplace",
}
"""Metrics of each frame that have a number's topic: rqt_plot reads no array of keys and values."""
COLOR_MAX_M = 10.0
MAX_ERROR_M = 2.0
"""Upper ends of the colour scales."""
JUDGE_EVERY_S = 5.0
"""Judging takes 0.1 s, whatever the number of frames."""
FOREIGN = "unknown"
"""Sigma's name if no prediction_info is published: it is assumed to be uncorrected."""
logger = logging.getLogger(__name__)


class EvaluatorOutputs:
    """All metrics as stamped DiagnosticArrays on ~/metrics, a few as Float64, and three images.

    An array has one status: "NODE: frame" with one frame's metrics, under its depth image's
    header, or "NODE: all frames" with all frames' metrics, under the last one's header. Values
    have all their digits. DiagnosticArray is in every distribution, is stamped, and holds any
    number of names. statistics_msgs/MetricsMessage holds one metric, and no NaN.

    On a thread of its own, copies of the evaluation are judged: `verdict` has what the diagnostics
    show of it, `failures` a sentence for each requirement that is not met.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._arrays = node.create_publisher(DiagnosticArray, "~/metrics", OUTPUT_QOS)
        self._plotted = {
            key: node.create_publisher(Float64, f"~/metrics/{name}", OUTPUT_QOS)
            for key, name in PLOTTED.items()
        }
        self._sparsification, self._error, self._ground_truth = (
            node.create_publisher(Image, f"~/{name}/image", OUTPUT_QOS)
            for name in ("sparsification", "error", "ground_truth")
        )
        self._last_header = Header()
        self.verdict: dict[str, str] = {}
        self.failures: tuple[str, ...] = ()
        self._summaries = ThreadPoolExecutor(1, "summary")
        self._summary: Future | None = None
        self._judged: tuple[int, int] | None = None
        self._judged_s = time.monotonic()

    def publish_frame(self, frame: LiveFrame) -> None:
        """Publish a frame's metrics, and its images to their subscribers."""
        truth_m = frame.need_ground_truth()
        self._last_header = frame.header
        for key, publisher in self._plotted.items():
            publisher.publish(Float64(data=float(frame.metrics.get(key, math.nan))))
        self._publish_metrics(FRAME, frame.metrics)
        if self._error.get_subscription_count():
            error_m = thicken(np.abs(frame.need_depth().depth_m - truth_m))
            image = colorize(error_m, MAX_ERROR_M, SIGMA_COLORS)
            self._error.publish(image_message(image, frame.header))
        if self._ground_truth.get_subscription_count():
            image = colorize(thicken(truth_m), COLOR_MAX_M, DEPTH_COLORS)
            self._ground_truth.publish(image_message(image, frame.header))

    def _publish_pooled(self, evaluation: Evaluation) -> None:
        """Publish the metrics of all frames, and the sparsification plot to its subscribers."""
        self._publish_metrics(ALL_FRAMES, evaluation.values())
        has_sigma = evaluation.sigma_kind is not SigmaKind.NONE
        if has_sigma and self._sparsification.get_subscription_count():
            canvas = FigureCanvasAgg(small_sparsification_figure(evaluation.metrics.total()))
            canvas.draw()
            image = np.ascontiguousarray(np.asarray(canvas.buffer_rgba())[..., :3])
            self._sparsification.publish(image_message(image, self._last_header))

    def _publish_metrics(self, group: str, metrics: Mapping[str, float]) -> None:
        if self._arrays.get_subscription_count():
            name = status_name(self._node, group)
            values = {key: repr(float(value)) for key, value in metrics.items()}
            self._arrays.publish(status_message(self._last_header, name, group, values))

    def summarize(self, evaluation: Evaluation, context: Context) -> None:
        """Publish the metrics of all frames if anybody listens, and judge them every 5 s.

        Called once a second; does nothing while the previous call is at work.
        """
        is_busy = self._summary is not None and not self._summary.done()
        state = (id(evaluation), evaluation.frames()["read"])
        is_due = time.monotonic() - self._judged_s >= JUDGE_EVERY_S and state != self._judged
        publishers = (self._sparsification, self._arrays)
        has_readers = evaluation.evaluated and any(
            publisher.get_subscription_count() for publisher in publishers
        )
        if is_busy or not (is_due or has_readers):
            return
        if is_due:
            self._judged = state
            self._judged_s = time.monotonic()
        copy = deepcopy(evaluation)
        self._summary = self._summaries.submit(self._summarize, copy, context, is_due)

    def _summarize(self, evaluation: Evaluation, context: Context, is_due: bool) -> None:
        try:
            if evaluation.evaluated:
                self._publish_pooled(evaluation)
            if is_due:
                self._judge(evaluation, context)
        except Exception:
            if self._node.context.ok():  # else the node was stopped meanwhile
                logger.exception("metrics of all frames were not published")

    def _judge(self, evaluation: Evaluation, context: Context) -> None:
        sample = evaluation.resampled() if evaluation.evaluated else None
        results = []
        if context.requirements:  # else no interval of a metric is computed
            metrics = metrics_with_intervals(evaluation, sample)
            distribution = distribution_of_model(context.model)
            results = [
                outcome(requirement, metrics, distribution) for requirement in context.requirements
            ]
        self.failures = tuple(
            f"requirement not met: {result.text.removeprefix(FAIL)}"
            for result in results
            if not result.passed
        )
        self.verdict = {
            **diagnostic_values(judge(evaluation, context.model, None, sample)),
            **{f"requirement.{result.requirement}": result.text for result in results},
        }

    def close(self) -> None:
        """Finish what is at work."""
        self._summaries.shutdown(cancel_futures=True)


def write_last(evaluation: Evaluation, folder: Path, context: Context) -> Path:
    """Write a run's report: numbers first, as a stopped node may be killed before its plots."""
    summary = report.summarize(evaluation, context, is_quick=True)
    page = report.write(evaluation, folder, context, images=False, summary=summary)
    try:
        page = report.write(evaluation, folder, context)
    except Exception:  # the numbers are written
        logger.exception("the plots of the report cannot be drawn")
    return page


class LiveCalibration:
    """Estimates how large sigma and depth must be, and publishes it latched after every frame.

    The correction that was applied, which a depth node publishes for each stamp, is undone first:
    estimates are made on the model's own depth and sigma. If one publishes it, frames without it
    are left out.
    """

    def __init__(self, node: Node, config: EvaluatorNodeConfig) -> None:
        self._publisher = node.create_publisher(DiagnosticArray, CALIBRATION_TOPIC, LATCHED_QOS)
        self.start(config)

    def start(self, config: EvaluatorNodeConfig) -> None:
        """Forget all frames, and take a run's options."""
        self._config = config
        self._estimator = CorrectionEstimator(config)
        self._scale: DepthScale | None = None
        self._without_info = 0

    def add(self, frame: LiveFrame, is_described: bool) -> None:
        """Add a scored frame, and publish the estimate; runs on the evaluation's thread.

        A frame that `is_described`, but without a description, is left out.
        """
        info = frame.info
        prediction = frame.need_prediction()
        maps = (prediction.depth_m, prediction.sigma_m, frame.need_ground_truth())
        pixels = valid_pixels(*maps, self._config.min_depth, self._config.max_depth)
        if info is None and is_described:
            self._without_info += 1
            return
        in_force, name = (OFF, FOREIGN) if info is None else (info.in_force, info.sigma)
        sent = self._estimator.add(stamp_ns(frame.header), pixels, in_force, name)
        if prediction.aligned_by != 1:  # the scale is that of the ground truth already
            sent = replace(sent, scale=None)
        self._scale = sent.scale
        self._publish(frame.header, sent)

    def _publish(self, header: Header, sent: ReceivedEstimate) -> None:
        estimate = self._estimator.of_sigma
        sentences = []
        if sent.correction is not None:
            sentences.append(
                f"sigma times {sent.correction:.2f} covers {estimate.config.coverage:.0%} of the "
                f"errors of the last {estimate.frames} frames"
            )
        if sent.scale is not None:
            sentences.append(f"true depth is {sent.scale.factor:.2f} times the model's own")
        values = estimate_values(estimate, sent)
        self._publisher.publish(status_message(header, ESTIMATE, "; ".join(sentences), values))

    def diagnostic_values(self) -> dict[str, object]:
        """Return facts for the diagnostics."""
        estimate = self._estimator.of_sigma
        values: dict[str, object] = {
            "calibration.frames": estimate.frames,
            "calibration.recent_coverage": f"{estimate.recent_coverage:.3f}",
        }
        if estimate.factor is not None:
            values["calibration.factor"] = f"{estimate.factor:.3f}"
        if self._scale is not None:
            values["calibration.depth_scale"] = f"{self._scale.factor:.3f}"
            values["calibration.scale_sigma"] = f"{self._scale.scale_sigma:.3f}"
        if self._without_info:
            values["calibration.without_prediction_info"] = self._without_info
        return values
