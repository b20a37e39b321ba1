# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""Chains of transforms, fixed, or moving while a robot drives between cloud and image."""

from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation

from test.frames.conftest import CAMERA, START_NS, image_at, pose_message, transform_message
from uncertainty_depth.core.config.source import SourceConfig
from uncertainty_depth.core.errors import ConfigError, SourceError
from uncertainty_depth.core.geometry.transforms import (
    interpolated,
    parameters_from,
    transform_from,
)
from uncertainty_depth.core.records import Frame, Skipped
from uncertainty_depth.frames.bag import BagSource
from uncertainty_depth.frames.messages.bag_writer import BagWriter
from uncertainty_depth.frames.messages.decoding import SECOND_NS
from uncertainty_depth.frames.transforms import BUFFER_NS, MovingFrame, Placed, TransformTree


def random_pose(rng: np.random.Generator) -> np.ndarray:
    return transform_from(*rng.normal(0, 2, 3), *rng.normal(0, 1, 4))


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32 - 1), frames=st.integers(2, 8))
def test_any_two_frames_of_a_random_tree_are_related_as_their_poses_say(seed, frames):
    rng = np.random.default_rng(seed)
    to_world = [random_pose(rng) for _ in range(frames)]
    tree = TransformTree()
    names = rng.permutation(frames)  # so that any of them may be the root
    for place in range(1, frames):
        parent, child = names[int(rng.integers(place))], names[place]
        tree.add(f"f{parent}", f"f{child}", np.linalg.inv(to_world[parent]) @ to_world[child])
    target, source = rng.integers(frames, size=2)
    expected = np.linalg.inv(to_world[target]) @ to_world[source]
    assert_allclose(tree.lookup(f"f{target}", f"/f{source}"), expected, atol=1e-9)


SHIFT = transform_from(1, 0, 0, 0, 0, 0, 1)


def test_a_frame_is_where_it_was_last_said_to_be_as_in_tf2():
    tree = TransformTree()
    tree.add("base", "camera", np.eye(4))
    tree.add("base", "lidar", transform_from(9, 9, 9, 0, 0, 0, 1))
    tree.add("base", "mast", SHIFT)
    assert tree.notes() == []
    tree.add("mast", "/lidar", SHIFT)
    assert_allclose(tree.lookup("camera", "lidar"), SHIFT @ SHIFT)
    (note,) = tree.notes()
    assert "'lidar' in 'base' and in 'mast': the last one said counts" in note
    tree.add("calibration", "lidar", SHIFT)
    assert not tree.is_connected("camera", "lidar")
    with pytest.raises(SourceError, match="no transform connects"):
        tree.lookup("camera", "lidar")


def test_a_frame_that_is_said_to_be_fixed_does_not_move():
    tree = TransformTree()
    tree.add("base", "lidar", SHIFT)
    tree.add_moving(SECOND_NS, "base", "lidar", SHIFT @ SHIFT)
    for time_ns in (None, SECOND_NS, 9 * SECOND_NS):
        assert_allclose(tree.lookup("base", "lidar", time_ns), SHIFT)


def test_a_moving_frame_changes_its_parent_at_the_time_that_is_said():
    """Between two parents it stays where it was in the first; tf2 does the same."""
    tree = TransformTree()
    tree.add("room", "table", transform_from(0, 5, 0, 0, 0, 0, 1))
    tree.add("room", "gripper", transform_from(0, 0, 5, 0, 0, 0, 1))
    for seconds, parent, x in ((0, "gripper", 0), (1, "gripper", 1), (2, "table", 7)):
        pose = transform_from(x, 0, 0, 0, 0, 0, 1)
        tree.add_moving(seconds * SECOND_NS, parent, "cup", pose)
    places = {0.5: (0.5, 0, 5), 1: (1, 0, 5), 1.5: (1, 0, 5), 2: (7, 5, 0)}
    for seconds, place in places.items():
        found = tree.lookup("room", "cup", int(seconds * SECOND_NS))
        assert_allclose(found[:3, 3], place, atol=1e-12)
    assert_allclose(tree.lookup("room", "cup")[:3, 3], (7, 5, 0))
    assert len(tree.notes()) == 1


