# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The metrics of all frames, published once a second while they have subscribers."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from copy import deepcopy

from rclpy.node import Node

from uncertainty_depth.metrics import OnlineMetrics
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.ros.score_outputs import ScoreOutputs


class PooledMetrics:
    """Computes the metrics in the background, from a copy."""

    def __init__(
        self,
        node: Node,
        outputs: ScoreOutputs,
        post: Callable[[Callable[[], None]], None],
        evaluation: Callable[[], Evaluation],
    ) -> None:
        """Start without a timer: the node calls `request`.

        Args:
            node: whose log is written to.
            outputs: where the metrics are published.
            post: runs a job on the thread that owns the evaluation.
            evaluation: returns the current one.
        """
        self._node = node
        self._outputs = outputs
        self._post = post
        self._evaluation = evaluation
        self._thread = ThreadPoolExecutor(1, "pooled")
        self._published: Future | None = None

    def request(self) -> None:
        """Publish the metrics soon, if there is a subscriber."""
        if self._outputs.has_pooled_subscribers:
            self._post(self._copy)

    def close(self) -> None:
        """Finish the metrics that are being computed."""
        self._thread.shutdown()

    def _copy(self) -> None:
        evaluation = self._evaluation()
        is_busy = self._published is not None and not self._published.done()
        if evaluation.evaluated and not is_busy:
            metrics = deepcopy(evaluation.metrics)
            self._published = self._thread.submit(self._publish, metrics)

    def _publish(self, metrics: OnlineMetrics) -> None:
        try:
            self._outputs.publish_pooled(metrics)
        except Exception:
            if self._node.context.ok():  # else the node was stopped meanwhile
                self._node.get_logger().error(
                    f"metrics were not published: {traceback.format_exc()}"
                )
