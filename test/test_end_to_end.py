# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The commands as a user types them: bag, model, report, recorded predictions, images."""

import shutil

import cv2
import numpy as np
import pytest

from test.conftest import summary_of
from uncertainty_depth.cli.main import main
from uncertainty_depth.frames.recording import Recording
from uncertainty_depth.metrics.registry import METRICS, flatten
from uncertainty_depth.report.saved_state import merge, read_report

WORLD = "synthetic:worlds=2,frames=4,width=80,height=60,rings=16"
TINY = "--backbone tiny --decoder-width 16 --input-size 64 48 --head laplace"


def run(command):
    return main(command.split())


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    path = tmp_path_factory.mktemp("bags") / "world"
    assert run(f"convert {WORLD} {path}") == 0
    return path


@pytest.fixture(scope="module")
def model(bag, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    command = (
        f"train {bag} --output {path} {TINY} --epochs 3 --snapshots 2 --patience 1 --device cpu"
    )
    assert run(command) == 0
    return path


@pytest.fixture(scope="module")
def report(bag, model, tmp_path_factory, drawing):
    path = tmp_path_factory.mktemp("reports")
    with drawing():
        output = f"--output {path}/report --write-bag {path}/predictions"
        assert run(f"evaluate {bag} --model {model} {output}") == 0
    return path


def test_every_frame_of_a_bag_is_scored(report):
    summary = summary_of(report / "report")
    assert summary["frames"] == {"read": 8, "evaluated": 8, "skipped": {}}
    assert summary["model"]["method"] == "multi_epochs"
    values = flatten({"uncertainty": summary["uncertainty"]})
    ranked = [
        metric.name for metric in METRICS if metric.is_of_sigma and "spearman" not in metric.name
    ]
    # Spearman is undefined for the nearly constant sigma of so short a training.
    assert np.isfinite([values[name] for name in ranked]).all()
    assert (report / "report" / "report.html").stat().st_size > 50_000


def test_prediction_bag_has_the_scored_frames(bag, model, report):
    recording = Recording(report / "predictions")
    cloud_topic = "/points/uncertainty_color"
    with recording.open() as opened:
        counts = {name: topic.count for name, topic in opened.topics.items()}
    assert all(name.startswith("/") for name in counts), "as rosbag2 records them"
    assert (
        counts["/image"]
        == counts["/depth/image_rect"]
        == counts["/uncertainty/image_rect"]
        == counts["/ground_truth/image"]
        == 8
    )
    assert counts["/depth/camera_info"] == counts[cloud_topic] == counts["/depth/image_color"] == 8
    with recording.open() as opened:
        cloud, depth, camera = (
            opened.first(topic) for topic in (cloud_topic, "/depth/image_rect", "/camera_info")
        )
    assert (cloud.height, cloud.width) == (depth.height, depth.width)
    points = cloud.data.view([(field.name, np.float32) for field in cloud.fields])
    assert points["z"] == pytest.approx(depth.data.view(np.float32))
    u = 60
    v = 20
    point = points[v * cloud.width + u]
    assert camera.k.reshape(3, 3) @ [point["x"], point["y"], point["z"]] / point[
        "z"
    ] == pytest.approx([u, v, 1], abs=1e-3)


def test_report_says_that_the_model_was_trained_on_the_source(
    bag, model, report, tmp_path, caplog
):
    sentence = (
        f"model was trained on frames of {bag}: its errors are smaller there than on new frames"
    )
    assert sentence in summary_of(report / "report")["notes"]
    assert sentence in (report / "report" / "report.html").read_text()
    other = "synthetic:worlds=1,frames=1,width=80,height=60,rings=16,seed=9"
    for source, said in ((str(bag), True), (other, False)):
        caplog.clear()
        assert run(f"evaluate {source} --model {model} --output {tmp_path} --overwrite") == 0
        assert (sentence in caplog.messages) == said


def test_report_says_that_sigma_was_calibrated_on_the_source(bag, model, tmp_path):
    calibrated = tmp_path / "model"
    shutil.copytree(model, calibrated)
    assert run(f"calibrate {calibrated} {bag} --force") == 0
    output = f"--output {tmp_path}/report"
    assert run(f"evaluate {bag} --model {calibrated} {output}") == 0
    _, context = merge([read_report(tmp_path / "report")])
    (overlap,) = context.calibrated_on
    sentence = str(overlap)
    assert sentence.startswith(f"sigma was calibrated on frames of {bag}")
    assert sentence in context.notes


def test_predict_writes_metric_maps_at_image_size(model, tmp_path):
    for name, size in {"wide.png": (90, 40), "tall.jpg": (31, 77)}.items():
        cv2.imwrite(str(tmp_path / name), np.full((size[1], size[0], 3), 128, np.uint8))
    command = (
        f"predict {tmp_path}/wide.png {tmp_path}/tall.jpg --model {model} --output {tmp_path}/maps"
    )
    assert run(command) == 0
    depth = cv2.imread(str(tmp_path / "maps" / "wide_depth.tiff"), cv2.IMREAD_UNCHANGED)
    sigma = cv2.imread(str(tmp_path / "maps" / "tall_sigma.tiff"), cv2.IMREAD_UNCHANGED)
    assert depth.dtype == sigma.dtype == np.float32
    assert depth.shape == (40, 90)
    assert sigma.shape == (77, 31)
    assert (depth > 0).all()
    assert cv2.imread(str(tmp_path / "maps" / "wide_plot.png")).std() > 10


def last_line(capsys):
    return capsys.readouterr().err.strip().splitlines()[-1]


def test_nothing_scored_fails_with_a_report(bag, model, tmp_path, capsys):
    assert run(f"evaluate {bag} --model {model} --output {tmp_path} --max-time-difference 0") == 1
    assert "no frame" in last_line(capsys)
    assert summary_of(tmp_path)["frames"] == {
        "read": 8,
        "evaluated": 0,
        "skipped": {"no_lidar_within_max_time_difference": 8},
    }


def test_info_describes_a_bag_and_its_transform_can_be_pasted(bag, tmp_path, capsys):
    plot = tmp_path / "plot.png"
    assert run(f"info {bag} --output {plot}") == 0
    told = capsys.readouterr().out
    assert "/camera/image" in told
    assert f"depth on the image: {plot}" in told
    assert plot.read_bytes().startswith(b"\x89PNG")
    pasted = told.split("for a command: ")[1].splitlines()[0].split()
    assert run(f"info {bag} --output {plot} " + " ".join(pasted)) == 0
    again = capsys.readouterr().out
    values = again.split("lidar_to_camera:=[")[1].split("]")[0].split(", ")
    assert [float(x) for x in values] == pytest.approx([float(x) for x in pasted[1:]], abs=1e-12)
    assert again.split("geometry")[1] == told.split("geometry")[1]


def test_info_warns_about_extrinsics_in_millimetres(bag, tmp_path, capsys):
    pose = ["-0.0000001", "-250.0", "60.0", "0.5", "-0.5", "0.5", "0.5"]
    plot = str(tmp_path / "plot.png")
    assert run(f"info {bag} --output {plot} --lidar-to-camera " + " ".join(pose)) == 0
    told = capsys.readouterr().out
    assert f"--lidar-to-camera {' '.join(pose)}\n" in told  # argparse: -1e-07 were an option
    assert "WARNING: lidar_to_camera puts the LiDAR 257 m from the camera" in told
