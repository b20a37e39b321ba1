# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A mask takes part of the image out of every score, and changes no prediction."""

import json

import cv2
import numpy as np
import pytest
from matplotlib.figure import Figure

from test.conftest import save_maps
from test.frames.conftest import PERIOD_NS, START_NS
from uncertainty_depth.cli.main import main
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.scoring import MaskConfig
from uncertainty_depth.core.config.source import PredictionConfig
from uncertainty_depth.core.geometry.camera import Camera, Distortion
from uncertainty_depth.frames.messages.bag_writer import BagWriter
from uncertainty_depth.report import plots
from uncertainty_depth.stream.job import Job
from uncertainty_depth.stream.stream import Stream

SHAPE = (24, 32)
ARM = np.s_[16:, 8:20]
"""Rows and columns of a robot's arm."""
FRAMES = 12


def painted(path, arm=ARM, shape=SHAPE, left_out=0):
    mask = np.full(shape, 255, np.uint8)
    mask[arm] = left_out
    cv2.imwrite(str(path), mask)
    return path


@pytest.fixture(scope="module")
def maps(tmp_path_factory):
    """Recorded depth that is 10 % off, and 3 times too far on the arm."""
    folder = tmp_path_factory.mktemp("arm")
    for index in range(FRAMES):
        random = np.random.default_rng(index)
        truth = random.uniform(1, 8, SHAPE).astype(np.float32)
        depth = (truth * (1 + 0.1 * random.standard_normal(SHAPE))).astype(np.float32)
        depth[ARM] = 3 * truth[ARM]
        sigma = 0.1 * truth * random.uniform(0.5, 1.5, SHAPE).astype(np.float32)
        save_maps(folder, f"{index:02}", depth=depth, confidence=sigma, ground_truth=truth)
    return folder


@pytest.fixture(scope="module")
def without_arm(maps, tmp_path_factory):
    """The same maps, whose ground truth does not know the arm."""
    folder = tmp_path_factory.mktemp("without")
    for path in sorted((maps / "depth").iterdir()):
        named = {kind: np.load(maps / kind / path.name) for kind in ("depth", "confidence")}
        truth = np.load(maps / "ground_truth" / path.name)
        truth[ARM] = np.nan
        save_maps(folder, path.stem, **named, ground_truth=truth)
    return folder


def summary_of(folder, output, *options):
    command = ["evaluate", f"predictions:{folder}", *map(str, options), "-o", str(output)]
    assert main(command) == 0
    return json.loads((output / "summary.json").read_text())


@pytest.mark.parametrize("size", [SHAPE, (48, 64)])
def test_masked_pixels_are_in_no_score_and_are_counted(size, maps, without_arm, tmp_path):
    scale = size[0] // SHAPE[0]
    arm = np.s_[16 * scale :, 8 * scale : 20 * scale]
    mask = painted(tmp_path / "mask.png", arm, size)
    summary = summary_of(maps, tmp_path / "out", "--mask", mask)
    expected = summary_of(without_arm, tmp_path / "expected")
    for part in ("pixels", "depth", "uncertainty", "by_distance", "intervals", "verdict"):
        assert json.dumps(summary[part]) == json.dumps(expected[part])
    share = 8 * 12 / (24 * 32)
    assert summary["left_out_fraction"] == pytest.approx(share)
    assert summary["config"]["mask"] == str(mask)
    assert any(f"{share:.1%} of the ground truth" in note for note in summary["notes"])
    page = (tmp_path / "out" / "report.html").read_text()
    assert "beside the 12.5 % that a mask leaves out" in page


def test_reports_with_a_mask_are_merged_with_its_share(maps, tmp_path):
    mask = painted(tmp_path / "mask.png")
    summary_of(maps, tmp_path / "one", "--mask", mask)
    half = tmp_path / "maps"
    for name in ("00", "01"):
        kinds = ("depth", "confidence", "ground_truth")
        files = {kind: np.load(maps / kind / f"{name}.npy") * 1.01 for kind in kinds}
        save_maps(half, name, **files)
    summary_of(half, tmp_path / "two")
    reports = [str(tmp_path / name) for name in ("one", "two")]
    assert main(["merge", *reports, "-o", str(tmp_path / "both")]) == 0
    merged = json.loads((tmp_path / "both" / "summary.json").read_text())
    assert merged["left_out_fraction"] == pytest.approx(0.125)  # of the frames with a mask
    assert main(["compare", reports[0], str(tmp_path / "both"), "-o", str(tmp_path / "c")]) == 0


def test_an_alignment_does_not_see_masked_pixels(maps, tmp_path):
    """The arm's depth would draw the scale to itself."""
    mask = painted(tmp_path / "mask.png")
    for per in ("frame", "source"):
        options = ("--align", "scale", "--align-per", per, "--mask", mask)
        summary = summary_of(maps, tmp_path / per, *options)
        assert summary["depth"]["abs_rel"] < 0.1
        assert summary["scale"]["mean_factor"] == pytest.approx(1, abs=0.03)


def test_a_map_is_calibrated_on_what_the_mask_leaves(maps, without_arm, tmp_path, capsys):
    mask = painted(tmp_path / "mask.png")
    tables = []
    for folder, options in ((maps, ["--mask", str(mask)]), (without_arm, [])):
        assert main(["calibrate", f"predictions:{folder}", *options, "--dry-run"]) == 0
        tables.append(capsys.readouterr().out.replace(str(folder), ""))
    assert tables[0] == tables[1]


