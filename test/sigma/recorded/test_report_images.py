# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Camera images beside recorded predictions: in the report, and in no score."""

import cv2
import numpy as np
import pytest

from test.conftest import save_maps, summary_of
from test.sigma.recorded.conftest import NAMES, PERIOD_NS, TOPICS, ShownCamera, run, scene
from uncertainty_depth.cli.main import main
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.errors import SourceError
from uncertainty_depth.frames.bag import BagSource
from uncertainty_depth.frames.messages.bag_writer import BagWriter
from uncertainty_depth.report.plots import draw

pytestmark = pytest.mark.usefixtures("plots_without_pixels")

FRAMES = 3
LATE_NS = 20_000_000


def run_with(bag, image_topic, topics=TOPICS, ground_truth_topic=""):
    """Score a bag with the images of a topic; return the evaluation and the source."""
    options = SourceConfig(image_topic=image_topic, ground_truth_topic=ground_truth_topic)
    return run(bag, topics, options)


def examples(evaluation):
    return [*evaluation.examples.worst(), *evaluation.examples.typical()]


@pytest.mark.parametrize("delay_ns", [0, -LATE_NS])
def test_the_nearest_image_is_shown_and_changes_no_score(delay_ns, write_camera):
    camera = ShownCamera(delay_ns=delay_ns)
    bag = write_camera(TOPICS, frames=FRAMES, image=camera)
    evaluation, source = run_with(bag, camera.topic)
    assert len(examples(evaluation)) == FRAMES
    for example in examples(evaluation):
        assert example.frame.image.shape == (48, 64, 3)
        own_image = 255 / example.frame.ground_truth_m.clip(1)
        known = np.isfinite(own_image)
        np.testing.assert_allclose(example.frame.image[..., 0][known], own_image[known], atol=1.5)
    assert draw(evaluation, "gaussian").overlay
    without, _ = run_with(bag, "")
    assert repr(evaluation.summary()) == repr(without.summary())  # NaN is not NaN
    assert all(example.frame.image is None for example in examples(without))
    assert not [note for note in source.notes if camera.topic in note]


def test_an_image_far_from_its_depth_in_time_is_not_shown(write_camera):
    camera = ShownCamera(delay_ns=10_000_000_000)
    evaluation, _ = run_with(write_camera(TOPICS, frames=FRAMES, image=camera), camera.topic)
    assert len(examples(evaluation)) == FRAMES
    assert all(example.frame.image is None for example in examples(evaluation))


class FastCamera(ShownCamera):
    """Sixteen images for each depth."""

    def write(self, writer, time_ns, now):
        for part in range(16):
            super().write(writer, time_ns + part * PERIOD_NS // 16, now)


def test_a_depth_that_comes_long_after_its_image_is_shown_with_it(write_camera, monkeypatch):
    camera = FastCamera()
    write = BagWriter.message

    def write_images_first(writer, topic, stamp_ns, message, latched=False):
        recorded_ns = stamp_ns - (FRAMES * PERIOD_NS if topic == camera.topic else 0)
        write(writer, topic, recorded_ns, message, latched)

    monkeypatch.setattr(BagWriter, "message", write_images_first)
    evaluation, source = run_with(write_camera(TOPICS, frames=FRAMES, image=camera), camera.topic)
    assert len(examples(evaluation)) == FRAMES
    assert all(example.frame.image is not None for example in examples(evaluation))
    assert not [note for note in source.notes if camera.topic in note]


def test_an_image_of_another_camera_has_no_lidar_drawn_on_it(write_camera):
    camera = ShownCamera("/color/image", "color_camera")
    evaluation, source = run_with(write_camera(TOPICS, frames=FRAMES, image=camera), camera.topic)
    assert {example.frame.image.shape for example in examples(evaluation)} == {(96, 128, 3)}
    images = draw(evaluation, "gaussian")
    assert images.overlay is None
    assert len(images.worst) + len(images.typical) == FRAMES
    (note,) = [note for note in source.notes if camera.topic in note]
    assert "'color_camera'" in note
    assert "no LiDAR is drawn" in note


@pytest.mark.parametrize("topic", TOPICS)
def test_depth_and_confidence_are_no_camera_image(topic, write_camera):
    with pytest.raises(SourceError, match="expected the camera image"):
        run_with(write_camera(TOPICS, frames=1), topic)


@pytest.mark.parametrize("size", [(128, 96), (70, 30)])
def test_an_image_of_a_folder_may_have_any_size(size, tmp_path):
    width, height = size
    now = scene(0)
    save_maps(tmp_path, "0", depth=now.depth, confidence=now.sigma, ground_truth=now.truth)
    (tmp_path / "image").mkdir()
    cv2.imwrite(str(tmp_path / "image" / "0.png"), np.zeros((height, width, 3), np.uint8))
    images = draw(run(f"predictions:{tmp_path}", ("", ""))[0], "gaussian")
    assert len(images.worst) + len(images.typical) == 1
    assert bool(images.overlay) == (width / height == 64 / 48)


def test_a_bag_of_recorded_predictions_holds_them_in_metres(write_camera, tmp_path):
    camera = ShownCamera()
    bag = write_camera(
        TOPICS,
        depth=lambda s: 2 * s.depth,
        confidence=lambda s: 2 * s.sigma,
        frames=2,
        image=camera,
    )
    options = ["--image-topic", camera.topic, "--align", "median"]
    arguments = ["evaluate", str(bag), *NAMES, *options]
    written = tmp_path / "written"
    report = str(tmp_path / "report")
    assert main([*arguments, "--output", report, "--write-bag", str(written)]) == 0
    topics = SourceConfig(image_topic="/image", ground_truth_topic="/ground_truth/image")
    source = BagSource(written, topics)
    assert [frame.image.shape for frame in source] == [(48, 64, 3)] * 2
    maps = ("/depth/image_rect", "/uncertainty/image_rect")
    again, _ = run_with(written, "/image", maps, "/ground_truth/image")
    summary = summary_of(tmp_path / "report")
    assert again.summary()["depth"]["rmse"] == pytest.approx(summary["depth"]["rmse"])
    assert again.summary()["uncertainty"]["auce"] == pytest.approx(summary["uncertainty"]["auce"])
    # It has the points of the predicted depth too, on a topic like a LiDAR's.
    assert run(written, maps)[0].summary()["depth"] == again.summary()["depth"]
    with pytest.raises(SourceError, match="holds points of predicted depth"):
        run(written, maps, SourceConfig(lidar_topic="/points/uncertainty_color"))
