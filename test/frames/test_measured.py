# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""What other topics of a bag measure in its images: a SLAM's points, a stereo camera's depth."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from test.frames.conftest import CAMERA, START_NS, image_at, pose_message
from uncertainty_depth.core.config.predictor import PredictorConfig
from uncertainty_depth.core.config.source import PredictionConfig, PredictionTopics, SourceConfig
from uncertainty_depth.core.errors import ConfigError, MessageError, SourceError
from uncertainty_depth.core.geometry.transforms import transform_from
from uncertainty_depth.core.measurements import MAX_MEASUREMENTS
from uncertainty_depth.frames.bag import BagSource
from uncertainty_depth.frames.measured import DepthOfTopic, MeasuredTopic
from uncertainty_depth.frames.messages.bag_writer import BagWriter
from uncertainty_depth.frames.messages.decoding import SECOND_NS
from uncertainty_depth.frames.transforms import Viewpoint
from uncertainty_depth.stream.held_out import without_measured
from uncertainty_depth.stream.job import Job
from uncertainty_depth.stream.stream import Stream

FRAMES = 4
PERIOD_NS = SECOND_NS // 5
LATE_NS = SECOND_NS // 20  # from an image to what is measured
SPEED_M_PER_S = 15.0
WALL_M = 60.0  # across the road, in odom
OPTICAL = transform_from(0, 0, 0, -0.5, 0.5, -0.5, 0.5)
POINTS = SourceConfig(measured_points_topic="/slam/points")
DEPTH = SourceConfig(measured_depth_topic="/stereo/depth")


def wall(x):
    """Points of a wall at x, as the base or odom has them, (N, 4)."""
    y, z = np.meshgrid(np.linspace(-20, 20, 81), np.linspace(-15, 15, 61))
    return np.stack([np.full(y.size, x), y.ravel(), z.ravel(), np.ones(y.size)], axis=1)


def stereo_at(index):
    """A stereo camera's depth, with holes."""
    depth = np.full((CAMERA.height, CAMERA.width), 5.0 + index, np.float32)
    depth[:, ::3] = 0
    return depth


def rgbd_bag(path, write_beside):
    """Write a bag whose ground truth is a depth image, and what `write_beside` adds to a frame."""
    with BagWriter(path) as writer:
        for index in range(FRAMES):
            image_ns = START_NS + index * PERIOD_NS
            writer.camera_info("/camera/camera_info", image_ns, "camera", CAMERA)
            writer.image("/camera/image", image_ns, "camera", image_at(index))
            writer.image("/camera/depth", image_ns, "camera", stereo_at(index))
            write_beside(writer, image_ns, index)
    return path


@pytest.fixture
def bag(tmp_path):
    """A drive towards a wall: the LiDAR's clouds, a SLAM's map in odom, and a stereo camera."""
    with BagWriter(tmp_path / "bag") as writer:
        writer.static_transforms([("base", "camera", OPTICAL), ("base", "lidar", np.eye(4))])
        for index in range(FRAMES):
            image_ns = START_NS + index * PERIOD_NS
            driven_m = SPEED_M_PER_S * index * PERIOD_NS / SECOND_NS
            writer.camera_info("/camera/camera_info", image_ns, "camera", CAMERA)
            writer.image("/camera/image", image_ns, "camera", image_at(index))
            late_ns = image_ns + LATE_NS
            writer.cloud("/lidar/points", image_ns, "lidar", wall(WALL_M - driven_m))
            writer.cloud("/slam/points", late_ns, "odom", wall(WALL_M)[::307])
            writer.image("/stereo/depth", late_ns, "camera", stereo_at(index))
            for topic, metres in (("depth", 40.0), ("sigma", 10.0)):
                image = np.full((CAMERA.height, CAMERA.width), metres, np.float32)
                writer.image(f"/network/{topic}", image_ns, "camera", image)
        for time_ns in range(-PERIOD_NS, 6 * PERIOD_NS, 50_000_000):
            pose = np.eye(4)
            pose[0, 3] = SPEED_M_PER_S * time_ns / SECOND_NS
            stamp_ns = START_NS + time_ns
            writer.message("/tf", stamp_ns, pose_message(stamp_ns, "odom", "base", pose))
    return tmp_path / "bag"


def test_points_of_a_map_are_where_the_camera_is_when_the_image_is_taken(bag):
    """Their message is 0.05 s later than the image, and the camera drives at 15 m/s."""
    source = BagSource(bag, POINTS)
    for index, frame in enumerate(source):
        depth_m = WALL_M - SPEED_M_PER_S * index * PERIOD_NS / SECOND_NS
        assert len(frame.measurements) > 2
        assert_allclose(frame.measurements.depth_m, depth_m, rtol=1e-6)
    (note,) = (note for note in source.notes if "/slam/points measured" in note)
    assert note.endswith("pixels per image, which are not scored")
    assert not any("lidar-to-camera" in note for note in source.notes), "the LiDAR is fixed"


def test_a_depth_image_measures_evenly_where_it_has_depth(bag):
    for index, frame in enumerate(BagSource(bag, replace(DEPTH, lidar_topic="/lidar/points"))):
        measured = frame.measurements
        assert 0 < len(measured) <= MAX_MEASUREMENTS
        assert_array_equal(measured.depth_m, 5.0 + index)
        assert (measured.columns % 3 != 0).all(), "a hole measures nothing"