def test_a_loop_of_parents_is_one_sentence():
    tree = TransformTree()
    for parent, child in (("a", "b"), ("b", "c"), ("c", "a")):
        tree.add(parent, child, SHIFT)
    assert_allclose(tree.lookup("a", "b"), SHIFT)
    with pytest.raises(SourceError, match="tf places 'a', 'c', 'b' in a loop"):
        tree.lookup("a", "elsewhere")


def stamped(parent, child, parameters):
    message = transform_message(0, parent, child, parameters[:3], parameters[3:])
    return message.transforms[0]


def message_of(*transforms):
    return SimpleNamespace(transforms=transforms)


@pytest.mark.parametrize(
    ("parent", "child"), [("lidar", "lidar"), ("/lidar", "lidar"), ("", "lidar"), ("lidar", "")]
)
def test_a_transform_that_does_not_name_two_frames_is_left_out_as_in_tf2(parent, child):
    tree = TransformTree()
    sound = stamped("base", "lidar", (1, 0, 0, 0, 0, 0, 1))
    odd = stamped(parent, child, (2, 0, 0, 0, 0, 0, 1))
    (sentence,) = tree.add_message(message_of(sound, odd))
    assert sentence.endswith("expected the names of two frames")
    assert_allclose(tree.lookup("base", "lidar"), SHIFT)
    assert tree.frames == ["base", "lidar"]


def test_a_fixed_frame_that_is_said_to_be_elsewhere_is_noted():
    tree = TransformTree()
    for x in (1, 1 + 1e-9):  # rounding
        tree.add_message(message_of(stamped("base", "lidar", (x, 0, 0, 0, 0, 0, 1))))
    assert tree.notes() == []
    tree.add_message(message_of(stamped("base", "lidar", (2, 0, 0, 0, 0, 0, 1))))
    (note,) = tree.copy().notes()
    assert note == (
        "tf gives 'lidar' several fixed poses in 'base': the last one said counts for all frames"
    )


@pytest.mark.parametrize("is_moving", [False, True])
@pytest.mark.parametrize(("length", "is_said"), [(2, True), (0.5, True), (1.005, False)])
def test_a_quaternion_of_another_length_is_scaled_and_said(length, is_said, is_moving):
    tree = TransformTree()
    turn = np.array([0.5, -0.5, 0.5, 0.5])
    tree.add_message(message_of(stamped("base", "lidar", (1, 2, 3, *length * turn))), is_moving)
    assert_allclose(tree.lookup("base", "lidar"), transform_from(1, 2, 3, *turn), atol=1e-12)
    assert ["of length" in note for note in tree.notes()] == [True] * is_said


def test_messages_are_poses_of_the_child_in_the_parent_and_later_ones_replace_earlier():
    pose = random_pose(np.random.default_rng(3))
    tree = TransformTree()
    tree.add_message(message_of(stamped("/base", "camera", (9, 9, 9, 0, 0, 0, 1))))
    tree.add_message(
        message_of(
            stamped("base", "/camera", parameters_from(pose)),
            stamped("base", "lidar", (1, 0, 0, 0, 0, 0, 1)),
        )
    )
    assert tree.frames == ["base", "camera", "lidar"]
    assert_allclose(tree.lookup("base", "camera"), pose, atol=1e-12)


@pytest.mark.parametrize(
    "parameters",
    [
        (0,) * 7,
        (0, 0, 0, 1e200, 1e200, 1e200, 1e200),
        (np.nan, 0, 0, 0, 0, 0, 1),
        (0,) * 6 + (1e-9,),
    ],
    ids=["zero", "overflow", "nan", "tiny"],
)
def test_an_invalid_transform_is_reported_and_the_others_are_used(parameters):
    tree = TransformTree()
    sound = stamped("base", "lidar", (1, 0, 0, 0, 0, 0, 1))
    (sentence,) = tree.add_message(message_of(stamped("a", "b", parameters), sound))
    assert "the transform from 'b' to 'a' is left out" in sentence
    assert tree.frames == ["base", "lidar"]


