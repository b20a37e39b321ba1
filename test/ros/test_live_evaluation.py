# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Messages scored as they arrive: each prediction is scored or counted with its reason."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from uncertainty_depth.calibration.correction import IDENTITY as CORRECTION
from uncertainty_depth.calibration.correction_in_force import InForce
from uncertainty_depth.config import EvaluatorNodeConfig
from uncertainty_depth.geometry.camera import ground_truth_from_cloud
from uncertainty_depth.geometry.rectification import Rectifier
from uncertainty_depth.messages.camera_info import calibration_from_info, camera_from_info
from uncertainty_depth.messages.online_calibration import PredictionInfo, info_values, read_info
from uncertainty_depth.messages.stamps import frame_name
from uncertainty_depth.metrics.registry import flatten
from uncertainty_depth.records import Frame, SampleRange
from uncertainty_depth.report import saved_state
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.verdict import judge
from uncertainty_depth.ros.extrinsics import FixedExtrinsics
from uncertainty_depth.ros.live_evaluation import MAX_WITHOUT_INFO, LiveEvaluation
from uncertainty_depth.ros.map_camera import MapCamera
from uncertainty_depth.ros.pair_scorer import Scored

WIDTH = 32
HEIGHT = 24
IDENTITY = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
MS = 1_000_000


def live(**changes):
    return LiveEvaluation(EvaluatorNodeConfig(**changes), FixedExtrinsics(IDENTITY))


def maps(make, stamp, size=(HEIGHT, WIDTH), seed=0):
    random_state = np.random.default_rng(seed)
    depth = random_state.uniform(3, 5, size).astype(np.float32)
    sigma = random_state.uniform(0.1, 1, size).astype(np.float32)
    return make.image(stamp, depth), make.image(stamp, sigma)


def add_prediction(evaluation, make, stamp, **options):
    depth, sigma = maps(make, stamp, **options)
    return evaluation.add_depth(depth) + evaluation.add_sigma(sigma)


def add_cloud(evaluation, make, stamp, points=None, **options):
    return evaluation.add_ground_truth(
        make.cloud(make.points_on_plane() if points is None else points, stamp, **options)
    )


@pytest.fixture
def ready(make):
    evaluation = live()
    evaluation.add_camera_info(make.camera_info(0, WIDTH, HEIGHT))
    return evaluation


def test_a_frame_is_scored_once_its_cloud_has_come(ready, make):
    assert add_prediction(ready, make, 100 * MS) == []
    (scored,) = add_cloud(ready, make, 100 * MS)
    assert isinstance(scored, Scored)
    assert scored.metrics["depth.mae"] > 0
    known = np.isfinite(scored.ground_truth_m)
    assert 50 < known.sum() <= 400
    np.testing.assert_array_equal(scored.ground_truth_m[known], 4.0)
    assert ready.evaluation.frames() == {"read": 1, "evaluated": 1, "skipped": {}}


