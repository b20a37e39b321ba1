# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Score a pair of maps against its ground truth, as messages."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncertainty_depth.config import EvaluatorNodeConfig
from uncertainty_depth.errors import MessageError
from uncertainty_depth.frames.pairing import Outcome
from uncertainty_depth.messages.depth_images import decode_maps
from uncertainty_depth.messages.online_calibration import PredictionInfo
from uncertainty_depth.messages.stamps import frame_name
from uncertainty_depth.predictions.interpreter import Interpreter
from uncertainty_depth.records import DepthPrediction, Frame, RecordedMaps, Skipped
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.ros.map_ground_truth import MapGroundTruth

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Scored:
    """A frame that was scored.

    Attributes:
        metrics: its own, by dotted name.
        prediction: its maps, (H, W) metres.
        ground_truth_m: (H, W), NaN where unknown.
        header: of its depth image.
        info: how the prediction was made; None where nobody tells.
    """

    metrics: dict[str, float]
    prediction: DepthPrediction
    ground_truth_m: NDArray[np.float32]
    header: Any
    info: PredictionInfo | None = None


class PairScorer:
    """Adds pairs of maps to an evaluation.

    Attributes:
        config: options in use.
        clocks_apart_s: time from the last prediction to the nearest ground truth, where that is
            more than `max_time_difference`; else None.
    """

    def __init__(
        self,
        config: EvaluatorNodeConfig,
        ground_truth: MapGroundTruth,
        interpreter: Interpreter,
        evaluation: Evaluation,
    ) -> None:
        self.config = config
        self.clocks_apart_s: float | None = None
        self._ground_truth = ground_truth
        self._interpreter = interpreter
        self._evaluation = evaluation

    def score(self, outcome: Outcome, info: PredictionInfo | None) -> Scored | Skipped:
        """Score a pair, or skip it; `info` says how it was made, None where nobody tells."""
        try:
            return self._score(outcome, info)
        except MessageError as error:
            skipped = Skipped(outcome.stamp_ns, error.reason, str(error))
        except Exception as error:  # a hostile message costs one frame, not the run
            logger.exception("a frame failed")
            sentence = f"frame {frame_name(outcome.stamp_ns)}: {type(error).__name__}: {error}"
            skipped = Skipped(outcome.stamp_ns, "failed", sentence)
        self._evaluation.skip(skipped)
        return skipped

    def _score(self, outcome: Outcome, info: PredictionInfo | None) -> Scored | Skipped:
        depth, sigma = outcome.reference
        depth_map, confidence = decode_maps(depth, sigma, self._interpreter.config)
        shape = (depth_map.shape[0], depth_map.shape[1])
        name = frame_name(outcome.stamp_ns)
        if outcome.cloud is None:
            raise self._unpaired(name, outcome.apart_ns)
        self.clocks_apart_s = None
        ground_truth_m = self._ground_truth.in_maps(outcome.cloud, depth, shape, name)
        frame = Frame(
            outcome.stamp_ns,
            name,
            self._ground_truth.camera_of(shape, outcome.stamp_ns),
            ground_truth_m=ground_truth_m,
            recorded=RecordedMaps(depth_map, confidence),
        )
        prediction = self._interpreter.predict(frame)
        if info is not None:
            prediction = replace(prediction, unfamiliarity=info.unfamiliarity)
        metrics = self._evaluation.add(replace(frame, prediction=prediction))
        if metrics is None:  # already counted by the evaluation
            sentence = f"frame {name} has no pixel that can be scored"
            return Skipped(outcome.stamp_ns, "no_valid_pixel", sentence)
        return Scored(metrics, prediction, ground_truth_m, depth.header, info)

    def _unpaired(self, name: str, apart_ns: int | None) -> MessageError:
        self.clocks_apart_s = None if apart_ns is None else apart_ns * 1e-9
        nearest = "" if apart_ns is None else f"; the nearest is {apart_ns * 1e-9:+.3f} s away"
        ground_truth = "ground_truth_image" if self.config.use_ground_truth_image else "lidar"
        return MessageError(
            f"no_{ground_truth}_within_max_time_difference",
            f"no {ground_truth} within {self.config.max_time_difference} s of frame {name}"
            f"{nearest}",
        )