PERIOD_NS = SECOND_NS // 5
DELAY_NS = SECOND_NS // 20  # from an image to its cloud
SPEED_M_PER_S = 15.0
TURN_RAD_PER_S = 0.5
FRAMES = 4
WALL_M = 60.0  # a wall across the road, in odom
THROUGH_ODOM = SourceConfig(fixed_frame="odom")
LIDAR_IN_BASE = transform_from(1.2, 0.1, 0.4, 0, 0, 0, 1)
CAMERA_IN_BASE = transform_from(1.0, 0, 0, -0.5, 0.5, -0.5, 0.5)


def base_pose(time_ns: int, turn_rad_per_s: float) -> np.ndarray:
    """Return the pose of the base in odom: it drives along x, and turns."""
    pose = np.eye(4)
    seconds = time_ns / SECOND_NS
    pose[:3, :3] = Rotation.from_euler("z", turn_rad_per_s * seconds).as_matrix()
    pose[0, 3] = SPEED_M_PER_S * seconds
    return pose


def wall_points(lidar_in_odom: np.ndarray) -> np.ndarray:
    """Return the (N, 4) points of the wall as the LiDAR sees them from there."""
    y, z = np.meshgrid(np.linspace(-20, 20, 81), np.linspace(-15, 15, 61))
    points = np.stack([np.full(y.size, WALL_M), y.ravel(), z.ravel(), np.ones(y.size)])
    seen = np.linalg.inv(lidar_in_odom) @ points
    return seen.T.astype(np.float32)


@pytest.fixture
def driving_bag(tmp_path):
    """Write a drive towards the wall; /tf has the base in odom at `times_ns`.

    The LiDAR is on the base, or stands in odom.
    """

    def write(
        times_ns: Iterable[int], turn_rad_per_s: float = 0.0, lidar_on: str = "base"
    ) -> Path:
        with BagWriter(tmp_path / "bag") as writer:
            writer.static_transforms([("base", "camera", CAMERA_IN_BASE)])
            writer.static_transforms([(lidar_on, "lidar", LIDAR_IN_BASE)])
            for index in range(FRAMES):
                image_ns = START_NS + index * PERIOD_NS
                cloud_ns = image_ns + DELAY_NS
                lidar_in_odom = LIDAR_IN_BASE
                if lidar_on == "base":
                    lidar_in_odom = base_pose(cloud_ns - START_NS, turn_rad_per_s) @ LIDAR_IN_BASE
                writer.camera_info("/camera/camera_info", image_ns, "camera", CAMERA)
                writer.image("/camera/image", image_ns, "camera", image_at(index))
                writer.cloud("/lidar/points", cloud_ns, "lidar", wall_points(lidar_in_odom))
            for time_ns in times_ns:
                stamp_ns = START_NS + time_ns
                pose = base_pose(time_ns, turn_rad_per_s)
                writer.message("/tf", stamp_ns, pose_message(stamp_ns, "odom", "base", pose))
        return tmp_path / "bag"

    return write


EVERY_130_MS = range(-PERIOD_NS, 6 * PERIOD_NS, 130_000_000)


def test_through_the_fixed_frame_the_wall_is_where_it_is_when_the_image_is_taken(driving_bag):
    bag = driving_bag(EVERY_130_MS)
    compensated = list(BagSource(bag, THROUGH_ODOM))
    plain = list(BagSource(bag, SourceConfig()))
    assert [type(record) for record in compensated + plain] == [Frame] * 2 * FRAMES
    for index, (moved, left) in enumerate(zip(compensated, plain, strict=True)):
        camera_x = CAMERA_IN_BASE[0, 3] + SPEED_M_PER_S * index * PERIOD_NS / SECOND_NS
        known = np.isfinite(moved.ground_truth_m)
        assert known.sum() > 100
        assert_allclose(moved.ground_truth_m[known], WALL_M - camera_x, atol=1e-4)
        # The cloud is 0.05 s later, and at 15 m/s 0.75 m nearer to the wall.
        left_m = left.ground_truth_m[np.isfinite(left.ground_truth_m)]
        assert_allclose(left_m, WALL_M - camera_x - 0.75, atol=1e-4)


