# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The option `measurements`: what a predictor and an evaluation do with what is measured."""

import json
import shutil
from dataclasses import replace

import cv2
import numpy as np
import pytest

from test.conftest import evaluated
from uncertainty_depth.cli.main import main
from uncertainty_depth.core.errors import ConfigError, MessageError, ModelError
from uncertainty_depth.core.measurements import Measurements
from uncertainty_depth.core.model_location import MODELS
from uncertainty_depth.core.records import Frame
from uncertainty_depth.depth.model_folder.writing import set_members
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.sigma.error_prior import ErrorPrior
from uncertainty_depth.sigma.interpolation import MIN_PIXELS, spread
from uncertainty_depth.sigma.posterior import posterior

F, WIDTH, HEIGHT, WALL_M = 160.0, 160, 120, 2.0


def image(seed=0):
    return np.random.default_rng(seed).integers(0, 255, (HEIGHT, WIDTH, 3), np.uint8)


def sparse(depth_m, count=MIN_PIXELS - 1):
    known = np.full((HEIGHT, WIDTH), np.nan, np.float32)
    at = np.random.default_rng(1).choice(known.size, count, replace=False)
    known.flat[at] = depth_m
    return known


def test_known_depth_corrects_the_depth_between_it():
    predictor = Predictor("demo", samples=1, measurements="lidar")
    alone = Predictor("demo", samples=1).predict(image())
    corrected = predictor.predict(image(), sparse_m=sparse(7.0, 100))
    assert np.abs(corrected.depth_m - 7).mean() < 0.3 * np.abs(alone.depth_m - 7).mean()
    assert corrected.scale_log_sigma < 0.2
    without = predictor.predict(image())
    np.testing.assert_array_equal(without.depth_m, alone.depth_m)
    np.testing.assert_array_equal(without.sigma_m, alone.sigma_m)
    assert without.scale_log_sigma is None
    assert predictor.describe()["measurements"] == "lidar"
    assert predictor.sigma_name != Predictor("demo", samples=1).sigma_name


def test_measurements_of_a_frame_correct_it():
    predictor = Predictor("demo", samples=1, measurements="motion")
    measured = Measurements.from_map(sparse(7.0))
    corrected = predictor.predict_frame(Frame(0, "", None, image(), measurements=measured))
    known = Predictor("demo", samples=1, measurements="lidar").predict(
        image(), sparse_m=sparse(7.0)
    )
    np.testing.assert_array_equal(corrected.depth_m, known.depth_m)
    np.testing.assert_array_equal(corrected.sigma_m, known.sigma_m)


@pytest.mark.parametrize("count", [MIN_PIXELS, 400])
def test_depth_that_is_known_everywhere_is_interpolated(count):
    predictor = Predictor("demo", samples=1, measurements="lidar")
    known = sparse(7.0, count)
    result = predictor.predict(image(), sparse_m=known)
    by_process = posterior(
        Predictor("demo", samples=1).predict(image()),
        Measurements.from_map(known),
        image(),
        predictor.model.error_prior,
    )
    left_out = replace(by_process.used, depth_m=by_process.left_out_m)
    expected = spread(by_process.prediction, known, left_out.map(known.shape))
    np.testing.assert_array_equal(result.depth_m, expected.depth_m)
    np.testing.assert_array_equal(result.sigma_m, expected.sigma_m)


PRIOR = {
    "common": 0.1,
    "wide": 2.0,
    "wide_length": 0.4,
    "wide_depth_length": 0.8,
    "local": 0.3,
    "local_length": 0.1,
    "local_depth_length": 0.2,
    "colour_length": 30.0,
    "freedom": 5.0,
}


def model_with(folder, prior):
    shutil.copytree(MODELS / "demo", folder)
    content = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps({**content, "error_prior": prior}))
    return folder


def test_a_model_is_corrected_by_the_prior_that_it_was_stored_with(tmp_path):
    folder = model_with(tmp_path / "model", PRIOR)
    result = Predictor(folder, samples=1, measurements="lidar").predict(
        image(), sparse_m=sparse(7.0)
    )
    alone = Predictor(folder, samples=1).predict(image())
    measured = Measurements.from_map(sparse(7.0))
    expected = posterior(alone, measured, image(), ErrorPrior(**PRIOR)).prediction
    np.testing.assert_array_equal(result.depth_m, expected.depth_m)
    np.testing.assert_array_equal(result.sigma_m, expected.sigma_m)
    foreign = posterior(alone, measured, image()).prediction
    assert np.abs(foreign.sigma_m / result.sigma_m - 1).max() > 0.01


