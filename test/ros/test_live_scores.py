# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Live messages: each prediction is scored or counted with its reason, as from its bag."""

import csv
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from test.conftest import frame_lines
from test.ros.conftest import HEIGHT, MS, POSE, WIDTH, maps
from uncertainty_depth.core.config.nodes import EvaluatorNodeConfig
from uncertainty_depth.core.config.scoring import HeldOutConfig
from uncertainty_depth.core.config.source import ProjectionConfig
from uncertainty_depth.core.records import Frame, SampleRange
from uncertainty_depth.frames.messages.camera_info import rectifier_from_info
from uncertainty_depth.frames.messages.decoding import frame_name
from uncertainty_depth.frames.transforms import FixedExtrinsics
from uncertainty_depth.report.evaluation import Evaluation
from uncertainty_depth.report.verdict import judge
from uncertainty_depth.ros.live_scores import MAX_LATE, LiveFrame, LiveScores
from uncertainty_depth.ros.messages import (
    INFO_TOPIC,
    PredictionInfo,
    info_values,
    points_message,
    read_info,
)
from uncertainty_depth.sigma.online.correction import AppliedCorrection

TRUTH_INFO = "ground_truth/camera_info"
LENS = [-0.28, 0.07, 0.0, 0.0, 0.0]
PLANE = np.column_stack([np.linspace(-1, 1, 200), np.linspace(-1, 1, 200), np.full(200, 4.0)])


class Robot:
    """A run, and messages for it: stamps in milliseconds."""

    def __init__(self, make, published=(), info=True, **options):
        config = EvaluatorNodeConfig(**options)
        extrinsics = None
        if not config.use_ground_truth_image:
            poses = ProjectionConfig(lidar_to_camera=config.lidars * POSE)
            extrinsics = FixedExtrinsics(poses, config.lidars)
        self.make = make
        self.run = LiveScores(config, extrinsics, lambda topic: topic in published)
        self.results = []
        if info:
            self.info(0)

    def add(self, topic, message):
        """Return what the message decides."""
        results = list(self.run.add(topic, message))
        self.results += results
        return results

    def info(self, stamp, topic="depth/camera_info", **fields):
        return self.add(topic, self.make.camera_info(stamp * MS, **fields))

    def map(self, topic, stamp, seed=0, size=(HEIGHT, WIDTH), **fields):
        values = maps(seed, size)[topic == "uncertainty"]
        message = self.make.image(stamp * MS, values)
        for name, value in fields.items():
            setattr(message, name, value)
        return self.add(f"{topic}/image_rect", message)

    def predict(self, stamp, seed=0):
        return self.map("depth", stamp, seed) + self.map("uncertainty", stamp, seed)

    def scan(self, stamp, points=None, **options):
        points = self.make.points_on_plane() if points is None else points
        return self.add("lidar/points", self.make.cloud(points, stamp * MS, **options))

    def frame(self, stamp, seed=0):
        """Return what a prediction and its cloud decide."""
        return self.predict(stamp, seed) + self.scan(stamp)

    def truth(self, stamp, depth_m):
        return self.add("ground_truth/image", self.make.image(stamp * MS, depth_m))

    def finish(self):
        self.results += self.run.finish()
        return self.frames()

    def frames(self):
        return self.run.evaluation.frames()

    @property
    def skipped(self):
        return dict(self.run.evaluation.skipped)


def test_a_camera_info_that_alternates_does_not_flood_the_log(make, caplog):
    robot = Robot(make)
    for stamp in range(1, 40):
        without = {"distortion_model": "equidistant", "d": 4 * [0.0]}
        robot.info(stamp, **without if stamp % 2 else {})
    (warning,) = (record for record in caplog.records if "equidistant" in record.getMessage())
    assert warning.getMessage() in robot.run.notes()