def test_arrival_order_of_streams_does_not_matter(make):
    stamps = [100 * MS * index for index in range(1, 9)]
    summaries = []
    for seed in range(4):
        evaluation = live()
        evaluation.add_camera_info(make.camera_info(0, WIDTH, HEIGHT))
        streams = [
            [(evaluation.add_depth, maps(make, stamp, seed=stamp // MS)[0]) for stamp in stamps],
            [(evaluation.add_sigma, maps(make, stamp, seed=stamp // MS)[1]) for stamp in stamps],
            [
                (
                    evaluation.add_ground_truth,
                    make.cloud(make.points_on_plane(seed=stamp // MS), stamp + 20 * MS),
                )
                for stamp in stamps
            ],
        ]
        shuffler = random.Random(seed)
        while any(streams):
            add, message = shuffler.choice([stream for stream in streams if stream]).pop(0)
            add(message)
        evaluation.finish()
        summary = flatten(evaluation.evaluation.summary())
        summaries.append({key: value for key, value in summary.items() if type(value) is not str})
    assert summaries[0]["frames.evaluated"] == 8
    for summary in summaries[1:]:
        assert summary == pytest.approx(summaries[0], rel=1e-9, nan_ok=True)


def skipped(evaluation):
    return dict(evaluation.evaluation.skipped)


def bad_clouds(make):
    good = make.points_on_plane()
    short = make.cloud(good, 100 * MS)
    short.data = short.data[:-4]
    return {
        "cloud_without_xyz": make.cloud(good, 100 * MS, names="abc"),
        "cloud_without_points": make.cloud(np.full((30, 3), np.nan), 100 * MS),
        "cloud_wrong_size": short,
        "no_lidar_point_in_view": make.cloud(-good, 100 * MS),
        "no_valid_pixel": make.cloud(make.points_on_plane(depth=200.0, spread=100.0), 100 * MS),
    }


@pytest.mark.parametrize(
    "reason",
    [
        "cloud_without_xyz",
        "cloud_without_points",
        "cloud_wrong_size",
        "no_lidar_point_in_view",
        "no_valid_pixel",
    ],
)
def test_a_useless_cloud_is_a_counted_frame(ready, make, reason):
    add_prediction(ready, make, 100 * MS)
    ready.add_ground_truth(bad_clouds(make)[reason])
    assert skipped(ready) == {reason: 1}
    add_prediction(ready, make, 200 * MS)
    add_cloud(ready, make, 200 * MS)
    assert ready.evaluation.evaluated == 1


def test_an_empty_cloud_is_a_counted_frame(ready, make):
    add_prediction(ready, make, 100 * MS)
    add_cloud(ready, make, 100 * MS, points=np.empty((0, 3)))
    assert skipped(ready) == {"cloud_without_points": 1}


def test_no_cloud_near_enough(ready, make):
    add_prediction(ready, make, 100 * MS)
    add_cloud(ready, make, 151 * MS)
    assert skipped(ready) == {"no_lidar_within_max_time_difference": 1}


def test_frames_wait_for_a_camera_info_that_comes_late(make):
    evaluation = live(queue_size=2)
    for stamp in (100, 200, 300):
        add_prediction(evaluation, make, stamp * MS)
        add_cloud(evaluation, make, stamp * MS)
    assert evaluation.evaluation.frames() == {
        "read": 1,
        "evaluated": 0,
        "skipped": {"no_camera_info": 1},
    }  # no more than two wait
    assert len(evaluation.add_camera_info(make.camera_info(0, WIDTH, HEIGHT))) == 2
    assert evaluation.evaluation.evaluated == 2


def test_no_camera_info(make):
    evaluation = live()
    add_prediction(evaluation, make, 100 * MS)
    add_cloud(evaluation, make, 100 * MS)
    evaluation.finish()
    assert skipped(evaluation) == {"no_camera_info": 1}


def test_uncalibrated_camera(ready, make):
    info = make.camera_info(0, WIDTH, HEIGHT)
    info.k, info.p = np.zeros(9), np.zeros(12)
    ready.add_camera_info(info)
    add_prediction(ready, make, 100 * MS)
    add_cloud(ready, make, 100 * MS)
    assert skipped(ready) == {"camera_info_zero": 1}


def test_half_a_prediction_is_counted(make):
    evaluation = live(queue_size=2)
    for stamp in (1, 2, 3):
        evaluation.add_depth(maps(make, stamp * MS)[0])
    evaluation.add_sigma(maps(make, 9 * MS)[1])
    evaluation.finish()
    assert skipped(evaluation) == {"depth_without_uncertainty": 3, "uncertainty_without_depth": 1}


def test_maps_of_different_sizes(ready, make):
    ready.add_depth(maps(make, 100 * MS)[0])
    ready.add_sigma(maps(make, 100 * MS, size=(5, 5))[1])
    add_cloud(ready, make, 100 * MS)
    assert skipped(ready) == {"uncertainty_wrong_size": 1}


def test_a_depth_image_of_unknown_encoding(ready, make):
    depth, sigma = maps(make, 100 * MS)
    depth.encoding = "64FC3"
    ready.add_depth(depth)
    ready.add_sigma(sigma)
    add_cloud(ready, make, 100 * MS)
    assert skipped(ready) == {"image_unknown_encoding": 1}


def test_flush_decides_what_waits(ready, make):
    add_cloud(ready, make, 90 * MS)
    assert add_prediction(ready, make, 100 * MS) == []
    assert len(ready.flush()) == 1
    assert ready.evaluation.evaluated == 1


def test_waiting_frames_are_reported(make):
    evaluation = live()
    evaluation.add_depth(maps(make, 50 * MS)[0])
    add_prediction(evaluation, make, 100 * MS)
    add_prediction(evaluation, make, 200 * MS)
    add_cloud(
        evaluation, make, 100 * MS
    )  # decides the first, which then waits for the camera info
    assert evaluation.waiting == 3
    evaluation.add_camera_info(make.camera_info(0, WIDTH, HEIGHT))
    assert evaluation.waiting == 2
    evaluation.finish()
    assert evaluation.waiting == 0


def test_a_bag_that_loops_keeps_the_scores_and_goes_on(ready, make):
    for _ in range(3):
        for stamp in range(100, 600, 100):
            add_cloud(ready, make, stamp * MS)
            add_prediction(ready, make, stamp * MS)
    ready.finish()
    assert ready.evaluation.frames() == {"read": 15, "evaluated": 15, "skipped": {}}
    assert ready.pairing_counts["cloud_time_jumps"] == 2


def test_ground_truth_images_in_metres_or_millimetres(make):
    evaluation = live(use_ground_truth_image=True)
    truth = np.full((HEIGHT, WIDTH), 4.0, np.float32)
    add_prediction(evaluation, make, 100 * MS)
    (metres,) = evaluation.add_ground_truth(make.image(100 * MS, truth))
    add_prediction(evaluation, make, 200 * MS)
    message = make.image(200 * MS, truth)
    message.encoding, message.step, message.data = (
        "16UC1",
        2 * WIDTH,
        np.full((HEIGHT, WIDTH), 4000, np.uint16).tobytes(),
    )
    (millimetres,) = evaluation.add_ground_truth(message)
    assert metres.metrics == pytest.approx(millimetres.metrics, nan_ok=True)
    add_prediction(evaluation, make, 300 * MS)
    evaluation.add_ground_truth(make.image(300 * MS, truth[:5]))
    add_prediction(evaluation, make, 400 * MS)
    evaluation.finish()
    assert skipped(evaluation) == {
        "ground_truth_wrong_aspect": 1,
        "no_ground_truth_image_within_max_time_difference": 1,
    }


def test_a_ground_truth_image_of_half_the_size_is_scaled(make):
    evaluation = live(use_ground_truth_image=True)
    half = np.linspace(2, 6, HEIGHT * WIDTH // 4).reshape(HEIGHT // 2, WIDTH // 2)
    add_prediction(evaluation, make, 100 * MS)
    (scored,) = evaluation.add_ground_truth(make.image(100 * MS, half.astype(np.float32)))
    expected = half.astype(np.float32).repeat(2, axis=0).repeat(2, axis=1)
    np.testing.assert_array_equal(scored.ground_truth_m, expected)


def test_a_wrong_unit_and_a_cloud_out_of_view_are_reported(ready, make):
    behind = make.points_on_plane(count=2000, depth=-4.0)
    in_view = np.array([[0.0, 0.0, 4.0]])
    add_prediction(ready, make, 100 * MS)
    add_cloud(ready, make, 100 * MS, points=np.concatenate((behind, in_view)))
    (warning,) = ready.geometry.warnings()
    assert warning == "only 0.05% of the LiDAR's points fall into the image"
    ready.reset()
    assert ready.geometry.warnings() == []
    add_prediction(ready, make, 200 * MS)
    add_cloud(ready, make, 200 * MS, points=behind)
    assert skipped(ready) == {"no_lidar_point_in_view": 1}
    assert len(ready.geometry.warnings()) == 1, "the check sees frames that are skipped, too"
    ready.reset()
    add_prediction(ready, make, 300 * MS)
    add_cloud(ready, make, 300 * MS, points=1000 * make.points_on_plane())
    (warning,) = ready.geometry.warnings()
    assert "millimetres" in warning


def test_a_ground_truth_image_in_millimetres_is_reported(make):
    evaluation = live(use_ground_truth_image=True)
    add_prediction(evaluation, make, 100 * MS)
    evaluation.add_ground_truth(make.image(100 * MS, np.full((HEIGHT, WIDTH), 4000, np.float32)))
    (warning,) = evaluation.geometry.warnings()
    assert "millimetres" in warning


def test_reset_forgets_scores_and_counts(ready, make):
    add_prediction(ready, make, 100 * MS)
    add_cloud(ready, make, 300 * MS)
    ready.reset()
    assert ready.evaluation.frames() == {"read": 0, "evaluated": 0, "skipped": {}}
    add_prediction(ready, make, 100 * MS)
    add_cloud(ready, make, 100 * MS)
    assert ready.evaluation.evaluated == 1


def test_colours_may_change_without_a_new_start_but_what_is_scored_may_not(ready, make):
    add_prediction(ready, make, 100 * MS)
    add_cloud(ready, make, 100 * MS)
    add_prediction(ready, make, 200 * MS)
    changes = {
        "color_max_depth": 3.0,
        "occlusion_tolerance": 0.3,
        "example_frames": 2,
        "queue_size": 5,
    }
    assert ready.new_evaluation(EvaluatorNodeConfig(**changes)) is None
    ready.reconfigure(EvaluatorNodeConfig(**changes), ready.extrinsics, None)
    assert (ready.evaluation.evaluated, ready.waiting) == (1, 1)
    add_cloud(ready, make, 200 * MS)
    assert (ready.evaluation.evaluated, ready.waiting) == (2, 0)
    config = EvaluatorNodeConfig(max_depth=20.0)
    ready.reconfigure(config, ready.extrinsics, ready.new_evaluation(config))
    assert ready.evaluation.evaluated == 0
    assert ready.evaluation.config.max_depth == 20.0


def test_whatever_a_pair_raises_is_a_counted_frame(ready, make, monkeypatch):
    def fail(*_):
        raise OverflowError("Python int too large to convert to C long")

    with monkeypatch.context() as patch:
        patch.setattr("uncertainty_depth.ros.map_ground_truth.lidar_points", fail)
        add_prediction(ready, make, 100 * MS)
        (result,) = add_cloud(ready, make, 100 * MS)
    assert result.reason == "failed"
    assert "OverflowError: Python int too large" in result.message
    add_prediction(ready, make, 200 * MS)
    add_cloud(ready, make, 200 * MS)
    assert ready.evaluation.frames() == {"read": 2, "evaluated": 1, "skipped": {"failed": 1}}
    assert ready.waiting == 0


LENS = [-0.28, 0.07, 0.0, 0.0, 0.0]


def distorted(make, stamp=0):
    info = make.camera_info(stamp, WIDTH, HEIGHT)
    info.d = LENS
    return info


def test_maps_of_raw_images_are_scored_with_the_distortion_and_noted(make):
    evaluation = live()
    evaluation.add_camera_info(distorted(make))
    add_prediction(evaluation, make, 100 * MS)
    (scored,) = add_cloud(evaluation, make, 100 * MS)
    camera = camera_from_info(distorted(make))
    assert camera.distortion is not None
    expected = ground_truth_from_cloud(
        make.points_on_plane(), np.eye(4), camera, EvaluatorNodeConfig()
    )
    np.testing.assert_array_equal(scored.ground_truth_m, expected)
    assert evaluation.camera_notes == [
        "depth/camera_info is distorted (plumb_bob): images stay as they are, points are "
        "projected with the distortion"
    ]


def test_a_camera_is_made_anew_only_when_its_info_or_the_size_changes(make):
    """Its rays, which clouds are made with, are kept as long as the camera is the same object."""
    maps = MapCamera()
    maps.add(distorted(make))
    camera = maps.camera(WIDTH, HEIGHT, 0)
    maps.add(distorted(make, stamp=100 * MS))
    assert maps.camera(WIDTH, HEIGHT, 100 * MS) is camera
    half = maps.camera(WIDTH // 2, HEIGHT // 2, 100 * MS)
    assert (half.width, half.intrinsics[0, 0]) == (WIDTH // 2, camera.intrinsics[0, 0] / 2)
    maps.add(make.camera_info(200 * MS, WIDTH, HEIGHT))
    assert maps.camera(WIDTH, HEIGHT, 300 * MS).distortion is None  # the latest
    assert maps.camera(WIDTH, HEIGHT, 100 * MS).distortion is not None  # that of its stamp


def test_a_raw_ground_truth_image_is_rectified_where_the_maps_are(make):
    depth_m = np.random.default_rng(4).uniform(3, 5, (HEIGHT, WIDTH)).astype(np.float32)
    truths = []
    for maps_info, truth_info in [
        (make.camera_info(0, WIDTH, HEIGHT), distorted(make)),
        (distorted(make), distorted(make)),
        (make.camera_info(0, WIDTH, HEIGHT), None),
    ]:
        evaluation = live(use_ground_truth_image=True)
        evaluation.add_camera_info(maps_info)
        if truth_info is not None:
            evaluation.add_ground_truth_info(truth_info)
        add_prediction(evaluation, make, 100 * MS)
        (scored,) = evaluation.add_ground_truth(make.image(100 * MS, depth_m))
        truths.append(scored.ground_truth_m)
    rectifier = Rectifier(calibration_from_info(distorted(make)))
    np.testing.assert_array_equal(truths[0], rectifier.depth(depth_m))
    assert not np.array_equal(truths[0], depth_m)
    np.testing.assert_array_equal(truths[1], depth_m)
    np.testing.assert_array_equal(truths[2], depth_m)


def test_maps_of_another_aspect_than_their_camera_info_are_counted_and_of_another_size_noted(make):
    evaluation = live()
    evaluation.add_camera_info(make.camera_info(0, 2 * WIDTH, 2 * HEIGHT))
    add_prediction(evaluation, make, 100 * MS)
    add_cloud(evaluation, make, 100 * MS)
    assert evaluation.camera_notes == [
        "depth/image_rect: images are 32x24, their camera info is 64x48: its intrinsics are scaled"
    ]
    evaluation.add_camera_info(make.camera_info(0, 2 * WIDTH, HEIGHT))
    add_prediction(evaluation, make, 200 * MS)
    add_cloud(evaluation, make, 200 * MS)
    assert skipped(evaluation) == {"camera_info_wrong_aspect": 1}


SCORES = (0.3, 1 / 3, None, 1.7)


def info_of(score, widened_by=1.0):
    info = PredictionInfo(
        "raw", SampleRange(0, 8), 8, InForce(CORRECTION, "own", "why"), score, widened_by
    )
    return read_info(info_values(info))  # as it comes back from the message


@pytest.mark.parametrize("order", ["before", "after"])
def test_unfamiliarity_is_scored_live_as_it_is_offline(order, make, tmp_path):
    offline = Evaluation()
    evaluation = LiveEvaluation(
        EvaluatorNodeConfig(), FixedExtrinsics(IDENTITY), is_described=lambda: True
    )
    evaluation.add_camera_info(make.camera_info(0, WIDTH, HEIGHT))
    results = []
    for index, score in enumerate(SCORES, 1):
        stamp = 100 * index * MS
        if order == "before":
            results += evaluation.add_prediction_info(stamp, info_of(score))
        results += add_prediction(evaluation, make, stamp, seed=index)
        results += add_cloud(evaluation, make, stamp)
        if order == "after":  # another topic: it may come last
            assert len(results) == index - 1
            results += evaluation.add_prediction_info(stamp, info_of(score))
        scored = results[-1]
        prediction = replace(scored.prediction, unfamiliarity=score)
        name = frame_name(stamp)
        truth = scored.ground_truth_m
        offline.add(Frame(stamp, name, ground_truth_m=truth, prediction=prediction))
    tables = [each.table.rows() for each in (evaluation.evaluation, offline)]
    assert list(tables[0].dicts()) == list(tables[1].dicts())
    assert tables[0].column("unfamiliarity") == pytest.approx(
        [0.3, 1 / 3, np.nan, 1.7], nan_ok=True
    )
    verdicts = [judge(each, {}, None) for each in (evaluation.evaluation, offline)]
    assert verdicts[0] == verdicts[1]
    assert verdicts[0].lines[-1].checks[0].name == "unfamiliarity"
    summary = evaluation.evaluation.summary()["unfamiliarity"]
    assert summary == offline.summary()["unfamiliarity"]
    assert (summary["frames"], summary["max"], summary["fraction_above_1"]) == (3, 1.7, 1 / 3)
    saved_state.save(evaluation.evaluation, tmp_path, {}, tables[0].path.name)
    again = saved_state.read(tmp_path).evaluation
    assert again.summary()["unfamiliarity"] == summary


def test_a_missing_prediction_info_delays_few_frames(make):
    evaluation = LiveEvaluation(
        EvaluatorNodeConfig(), FixedExtrinsics(IDENTITY), is_described=lambda: True
    )
    evaluation.add_camera_info(make.camera_info(0, WIDTH, HEIGHT))
    for index in range(1, MAX_WITHOUT_INFO + 3):
        add_prediction(evaluation, make, 100 * index * MS)
        add_cloud(evaluation, make, 100 * index * MS)
    assert evaluation.evaluation.evaluated == 2
    evaluation.finish()
    assert evaluation.evaluation.frames()["evaluated"] == MAX_WITHOUT_INFO + 2
    assert evaluation.evaluation.summary()["unfamiliarity"]["frames"] == 0
