# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Any confidence in metres: fitted on LiDAR, chosen and refused on frames not used, and saved."""

from __future__ import annotations

import json

import numpy as np
import pytest

from uncertainty_depth.calibration.sample import Sample
from uncertainty_depth.calibration.sigma_map import SigmaMap, affine
from uncertainty_depth.cli.main import main
from uncertainty_depth.config import CalibrationConfig, EvaluationConfig
from uncertainty_depth.errors import CalibrationError, ConfigError
from uncertainty_depth.predictions.calibrate import calibrate, check, map_scores
from uncertainty_depth.predictions.confidence_map import ConfidenceMap, SavedMap, read_map
from uncertainty_depth.predictions.config import PredictionConfig
from uncertainty_depth.predictions.interpreter import Interpreter

TOPICS = ("/stereo/depth/image", "/stereo/confidence")
CONFIG = CalibrationConfig()


def sample(uncertainty_of, frames=12, pixels=300, seed=0, power=2, name="drive"):
    """Errors of `(0.02 + 0.1 v) depth^power / 10`, and what `uncertainty_of(v)` makes of v."""
    random = np.random.default_rng(seed)
    parts = []
    for _ in range(frames):
        depth = random.uniform(1, 8, pixels)
        value = random.uniform(0, 1, pixels)
        error = random.normal(0, (0.02 + 0.1 * value) * depth**power / 10)
        parts.append(np.stack((depth, uncertainty_of(value), depth + error)).astype(np.float32))
    return Sample(name, tuple(parts))


def test_a_rank_becomes_metres_and_the_power_of_the_depth_is_found():
    calibration = calibrate([sample(lambda v: v**3)], False, CONFIG)
    before, after = calibration.scores()
    assert calibration.confidence_map.depth_power == 2
    assert after["auce"] < 0.02 < before["auce"]
    assert after["crps"] < 0.9 * before["crps"]
    assert abs(after["coverage_95"] - 0.95) < 0.02
    check(calibration)


def test_a_sigma_of_the_wrong_size_is_mended():
    raw = sample(lambda v: 0.2 * (0.02 + 0.1 * v), power=0)
    calibration = calibrate([raw], True, CONFIG)
    before, after = calibration.scores()
    assert calibration.reference == "identity"
    assert before["auce"] > 0.2
    assert after["auce"] < 0.02


def test_several_sources_are_each_reported_by_a_map_of_the_others():
    samples = [sample(lambda v: v, seed=seed, name=str(seed)) for seed in range(3)]
    calibration = calibrate(samples, False, CONFIG)
    assert [trial.name for trial in calibration.trials] == ["0", "1", "2"]
    assert calibration.fitted.sources == ("0", "1", "2")
    assert calibration.scores()[1]["auce"] < 0.03


def test_a_map_that_harms_on_frames_not_used_is_refused():
    first = sample(lambda v: v, frames=8, power=0)
    opposite = sample(lambda v: 1 - v, frames=4, power=0, seed=1)
    turned = Sample("turned", (*first.frames, *opposite.frames))
    calibration = calibrate([turned], False, CONFIG)
    with pytest.raises(CalibrationError, match=r"worse than a constant sigma.*--force"):
        check(calibration)


def test_a_full_confidence_is_no_sigma_of_zero():
    saturated = sample(lambda v: np.maximum(v - 0.5, 0))
    calibration = calibrate([saturated], False, CONFIG)
    sigma = calibration.confidence_map(np.zeros(3), np.array([1.0, 2.0, 4.0]))
    assert (sigma > 0).all()
    assert np.isfinite(map_scores(saturated, calibration.confidence_map, "gaussian")["nll"])


@pytest.mark.parametrize("power", [0, 1, 2])
def test_the_map_rises_with_the_uncertainty_and_keeps_what_is_unknown(power):
    one = ConfidenceMap(SigmaMap("isotonic", (0.0, 1.0, 2.0), (0.1, 0.2, 0.9)), power, 0.01)
    uncertainty = np.array([0, 0.5, 1, 5, np.nan], np.float32)
    sigma = one(uncertainty, np.full(5, 2, np.float32))
    assert (np.diff(sigma[:4]) > 0).all()
    assert sigma[1] == pytest.approx(2**power * one.sigma_map(np.array([0.51]))[0])
    assert np.isnan(sigma[4])
    assert np.isnan(one(uncertainty[:1], np.array([np.nan], np.float32)))[0] == (power > 0)


def saved(**changes):
    values = {
        "confidence_map": ConfidenceMap(affine(0.1, 0.5), 1, 0.02),
        "confidence_type": "rank_up",
        "depth_type": "depth",
        "distribution": "laplace",
        "provenance": {"command": "calibrate"},
    }
    return SavedMap(**{**values, **changes})


