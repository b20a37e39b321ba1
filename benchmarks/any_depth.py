# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Print how well a sigma learned from depth images ranks the errors of others' depth.

python -m benchmarks.any_depth kitti:DRIVE_DIR rgbd:hololens

Two shipped networks make the depth; the first 60 % of the frames teach `calibration.depth_head`,
the rest are scored. A sigma of a d^k, k > 0, ranks as depth does. `stereo` asks it of a matcher.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace

from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.scoring import CalibrationConfig
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.records import DepthPrediction, Frame
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.frames.protocol import SliceSource, Subsampled
from uncertainty_depth.metrics.online import OnlineMetrics
from uncertainty_depth.sigma.calibration.depth_head import learn
from uncertainty_depth.stream.opening import open_source

FRAMES = 50
HEAD_TRAINING_FRACTION = 0.6
MODELS = ("indoor", "demo")
MAX_DEPTH_M = 80.0
STATISTICS = ("abs_rel", "rmse", "a1")
Predict = Callable[[Frame], DepthPrediction]


class Predicted(list[Frame]):
    """Frames with the depth of one source."""

    def __init__(self, name: str, frames: list[Frame], predict: Predict) -> None:
        self.name = name
        self.notes: list[str] = []
        super().__init__(replace(frame, prediction=predict(frame)) for frame in frames)


def network(model: str) -> Predict:
    """Return a network's depth and its own sigma."""
    predictor = Predictor(model, PredictorConfig())
    return lambda frame: predictor.predict(frame.need_image(), frame.stamp_ns, frame.camera)


def row(name: str, frames: list[Frame], predict: Predict) -> None:
    """Learn a head, and print the AUSE of all sigmas on the rest of the frames."""
    predicted = Predicted(name, frames, predict)
    rest = SliceSource(predicted, HEAD_TRAINING_FRACTION, 1)
    head = learn([SliceSource(predicted, 0, HEAD_TRAINING_FRACTION)], CalibrationConfig())
    scores = {"own": OnlineMetrics(), "learned": OnlineMetrics()}
    for frame in rest:
        assert isinstance(frame, Frame)
        prediction = frame.need_prediction()
        depth_m, own_m = prediction.depth_m, prediction.sigma_m
        truth_m = frame.need_ground_truth()
        scores["own"].update(depth_m, own_m, truth_m)
        scores["learned"].update(depth_m, head(depth_m), truth_m)
    values = {key: metrics.compute() for key, metrics in scores.items()}
    cells = []
    for statistic in STATISTICS:
        baselines = values["own"]["baselines"]
        ause = [baselines[key]["ause"][statistic] for key in ("constant", "proportional_to_depth")]
        ause += [values[key]["uncertainty"]["ause"][statistic] for key in ("own", "learned")]
        cells.append(" / ".join(f"{value:.3f}" for value in ause))
    print(f"| {name} | {len(rest)} | {' | '.join(cells)} |", flush=True)


def main(notations: list[str]) -> None:
    """Print a row for each data set and source of depth."""
    print("| depth | frames | AUSE abs_rel | AUSE rmse (m) | AUSE 1 - a1 |")
    print("| --- | --- | --- | --- | --- |")
    for notation in notations:
        source = Subsampled(open_source(notation, SourceConfig()), FRAMES)
        frames = [frame for frame in source if isinstance(frame, Frame)]
        label = notation.partition(",")[0].rsplit("/", 1)[-1]
        for model in MODELS:
            row(f"{label}, {model}", frames, network(model))


if __name__ == "__main__":
    main(sys.argv[1:])
