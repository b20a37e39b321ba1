# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A model folder with its calibration: written by the command, kept, used, and refused.

Data unlike those that it was fitted to are named, once and with what differs.
"""

import json
import logging
import shutil

import cv2
import numpy as np
import pytest

from synthetic.config import SynthesisConfig
from synthetic.source import synthesize
from test.conftest import evaluated
from uncertainty_depth.cli.main import main
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.errors import ModelError
from uncertainty_depth.core.geometry.camera import Camera
from uncertainty_depth.depth.model_folder.folder import read_model
from uncertainty_depth.depth.model_folder.writing import export_half, set_calibration, set_members
from uncertainty_depth.depth.predictor import Predictor
from uncertainty_depth.depth.predictor_settings import SigmaCalibration, calibration_of
from uncertainty_depth.sigma.calibration import IDENTITY, SigmaMap
from uncertainty_depth.sigma.calibration.fitted_data import WARNING_FRAMES, DataMonitor, FittedData
from uncertainty_depth.sigma.calibration.half_widths import BY_DISTRIBUTION, FrameGuarantee
from uncertainty_depth.sigma.calibration.sample import Sample, fitted_data

MAP = SigmaMap("isotonic 50%", (0.0, 0.01, 0.5, 1.0), (0.05, 0.2, 0.4, 0.8))
SMALL = SynthesisConfig(worlds=1, frames=10, width=96, height=72, rings=24)


def maps(model):
    """All calibrations' maps in a folder, by key."""
    return {
        method: calibration(model, method).sigma_map for method in read_model(model).calibration
    }


def calibration(model, method="mc_dropout"):
    none = SigmaCalibration(IDENTITY, BY_DISTRIBUTION["gaussian"], DataMonitor("", None), None)
    return calibration_of(read_model(model), method, none)


def picture(seed=0):
    """Return an image as large as the network's input."""
    return np.random.default_rng(seed).integers(0, 256, (64, 64, 3), dtype=np.uint8)


def test_the_folder_gives_the_map_back_and_keeps_the_rest(model):
    before = json.loads((model / "model.json").read_text())
    assert maps(model) == {}
    set_calibration(model, "mc_dropout", MAP, {"sources": ["bag"]})
    set_calibration(model, "multi_epochs", IDENTITY, {})
    assert maps(model) == {"mc_dropout": MAP, "multi_epochs": IDENTITY}
    after = json.loads((model / "model.json").read_text())
    assert after.pop("calibration")["mc_dropout"]["sources"] == ["bag"]
    assert after == before
    assert not [path for path in model.iterdir() if path.name.startswith(".")]


def test_a_calibrated_model_predicts_the_map_of_its_raw_sigma_and_tells_its_guarantee(model):
    uncalibrated = Predictor(model, PredictorConfig(samples=3, device="cpu"))
    assert "frame_guarantee" not in uncalibrated.describe()
    raw = uncalibrated.predict(picture(), 7)
    given = FrameGuarantee(1.8, 30, 12)
    set_calibration(model, "mc_dropout", MAP, {"frame_guarantee": given.to_mapping()})
    predictor = Predictor(model, PredictorConfig(samples=3, device="cpu"))
    assert predictor.describe()["frame_guarantee"] == given.sentence()
    made = predictor.predict(picture(), 7)
    np.testing.assert_array_equal(made.depth_m, raw.depth_m)
    np.testing.assert_array_equal(made.sigma_m, MAP(raw.sigma_m))
    assert (made.sigma_m != raw.sigma_m).all()
    assert predictor.describe()["calibration"] == "isotonic 50%"
    predictor.config = PredictorConfig(samples=3, device="cpu", calibrated=False)
    np.testing.assert_array_equal(predictor.predict(picture(), 7).sigma_m, raw.sigma_m)
    assert predictor.describe()["calibration"] == "off"