def test_the_file_gives_the_map_back(tmp_path):
    saved().write(tmp_path / "new" / "map.json")
    assert read_map(tmp_path / "new" / "map.json") == saved()


@pytest.mark.parametrize(
    ("key", "value"),
    [("format", 2), ("depth_power", 7), ("offset", -1), ("confidence_type", "x"), ("map", {})],
)
def test_a_damaged_file_is_one_sentence(key, value, tmp_path):
    path = tmp_path / "map.json"
    saved().write(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(
        ConfigError, match=r"is not a valid map.*expected the file that `calibrate"
    ):
        read_map(path)


def test_json_of_something_else_is_told_what_it_lacks(tmp_path):
    path = tmp_path / "summary.json"
    path.write_text("{}")
    with pytest.raises(ConfigError, match=r"is not a valid map \(it has no 'format'\)"):
        read_map(path)


@pytest.mark.parametrize("content", ["", "[1]", None])
def test_an_invalid_map_file_is_refused_in_one_sentence(content, tmp_path):
    path = tmp_path / "map.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match="expected the file that `calibrate"):
        read_map(path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"confidence_type": "sigma"}, "takes 'rank_up'"),
        ({"align": "median"}, "expected align none"),
        ({"depth_type": "inverse_depth"}, "takes 'depth'"),
    ],
)
def test_a_map_of_another_confidence_is_refused(options, words, tmp_path):
    saved().write(tmp_path / "map.json")
    config = PredictionConfig(sigma_map=str(tmp_path / "map.json"), **options)
    with pytest.raises(ConfigError, match=words):
        Interpreter(config, EvaluationConfig())


@pytest.mark.usefixtures("without_plots")
def test_from_a_bag_to_metres_and_back_by_the_command(write_camera, tmp_path, capsys):
    """AUCE of a simulated stereo confidence before and after, on a bag that was not used."""
    form = {"confidence": lambda s: s.texture}
    bag = write_camera(TOPICS, frames=20, **form)
    path = tmp_path / "map.json"
    topics = ["--depth-topic", TOPICS[0], "--confidence-topic", TOPICS[1]]
    confidence = ["--confidence-type", "confidence_0_1"]
    assert main(["calibrate", str(bag), *topics, *confidence, "--output", str(path)]) == 0
    assert "frames not used" in capsys.readouterr().out
    content = json.loads(path.read_text())
    assert content["confidence_type"] == "confidence_0_1"
    assert content["confidence_topic"] == TOPICS[1]
    assert content["not_used"]["after"]["auce"] < content["not_used"]["before"]["auce"]
    other = write_camera(TOPICS, frames=3, name="other", first=100, **form)
    map_options = ["--sigma-map", str(path), "--example-frames", "0"]

    def summary_of(source, name):
        output = ["--output", str(tmp_path / name)]
        assert main(["evaluate", str(source), *topics, *map_options, *output]) == 0
        return json.loads((tmp_path / name / "summary.json").read_text())

    summary = summary_of(other, "report")
    assert summary["without_size"] == ""
    assert summary["uncertainty"]["auce"] < 0.03
    assert summary["model"]["calibration"] == content["map"]["kind"] + ", times depth squared"
    assert not any("calibrated on" in note for note in summary["notes"])
    seen = summary_of(bag, "seen")
    assert any(f"calibrated on frames of {bag}" in note for note in seen["notes"])
    assert seen["verdict"]["lines"][2]["color"] == "grey"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--depth-topic", "/a"], "expected --output map.json"),
        (["--depth-topic", "/a", "--output", "m.json", "--align", "median"], "align none"),
        (["--depth-topic", "/a", "--output", "."], "expected a file"),
        ([], "expected MODEL SOURCE"),
    ],
)
def test_what_calibrate_cannot_do_is_one_sentence(options, words, tmp_path, capsys):
    assert main(["calibrate", str(tmp_path), *options]) == 1
    assert words in capsys.readouterr().err


def test_a_confidence_that_is_constant_is_told_before_its_map_is_written(write_camera, caplog):
    topics = ("/stereo/depth/image", "/stereo/confidence")
    bag = write_camera(topics, confidence=lambda s: np.ones_like(s.sigma), frames=8)
    names = ["--depth-topic", topics[0], "--confidence-topic", topics[1]]
    options = ["--confidence-type", "rank_up", "--dry-run"]
    assert main(["calibrate", str(bag), *names, *options]) == 0
    assert "the confidence is 1 in every pixel of every frame" in caplog.text