def test_a_depth_image_in_another_frame_than_the_image_is_said(tmp_path):
    def write_stereo(writer, image_ns, index):
        writer.image("/stereo/depth", image_ns, "left_eye", stereo_at(index))

    source = BagSource(rgbd_bag(tmp_path / "bag", write_stereo), DEPTH)
    assert all(frame.measurements is not None for frame in source)
    (note,) = (note for note in source.notes if "'left_eye'" in note)
    assert "otherwise it corrects the wrong pixels" in note


def test_what_was_measured_and_its_neighbours_have_no_ground_truth(bag):
    plain = list(BagSource(bag, SourceConfig(lidar_topic="/lidar/points")))
    for frame, before in zip(without_measured(BagSource(bag, POINTS)), plain, strict=True):
        measured = frame.measurements.mask(frame.ground_truth_m.shape)
        assert np.isfinite(before.ground_truth_m[measured]).any()
        assert np.isnan(frame.ground_truth_m[measured]).all()
        assert np.isfinite(frame.ground_truth_m).any()


def test_an_image_without_a_message_in_time_measures_nothing_and_is_counted(tmp_path):
    def write_stereo(writer, image_ns, index):
        if index < 2:
            writer.image("/stereo/depth", image_ns, "camera", stereo_at(index))

    source = BagSource(rgbd_bag(tmp_path / "bag", write_stereo), DEPTH)
    assert [frame.measurements is None for frame in source] == [False, False, True, True]
    assert any("none in 2 of 4 images: 2 measured_at_another_time" in it for it in source.notes)


def test_the_ground_truth_cannot_measure_too(bag):
    config = SourceConfig(lidar_topic="/lidar/points", measured_points_topic="/lidar/points")
    with pytest.raises(SourceError, match="which is the ground truth of"):
        BagSource(bag, config)


def test_points_that_tf_does_not_place_are_refused_before_the_first_frame(tmp_path):
    def write_points(writer, image_ns, index):
        writer.cloud("/slam/points", image_ns, "map", wall(WALL_M))

    with pytest.raises(SourceError, match="'map', which no /tf connects") as refused:
        BagSource(rgbd_bag(tmp_path / "bag", write_points), POINTS)
    assert "lidar" not in str(refused.value).lower(), "no option of the LiDAR places points"


@pytest.mark.parametrize(
    ("measurements", "reading"), [("points", SourceConfig()), ("", DEPTH), ("points", DEPTH)]
)
def test_a_topic_that_measures_needs_its_name_in_measurements(bag, measurements, reading):
    predictor = PredictorConfig(measurements=measurements)
    job = Job(sources=(str(bag),), model="demo", reading=reading, predictor=predictor)
    with pytest.raises(ConfigError, match="expected both --measurements"):
        Stream.open(job)


def test_messages_that_nobody_asks_for_are_forgotten():
    """100 MiB each: two fit into the limit, and the others' images measure nothing."""
    topic = MeasuredTopic("/stereo/depth", DepthOfTopic(lambda time_ns: None))
    data = bytes(100 * 2**20)
    for second in range(1, 6):
        stamp = SimpleNamespace(sec=second, nanosec=0)
        header = SimpleNamespace(stamp=stamp, frame_id="camera")
        topic.add(SimpleNamespace(header=header, data=data))
    for second, reason in ((3, "measured_at_another_time"), (4, "image_undecodable")):
        with pytest.raises(MessageError) as refused:
            topic.measured(Viewpoint("camera", second * SECOND_NS), None, (24, 32))
        assert refused.value.reason == reason


def test_recorded_depth_of_any_network_is_corrected(bag):
    job = Job(
        sources=(str(bag),),
        topics=PredictionTopics(depth_topic="/network/depth", confidence_topic="/network/sigma"),
        meaning=PredictionConfig(confidence_type="sigma"),
        reading=POINTS,
    )
    measured = replace(job, predictor=PredictorConfig(measurements="points"))
    job = replace(job, reading=SourceConfig(lidar_topic="/lidar/points"))
    job.check()
    measured.check()
    wrong_m, corrected_m = (
        [np.nanmean(np.abs(it.prediction.depth_m - it.ground_truth_m)) for it in Stream.open(job)]
        for job in (job, measured)
    )
    assert len(corrected_m) == FRAMES
    assert np.max(np.array(corrected_m) / wrong_m) < 0.2


def test_a_topic_in_another_unit_measures_nothing_and_the_others_still_do(tmp_path):
    """As live: the frame stays, and what else measures it."""

    def write_both(writer, image_ns, index):
        writer.image("/stereo/depth", image_ns, "camera", 1000 * stereo_at(index))
        writer.cloud("/slam/points", image_ns, "camera", wall(5.0)[::7, [1, 2, 0, 3]])

    bag = rgbd_bag(tmp_path / "bag", write_both)
    reading = replace(DEPTH, measured_points_topic="/slam/points")
    predictor = PredictorConfig(measurements="points,depth", samples=1)
    stream = Stream.open(
        Job(sources=(str(bag),), model="demo", reading=reading, predictor=predictor)
    )
    frames = list(stream)
    assert len(frames) == FRAMES
    for frame in frames:
        assert_allclose(frame.measurements.depth_m, 5.0)
    (note,) = (note for note in stream.notes if "/stereo/depth measured" in note)
    assert f"none in {FRAMES} of {FRAMES} images: {FRAMES} sparse_depth_wrong_unit" in note
    assert "depth on /stereo/depth has a median of 5000, " in note
