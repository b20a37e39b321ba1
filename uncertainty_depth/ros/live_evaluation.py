# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Score predictions as they arrive: the same `Evaluation` as the offline command's is filled."""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from typing import Any

from uncertainty_depth.config import EvaluationConfig, EvaluatorNodeConfig
from uncertainty_depth.config.prediction import HeldOutConfig, PredictionConfig
from uncertainty_depth.frames.pairing import ExactPairs, NearestClouds, Outcome, Unmatched
from uncertainty_depth.geometry.check import GeometryCheck
from uncertainty_depth.messages.depth_images import UNMATCHED_REASONS
from uncertainty_depth.messages.online_calibration import PredictionInfo
from uncertainty_depth.messages.stamps import frame_name, stamp_ns
from uncertainty_depth.predictions.interpreter import Interpreter
from uncertainty_depth.records import Skipped
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.frame_table import FrameTable
from uncertainty_depth.ros.extrinsics import Extrinsics
from uncertainty_depth.ros.ground_truth_topics import ground_truth_topics
from uncertainty_depth.ros.map_ground_truth import MapGroundTruth
from uncertainty_depth.ros.pair_scorer import PairScorer, Scored

logger = logging.getLogger(__name__)
MAX_INFOS = 2000
MAX_WITHOUT_INFO = 5
"""Predictions that wait for the word of how they were made."""
RUN_OPTIONS = (
    *(item.name for item in fields(EvaluationConfig) if item.name != "example_frames"),
    *(item.name for item in fields(PredictionConfig)),
    "max_time_difference",
    "use_ground_truth_image",
    "fixed_frame",
)
"""Options that all scores of one run share."""


def never() -> bool:
    """Return False."""
    return False


