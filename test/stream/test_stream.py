# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A job opened: the same checks, notes and frames, whatever is done with them."""

import cv2
import numpy as np
import pytest

from synthetic.config import SynthesisConfig
from synthetic.source import SyntheticSource
from test.conftest import save_maps, summary_of
from uncertainty_depth.cli.main import main
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.source import PredictionConfig
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.report.evaluation import evaluate
from uncertainty_depth.stream.job import Job
from uncertainty_depth.stream.scoring import score
from uncertainty_depth.stream.stream import Stream, predicted

FRAMES = 24
WORLDS = 3


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory):
    """Recorded depth that fits its ground truth, beside images mirrored left to right."""
    folder = tmp_path_factory.mktemp("mirrored")
    config = SynthesisConfig(worlds=WORLDS, frames=1, seed=7, width=320, height=240, rings=64)
    worlds = list(SyntheticSource(config))
    random = np.random.default_rng(0)
    (folder / "image").mkdir()
    for index in range(FRAMES):
        world = worlds[index % WORLDS]
        truth = world.ground_truth_m
        depth = truth * random.lognormal(0, 0.05, truth.shape)
        save_maps(folder, f"{index:02}", depth=depth.astype(np.float32), ground_truth=truth)
        cv2.imwrite(str(folder / "image" / f"{index:02}.png"), world.image[:, ::-1, ::-1])
    return f"predictions:{folder}"


@pytest.mark.parametrize("command", ["evaluate", "calibrate", "calibrate --learn"])
def test_every_command_says_that_the_geometry_of_recorded_depth_is_wrong(
    mirrored, command, tmp_path, caplog
):
    output = tmp_path / ("report" if command == "evaluate" else "map.json")
    assert main([*command.split(), mirrored, "--output", str(output)]) == 0
    assert "the image mirrored left to right fits clearly better" in caplog.text


def test_a_job_bounds_the_frames_of_each_source_and_joins_them_in_order(mirrored):
    meaning = PredictionConfig(confidence_type="none")
    stream = Stream.open(Job(sources=(mirrored, mirrored), meaning=meaning, max_frames=3))
    names = ["00", "08", "16"]
    for part in stream.parts:
        assert [frame.name for frame in part] == names
    assert [frame.name for frame in stream] == [*names, *names]
    assert all(frame.prediction is not None for frame in stream)
    assert sum(f"3 of {FRAMES} frames are used" in note for note in stream.notes) == 2


def test_a_predictor_is_given_in_python_what_the_command_gives_it():
    source = "synthetic:worlds=1,frames=2,seed=7,width=160,height=120,rings=16"
    options = PredictorConfig(method="deterministic", measurements="random:50")
    by_command, _ = score(Job(sources=(source,), model="demo", predictor=options))
    frames = predicted(source, Predictor("demo", options))
    in_python = evaluate(frames, progress=False)
    assert repr(in_python.summary()) == repr(by_command.summary())
    assert any("was given 50 pixels" in note for note in frames.notes)


TRUTH_M = np.repeat(np.float32([0.5, 4, 20]), 20).reshape(6, 10)
ERROR_M = np.repeat(np.float32([1, 0.1, 3]), 20).reshape(6, 10)


@pytest.mark.parametrize(
    ("limits", "scored"),
    [
        ([], slice(0, 6)),
        (["--max-depth", "10"], slice(0, 4)),
        (["--min-depth", "1"], slice(2, 6)),
        (["--min-depth", "1", "--max-depth", "10"], slice(2, 4)),
    ],
)
def test_pixels_outside_the_limits_of_a_command_are_in_no_score(limits, scored, tmp_path):
    save_maps(tmp_path, "0", depth=TRUTH_M + ERROR_M, ground_truth=TRUTH_M)
    output = tmp_path / "out"
    assert main(["evaluate", f"predictions:{tmp_path}", *limits, "-o", str(output)]) == 0
    summary = summary_of(output)
    assert summary["depth"]["mae"] == pytest.approx(ERROR_M[scored].mean(), rel=1e-5)


def test_calibrate_warns_of_a_wrong_geometry_of_a_bag(tmp_path, caplog):
    bag = tmp_path / "bag"
    assert main(["convert", "synthetic:worlds=1,frames=12,width=160,height=120", str(bag)]) == 0
    options = "--dry-run --samples 2 --lidar-to-camera 0 0 25 0.5 -0.5 0.5 0.5"
    main(["calibrate", "demo", str(bag), *options.split()])
    assert "lidar_to_camera puts the LiDAR 25 m from the camera" in caplog.text
