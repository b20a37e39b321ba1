# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Any depth's sigma in metres: fitted by the command on LiDAR, saved, and served by evaluate."""

import json

import numpy as np
import pytest

from test.sigma.recorded.conftest import NAMES, TOPICS
from uncertainty_depth.cli.main import main
from uncertainty_depth.core.config.scoring import EvaluationConfig
from uncertainty_depth.core.config.source import PredictionConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.sigma.calibration.half_widths import BY_DISTRIBUTION
from uncertainty_depth.sigma.calibration.sigma_map import SigmaMap
from uncertainty_depth.sigma.recorded.interpreter import Interpreter, SavedMap, read_map


def saved(**changes):
    values = {
        "sigma_map": SigmaMap("affine", (0.0, 1.0), (0.1, 0.6), 1.0, 0.02),
        "confidence_type": "uncertainty_rank",
        "depth_type": "depth",
        "distribution": "laplace",
        "provenance": {"command": "calibrate"},
    }
    return SavedMap(**{**values, **changes})


def test_the_file_gives_the_map_back(tmp_path):
    saved().write(tmp_path / "new" / "map.json")
    assert read_map(tmp_path / "new" / "map.json") == saved()
    assert saved().half_widths is BY_DISTRIBUTION["laplace"]
    assert saved().guarantee == ""


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("format", 1),
        ("confidence_type", "x"),
        ("map", {}),
        ("half_widths", [3.0, 1.0]),
        ("frame_guarantee", {"factor": "much"}),
    ],
)
def test_a_damaged_file_is_one_sentence(key, value, tmp_path):
    path = tmp_path / "map.json"
    saved().write(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(ConfigError, match=r"is not a valid map.*expected the file that `calib"):
        read_map(path)


def test_a_report_has_the_intervals_and_the_guarantee_that_the_map_has(tmp_path):
    widths = [1.5 * width for width in BY_DISTRIBUTION["laplace"].at_levels]
    record = {"half_widths": widths, "frame_guarantee": {"sentence": "depth +- 2 sigma"}}
    saved(provenance=record).write(tmp_path / "map.json")
    interpreter = Interpreter(PredictionConfig(sigma_map=str(tmp_path / "map.json")))
    described = interpreter.describe("camera")
    assert described["half_widths"] == widths
    assert described["frame_guarantee"] == "depth +- 2 sigma"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"confidence_type": "sigma"}, "takes 'uncertainty_rank'"),
        ({"align": "median"}, "expected align none"),
        ({"depth_type": "inverse_depth"}, "takes 'depth'"),
    ],
)
def test_a_map_of_another_confidence_is_refused(options, words, tmp_path):
    saved().write(tmp_path / "map.json")
    config = PredictionConfig(sigma_map=str(tmp_path / "map.json"), **options)
    with pytest.raises(ConfigError, match=words):
        Interpreter(config, EvaluationConfig())


@pytest.fixture(scope="module")
def bags(write_shared):
    """A bag to calibrate on, and one that is not used."""
    form = {"confidence": lambda s: s.texture}
    used = write_shared(TOPICS, frames=20, **form)
    return str(used), str(write_shared(TOPICS, frames=3, name="other", first=100, **form))


@pytest.mark.parametrize("has_confidence", [True, False])
def test_from_a_bag_to_metres_and_back_by_the_command(has_confidence, bags, tmp_path, capsys):
    """A simulated stereo camera, with its confidence and without, on a bag that was not used."""
    path = tmp_path / "map.json"
    names = NAMES if has_confidence else NAMES[:2]
    kind = ["--confidence-type", "confidence_0_1"] if has_confidence else []
    bag, other = bags
    assert main(["calibrate", bag, *names, *kind, "--output", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "frames not used" in printed
    assert f"evaluate MY_BAG {' '.join(names)} --sigma-map {path} -o report\n" in printed
    assert f"sigma.launch.py sigma_map:={path} depth:={names[1]} " in printed
    assert (" confidence:=" in printed) == has_confidence
    content = json.loads(path.read_text())
    assert content["confidence_type"] == (kind[-1] if kind else "none")
    name = {"gaussian": "crps", "laplace": "crps_laplace"}[content["distribution"]]
    assert content["not_used"]["after"][name] < content["not_used"]["before"][name]
    assert "no guarantee by frame" in content["frame_guarantee"]["sentence"], "of 7 frames"
    assert "half_widths" not in content, "7 frames are too few for them too"

    def summary_of(source, name):
        output = ["--output", str(tmp_path / name), "--example-frames", "0"]
        assert main(["evaluate", source, *names, "--sigma-map", str(path), *output]) == 0
        return json.loads((tmp_path / name / "summary.json").read_text())

    summary = summary_of(other, "report")
    assert summary["sigma_kind"] == "metres"
    distribution = "" if content["distribution"] == "gaussian" else "_laplace"
    assert summary["uncertainty"][f"coverage_95{distribution}"] == pytest.approx(0.95, abs=0.03)
    assert summary["model"]["calibration"] == content["map"]["kind"]
    assert not any("calibrated on" in note for note in summary["notes"])
    assert any(f"calibrated on frames of {bag}" in n for n in summary_of(bag, "seen")["notes"])


DOUBTFUL = [
    (
        np.ones_like,
        ["--confidence-type", "uncertainty_rank"],
        "is 1 in nearly every pixel: it ranks nothing",
    ),
    (
        np.reciprocal,
        ["--confidence-type", "uncertainty_rank"],
        "ranks the errors better the other way",
    ),
    (lambda sigma: np.rint(1 + 99 * sigma / sigma.max()), [], "is read as sigma in metres"),
]


@pytest.mark.parametrize(("confidence_of", "confidence_type", "doubt"), DOUBTFUL)
def test_a_doubtful_confidence_is_told_before_its_map_is_written(
    write_camera, caplog, confidence_of, confidence_type, doubt
):
    bag = write_camera(TOPICS, confidence=lambda s: confidence_of(s.sigma), frames=8)
    main(["calibrate", str(bag), *NAMES, *confidence_type, "--dry-run"])
    assert doubt in caplog.text
