# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Any depth's sigma in metres: fitted or learned on LiDAR, saved, and served by evaluate."""

import json

import numpy as np
import pytest

from test.conftest import evaluated, save_maps
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
        return evaluated(tmp_path / name, source, *names, "--sigma-map", path)

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


SHAPE = (60, 80)
LEARN = ["calibrate", "--learn"]


def recorded(folder, frames, is_readable=True):
    """A camera's depth that errs at the edges of things, and has holes there.

    If it is not readable, all the error is the ground truth's noise, of which depth tells nothing.
    """
    random = np.random.default_rng(frames)
    for index in range(frames):
        columns = np.arange(SHAPE[1])
        edges = np.sort(random.integers(0, SHAPE[1], 3))
        truth = np.broadcast_to(random.uniform(2, 6, 4)[np.searchsorted(edges, columns)], SHAPE)
        distance = np.abs(columns[:, None] - edges).min(axis=1)
        near = distance < 5
        depth = truth * np.exp(random.laplace(0, np.where(near, 0.15, 0.01), SHAPE))
        if not is_readable:
            depth = truth.copy()
            truth = truth * np.exp(random.laplace(0, 0.05, SHAPE))
        depth[random.random(SHAPE) < np.where(near, 0.3, 0)] = np.nan
        maps = {"depth": depth, "ground_truth": truth}
        maps = {name: values.astype(np.float32) for name, values in maps.items()}
        save_maps(folder, f"{index:03}", **maps)
    return f"predictions:{folder}"


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("learned")
    assert main([*LEARN, recorded(folder / "a", 30), "--output", str(folder / "s.json")]) == 0
    return folder / "s.json"


def test_a_learned_sigma_ranks_errors_that_no_power_of_the_depth_knows(learned, tmp_path):
    source = recorded(tmp_path / "other", 12)
    summary = evaluated(tmp_path / "report", source, "--sigma-map", learned)
    ause = summary["uncertainty"]["ause"]["abs_rel"]
    for baseline in ("constant", "proportional_to_depth"):
        assert ause < 0.6 * summary["baselines"][baseline]["ause"]["abs_rel"]
    distribution = summary["model"]["head"]
    coverage = summary["uncertainty"][
        "coverage_95_laplace" if distribution == "laplace" else "coverage_95"
    ]
    assert coverage == pytest.approx(0.95, abs=0.04)


def test_live_sigma_equals_the_one_that_is_scored(learned):
    interpreter = Interpreter(PredictionConfig(sigma_map=str(learned)))
    depth = np.full(SHAPE, 3, np.float32)
    depth[:, 40:] = 5
    depth[10, 10] = np.nan
    made = interpreter.metric(depth, np.ones_like(depth))
    assert made.sigma_m.dtype == np.float32
    assert np.array_equal(np.isnan(made.sigma_m), np.isnan(depth))
    assert made.sigma_m[30, 39] > 3 * made.sigma_m[30, 20], "an edge is less certain"
    empty = interpreter.metric(np.full(SHAPE, np.nan, np.float32), np.ones_like(depth))
    assert np.isnan(empty.sigma_m).all()


def test_a_head_that_is_no_better_than_a_power_of_the_depth_is_left_out(tmp_path, capfd):
    output = tmp_path / "sigma.json"
    source = recorded(tmp_path / "noise", 30, is_readable=False)
    assert main([*LEARN, source, "--output", str(output)]) == 0
    assert "ignores the confidence" in capfd.readouterr().err
    assert read_map(output).head is None


def test_a_dry_run_tells_what_the_head_is_worth_and_writes_nothing(tmp_path, capfd):
    source = recorded(tmp_path / "a", 30)
    assert main([*LEARN, source, "--dry-run"]) == 0
    assert "frames not used" in capfd.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_head_does_not_read_the_confidence_that_lies_beside_the_depth(learned, tmp_path):
    source = recorded(tmp_path / "a", 30)
    for path in (tmp_path / "a" / "depth").iterdir():
        save_maps(tmp_path / "a", path.stem, confidence=np.ones(SHAPE, np.float32))
    assert main([*LEARN, source, "--output", str(tmp_path / "s.json")]) == 0
    assert read_map(tmp_path / "s.json").confidence_type == "none"
    content, expected = (json.loads(path.read_text()) for path in (tmp_path / "s.json", learned))
    assert content["head"] == expected["head"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["demo", "bag"], "demo is a model"),
        (["bag", "--depth-topic", "/d", "--confidence-topic", "/c"], "'/c' is a confidence"),
        (["predictions:a", "--confidence-type", "sigma"], "'sigma' is a confidence"),
    ],
)
def test_only_a_depth_alone_can_be_learned_from(arguments, words, tmp_path, capfd):
    output = tmp_path / "s.json"
    assert main([*LEARN, *arguments, "--output", str(output)]) == 1
    assert f"{words}; expected" in capfd.readouterr().err
    assert not output.exists()


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("mean", [0.0], "head has mean of the shapes"),
        ("weights", [[[1.0]]], "head has weights of the shapes"),
        ("deviation", [0.0] * 13, "head has a deviation of 0 or less"),
        ("biases", "x", "is not a valid map"),
    ],
)
def test_a_damaged_head_is_one_sentence(key, value, words, learned, tmp_path):
    content = json.loads(learned.read_text())
    content["head"][key] = value
    path = tmp_path / "damaged.json"
    path.write_text(json.dumps(content))
    with pytest.raises(ConfigError, match=words):
        read_map(path)