def test_a_turn_is_interpolated_to_both_stamps(driving_bag):
    bag = driving_bag(EVERY_130_MS, TURN_RAD_PER_S)
    source = BagSource(bag, THROUGH_ODOM)
    for _ in range(2):
        for index, frame in enumerate(source):
            image_ns = index * PERIOD_NS
            camera_in_odom = base_pose(image_ns, TURN_RAD_PER_S) @ CAMERA_IN_BASE
            lidar_in_odom = base_pose(image_ns + DELAY_NS, TURN_RAD_PER_S) @ LIDAR_IN_BASE
            expected = np.linalg.inv(camera_in_odom) @ lidar_in_odom
            assert_allclose(frame.scan.lidar_to_camera, expected, atol=1e-9)
    assert "through 'odom' to the camera at the image's stamp" in source.notes[0]
    expected = np.linalg.inv(CAMERA_IN_BASE) @ LIDAR_IN_BASE
    assert_allclose(source.lidar_to_camera, expected, atol=1e-12)


def test_a_time_without_a_pose_is_one_counted_reason(driving_bag):
    """The image at 0.0 s has none, nor the cloud at 0.65 s: both ends of the lookup count."""
    records = list(BagSource(driving_bag([100_000_000, 620_000_000]), THROUGH_ODOM))
    assert [type(record) for record in records] == [Skipped, Frame, Frame, Skipped]
    assert {records[0].reason, records[3].reason} == {"no_ego_motion"}
    assert "at 1700000000.000000000 s" in records[0].message
    assert "at 1700000000.650000000 s" in records[3].message


@pytest.mark.parametrize(
    ("has_tf", "options", "error", "sentence"),
    [
        (
            True,
            {"fixed_frame": "map"},
            SourceError,
            "fixed_frame is 'map'; expected a frame that /tf",
        ),
        (
            True,
            {"fixed_frame": "odom", "lidar_to_camera": (0, 0, 0, 0, 0, 0, 1)},
            ConfigError,
            "fixed_frame is 'odom'; expected one of them",
        ),
        (
            True,
            {"odometry_frame": "map"},
            SourceError,
            "odometry_frame is 'map', which /tf does not connect with the camera frame 'camera'",
        ),
        (
            False,
            {"odometry_frame": "odom"},
            SourceError,
            "odometry_frame is 'odom', which no /tf connects with",
        ),
    ],
)
def test_what_no_transform_moves_is_refused_before_the_first_frame(
    has_tf, options, error, sentence, driving_bag, write_bag
):
    bag = driving_bag(EVERY_130_MS) if has_tf else write_bag()
    with pytest.raises(error, match=sentence):
        BagSource(bag, SourceConfig(**options))


BY_ODOMETRY = SourceConfig(odometry_frame="odom")


def test_odometry_gives_each_image_the_pose_of_its_stamp(driving_bag):
    frames = list(BagSource(driving_bag(EVERY_130_MS, TURN_RAD_PER_S), BY_ODOMETRY))
    assert len(frames) == FRAMES
    for index, frame in enumerate(frames):
        expected = base_pose(index * PERIOD_NS, TURN_RAD_PER_S) @ CAMERA_IN_BASE
        assert_allclose(frame.pose, expected, atol=1e-9)


def test_an_image_outside_the_odometry_has_no_pose_and_is_counted(driving_bag):
    source = BagSource(driving_bag([100_000_000, 620_000_000]), BY_ODOMETRY)
    assert [frame.pose is None for frame in source] == [True, False, False, False]
    assert any("1 images have no pose in 'odom'; the first: " in note for note in source.notes)


def test_an_image_without_a_cloud_keeps_its_place_in_the_drive(driving_bag):
    config = SourceConfig(odometry_frame="odom", max_time_difference=0.01)
    records = list(BagSource(driving_bag(EVERY_130_MS), config))
    assert [type(record) for record in records] == [Skipped] * FRAMES
    for index, record in enumerate(records):
        assert record.frame.image is not None
        assert_allclose(record.frame.pose, base_pose(index * PERIOD_NS, 0) @ CAMERA_IN_BASE)