class LiveEvaluation:
    """Pairs messages in the order they arrive, and scores them; used from one thread.

    Methods that decide frames return what became of each: every prediction ends as `Scored` or as
    `Skipped` with its reason. At most `queue_size` messages of each topic wait.

    Attributes:
        config: options in use.
        evaluation: the scores so far.
        interpreter: what the maps mean.
    """

    def __init__(
        self,
        config: EvaluatorNodeConfig,
        extrinsics: Extrinsics,
        create_table: Callable[[], FrameTable] = FrameTable,
        resumed: Evaluation | None = None,
        is_described: Callable[[], bool] = never,
    ) -> None:
        """Start a run, or continue one.

        Args:
            config: options.
            extrinsics: where the LiDAR sits.
            create_table: returns the empty table of frames of a new run.
            resumed: scores of the run to be continued.
            is_described: returns whether a node publishes how its predictions are made.
        """
        self.config = config
        self._create_table = create_table
        self._is_described = is_described
        self._infos: OrderedDict[int, PredictionInfo] = OrderedDict()
        self._ground_truth = MapGroundTruth(config, extrinsics)
        self.interpreter = Interpreter(config, config)
        self._start(self._new_evaluation() if resumed is None else resumed)

    def reset(self) -> None:
        """Start a new run: forget scores, counts, and the messages that wait."""
        self._ground_truth.reset()
        self.interpreter = Interpreter(self.config, self.config)
        self._start(self._new_evaluation())

    def _new_evaluation(self) -> Evaluation:
        return Evaluation(self.config, self._create_table(), self.interpreter.without_size)

    def _start(self, evaluation: Evaluation) -> None:
        self.evaluation = evaluation
        self._pairs = ExactPairs(self.config.queue_size)
        self._streams = ground_truth_topics(self.config)
        self._pairer = NearestClouds(
            self._streams, self.config.max_time_difference, self.config.queue_size
        )
        self._waiting: deque[Outcome] = deque()
        self._undecided = 0
        self._scorer = PairScorer(self.config, self._ground_truth, self.interpreter, evaluation)

    def starts_anew(self, config: EvaluatorNodeConfig) -> bool:
        """Return whether these options need a new run."""
        return any(getattr(config, name) != getattr(self.config, name) for name in RUN_OPTIONS)

    def new_evaluation(self, config: EvaluatorNodeConfig) -> Evaluation | None:
        """Return an empty evaluation where these options need one; nothing changes yet.

        Raises:
            OSError: its table cannot be written.
            ConfigError: the sigma map cannot be used.
        """
        if not self.starts_anew(config):
            return None
        without_size = Interpreter(config, config).without_size
        return Evaluation(config, self._create_table(), without_size)

    def reconfigure(
        self,
        config: EvaluatorNodeConfig,
        extrinsics: Extrinsics,
        evaluation: Evaluation | None,
    ) -> None:
        """Apply new options; `evaluation` is that of a new run, None where the run continues.

        A run that ends here is over: call `finish` before.
        """
        self.config = config
        self._ground_truth.config = config
        self._ground_truth.extrinsics = extrinsics
        if evaluation is not None:
            self._ground_truth.reset()
            self.interpreter = Interpreter(config, config)
            self._start(evaluation)
            return
        self._scorer.config = config
        self._pairs.queue_size = config.queue_size
        self._pairer.queue_size = config.queue_size
        self.evaluation.set_example_frames(config.example_frames)

    def set_held_out(self, rule: HeldOutConfig | None) -> None:
        """Score only depth that a model with sparse input was not given; None: all depth."""
        self._ground_truth.held_out = rule

    @property
    def clocks_apart_s(self) -> float | None:
        """See `PairScorer`."""
        return self._scorer.clocks_apart_s

    @property
    def extrinsics(self) -> Extrinsics:
        """Where the LiDAR sits."""
        return self._ground_truth.extrinsics

    @property
    def geometry(self) -> GeometryCheck:
        """The check of camera and LiDAR in this run."""
        return self._ground_truth.check

    @property
    def waiting(self) -> int:
        """Predictions that wait for a later cloud, a camera info, or their other map."""
        return self._undecided + len(self._pairs)

    @property
    def pairing_counts(self) -> dict[str, int]:
        """Counts of pairing predictions with ground truth, see `NearestClouds`."""
        incomplete = self._pairer.incomplete
        without = {f"scored_without_{topic}": count for topic, count in incomplete.items()}
        return {**self._pairer.counts, **without}

    @property
    def camera_notes(self) -> list[str]:
        """Sentences about the camera infos, for the reader of the scores."""
        return self._ground_truth.camera.notes

    def add_camera_info(self, message: Any) -> list[Scored | Skipped]:
        """Store the camera of the predictions; the latest one counts."""
        self._ground_truth.camera.add(message)
        return list(self._results([]))

    def add_prediction_info(self, stamp: int, info: PredictionInfo) -> list[Scored | Skipped]:
        """Store how the prediction with this stamp was made."""
        self._infos[stamp] = info
        while len(self._infos) > MAX_INFOS:
            self._infos.popitem(last=False)
        return list(self._results([]))

    def add_ground_truth_info(self, message: Any) -> None:
        """Store the camera of ground truth images; the latest one counts. It may be missing."""
        self._ground_truth.camera.ground_truth_info = message

    def add_depth(self, message: Any) -> list[Scored | Skipped]:
        """Add a depth image."""
        return self._add_map(0, message)

    def add_sigma(self, message: Any) -> list[Scored | Skipped]:
        """Add an uncertainty image."""
        return self._add_map(1, message)

    def add_ground_truth(self, message: Any, lidar: int = 0) -> list[Scored | Skipped]:
        """Add ground truth: a cloud of LiDAR number `lidar`, from 0, or a depth image."""
        if lidar >= len(self._streams):
            return []  # it came before ground truth images took the place of the LiDARs
        stamp = stamp_ns(message.header)
        return list(self._results(self._pairer.add_cloud(self._streams[lidar], stamp, message)))

    def flush(self) -> list[Scored | Skipped]:
        """Decide the predictions that wait for ground truth or a camera info."""
        return list(self._results(self._pairer.flush(), max_waiting=0))

    def finish(self) -> list[Scored | Skipped]:
        """Decide all waiting pairs, and skip maps without their counterpart."""
        return [self._skip_unmatched(item) for item in self._pairs.flush()] + self.flush()

    def _add_map(self, side: int, message: Any) -> list[Scored | Skipped]:
        pair, unmatched = self._pairs.add(side, stamp_ns(message.header), message)
        results: list[Scored | Skipped] = [self._skip_unmatched(item) for item in unmatched]
        if pair is not None:
            self._undecided += 1
            results += self._results(self._pairer.add_reference(stamp_ns(message.header), pair))
        return results

    def _results(
        self, outcomes: Iterable[Outcome], max_waiting: int | None = None
    ) -> Iterator[Scored | Skipped]:
        """Score pairs in order; at most `max_waiting` wait for later messages."""
        self._waiting.extend(outcomes)
        while self._waiting:
            patience = self._patience(self._waiting[0])
            if len(self._waiting) <= (patience if max_waiting is None else max_waiting):
                return
            yield self._result(self._waiting.popleft())

    def _patience(self, outcome: Outcome) -> int:
        """Return how many pairs may wait for a camera info, or for how their sigma was made."""
        if self._ground_truth.camera.info is None and not self.config.use_ground_truth_image:
            return self.config.queue_size
        if outcome.stamp_ns not in self._infos and self._is_described():
            return MAX_WITHOUT_INFO
        return 0

    def _result(self, outcome: Outcome) -> Scored | Skipped:
        self._undecided -= 1
        return self._scorer.score(outcome, self._infos.pop(outcome.stamp_ns, None))

    def _skip_unmatched(self, item: Unmatched) -> Skipped:
        reason = UNMATCHED_REASONS[item.side]
        sentence = f"frame {frame_name(item.stamp_ns)}: {reason.replace('_', ' ')}"
        record = Skipped(item.stamp_ns, reason, sentence)
        self.evaluation.skip(record)
        return record