def test_sigma_is_calibrated_at_the_network_s_size_and_then_resized(model):
    config = PredictorConfig(samples=3, device="cpu")
    image = picture()
    raw_m = Predictor(model, config).predict(image, 7).sigma_m
    bends = np.quantile(raw_m, (0.3, 0.6))
    curved = SigmaMap("isotonic 50%", (0.0, *bends, 9.0), (0.1, 0.2, 0.9, 10.0))
    set_calibration(model, "mc_dropout", curved, {})
    twice = image.repeat(2, 0).repeat(2, 1)
    calibrated_m = Predictor(model, config).predict(twice, 7).sigma_m
    expected_m = cv2.resize(curved(raw_m), twice.shape[1::-1])
    np.testing.assert_allclose(calibrated_m, expected_m, rtol=1e-5)


def test_other_members_drop_the_calibration_and_a_copy_in_half_keeps_it(model, tmp_path):
    set_calibration(model, "mc_dropout", MAP, {})
    export_half(model, tmp_path / "half")
    assert maps(tmp_path / "half") == {"mc_dropout": MAP}
    set_members(model, ["m0", "m1"], "multi_epochs")
    assert maps(model) == {"mc_dropout": MAP}, "the same members"
    set_members(model, ["m1"], "mc_dropout")
    assert maps(model) == {}


GOOD = {"kind": "scale", "raw_m": [0, 1], "calibrated_m": [0, 1]}
FITTED = FittedData(("rooms",), 9, 9000, (0.1, 0.2), (1e-9, 1e-9), None)


def fitted_with(**change):
    return {"mc_dropout": {**GOOD, "fitted_to": {**FITTED.to_mapping(), **change}}}


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ([], ""),
        ({"mc_dropout": 3}, ""),
        ({"mc_dropout": {**GOOD, "calibrated_m": [1, 0]}}, "calibrated_m"),
        ({"mc_dropout": {**GOOD, "half_widths": [3.0, 1.0]}}, "half_widths"),
        (fitted_with(depth_range_m=[1.0]), "1 depths"),
        (fitted_with(sigma_range_m="none"), "sigma_range_m"),
        (fitted_with(frames=None), "frames"),
    ],
)
def test_a_damaged_calibration_is_named_in_one_sentence(model, damage, words):
    content = json.loads((model / "model.json").read_text())
    (model / "model.json").write_text(json.dumps({**content, "calibration": damage}))
    with pytest.raises(ModelError, match=rf"model\.json cannot be used: .*{words}") as caught:
        calibration(model)
    assert "\n" not in str(caught.value)


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    path = tmp_path_factory.mktemp("bags") / "world"
    synthesize(path, SMALL, progress=False)
    return path


def command(*arguments):
    return main(["calibrate", *map(str, arguments), "--samples", "3", "--device", "cpu"])


@pytest.fixture(scope="module")
def calibrated(model_template, bag, tmp_path_factory):
    """A model that the command has calibrated, not to be changed."""
    folder = shutil.copytree(model_template, tmp_path_factory.mktemp("models") / "model")
    assert command(folder, bag) == 0
    return folder


def record_in(folder):
    (record,) = json.loads((folder / "model.json").read_text())["calibration"].values()
    return record


def test_a_model_is_calibrated_on_a_bag_from_the_command_line(calibrated, bag):
    record = record_in(calibrated)
    assert record["distribution"] == "gaussian", "the head's"
    assert record["not_used"]["after"]["auce"] < record["not_used"]["before"]["auce"]
    (method,) = maps(calibrated)
    fitted = calibration(calibrated, method).monitor.fitted_to
    assert fitted.sources == (str(bag),)
    assert fitted.frames == 7, "the first of ten, without the third reported on"
    assert 0.1 <= fitted.depth_range_m[0] < fitted.depth_range_m[1] <= 80
    assert fitted.camera["aspect"] == [round(96 / 72, 6)] * 2


def test_a_dry_run_reports_and_writes_no_map(model, bag, capsys):
    before = (model / "model.json").read_bytes()
    assert command(model, bag, "--dry-run", "--distribution", "laplace") == 0
    printed = capsys.readouterr().out
    assert "before" in printed
    assert "standard deviation of a laplace error" in printed
    assert (model / "model.json").read_bytes() == before


def test_calibrating_on_frames_that_the_model_was_trained_on_is_said(model, bag, caplog):
    set_members(model, ["m0", "m1"], "mc_dropout", {"source": str(bag)})
    assert command(model, bag) == 0
    assert any(
        message.endswith(
            f"was trained on frames of {bag}: its errors are smaller there than on new frames"
        )
        for message in caplog.messages
    )