def test_a_camera_that_tf_static_fixes_to_the_odometry_is_said(driving_bag):
    source = BagSource(driving_bag(EVERY_130_MS), SourceConfig(odometry_frame="base"))
    assert any("there is no motion to measure by" in note for note in source.notes)


def test_the_pose_of_a_lidar_that_is_not_on_the_robot_is_interpolated_at_its_clouds_stamp(
    driving_bag,
):
    source = BagSource(driving_bag(EVERY_130_MS, TURN_RAD_PER_S, "odom"), SourceConfig())
    for _ in range(2):
        records = list(source)
        assert [type(record) for record in records] == [Frame] * FRAMES
        for index, frame in enumerate(records):
            base = base_pose(index * PERIOD_NS + DELAY_NS, TURN_RAD_PER_S)
            expected = np.linalg.inv(base @ CAMERA_IN_BASE) @ LIDAR_IN_BASE
            assert_allclose(frame.scan.lidar_to_camera, expected, atol=1e-9)
    assert source.lidar_to_camera is None
    assert any("/tf" in note and "at each cloud's stamp" in note for note in source.notes)


def test_frames_outside_the_recorded_transforms_are_skipped_with_the_times(driving_bag):
    times_ns = [PERIOD_NS, 2 * PERIOD_NS]  # the cloud of image 1 alone lies between
    source = BagSource(driving_bag(times_ns, TURN_RAD_PER_S, "odom"), SourceConfig())
    records = list(source)
    assert [type(record) for record in records] == [Skipped, Frame, Skipped, Skipped]
    for record in (records[0], *records[2:]):
        assert record.reason == "no_extrinsics"
        assert "'lidar' to 'camera' at" in record.message
    assert "1700000000.200000000 s to 1700000000.400000000 s" in records[-1].message
    (note,) = (note for note in source.notes if "--lidar-to-camera " in note)
    numbers = note.split("--lidar-to-camera ")[1].split(";")[0].split()
    first = np.linalg.inv(base_pose(PERIOD_NS, TURN_RAD_PER_S) @ CAMERA_IN_BASE) @ LIDAR_IN_BASE
    assert_allclose([float(number) for number in numbers], parameters_from(first))


def test_rotations_are_interpolated_on_the_shortest_arc():
    after = transform_from(2, 0, 0, 0, 0, 1, 0)  # half a turn about z
    quarter = interpolated(np.eye(4), after, 0.5)
    assert_allclose(np.abs(parameters_from(quarter)), [1, 0, 0, 0, 0, 0.5**0.5, 0.5**0.5])
    same = transform_from(0, 0, 0, 0, 0, 0, -1)
    assert_allclose(interpolated(np.eye(4), same, 0.5), np.eye(4), atol=1e-12)


def in_base(time_ns: int) -> Placed:
    return Placed("base", base_pose(time_ns, TURN_RAD_PER_S))


def test_poses_older_than_the_buffer_are_forgotten():
    mast = MovingFrame("mast")
    for index in range(2000):
        mast.add(index * SECOND_NS // 10, in_base(0))
    assert len(mast) <= BUFFER_NS // (SECOND_NS // 10) + 1
    with pytest.raises(SourceError, match=r"'mast' in 'base' from 189\.9"):
        mast.at(0)


def test_the_buffer_is_emptied_where_time_jumps_back():
    mast = MovingFrame("mast")
    mast.add(8 * SECOND_NS, in_base(8 * SECOND_NS))
    mast.add(0, in_base(0))
    mast.add(SECOND_NS, in_base(SECOND_NS))
    with pytest.raises(SourceError, match=r"from 0\.0+ s to 1\.0+ s"):
        mast.at(4 * SECOND_NS)


def test_poses_that_come_out_of_order_are_sorted_and_a_repeated_stamp_replaced():
    mast = MovingFrame("mast")
    for time_ns in (0, SECOND_NS, SECOND_NS // 2):
        mast.add(time_ns, in_base(time_ns))
    mast.add(SECOND_NS // 2, in_base(SECOND_NS // 2))
    assert len(mast) == 3
    parent, pose = mast.at(SECOND_NS // 4)
    assert parent == "base"
    assert_allclose(pose, base_pose(SECOND_NS // 4, TURN_RAD_PER_S), atol=1e-12)