@pytest.mark.parametrize(
    "prior",
    [
        {**PRIOR, "common": 0.0},
        {**PRIOR, "common": "wide"},
        {**PRIOR, "colour": 1.0},
        {name: PRIOR[name] for name in list(PRIOR)[1:]},
        [],
    ],
)
def test_a_prior_that_is_none_is_refused(prior, tmp_path):
    with pytest.raises(ModelError, match=r"model.json .*(error prior|common)"):
        Predictor(model_with(tmp_path / "model", prior))


def test_a_model_that_is_trained_further_loses_its_prior(tmp_path):
    folder = model_with(tmp_path / "model", PRIOR)
    training = {**json.loads((folder / "model.json").read_text())["training"], "seed": 7}
    set_members(folder, ["best"], "mc_dropout", training)
    assert "error_prior" not in json.loads((folder / "model.json").read_text())


def test_known_depth_that_would_correct_nothing_is_refused():
    with pytest.raises(MessageError, match=r"demo takes the image alone, .* measurements"):
        Predictor("demo", samples=1).predict(image(), sparse_m=sparse(7.0))


def test_known_depth_in_another_unit_is_refused():
    predictor = Predictor("demo", samples=1, measurements="lidar")
    with pytest.raises(MessageError, match="expected metres"):
        predictor.predict(image(), sparse_m=sparse(7000.0))


@pytest.mark.parametrize(
    "text", ["radar", "lidar,random:5", "motion,motion", "random:0", "random:", "lidar,lidar"]
)
def test_unknown_measurements_are_refused(text):
    with pytest.raises(ConfigError, match="measurements is '"):
        Predictor("demo", measurements=text)


@pytest.fixture(scope="module")
def drive(tmp_path_factory):
    """An RGB-D folder of a textured wall, 2 m away, past which the camera moves sideways."""
    folder = tmp_path_factory.mktemp("drive")
    noise = np.random.default_rng(0).integers(0, 255, (HEIGHT, 400, 3), np.uint8)
    wall = cv2.normalize(cv2.GaussianBlur(noise, (0, 0), 2), None, 0, 255, cv2.NORM_MINMAX)
    poses = []
    for name in ("rgb", "depth"):
        (folder / name).mkdir()
    for index in range(12):
        left = 4 * index  # pixels: 5 cm at 2 m
        cv2.imwrite(str(folder / "rgb" / f"{index:03d}.png"), wall[:, left : left + WIDTH])
        depth = np.full((HEIGHT, WIDTH), round(1000 * WALL_M), np.uint16)
        cv2.imwrite(str(folder / "depth" / f"{index:03d}.png"), depth)
        pose = np.eye(4)
        pose[0, 3] = left * WALL_M / F
        poses.append(" ".join([str(index), *(f"{value:.6f}" for value in pose.ravel())]))
    (folder / "poses.txt").write_text("\n".join(poses) + "\n")
    np.savetxt(folder / "K.txt", [[F, 0, 79.5], [0, F, 59.5], [0, 0, 1]])
    return folder


def summary_of(source, folder, *options):
    return evaluated(folder, f"rgbd:{source}", "--model", "demo", "--samples", 1, *options)


def test_motion_makes_the_depth_of_a_drive_better(drive, tmp_path, plots_without_pixels):
    alone = summary_of(drive, tmp_path / "alone")
    moved = summary_of(drive, tmp_path / "moved", "--measurements", "motion")
    assert moved["depth"]["abs_rel"] < 0.4 * alone["depth"]["abs_rel"]
    assert moved["model"]["measurements"] == "motion"
    (note,) = (note for note in moved["notes"] if note.startswith("motion measured"))
    assert "none in 1 of 12 images: in 1 too few corners had parallax" in note
    assert moved["pixels"] < alone["pixels"], "a measured pixel is not scored"


