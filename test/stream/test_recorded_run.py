# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""A recorded run keeps what the depth node knew about its images, as live scores do."""

import json

import numpy as np
import pytest

from test.conftest import summary_of
from test.frames.conftest import CAMERA, PERIOD_NS, START_NS, TYPES, message_header
from uncertainty_depth.cli.main import main
from uncertainty_depth.frames.messages.bag_writer import BagWriter

TRUTH_M = np.full((12, 16), 4, np.float32)
VALUES = [0.5, 1.5, None, 2.0]
TOPICS = "--depth-topic {0}/depth/image_rect --confidence-topic {0}/uncertainty/image_rect"
OF_ROBOT = [*TOPICS.format("/robot").split(), "--ground-truth-topic", "/truth"]


def info(stamp_ns: int, values: dict[str, str]) -> object:
    pairs = [TYPES["diagnostic_msgs/msg/KeyValue"](*pair) for pair in values.items()]
    status = TYPES["diagnostic_msgs/msg/DiagnosticStatus"](0, "prediction", "", "", pairs)
    return TYPES["diagnostic_msgs/msg/DiagnosticArray"](message_header(stamp_ns, ""), [status])


def recorded(folder, infos_late=False, model=None, measured="7"):
    random = np.random.default_rng(0)
    infos = []
    with BagWriter(folder / "bag") as writer:
        if model is not None:
            text = TYPES["std_msgs/msg/String"](json.dumps(model))
            writer.message("/robot/depth/model", START_NS - 1, text, latched=True)
        for index, value in enumerate(VALUES):
            stamp_ns = START_NS + index * PERIOD_NS
            depth_m = (TRUTH_M + random.normal(0, 0.1, TRUTH_M.shape)).astype(np.float32)
            made = {"unfamiliarity": "" if value is None else repr(value), "measured": measured}
            infos.append((stamp_ns, made))
            if not infos_late:
                writer.message("/robot/depth/prediction_info", stamp_ns, info(stamp_ns, made))
            writer.image("/robot/depth/image_rect", stamp_ns, "camera", depth_m)
            sigma_m = np.full_like(depth_m, 0.1)
            writer.image("/robot/uncertainty/image_rect", stamp_ns, "camera", sigma_m)
            writer.image("/truth", stamp_ns, "camera", TRUTH_M)
        for stamp_ns, made in infos if infos_late else ():
            writer.message("/robot/depth/prediction_info", stamp_ns, info(stamp_ns, made))
    return folder / "bag"


@pytest.mark.parametrize("infos_late", [False, True])
def test_a_recorded_run_has_the_unfamiliarity_of_its_images(infos_late, tmp_path):
    bag = recorded(tmp_path, infos_late, {"familiar_places": [0.3, 0.6]})
    assert main(["evaluate", str(bag), *OF_ROBOT, "-o", str(tmp_path / "out")]) == 0
    summary = summary_of(tmp_path / "out")
    # Without a measured pixel in the first row, and its neighbours, in each frame.
    assert summary["pixels"] == len(VALUES) * (TRUTH_M.size - 6)
    assert summary["unfamiliarity"]["frames"] == 3
    assert summary["unfamiliarity"]["mean"] == pytest.approx(np.mean([0.5, 1.5, 2.0]))
    (domain,) = (line for line in summary["verdict"]["lines"] if line["name"] == "domain")
    (check,) = (check for check in domain["checks"] if check["name"] == "unfamiliarity")
    assert "unlike the training's" in check["text"]
    assert "90 % below 0.30, 99 % below 0.60" in check["text"]


@pytest.mark.parametrize("measured", ["7 x", "-3"])
def test_a_frame_whose_measured_pixels_cannot_be_read_is_not_scored(measured, tmp_path, capsys):
    """It would be scored on the pixels that corrected it."""
    bag = recorded(tmp_path, measured=measured)
    assert main(["evaluate", str(bag), *OF_ROBOT, "-o", str(tmp_path / "out")]) == 1
    assert "4 prediction_info_unreadable" in capsys.readouterr().out


@pytest.mark.parametrize("model", [None, {"familiar_places": "many"}, ["no", "object"]])
def test_without_a_model_that_says_it_what_is_usual_is_not_known(model, tmp_path):
    bag = recorded(tmp_path, model=model)
    assert main(["evaluate", str(bag), *OF_ROBOT, "-o", str(tmp_path / "out")]) == 0
    summary = summary_of(tmp_path / "out")
    assert "not known which unfamiliarity is usual in the training's places" in json.dumps(
        summary["verdict"]
    )


@pytest.mark.parametrize(("fraction", "evaluated"), [(0.5, 2), (0.0, 0)])
def test_a_recorded_depth_is_not_scored_on_the_lidar_that_it_was_given(
    fraction, evaluated, tmp_path
):
    """As live: the model's description says what was held out of it."""
    text = json.dumps({"measurements": "lidar", "held_out_fraction": fraction})
    points = np.stack([*np.meshgrid(np.linspace(-1, 1, 40), np.linspace(-1, 1, 30))], -1)
    cloud = np.concatenate([points.reshape(-1, 2), np.full((1200, 1), 3.0), np.ones((1200, 1))], 1)
    with BagWriter(tmp_path / "bag") as writer:
        message = TYPES["std_msgs/msg/String"](text)
        writer.message("/depth/model", START_NS, message, latched=True)
        for index in range(2):
            stamp_ns = START_NS + index * PERIOD_NS
            writer.camera_info("/depth/camera_info", stamp_ns, "camera", CAMERA)
            for name, value in (("depth", 3.0), ("uncertainty", 0.1)):
                image = np.full((CAMERA.height, CAMERA.width), value, np.float32)
                writer.image(f"/{name}/image_rect", stamp_ns, "camera", image)
            writer.cloud("/lidar/points", stamp_ns, "lidar", cloud)
    options = f"{TOPICS.format('')} --lidar-to-camera 0 0 0 0 0 0 1 -o {tmp_path}/out"
    code = main(["evaluate", str(tmp_path / "bag"), *options.split()])
    assert code == (0 if evaluated else 1)
    if evaluated:
        summary = summary_of(tmp_path / "out")
        assert summary["frames"]["evaluated"] == evaluated
        assert 0 < summary["pixels"] < 0.6 * 2 * CAMERA.width * CAMERA.height