def test_calibrating_again_starts_from_raw_sigma(calibrated, bag, tmp_path):
    model = shutil.copytree(calibrated, tmp_path / "model")
    assert command(model, bag) == 0
    assert maps(model) == maps(calibrated)


def test_refusals_are_one_sentence_and_leave_the_model_alone(model, bag, capsys):
    before = (model / "model.json").read_bytes()
    assert command(model, bag, bag, "--max-frames", "3") == 1
    assert "expected at least 8 frames" in capsys.readouterr().err
    assert command(model, bag, "--method", "deterministic") == 1
    assert "sigma is 0" in capsys.readouterr().err
    assert command(model, bag / "missing") == 1
    assert command(model, bag, "--output", "my_calibration") == 1
    assert "the calibration goes into the model folder" in capsys.readouterr().err
    assert (model / "model.json").read_bytes() == before


def test_a_map_of_other_data_is_said_by_the_report_and_the_log(model, bag, tmp_path, caplog):
    """A map fitted to narrow rooms: the bag's depths and raw sigmas are outside of its data."""
    set_calibration(model, "mc_dropout", MAP, {"fitted_to": FITTED.to_mapping()})
    arguments = [bag, "--model", model, "--samples", 2, "--device", "cpu"]
    summary = evaluated(tmp_path / "report", *arguments)
    for notes, topic in (
        (summary["notes"], "of the raw sigmas are outside"),
        (summary["verdict"]["notes"], "of the ground truth lies outside 0.1 to 0.2 m"),
    ):
        (unlike,) = (note for note in notes if "(isotonic 50%) was fitted to, rooms" in note)
        assert topic in unlike
    topic = "of the raw sigmas are outside"
    assert any(topic in message for message in caplog.messages)
    raw = evaluated(tmp_path / "raw", *arguments, "--no-calibrated")
    assert raw["notes"] == []
    assert not [note for note in raw["verdict"]["notes"] if "was fitted to" in note]


def sample(cameras=()):
    """Depths from 2 to 6 m, raw sigmas from 0.1 to 0.5 m."""
    random = np.random.default_rng(0)
    frames = [
        np.stack([random.uniform(low, high, 500) for low, high in ((2, 6), (0.1, 0.5), (2, 6))])
        for _ in range(8)
    ]
    return Sample("rooms", tuple(frames), cameras)


@pytest.fixture
def fitted():
    return fitted_data([sample((Camera.pinhole(60.0, width=80, height=60),) * 8)])


def sigma_map(low, high):
    return np.random.default_rng(1).uniform(low, high, (60, 80)).astype(np.float32)


def test_what_a_map_was_fitted_to_is_described(fitted):
    assert fitted.sources == ("rooms",)
    assert (fitted.frames, fitted.pixels) == (8, 4000)
    assert fitted.depth_range_m == pytest.approx((2.04, 5.96), abs=0.03)
    assert fitted.sigma_range_m == pytest.approx((0.104, 0.496), abs=0.003)
    assert fitted.camera == {
        "focal_length_per_width": [0.75, 0.75],
        "aspect": [1.333333, 1.333333],
    }
    assert fitted_data([sample()]).camera is None


def test_raw_sigmas_outside_are_said_once_and_noted(fitted, caplog):
    """A map fitted to rooms and used on streets: 9 of 10 raw sigmas are larger than any seen."""
    monitor = DataMonitor("affine 50%", fitted)
    with caplog.at_level(logging.WARNING):
        for _ in range(WARNING_FRAMES - 1):
            monitor.add_sigma(sigma_map(0.4, 1.4))
        assert not caplog.messages
        for _ in range(20):
            monitor.add_sigma(sigma_map(0.4, 1.4))
    (warning,) = caplog.messages
    (note,) = monitor.notes()
    assert note == warning
    assert "90% of the raw sigmas are outside 0.105 to 0.496 m" in note
    assert "(affine 50%) was fitted to, rooms" in note
    assert "with --no-calibrated, and the depth node corrects sigma by a LiDAR" in note