def test_a_prediction_does_not_know_of_the_mask(tmp_path):
    """A robot is given the LiDAR of all pixels, whatever is scored."""
    source = "synthetic:worlds=1,frames=2,seed=7,width=160,height=120,rings=16"
    options = PredictorConfig(method="deterministic", measurements="random:50")
    mask = painted(tmp_path / "mask.png", np.s_[60:], (120, 160))
    plain, masked = (
        list(Stream.open(Job(sources=(source,), model="demo", predictor=options, mask=config)))
        for config in (MaskConfig(), MaskConfig(str(mask)))
    )
    for frame, other in zip(plain, masked, strict=True):
        np.testing.assert_array_equal(frame.prediction.depth_m, other.prediction.depth_m)
        np.testing.assert_array_equal(frame.sparse_m, other.sparse_m)
        assert np.isnan(other.ground_truth_m[60:]).all()
        np.testing.assert_array_equal(frame.ground_truth_m[:60], other.ground_truth_m[:60])


def test_a_mask_is_of_the_raw_image_and_is_rectified_with_it(tmp_path):
    """Where the rectified image shows the painted arm, and nowhere else, nothing is scored."""
    lens = Distortion("plumb_bob", np.array([-0.28, 0.07, 0.001, 0, 0]))
    shape = (96, 128)
    intrinsics = np.array([[100.0, 0, 63.5], [0, 100.0, 47.5], [0, 0, 1]])
    arm = np.s_[70:, 10:60]
    image = np.full((*shape, 3), 200, np.uint8)
    image[arm] = 0
    mask = painted(tmp_path / "mask.png", arm, shape)
    camera = Camera(shape[1], shape[0], intrinsics, distortion=lens)
    with BagWriter(tmp_path / "bag") as writer:
        for index in range(2):
            time_ns = START_NS + index * PERIOD_NS
            writer.camera_info("/camera/camera_info", time_ns, "camera", camera)
            writer.image("/camera/image_raw", time_ns, "camera", image)
            depth = np.full(shape, 4, np.float32)
            writer.image("/camera/depth", time_ns, "camera", depth)
    job = Job(sources=(str(tmp_path / "bag"),), model="demo", mask=MaskConfig(str(mask)))
    frames = list(Stream.open(job))
    assert len(frames) == 2
    for frame in frames:
        brightness = frame.image[..., 0]
        known = np.isfinite(frame.ground_truth_m)
        assert not known[brightness < 20].any()
        assert known[brightness > 180].all()
        assert (frame.left_out.mask != (np.indices(shape)[0] >= 70)).any()  # it is bent


def test_the_left_out_part_is_hatched_in_the_example_images(maps, tmp_path, drawing, monkeypatch):
    curves = {"reliability_figure", "timeline_plot", "positions_plot", "scale_plot"}
    curves |= {"sparsification_figure", "distance_figure"}
    for name in curves:  # they take longer
        monkeypatch.setattr(plots, name, lambda *_: Figure((1, 1)))
    mask = painted(tmp_path / "mask.png")
    with drawing():
        summary_of(maps, tmp_path / "plain")
        summary_of(maps, tmp_path / "masked", "--mask", mask)
    plain, masked = (
        cv2.imread(str(tmp_path / name / "typical_0.jpg")) for name in ("plain", "masked")
    )
    assert plain.shape == masked.shape
    assert (np.abs(plain.astype(int) - masked) > 60).mean() > 0.005


@pytest.mark.parametrize(
    ("write", "sentence"),
    [
        (lambda path: None, "cannot be read: No such file"),
        (lambda path: path.write_text("arm"), "does not begin as an image"),
        (lambda path: painted(path, np.s_[:]), "is 0 everywhere"),
        (lambda path: cv2.imwrite(str(path), np.ones((*SHAPE, 3), np.uint8)), "3 colour channels"),
        (lambda path: cv2.imwrite(str(path), np.ones(SHAPE, np.uint16)), "pixels of 16 bits"),
        (lambda path: painted(path, shape=(24, 48)), "is 48x24, the image 32x24"),
    ],
)
@pytest.mark.parametrize("command", ["evaluate", "calibrate"])
def test_a_bad_mask_is_one_sentence(write, sentence, command, maps, tmp_path, capsys):
    path = tmp_path / "mask.png"
    write(path)
    options = ["--dry-run"] if command == "calibrate" else ["-o", str(tmp_path / "out")]
    assert main([command, f"predictions:{maps}", "--mask", str(path), *options]) == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("uncertainty-depth: ")
    assert sentence in line
    assert str(path) in line


def test_a_frame_whose_ground_truth_is_all_masked_is_skipped_with_its_reason(tmp_path):
    for index in range(2):
        truth = np.full(SHAPE, np.nan, np.float32)
        truth[ARM if index else np.s_[:8]] = 4
        save_maps(tmp_path, str(index), depth=np.full(SHAPE, 4, np.float32), ground_truth=truth)
    mask = painted(tmp_path / "mask.png")
    summary = summary_of(tmp_path, tmp_path / "out", "--mask", mask)
    assert summary["frames"] == {"read": 2, "evaluated": 1, "skipped": {"left_out_by_mask": 1}}


def test_the_mask_is_an_input_that_nothing_overwrites(maps, tmp_path):
    mask = painted(tmp_path / "mask.png")
    job = Job(sources=(f"predictions:{maps}",), mask=MaskConfig(str(mask)))
    assert mask in job.inputs()
    assert Job(sources=("bag",), meaning=PredictionConfig()).options()["mask"] == ""
