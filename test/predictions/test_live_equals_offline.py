# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What any node publishes is scored live as it is scored from its bag: the same, to the digit."""

from __future__ import annotations

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from uncertainty_depth.calibration.sigma_map import SigmaMap
from uncertainty_depth.config import EvaluationConfig, EvaluatorNodeConfig, SourceConfig
from uncertainty_depth.config.prediction import PredictionConfig, PredictionTopics
from uncertainty_depth.errors import ConfigError
from uncertainty_depth.frames.predicted import Predicted
from uncertainty_depth.frames.recording import Recording
from uncertainty_depth.frames.source import open_source
from uncertainty_depth.metrics.registry import flatten
from uncertainty_depth.predictions.interpreter import Interpreter
from uncertainty_depth.predictions.saved_map import SavedMap
from uncertainty_depth.report.evaluate import evaluate
from uncertainty_depth.ros.evaluator_options import check_options
from uncertainty_depth.ros.extrinsics import FixedExtrinsics
from uncertainty_depth.ros.live_evaluation import LiveEvaluation

TOPICS = ("/stereo/depth/image", "/stereo/confidence")
FRAMES = 3
IDENTITY = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
MEANINGS = {
    "sigma": {},
    "rank": {"confidence_type": "rank_up", "align": "scale_shift"},
    "inverse": {"confidence_type": "rank_up", "depth_type": "inverse_depth", "align": "scale"},
    "map": {"sigma_map": "map.json"},
}


@pytest.fixture(scope="module")
def bag(write_shared):
    return write_shared(TOPICS, frames=FRAMES, name="live")


@pytest.mark.parametrize("meaning", MEANINGS)
def test_live_equals_offline_in_every_digit(meaning, bag, tmp_path):
    options = dict(MEANINGS[meaning])
    if "sigma_map" in options:
        sigma_map = SigmaMap("affine", (0.0, 1.0), (0.01, 2.01), 1.0, 0.1)
        saved = SavedMap(sigma_map, "rank_up", "depth", "laplace")
        options["sigma_map"] = str(tmp_path / options["sigma_map"])
        saved.write(tmp_path / "map.json")
    interpreter = Interpreter(PredictionConfig(**options), EvaluationConfig())
    topics = PredictionTopics(*TOPICS)
    source = open_source(str(bag), SourceConfig(), topics, interpreter.config)
    frames = Predicted(source, interpreter.predict)
    offline = evaluate(frames, progress=False, without_size=interpreter.without_size)

    live = LiveEvaluation(EvaluatorNodeConfig(**options), FixedExtrinsics(IDENTITY))
    takers = {
        TOPICS[0]: live.add_depth,
        TOPICS[1]: live.add_sigma,
        "/stereo/depth/camera_info": live.add_camera_info,
        "/lidar/points": live.add_ground_truth,
    }
    with Recording(bag).open() as recording:
        for topic, message in recording.messages(takers):
            takers[topic](message)
    live.finish()
    assert offline.evaluated == FRAMES
    assert repr(flatten(live.evaluation.summary())) == repr(flatten(offline.summary()))
    assert live.evaluation.without_size == offline.without_size
    assert live.interpreter.notes() == interpreter.notes()


def test_an_alignment_of_the_whole_source_needs_the_recording():
    with pytest.raises(ConfigError, match="needs the whole recording"):
        check_options(EvaluatorNodeConfig(align="median", align_per="source"))


def test_another_meaning_starts_a_new_run():
    live = LiveEvaluation(EvaluatorNodeConfig(), FixedExtrinsics(IDENTITY))
    assert live.starts_anew(EvaluatorNodeConfig(confidence_type="rank_up"))
    assert live.starts_anew(EvaluatorNodeConfig(fixed_frame="odom"))
    config = EvaluatorNodeConfig(confidence_type="rank_up")
    live.reconfigure(config, live.extrinsics, live.new_evaluation(config))
    assert live.interpreter.config.confidence_type == "rank_up"
    assert "no unit" in live.evaluation.without_size