def test_without_poses_the_depth_is_the_networks_own(drive, tmp_path, plots_without_pixels):
    still = tmp_path / "still"
    still.mkdir()
    for name in ("rgb", "depth", "K.txt"):
        (still / name).symlink_to(drive / name)
    alone = summary_of(still, tmp_path / "alone")
    moved = summary_of(still, tmp_path / "moved", "--measurements", "motion")
    assert moved["depth"] == alone["depth"]
    assert moved["uncertainty"] == alone["uncertainty"]
    assert any("12 have no pose or no rectified camera" in note for note in moved["notes"])


def test_random_pixels_and_their_neighbours_are_not_scored(drive, tmp_path, plots_without_pixels):
    alone = summary_of(drive, tmp_path / "alone")
    some = summary_of(drive, tmp_path / "some", "--measurements", "random:20")
    assert some["depth"]["abs_rel"] < 0.3 * alone["depth"]["abs_rel"]
    left_out = (alone["pixels"] - some["pixels"]) / 12
    assert 20 * 6 < left_out <= 20 * 9


@pytest.fixture
def recorded(tmp_path):
    """Maps of somebody's network: depth 30 % too large, more so on the right, and sigma."""
    truth_m = np.tile(np.linspace(1, 4, 64, dtype=np.float32), (48, 1))
    depth_m = truth_m * np.linspace(1.2, 1.4, 64, dtype=np.float32)
    for name, values in (
        ("depth", depth_m),
        ("confidence", 0.3 * depth_m),
        ("ground_truth", truth_m),
    ):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "0.npy", values)
    return tmp_path


def recorded_summary(recorded, name, *options):
    kind = ["--confidence-type", "sigma"]
    return evaluated(recorded / name, f"predictions:{recorded}", *kind, *options)


def test_recorded_depth_and_sigma_are_corrected_alike(recorded, plots_without_pixels):
    alone = recorded_summary(recorded, "alone")
    measured = recorded_summary(recorded, "measured", "--measurements", "random:20")
    assert measured["depth"]["abs_rel"] < 0.2 * alone["depth"]["abs_rel"]
    assert measured["model"]["measurements"] == "random:20"
    assert alone["pixels"] - 20 * 9 <= measured["pixels"] < alone["pixels"]


def test_an_image_of_another_camera_does_not_steer_the_correction(recorded, plots_without_pixels):
    """It is shown in the report; nothing says where its pixels look."""
    without = recorded_summary(recorded, "without", "--measurements", "random:20")
    (recorded / "image").mkdir()
    cv2.imwrite(str(recorded / "image" / "0.png"), image()[:30, :64])
    beside = recorded_summary(recorded, "beside", "--measurements", "random:20")
    assert beside["depth"] == without["depth"]


@pytest.mark.parametrize(
    ("source", "options", "sentence"),
    [
        ("predictions", "--measurements motion", "expected --model, or lidar, points or depth"),
        (
            "predictions",
            "--confidence-type uncertainty_rank --measurements lidar",
            "expected --sigma-map",
        ),
        ("predictions", "--align median --measurements lidar", "expected one of them"),
        ("predictions", "--odometry-frame odom", "expected --measurements motion"),
        ("rgbd", "--odometry-frame odom", "expected --measurements motion"),
        (
            "rgbd",
            "--measurements random:9 --use-depth-scale",
            "which correct the scale too; expected one of them",
        ),
        (
            "rgbd",
            "--measurements points --measured-points-topic /slam/points",
            "has no topics; expected a bag",
        ),
    ],
)
def test_what_cannot_be_measured_is_one_sentence(
    source, options, sentence, recorded, drive, tmp_path, capsys
):
    notation = f"rgbd:{drive} --model demo" if source == "rgbd" else f"predictions:{recorded}"
    command = f"evaluate {notation} -o {tmp_path / 'out'} {options}"
    assert main(command.split()) == 1
    assert sentence in capsys.readouterr().err


def test_motion_is_tracked_through_the_frames_that_are_not_scored(
    drive, tmp_path, plots_without_pixels
):
    options = "--measurements", "motion", "--max-frames", "3"
    some = summary_of(drive, tmp_path / "some", *options)
    assert some["frames"]["evaluated"] == 3
    (note,) = (note for note in some["notes"] if note.startswith("motion measured"))
    assert "none in 1 of 12 images" in note
