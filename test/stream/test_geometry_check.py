# Copyright 2026 The uncertainty_depth developers. Licensed under the Apache License, Version 2.0.
"""The check of the geometry on synthetic worlds: silent on the true pose, loud on a wrong one."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from synthetic.config import SynthesisConfig
from synthetic.source import SyntheticSource
from uncertainty_depth.core.geometry.camera import ground_truth_from_cloud
from uncertainty_depth.core.geometry.transforms import (
    BODY_TO_OPTICAL,
    parameters_from,
    transform_from,
)
from uncertainty_depth.core.records import Frame, Scan, Skipped
from uncertainty_depth.stream.geometry_check import GeometryCheck


@pytest.fixture(scope="module")
def frames():
    config = SynthesisConfig(worlds=3, frames=1, seed=7, width=320, height=240, rings=64)
    return list(SyntheticSource(config))


def checked(frames: Sequence[Frame], change=lambda pose: pose, scale=1.0) -> GeometryCheck:
    """A check that has seen the frames with their pose changed, and their depths scaled."""
    check = GeometryCheck()
    for frame in frames:
        scan = Scan(frame.scan.points * scale, change(frame.scan.lidar_to_camera))
        depth_m = ground_truth_from_cloud(scan.points, scan.lidar_to_camera, frame.camera)
        check.see(replace(frame, ground_truth_m=depth_m, scan=scan))
    return check


def turn(axes: str, degrees) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_euler(axes, degrees, degrees=True).as_matrix()
    return pose


def in_millimetres(pose):
    changed = pose.copy()
    changed[:3, 3] *= 1000
    return changed


def w_first(pose):
    x, y, z, *vector, w = parameters_from(pose)
    return transform_from(x, y, z, w, *vector)


def test_the_true_pose_is_confirmed_without_a_warning(frames):
    check = checked(frames)
    assert check.warnings() == []
    assert check.summary()["edge_fit"] > 4
    assert check.outcome == "fits"
    assert "extrinsics look right (score " in check.description()


def test_a_pose_that_another_beats_is_never_said_to_look_right(frames):
    """Its own score may be enough alone: `info` said so one line above its warning."""
    check = GeometryCheck()
    for frame in frames:
        depth_m = np.roll(frame.ground_truth_m, 5, axis=1)
        depth_m[:, :64] = frame.ground_truth_m[:, :64]
        check.see(replace(frame, ground_truth_m=depth_m, scan=None))
    summary = check.summary()
    assert summary["edge_fit"] > 4, "it would pass alone"
    assert summary["outcome"] == "does not fit"
    assert "look right" not in check.description()


@pytest.mark.parametrize("degrees", [-3.0, 4.0])
def test_a_turned_camera_is_noticed_and_the_turn_measured(frames, degrees):
    aside = turn("yxz", [degrees, 0.3, 0.3])
    (warning,) = checked(frames, lambda pose: aside @ pose).warnings()
    assert "fits clearly better" in warning
    measured = float(warning.split("turned by about ")[1].split()[0])
    assert measured == pytest.approx(abs(degrees), abs=1.2)  # at the rim more


@pytest.mark.parametrize(
    ("mistake", "name"),
    [
        (np.linalg.inv, "the inverse of lidar_to_camera"),
        (lambda pose: pose @ pose, "applied twice"),
        (lambda pose: BODY_TO_OPTICAL @ pose, "without the step from body frame"),
        (lambda pose: BODY_TO_OPTICAL.T @ pose, "followed by body frame"),
        (lambda pose: pose @ turn("z", 90), "the LiDAR turned by 270 degrees"),
        (lambda pose: pose @ turn("x", 180), "the LiDAR upside down"),
        (w_first, "the quaternion read as w x y z"),
    ],
)
def test_a_common_mistake_is_named(frames, mistake, name):
    warnings = checked(frames, mistake).warnings()
    assert any(name in warning and "fits clearly better" in warning for warning in warnings)


def test_frames_that_are_skipped_because_no_point_is_in_view_are_looked_at(frames):
    check = GeometryCheck()
    for frame in frames:
        scan = Scan(frame.scan.points, BODY_TO_OPTICAL.T @ frame.scan.lidar_to_camera)
        unseen = np.full_like(frame.ground_truth_m, np.nan)
        turned = replace(frame, scan=scan, ground_truth_m=unseen)
        check.see(Skipped(frame.stamp_ns, "no_lidar_point_in_view", "", turned))
    assert any("of the LiDAR's points fall into the image" in it for it in check.warnings())


@pytest.mark.parametrize(
    ("rows", "columns", "name"),
    [(-1, -1, "rotated by 180 degrees"), (1, -1, "left to right"), (-1, 1, "top to bottom")],
)
def test_an_image_upside_down_or_mirrored_is_named(frames, rows, columns, name):
    check = GeometryCheck()
    for frame in frames:
        image = frame.image[::rows, ::columns]
        check.see(replace(frame, image=image))
    (warning,) = check.warnings()
    assert f"{name} fits clearly better" in warning
    assert check.outcome == "does not fit"


def test_depths_in_another_unit_are_named_without_an_image(frames):
    for scale, sentence in ((1000.0, "in millimetres"), (0.001, "1,000 times too small")):
        check = GeometryCheck()
        for frame in frames:
            check.see(Frame(0, "", ground_truth_m=frame.ground_truth_m * np.float32(scale)))
        (warning,) = check.warnings()
        assert sentence in warning


def test_a_translation_in_millimetres_is_named(frames):
    warnings = checked(frames, in_millimetres).warnings()
    assert any("its translation is in millimetres" in warning for warning in warnings)


def test_a_long_run_is_looked_at_ever_more_rarely():
    check = GeometryCheck()
    depth_m = np.full((4, 4), 2.0, np.float32)
    for _ in range(1000):
        check.see(Frame(0, "", ground_truth_m=depth_m))
    depth_m = np.full((4, 4), 9999.0, np.float32)
    for _ in range(1000):  # as many again, at most as many looks
        check.see(Frame(0, "", ground_truth_m=depth_m))
    assert check.median_depth_m == 2.0


def test_nothing_is_reported_before_the_first_frame():
    check = GeometryCheck()
    assert check.warnings() == []
    assert check.summary()["edge_fit"] is None
    assert check.outcome == "cannot tell"