def test_a_frame_waits_for_the_description_that_says_what_was_held_out(make):
    robot = Robot(make, published={"depth/model"})
    assert robot.frame(100) == []
    assert robot.finish()["evaluated"] == 1, "it never came"


def clearing_cloud(robot):
    """Send the node's own `points/clearing`, as if it were remapped to the LiDAR."""
    robot.predict(100)
    rows = np.column_stack((PLANE, np.full(len(PLANE), 2.0))).astype(np.float32)
    layout = [(name, np.float32) for name in ("x", "y", "z", "clearing_sigmas")]
    message = points_message(rows.view(layout)[:, 0], robot.make.header(100 * MS))
    robot.add("lidar/points", message)


def short_cloud(robot):
    robot.predict(100)
    cloud = robot.make.cloud(PLANE, 100 * MS)
    cloud.data = cloud.data[:-4]
    robot.add("lidar/points", cloud)


def mapped(**sigma):
    def act(robot):
        robot.map("depth", 100)
        robot.map("uncertainty", 100, **sigma)
        robot.scan(100)

    return act


def scanned(points=None, stamp=100, **options):
    def act(robot):
        robot.predict(100)
        robot.scan(stamp, points, **options)

    return act


def unstamped(robot):
    robot.map("depth", 0)
    robot.map("uncertainty", 0)
    robot.scan(0)


def repeated(robot):
    robot.map("depth", 300)  # another comes with the sound frame


def with_info(**fields):
    def act(robot):
        robot.info(50, **fields)
        robot.frame(100)

    return act


FAULTS = [
    ("uncertainty_wrong_size", mapped(size=(5, 5))),
    ("image_unknown_encoding", mapped(encoding="64FC3")),
    ("cloud_of_prediction", clearing_cloud),
    ("cloud_wrong_size", short_cloud),
    ("cloud_without_xyz", scanned(names="abc")),
    ("cloud_without_points", scanned(np.full((30, 3), np.nan))),
    ("cloud_without_points", scanned(np.empty((0, 3)))),
    ("no_lidar_point_in_view", scanned(-PLANE)),
    ("no_valid_pixel", scanned(50 * PLANE)),
    ("no_lidar_within_max_time_difference", scanned(stamp=151)),
    ("unusable_stamp", unstamped),
    ("repeated_stamp", repeated),
    ("no_lidar_within_max_time_difference", scanned(stamp=0)),
    ("camera_info_zero", with_info(k=np.zeros(9), p=np.zeros(12))),
    ("camera_info_wrong_aspect", with_info(width=2 * WIDTH)),
    ("depth_without_uncertainty", lambda robot: robot.map("depth", 100)),
    ("uncertainty_without_depth", lambda robot: robot.map("uncertainty", 100)),
]


@pytest.mark.parametrize(("reason", "act"), FAULTS)
def test_a_faulty_message_is_a_counted_frame_and_costs_no_other(make, reason, act):
    robot = Robot(make)
    act(robot)
    if "camera_info" in reason:
        robot.info(200)
    robot.frame(300)
    assert robot.finish() == {"read": 2, "evaluated": 1, "skipped": {reason: 1}}
    assert [type(result) for result in robot.results].count(LiveFrame) == 1
    assert robot.run.frames.images == 2
    assert len(robot.run.frames) == 0


class Failing(FixedExtrinsics):
    """Raises what no message should."""

    def lookup(self, camera, cloud, lidar=0):
        raise OverflowError("Python int too large to convert to C long")


def test_whatever_a_frame_raises_is_a_counted_frame(make):
    robot = Robot(make)
    robot.run = LiveScores(EvaluatorNodeConfig(), Failing(ProjectionConfig(POSE)))
    robot.info(0)
    (result,) = robot.frame(100)
    assert result.reason == "unreadable"
    assert "OverflowError: Python int too large" in result.message
    assert (robot.skipped, len(robot.run.frames)) == ({"unreadable": 1}, 0)


