# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A sigma for a depth without any confidence, by `calibrate --learn`: written, scored, served."""

import json

import numpy as np
import pytest

from test.conftest import save_maps, summary_of
from uncertainty_depth.cli.main import main
from uncertainty_depth.core.config.source import PredictionConfig
from uncertainty_depth.core.errors import ConfigError
from uncertainty_depth.sigma.recorded.interpreter import Interpreter, read_map

SHAPE = (60, 80)
LEARN = ["calibrate", "--learn"]


def recorded(folder, frames, is_readable=True):
    """Depth of a camera that errs at the edges of things, and leaves holes there.

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
    arguments = ["--sigma-map", str(learned), "--output", str(tmp_path / "report")]
    assert main(["evaluate", source, *arguments]) == 0
    summary = summary_of(tmp_path / "report")
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