def test_frames_wait_for_a_silent_lidar_no_longer_than_the_queue_holds(make):
    robot = Robot(make, lidars=2, queue_size=3)
    for index in range(1, 9):
        robot.scan(100 * index)
        robot.predict(100 * index)
        assert robot.frames()["evaluated"] == max(0, index - 3)
    assert robot.run.frames.counts["scored_without_lidar2/points"] == 5


def test_frames_wait_for_a_camera_info_that_comes_late_but_no_more_than_the_queue_holds(make):
    robot = Robot(make, info=False, queue_size=2)
    for stamp in (100, 200, 300):
        robot.frame(stamp)
    assert robot.skipped == {"no_camera_info": 1}
    assert (robot.run.frames.images, len(robot.run.frames)) == (3, 2)
    assert len(robot.info(0)) == 2
    assert robot.finish()["evaluated"] == 2
    assert len(robot.run.frames) == 0
    robot = Robot(make, info=False)
    robot.frame(100)
    robot.finish()
    assert robot.skipped == {"no_camera_info": 1}


def held_bytes(robot, send, messages):
    """Return what is still allocated after so many messages, 100 ms apart."""
    tracemalloc.start()
    try:
        for number in range(messages):
            send(100 * (number + 1))
            robot.results.clear()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("topic", ["depth", "uncertainty", "lidar/points", "depth/camera_info"])
def test_one_topic_alone_however_much_comes_fills_no_memory(make, topic):
    """200 messages of 15 kB, of which the queue holds 30, and 64 camera infos that differ."""
    robot = Robot(make, info=False)
    points = np.ones((1280, 3))
    send = {
        "lidar/points": lambda stamp: robot.scan(stamp, points),
        "depth/camera_info": lambda stamp: robot.info(stamp, d=list(range(stamp, stamp + 1920))),
    }.get(topic, lambda stamp: robot.map(topic, stamp, size=(64, 60)))
    assert held_bytes(robot, send, 200) < 1.5e6


def test_an_unusable_camera_info_keeps_no_message_alive(make):
    """The frames that it skips, of 60 kB each, are gone with their reason."""
    robot = Robot(make, info=False)
    robot.info(0, k=np.zeros(9), p=np.zeros(12))

    def send(stamp):
        for topic in ("depth", "uncertainty"):
            robot.map(topic, stamp, size=(128, 120))
        robot.scan(stamp)

    assert held_bytes(robot, send, 99) < 3e6
    assert robot.skipped == {"camera_info_zero": 99}


def test_a_bag_that_loops_keeps_the_scores_and_goes_on(make):
    robot = Robot(make)
    for _ in range(3):
        for stamp in range(100, 600, 100):
            robot.scan(stamp)
            robot.predict(stamp)
    assert robot.finish() == {"read": 15, "evaluated": 15, "skipped": {}}
    assert robot.run.frames.counts["cloud_time_jumps"] == 2


def test_ground_truth_images_are_scaled_to_the_maps_and_of_their_aspect(make):
    robot = Robot(make, use_ground_truth_image=True, info=False)
    half = np.linspace(2, 6, HEIGHT * WIDTH // 4, dtype=np.float32)
    half = half.reshape(HEIGHT // 2, WIDTH // 2)
    robot.predict(100)
    (scaled,) = robot.truth(100, half)
    expected = half.repeat(2, axis=0).repeat(2, axis=1)
    np.testing.assert_array_equal(scaled.ground_truth_m, expected)
    robot.predict(200)
    robot.truth(200, half[:5])
    robot.predict(300)
    robot.finish()
    assert robot.skipped == {
        "ground_truth_wrong_aspect": 1,
        "no_ground_truth_image_within_max_time_difference": 1,
    }


def test_a_raw_ground_truth_image_of_raw_maps_stays_as_it_is(make):
    depth_m, _ = maps(4)
    robot = Robot(make, use_ground_truth_image=True, info=False)
    for topic in ("depth/camera_info", TRUTH_INFO):
        robot.info(0, topic, d=LENS)
    robot.predict(100)
    (scored,) = robot.truth(100, depth_m)
    np.testing.assert_array_equal(scored.ground_truth_m, depth_m)


@pytest.mark.parametrize("missing", ["depth/camera_info", TRUTH_INFO])
def test_depth_images_whose_published_camera_info_never_comes_are_counted_not_scored(
    make, missing
):
    (came,) = {"depth/camera_info", TRUTH_INFO} - {missing}
    robot = Robot(
        make, published={came, missing}, use_ground_truth_image=True, queue_size=3, info=False
    )
    robot.info(0, came)
    for stamp in range(100, 600, 100):
        robot.predict(stamp)
        robot.truth(stamp, maps()[0])
    assert (robot.skipped, len(robot.run.frames)) == ({"no_camera_info": 2}, 3)
    assert robot.finish() == {"read": 5, "evaluated": 0, "skipped": {"no_camera_info": 5}}
    assert f"nothing has come on {missing}, which is published" in robot.results[0].message


def test_a_depth_image_has_the_camera_info_of_its_own_stamp(make):
    """The lens changes between the maps and their depth image, 20 ms later."""
    depth_m, _ = maps(4)
    robot = Robot(make, use_ground_truth_image=True)
    robot.info(0, TRUTH_INFO)
    robot.info(110, TRUTH_INFO, d=LENS)
    robot.info(200, TRUTH_INFO)
    robot.predict(100)
    (scored,) = robot.truth(120, depth_m)
    rectified_m = rectifier_from_info(make.camera_info(0, d=LENS)).depth(depth_m)
    np.testing.assert_array_equal(scored.ground_truth_m, rectified_m)


def test_a_ground_truth_image_of_another_view_is_not_said_to_be_a_lidar_s(make):
    robot = Robot(make, use_ground_truth_image=True)
    elsewhere = make.camera_info(0, d=LENS)
    elsewhere.p[2] += 100 * WIDTH
    robot.add("ground_truth/camera_info", elsewhere)
    robot.predict(100)
    robot.truth(100, np.full((HEIGHT, WIDTH), 4.0, np.float32))
    assert robot.skipped == {"no_valid_pixel": 1}


BEHIND = np.tile([[0.0, 0.0, -4.0]], (2000, 1))


@pytest.mark.parametrize(
    ("points", "percent"),
    [(np.concatenate((BEHIND, -BEHIND[:1])), "0.05%"), (BEHIND, "0.00%")],
    ids=["scored", "skipped"],
)
def test_a_wrong_geometry_is_reported_until_the_next_run(make, points, percent):
    robot = Robot(make)
    robot.predict(100)
    robot.scan(100, points)
    (told,) = robot.run.check.warnings()
    assert f"only {percent} of the LiDAR's points fall into the image" in told
    assert told in robot.run.notes()
    assert robot.run.restarted().check.warnings() == []


def test_a_new_run_forgets_everything_but_the_camera(make):
    robot = Robot(make)
    robot.predict(100)
    robot.scan(300)
    config = robot.run.held_out = HeldOutConfig(0.5)
    robot.run = robot.run.restarted()
    assert robot.run.held_out is config, "the LiDAR still corrects"
    robot.run.held_out = None
    assert robot.frames() == {"read": 0, "evaluated": 0, "skipped": {}}
    robot.frame(100)
    assert robot.frames()["evaluated"] == 1


def test_a_camera_info_of_another_size_is_scaled_and_noted_and_its_camera_kept(make):
    """Its rays, which clouds are made with, are kept as long as the camera is the same object."""
    robot = Robot(make, info=False)
    for stamp in (100, 200):
        robot.info(stamp, width=2 * WIDTH, height=2 * HEIGHT)
        robot.frame(stamp)
    first, second = (scored.camera for scored in robot.results)
    assert first is second
    assert (first.width, first.intrinsics[0, 0]) == (WIDTH, 20.0)
    (note,) = robot.run.frames.cameras.notes
    assert note.endswith("images are 32x24, their camera info is 64x48: its intrinsics are scaled")


SCORES = (0.3, 1 / 3, None, 1.7)


def info_of(score, measured=()):
    in_force = AppliedCorrection(1.0, "own", "why")
    info = PredictionInfo("raw", SampleRange(0, 8), 8, in_force, score, measured)
    return read_info(info_values(info))  # as it comes back from the message


def test_a_prediction_without_a_cloud_waits_for_no_camera_info(make):
    """It cannot be scored in any case, and is counted as soon as that is known."""
    robot = Robot(make, info=False, published={"depth/camera_info"})
    robot.predict(100)
    assert len(robot.scan(900)) == 1


def test_a_pixel_that_was_measured_and_its_neighbours_are_not_scored(make):
    alone, corrected = (Robot(make, published={INFO_TOPIC}) for _ in range(2))
    for robot, measured in ((alone, ()), (corrected, (5 * WIDTH + 7,))):
        robot.results += robot.run.add_info(100 * MS, info_of(None, measured))
        robot.frame(100)
    truth_m, left_m = (robot.results[0].ground_truth_m for robot in (alone, corrected))
    beside = np.zeros(truth_m.shape, bool)
    beside[4:7, 6:9] = True
    assert np.isnan(left_m[beside]).all()
    assert_array_equal(left_m[~beside], truth_m[~beside])


def test_a_measured_pixel_outside_the_image_costs_its_frame_alone(make):
    robot = Robot(make, published={INFO_TOPIC})
    robot.results += robot.run.add_info(100 * MS, info_of(None, (WIDTH * HEIGHT,)))
    robot.frame(100)
    assert robot.results[0].reason == "prediction_info"


@pytest.mark.parametrize("order", ["before", "after"])
def test_unfamiliarity_is_scored_live_as_it_is_offline(order, make):
    offline = Evaluation()
    robot = Robot(make, published={INFO_TOPIC})
    for index, score in enumerate(SCORES, 1):
        stamp = 100 * index
        if order == "before":
            robot.results += robot.run.add_info(stamp * MS, info_of(score))
        robot.frame(stamp, seed=index)
        if order == "after":  # another topic: it may come last
            assert len(robot.results) == index - 1
            robot.results += robot.run.add_info(stamp * MS, info_of(score))
        frame = robot.results[-1]
        prediction = replace(frame.prediction, unfamiliarity=score)
        offline.add(
            Frame(
                stamp * MS, frame_name(stamp * MS), frame.camera,
                ground_truth_m=frame.ground_truth_m, prediction=prediction,
            )
        )  # fmt: skip
    evaluation = robot.run.evaluation
    tables = [list(csv.DictReader(frame_lines(each))) for each in (evaluation, offline)]
    assert tables[0] == tables[1]
    assert [float(row["unfamiliarity"]) for row in tables[0]] == pytest.approx(
        [0.3, 1 / 3, np.nan, 1.7], nan_ok=True
    )
    verdicts = [judge(each, {"method": "mc_dropout"}, None) for each in (evaluation, offline)]
    assert verdicts[0] == verdicts[1]
    assert verdicts[0].lines[-1].checks[0].name == "unfamiliarity"
    summary = evaluation.summary()["unfamiliarity"]
    assert summary == offline.summary()["unfamiliarity"]
    assert (summary["frames"], summary["max"], summary["fraction_above_1"]) == (3, 1.7, 1 / 3)


def test_what_the_depth_was_multiplied_by_is_told_with_its_scores(make):
    robot = Robot(make, published={INFO_TOPIC})
    for stamp, factor in ((100, 1.0), (200, 1.25), (300, 1.5)):
        scaled = AppliedCorrection(1.0, "own", "", factor, 0.01, "")
        robot.run.add_info(stamp * MS, replace(info_of(0.3), in_force=scaled))
        robot.frame(stamp)
    (note,) = (note for note in robot.run.notes() if "multiplied" in note)
    assert note.startswith("the depth of 2 of 3 frames was multiplied by 1.25 to 1.50")


def test_a_missing_prediction_info_delays_few_frames(make):
    robot = Robot(make, published={INFO_TOPIC})
    for index in range(1, MAX_LATE + 3):
        robot.frame(100 * index)
    assert robot.frames()["evaluated"] == 2
    assert robot.finish()["evaluated"] == MAX_LATE + 2
    assert robot.run.evaluation.summary()["unfamiliarity"]["frames"] == 0


@pytest.mark.parametrize(
    ("fraction", "reason"),
    [(0.0, "would_score_its_input"), (1e-9, "no_depth_held_out"), (0.9, "")],
)
def test_what_corrected_a_prediction_is_not_scored(make, fraction, reason):
    robot = Robot(make)
    robot.run.held_out = HeldOutConfig(fraction)
    (result,) = robot.frame(100)
    if reason:
        assert (result.reason, robot.skipped) == (reason, {reason: 1})
        return
    (full,) = Robot(make).frame(100)
    known = np.isfinite(result.ground_truth_m).sum()
    assert 0.3 < known / np.isfinite(full.ground_truth_m).sum() < 0.9


@pytest.mark.parametrize("first", ["map", "camera info"])
@pytest.mark.parametrize("of", ["depth/camera_info", TRUTH_INFO])
def test_a_zoom_lens_gives_maps_and_ground_truth_the_camera_info_of_their_stamp(make, first, of):
    """Whatever comes first: not the one before, of another focal length."""
    zoom = {100: 40.0, 200: 45.0, 300: 60.0}
    is_truth = of == TRUTH_INFO
    robot = Robot(make, {"depth/camera_info", of}, use_ground_truth_image=is_truth, info=is_truth)
    depth_m = np.tile(np.linspace(2, 6, WIDTH, dtype=np.float32), (HEIGHT, 1))
    lens = {"d": LENS} if is_truth else {}
    for stamp, focal in zoom.items():
        if first == "camera info":
            robot.info(stamp, of, focal=focal, **lens)
        robot.predict(stamp)
        decided = robot.truth(stamp, depth_m) if is_truth else robot.scan(stamp)
        if first == "map":
            assert decided == [], "it waits"
            robot.info(stamp, of, focal=focal, **lens)
    robot.finish()
    assert robot.frames()["evaluated"] == len(zoom)
    for frame, (stamp, focal) in zip(robot.results, zoom.items(), strict=True):
        if is_truth:
            info = make.camera_info(stamp * MS, focal=focal, **lens)
            expected = rectifier_from_info(info).depth(depth_m)
            np.testing.assert_array_equal(frame.ground_truth_m, expected)
        else:
            assert frame.camera.intrinsics[0, 0] == focal
            (note,) = [note for note in robot.run.notes() if "camera_info changes" in note]
            assert "changes 2 times, first at 0.200000000 s" in note


def test_maps_that_name_no_frame_are_in_the_frame_of_their_camera_info(make):
    looked_up = []

    class Poses(FixedExtrinsics):
        def lookup(self, camera, cloud, lidar=0):
            looked_up.append(camera.frame)
            return super().lookup(camera, cloud, lidar)

    robot = Robot(make)
    robot.run = LiveScores(EvaluatorNodeConfig(), Poses(ProjectionConfig(lidar_to_camera=POSE)))
    robot.info(0)
    header = make.header(100 * MS, "")
    for topic in ("depth", "uncertainty"):
        robot.map(topic, 100, header=header)
    (frame,) = robot.scan(100)
    assert isinstance(frame, LiveFrame)
    assert looked_up == ["camera"]
